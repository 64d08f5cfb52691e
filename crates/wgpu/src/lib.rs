//! The portable GPU backend: AES in WGSL by way of wgpu, on whatever speaks Vulkan, Metal or OpenGL ES, and on software
//! devices such as Mesa's lavapipe.
//!
//! | module | what |
//! |---|---|
//! | `backend` | which devices there are |
//! | [`device`] | an adapter as a device of `lockstep-core` |
//! | `kernel` | the kernels, and the programs they are made of |
//! | `shader` | the programs' text |
//! | `lookup` | what `wgpu/table` looks up |
//! | `table` | messages described by arrays on the device |
//! | `passes` | for each pass, the programs it takes |
//! | `pass`, `cut`, `chunk`, `orders` | a pass over segments, or GCM: cut into chunks, each a submission with its launches |
//! | `gcm` | GCM of messages that are too long for a submission |
//! | `lane` | buffers on both sides |
//! | `memory` | memory of the device that callers ask for |
//! | `power` | powers of x, for XTS |
//! | `launch` | what programs are launched with |
//! | `gpu` | a device of wgpu whose failures are values |
//! | `cache` | compiled programs, kept for the next process |
//!
//! The shaders are in `shaders/`.
#![deny(unsafe_code)]

mod backend;
mod cache;
mod chunk;
mod cut;
pub mod device;
mod gcm;
mod gpu;
mod kernel;
mod lane;
mod launch;
mod lookup;
mod memory;
mod orders;
mod pass;
mod passes;
mod power;
mod shader;
mod table;

// Those of this crate's tests that need a device take the same one as those in `tests`.
#[cfg(test)]
extern crate self as lockstep_wgpu;
#[cfg(test)]
#[path = "../tests/software/mod.rs"]
mod software;

pub use backend::{Found, SOFTWARE, SOFTWARE_GL, WgpuBackend};
pub use device::{Overhead, WgpuDevice};
pub use kernel::LaunchOptions;
