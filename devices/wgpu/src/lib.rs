//! The portable GPU backend: AES in WGSL. It uses wgpu and runs on devices with Vulkan, Metal or OpenGL ES, including
//! software devices such as Mesa's lavapipe.
//!
//! | module | what |
//! |---|---|
//! | `backend` | discovery of devices |
//! | [`device`] | an adapter as a device of `lockstep-core` |
//! | `kernel` | the kernels and their programs |
//! | `shader` | the source of the programs |
//! | `lookup` | the T-tables of `wgpu/table` |
//! | `task` | a call: its operation, its kernel, and how its data are divided |
//! | `chunk`, `encode`, `dispatch` | the chunks of a call: layout, launches and submission |
//! | `ocb`, `ocb_long`, `offsets` | the launches of OCB3, and messages that are too long for a chunk |
//! | `staging` | staging buffers on both sides |
//! | `allocation`, `memory` | device memory that callers allocate, and copies from and to it |
//! | `launch` | parameters of programs |
//! | `gpu`, `calls` | an open device of wgpu, with failures as errors |
//! | `cache` | compiled programs, stored for the next process |
//! | `export` | the programs for other hosts, such as a browser |
//!
//! The shaders are in `shaders/`.
#![deny(unsafe_code)]

mod allocation;
mod backend;
mod cache;
mod calls;
mod chunk;
pub mod device;
mod dispatch;
mod encode;
mod export;
mod gpu;
mod kernel;
mod launch;
mod lookup;
mod memory;
mod ocb;
mod ocb_long;
mod offsets;
mod shader;
mod staging;
mod task;

// Unit tests that need a device use the same device as the tests in `tests`.
#[cfg(test)]
extern crate self as lockstep_wgpu;
#[cfg(test)]
#[path = "../tests/wgpu/software/mod.rs"]
mod software;

pub use backend::{Found, SOFTWARE, SOFTWARE_GL, WgpuBackend};
pub use device::WgpuDevice;
pub use export::{ExportedProgram, exported_constants, exported_programs, exported_table};
pub use kernel::LaunchOptions;
pub use lockstep_gpu_host::Overhead;
