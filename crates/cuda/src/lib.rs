//! The CUDA backend: AES on NVIDIA GPUs, for data in host or device memory, and on an emulator of CUDA thread blocks.
//!
//! | module | what |
//! |---|---|
//! | `backend` | discovery of devices |
//! | [`device`] | a machine as a device of `lockstep-core` |
//! | `kernel` | the kernels: their passes, and the shapes of their launches |
//! | `passes` | the launches of each pass |
//! | `chunk`, `describe` | a call as chunks, each a launch sequence, and what a chunk looks like on the device |
//! | `table` | messages that arrays in device memory describe |
//! | `staging` | staging buffers: streams with memory on both sides |
//! | `launch` | parameters of kernels |
//! | `gpu` | a safe interface to a machine |
//! | `machine` | what runs kernels: a device of the driver, or the emulator |
//! | `compile` | machine code: built in, cached, or compiled by NVRTC |
//! | [`Energy`] | energy use of GPUs |
//!
//! The kernels are in `kernels/`, in CUDA C++; `emulator/` runs them, compiled as C++, on the CPU.
#![deny(unsafe_code)]

mod backend;
mod chunk;
mod compile;
mod describe;
pub mod device;
mod energy;
#[cfg(all(test, feature = "emulator"))]
mod failures;
mod gpu;
mod kernel;
mod launch;
mod machine;
mod memory;
mod passes;
mod staging;
mod table;

#[cfg(feature = "emulator")]
pub use backend::emulator;
pub use backend::{CudaBackend, EMULATOR, devices};
pub use device::Cuda;
pub use energy::Energy;
pub use kernel::LaunchOptions;
pub use lockstep_gpu_host::Overhead;
