//! The OpenGL backend: AES in fragment shaders, on any device with OpenGL 3.3 or OpenGL ES 3.0, without a window system.
//!
//! | module | what |
//! |---|---|
//! | `backend` | discovery of devices |
//! | [`device`] | a device of `lockstep-core` |
//! | `egl` | libEGL, its devices, and contexts without a window |
//! | `gl` | an open context: programs, textures, draws, with failures as errors |
//! | `kernel` | the kernels and their shaders |
//! | `keys` | round keys in the format of `opengl/fixslice` |
//! | `layout` | where the blocks of a chunk lie in textures |
//! | `chunk` | a call as chunks, each a draw |
//!
//! The shaders are in `shaders/`.
#![deny(unsafe_code)]

mod backend;
mod chunk;
pub mod device;
mod egl;
mod gl;
mod kernel;
mod keys;
mod layout;

pub use backend::{OpenGlBackend, SOFTWARE};
pub use device::OpenGlDevice;
