//! The OpenGL backend: AES in fragment shaders, on any device with OpenGL 3.3 or OpenGL ES 3.0, without a window system.
//!
//! | module | what |
//! |---|---|
//! | `backend` | discovery of devices |
//! | [`device`] | a device of `lockstep-core` |
//! | `driver` | the thread of a context, as a device of `lockstep-gpu-host` |
//! | `egl` | libEGL, its devices, and contexts without a window |
//! | `gl` | an open context: programs, textures, buffers, draws, with failures as errors |
//! | `kernel` | the list of kernels |
//! | `export` | the programs for other hosts, such as a browser |
//! | `fixslice` | the default kernel: modes on bit planes, constant time |
//! | `blocks` | kernels of published systems: the block cipher on the GPU, the rest of a mode on the host |
//!
//! The shaders are in `shaders/`.
#![deny(unsafe_code)]

mod backend;
mod blocks;
pub mod device;
mod driver;
mod egl;
mod export;
mod fixslice;
mod gl;
mod kernel;

pub use backend::{OpenGlBackend, SOFTWARE};
pub use blocks::{Experiment, Steps};
pub use device::OpenGlDevice;
pub use export::{ExportedProgram, exported_programs, exported_tables};
