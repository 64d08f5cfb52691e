//! The CPU backend: AES instructions of x86-64 and Arm, a bitsliced kernel for any processor, and AWS-LC's GCM.
//!
//! | module | what |
//! |---|---|
//! | [`device`] | the processor as a device of `lockstep-core` |
//! | `passes`, `serial` | passes over segments, parallel and serial, by any kernel |
//! | `threads` | large work over several threads |
//! | `aws_lc` | GCM fused |
//! | [`inline`] | one piece of one message at once, on the calling thread |
//! | [`kernel`] | what a kernel is |
//! | `x86`, `armv8`, [`soft`] | the kernels |

mod aws_lc;
mod boxed;
pub mod device;
pub mod inline;
pub mod kernel;
mod passes;
mod serial;
mod threads;

pub use device::{Cpu, CpuBackend, CpuOptions};

mod counter;
mod interleave;
mod tweak;

#[cfg(target_arch = "aarch64")]
pub mod armv8;
pub mod soft;
#[cfg(target_arch = "x86_64")]
pub mod x86;
