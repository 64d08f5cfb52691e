//! For tests only: the suite that every backend runs on each of its kernels, devices made for tests, and generators of inputs.
//!
//! - [`suite`] and [`backend_suite!`]: checks that compare results with those of the oracle, the crate `lockstep_reference`.
//! - [`properties`](mod@properties): random splits, batches and positions, by [`properties!`].
//! - [`mock`]: an asynchronous device with memory of its own, and a trusted device.
//! - `residue`: a search for keys in the memory of a process, on Linux.
#![deny(unsafe_code)]

mod absent;
pub mod mock;
#[cfg(not(target_family = "wasm"))]
pub mod properties;
#[cfg(target_os = "linux")]
pub mod residue;
pub mod suite;

pub use absent::absent_device;

/// Makes `cargo test` compile and run the code of docs/adding-a-backend.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-backend.md")]
pub struct AddingABackend;
