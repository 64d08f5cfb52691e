//! Links the shared library so that it stays in memory once loaded: its threads and its thread-local destructors may still run
//! its code after `dlclose`.

fn main() {
    // The result depends on the target only; a package in `lab` has the same script.
    println!("cargo:rerun-if-env-changed=CARGO_CFG_TARGET_OS");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "macos" && system != "windows" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
