//! The CUDA backend: AES on NVIDIA's GPUs, on data that lie there or with the host, and on an emulator of them.
//!
//! | module | what |
//! |---|---|
//! | `backend` | which devices there are |
//! | [`device`] | a machine as a device of `lockstep-core` |
//! | `kernel` | the kernels: what each does, and the shape of its launches |
//! | `passes` | for each pass, the launches it takes |
//! | `chunk`, `describe` | a call as chunks, each a launch sequence, and what a chunk looks like on the device |
//! | `table` | messages that arrays in device memory describe |
//! | `staging` | staging buffers: streams with memory on both sides |
//! | `launch` | what kernels are launched with |
//! | `gpu` | a machine made safe |
//! | `machine` | what kernels run on: a driver's device, or the emulator |
//! | `compile` | where machine code comes from |
//! | [`Energy`] | what GPUs use of energy |
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
