//! Links the shared library so that it stays in memory once loaded: its threads and its thread-local destructors may still run
//! its code after `dlclose`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "macos" && system != "windows" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
