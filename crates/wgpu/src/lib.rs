//! The portable GPU backend: AES in WGSL by way of wgpu, on whatever speaks Vulkan, Metal or OpenGL ES, and on software
//! devices such as Mesa's lavapipe.
//!
//! | module | what |
//! |---|---|
//! | `backend` | which devices there are |
//! | [`device`] | an adapter as a device of `lockstep-core` |
//! | `kernel` | the kernels, and the programs they are made of |
//! | `shader` | the programs' text |
//! | `lookup` | the T-tables of `wgpu/table` |
//! | `passes` | for each pass, the programs it takes |
//! | `chunk`, `encode`, `dispatch` | a call as chunks, each a submission: what lies where, and its launches |
//! | `staging` | staging buffers on both sides |
//! | `memory` | device memory that callers allocate |
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
pub mod device;
mod dispatch;
mod encode;
mod gpu;
mod kernel;
mod launch;
mod lookup;
mod memory;
mod passes;
mod power;
mod shader;
mod staging;

// Those of this crate's tests that need a device take the same one as those in `tests`.
#[cfg(test)]
extern crate self as lockstep_wgpu;
#[cfg(test)]
#[path = "../tests/software/mod.rs"]
mod software;

pub use backend::{Found, SOFTWARE, SOFTWARE_GL, WgpuBackend};
pub use device::WgpuDevice;
pub use kernel::LaunchOptions;
pub use lockstep_gpu_host::Overhead;
