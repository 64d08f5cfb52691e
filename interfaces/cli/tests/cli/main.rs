//! The command run as a process: exit codes, messages and files.

mod age_files;
mod bad_input;
mod bench;
mod calibrate;
mod common;
mod files;
mod foreign;
mod gpu;
mod json;
mod lab;
mod memory;
mod messages;
mod openssl;
mod openssl_conf;
mod output;
mod partial;
mod picture;
mod raw;
mod recipients;
mod reports;
mod secrets;
mod signals;
mod terminal;
mod text_files;
mod tree;
mod tree_changes;
mod width;

/// The program that is tested.
const LOCKSTEP: &str = env!("CARGO_BIN_EXE_lockstep");
