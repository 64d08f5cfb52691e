//! Links the module so that it stays in memory once loaded: exit handlers and threads may still run its code after
//! OpenSSL has closed it.

fn main() {
    // The result depends on the target only; a package in `lab` has the same script.
    println!("cargo:rerun-if-env-changed=CARGO_CFG_TARGET_OS");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "macos" && system != "windows" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
