//! Links the module so that it stays in memory once loaded: exit handlers and threads may still run its code after
//! OpenSSL has closed it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
