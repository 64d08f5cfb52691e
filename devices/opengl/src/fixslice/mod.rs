//! `opengl/fixslice`: constant time, bit planes of two blocks in each fragment.

mod chunk;
mod draw;
mod keys;
mod layout;
mod program;

pub(crate) use chunk::{Chunk, Task};
pub(crate) use layout::Tiling;
pub(crate) use program::Program;
