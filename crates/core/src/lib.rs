//! The core of Lockstep: keys, modes as recipes of passes, batches, the interface of backends, and the planner.
//!
//! - [`key`]: AES keys. [`data`]: where data lie. [`work`]: what a backend is asked to do. [`backend`]: what a
//!   backend is. [`planner`]: which device and kernel does it.
//!   [`timing`], [`calibrate`]: how long that takes. [`selftest`]: no kernel is used before it has
//!   proved itself. [`share`]: work shared out. [`group`]: several devices as one.
//! - [`messages`], [`register`], [`distinct`]: what devices that cut work into pieces have in common. [`cache`]: what is kept
//!   for the next process. [`environment`]: variables.
//! - [`mode`]: the modes of operation, as recipes of passes, for single messages and batches.
//! - [`stream`]: the same piece by piece.
//!
//! All of this is the raw material: nonces, padding and modes without authentication are in the caller's hands.
//! Users meet it as the module `hazmat` of the crate `lockstep`.
#![deny(unsafe_code)]

pub mod backend;
pub mod cache;
pub mod calibrate;
pub mod data;
pub mod distinct;
pub mod environment;
pub mod error;
#[cfg(any(test, feature = "suite"))]
pub mod far;
pub mod group;
pub mod key;
pub mod messages;
pub mod mode;
pub mod planner;
pub mod register;
pub mod selftest;
pub mod share;
pub mod stream;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
pub mod timing;
pub mod verify;
pub mod work;

pub use error::{Error, Result};
pub use key::{Block, Key, KeySize};
