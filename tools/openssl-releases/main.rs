//! Prints the folder that holds OpenSSL's source, and its version.

fn main() {
    println!("{}", openssl_src::source_dir().display());
    println!("{}", openssl_src::version());
}
