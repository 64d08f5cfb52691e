//! Links the module with `-z nodelete`, so that it stays in memory once loaded. Exit handlers and threads may still run code of
//! the module after OpenSSL has closed it.

fn main() {
    // Cargo reruns this script only if the target changes, because the result depends on nothing else. A package in `lab` has
    // the same script.
    println!("cargo:rerun-if-env-changed=CARGO_CFG_TARGET_OS");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "macos" && system != "windows" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
