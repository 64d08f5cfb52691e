//! The papers reproduced, one module each: their tables beside what we measure, on the device or on a simulator.
#![forbid(unsafe_code)]

pub mod bars;
pub mod cell;
pub mod geforce;
pub mod plot;
mod table;
pub mod text;

pub use table::Table;
pub use text::{WIDTH, hang, wrap};
