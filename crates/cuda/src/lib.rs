//! The CUDA backend: AES on NVIDIA's GPUs, on data that lie there or with the host, and on an emulator of them.
//!
//! | module | what |
//! |---|---|
//! | `backend` | which devices there are |
//! | [`device`] | a machine as a device of `lockstep-core` |
//! | `kernel` | the kernels: what each does, and the shape of its launches |
//! | `passes` | for each pass, the launches it takes |
//! | `pass`, `cut`, `chunk` | a pass over segments: cut into chunks, each a launch sequence |
//! | `table` | messages that only the device knows |
//! | `lane` | streams with memory on both sides |
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
mod cut;
pub mod device;
mod energy;
#[cfg(all(test, feature = "emulator"))]
mod failures;
mod gpu;
mod kernel;
mod lane;
mod launch;
mod machine;
mod memory;
mod pass;
mod passes;
mod table;

#[cfg(feature = "emulator")]
pub use backend::emulator;
pub use backend::{CudaBackend, EMULATOR, devices};
pub use device::{Cuda, Overhead};
pub use energy::Energy;
pub use kernel::LaunchOptions;
