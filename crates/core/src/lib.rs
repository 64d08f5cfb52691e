//! The contract of Lockstep: what modes ask of devices, and what devices promise.
//!
//! - [`key`]: AES keys. [`data`]: where data lie. [`work`]: what a backend is asked to do. [`backend`]: what a
//!   backend and a device are. [`error`]: everything that can go wrong.
//! - [`chaining`]: how the state that links segments of a message moves on. [`gcm`]: the parts of GCM's definition that
//!   fused kernels and the mode share. [`share`]: segments cut into pieces for threads or devices.
//! - [`messages`], [`distinct`]: views of a call for devices with memory of their own.
//!
//! This crate neither chooses a device nor measures one, and it does not know how passes make a mode.
//! Users meet it in the module `hazmat` of the crate `lockstep`.
#![deny(unsafe_code)]

pub mod backend;
pub mod chaining;
pub mod data;
pub mod distinct;
pub mod error;
pub mod gcm;
pub mod key;
pub mod messages;
pub mod share;
mod span;
pub mod work;

pub use error::{Error, Result};
pub use key::{Block, Key, KeySize};
