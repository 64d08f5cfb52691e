//! The CPU backend: AES instructions of x86-64 and Arm, a bitsliced kernel for any processor, and AWS-LC's GCM.
//!
//! | module | content |
//! |---|---|
//! | [`device`] | the processor as a device of `lockstep-core` |
//! | `passes`, `serial` | parallel and serial passes over segments, generic over the kernel |
//! | `aead`, `gcm` | fused GCM: batches of messages, and one message, generic over the kernel |
//! | `threads` | distribution of large work over threads |
//! | `aws_lc` | fused GCM by AWS-LC, for processors without AES instructions and for comparison |
//! | [`inline`] | calls on one piece of one message, on the calling thread |
//! | [`kernel`] | the trait that kernels implement |
//! | `x86`, `armv8`, [`soft`] | the kernels |

mod aead;
mod aws_lc;
mod boxed;
pub mod device;
mod gcm;
mod gcm_siv;
pub mod inline;
pub mod kernel;
mod ocb;
mod partial;
mod passes;
mod serial;
mod threads;
mod wiped;

pub use device::{Cpu, CpuBackend, CpuOptions};

mod counter;
mod interleave;
mod rfc8452;
mod tweak;

#[cfg(target_arch = "aarch64")]
pub mod armv8;
pub mod soft;
#[cfg(target_arch = "x86_64")]
pub mod x86;
