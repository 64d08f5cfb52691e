//! The example `device_speed` of the library with simulated devices, for a rehearsal of `tools/gpu_check.sh` without a GPU.

#[path = "../../../library/lockstep/examples/device_speed/main.rs"]
mod device_speed;

fn main() -> std::process::ExitCode {
    lockstep_lab_backends::register();
    device_speed::main()
}
