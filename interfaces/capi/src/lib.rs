//! The C interface of Lockstep. `include/lockstep.h` is written from this crate by cbindgen, and docs/c.md is its manual.
//!
//! | module | contents |
//! |---|---|
//! | [`error`] | error codes, their texts, and the message of the thread |
//! | [`engine`] | the engine, its options and devices |
//! | [`aead`] | authenticated modes: keys, one message, batches |
//! | [`cipher`] | modes without authentication: keys, one message, batches |
//! | [`mac`], [`key_wrap`], [`hctr2`], [`cbc_cts`] | CMAC and GMAC; key wrap; HCTR2; CBC with ciphertext stealing |
//! | [`file_key`], [`buffer`], [`stream`], [`mod@file`], [`reader`] | the file format: keys, buffers, streams, files, random access |
//! | [`device`], [`device_work`], [`device_table`] | device memory; work on it; messages that arrays in device memory describe |
//! | [`parquet`], [`parquet_modules`] | encrypted Parquet files; modules of such files in host or device memory |
//! | `ffi` | the contract with C; pointers as references and slices; panics as error codes |
//!
//! Each function catches panics, checks its pointers and lengths, and returns a code of [`error`]. The only state of the
//! library is the message of the last error of each thread.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "the contract of pointers is the same for all functions: it is at the beginning of the header and of the module `ffi`"
)]
#![allow(clippy::too_many_arguments, reason = "functions of C take pointers and lengths separately")]
#![allow(clippy::missing_safety_doc, reason = "as above")]

pub mod aead;
pub mod buffer;
pub mod cbc_cts;
pub mod cipher;
pub mod device;
pub mod device_table;
pub mod device_work;
pub mod engine;
pub mod error;
mod ffi;
pub mod file;
pub mod file_key;
pub mod hctr2;
pub mod key_wrap;
pub mod mac;
pub mod parquet;
pub mod parquet_modules;
pub mod reader;
pub mod stream;

use std::ffi::c_char;

/// Returns the version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn lockstep_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests;
