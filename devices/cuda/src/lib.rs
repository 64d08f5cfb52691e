//! The CUDA backend: AES on NVIDIA GPUs, for data in host or device memory, and on an emulator of CUDA thread blocks.
//!
//! | module | contents |
//! |---|---|
//! | `backend` | discovery of devices |
//! | [`device`] | a machine as a device of `lockstep-core` |
//! | `kernel` | the kernels: their passes, and the shapes of their launches |
//! | `passes` | the launches of each pass |
//! | `task` | a call: its operation, its kernels, and the memory that it uses |
//! | `chunk`, `describe` | execution of a call as chunks, and the layout of a chunk on the device |
//! | `table` | messages that are described by arrays in device memory |
//! | `staging` | staging buffers: streams with memory on both sides |
//! | `carry_less` | the known-answer test of the carry-less multiply-add |
//! | `launch` | parameters of kernels |
//! | `gpu` | a safe interface to a machine |
//! | `machine` | the interface to a machine that runs kernels: a GPU or the emulator |
//! | `archive` | the archive of machine code in the program |
//! | `compile`, `nvrtc` | machine code: from the archive, cached, or compiled by NVRTC |
//!
//! The kernels are in `kernels/` and are written in CUDA C++. The emulator in `emulator/` runs them on the CPU,
//! compiled as ordinary C++.
#![deny(unsafe_code)]

mod archive;
mod backend;
mod carry_less;
mod chunk;
mod compile;
mod describe;
pub mod device;
#[cfg(all(test, feature = "faults"))]
mod failures;
mod gpu;
mod kernel;
mod launch;
mod machine;
mod memory;
mod nvrtc;
mod passes;
mod staging;
mod table;
mod task;

pub use backend::{CudaBackend, EMULATOR, devices};
#[cfg(feature = "emulator")]
pub use backend::{emulator, emulator_with_carry_less, emulator_with_trace};
pub use device::Cuda;
pub use kernel::{LaunchOptions, Products};
pub use lockstep_gpu_host::Overhead;
#[cfg(feature = "emulator")]
pub use machine::emulator::{Access, AccessKind, Trace};
