//! The library: streams, files, parts of messages, damaged messages and other implementations of the formats.

mod aead;
mod common;
mod files;
mod foreign;
mod incremental;
mod interop;
mod partial;
mod random_access;
mod residue;
mod secrets;
mod streams;
mod tampering;
mod writer;
