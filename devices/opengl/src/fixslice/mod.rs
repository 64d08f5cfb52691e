//! The kernel `opengl/fixslice`. It runs in constant time, and each fragment processes two blocks as bit planes.

mod chunk;
mod draw;
mod keys;
mod layout;
mod program;

pub(crate) use chunk::{Chunk, Task};
pub(crate) use layout::Tiling;
pub(crate) use program::Program;
