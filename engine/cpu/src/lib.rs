//! The CPU backend: AES instructions of x86-64 and Arm, and a bitsliced kernel for any processor.
//!
//! Each module depends only on modules in rows above its own:
//!
//! | module | content |
//! |---|---|
//! | [`kernel`] | the trait that kernels implement, and what all kernels share |
//! | `vectors`, [`soft`] | the kernels: AES instructions of x86-64 and of 64-bit Arm; bitsliced |
//! | `kernels` | the list of kernels |
//! | `host`, `threads` | data in host memory; distribution of large work over threads |
//! | `message` | GCM, GCM-SIV and OCB3, for messages at once and in pieces, generic over the kernel |
//! | [`device`] | the processor as a device of `lockstep-core`: passes over segments, costs |
//! | [`inline`] | calls on one piece of one message, on the calling thread |

pub mod device;
mod host;
pub mod inline;
pub mod kernel;
mod kernels;
mod message;
mod threads;

pub use device::{Cpu, CpuBackend, CpuOptions};

pub mod soft;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
pub mod vectors;
