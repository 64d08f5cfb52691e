//! The traits of RustCrypto: its own tests and vectors, and its implementations.

mod agreement;
mod errors;
mod vectors;
