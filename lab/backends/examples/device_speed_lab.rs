//! Runs the example `device_speed` of the library on simulated devices, to rehearse its run on a GPU.

#[path = "../../../library/lockstep/examples/device_speed/main.rs"]
mod device_speed;

fn main() -> std::process::ExitCode {
    lockstep_lab_backends::register();
    device_speed::main()
}
