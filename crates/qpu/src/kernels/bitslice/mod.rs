//! 32 blocks at once, by operations on bits: element i of register b has bit b of byte i of 32 blocks. No address and no branch
//! depends on keys or data. This kernel is the default.

pub mod gates;
mod ops;
mod program;
mod rounds;
mod transpose;

pub use program::{KEY_STRIDE, UNIT, ctr};
