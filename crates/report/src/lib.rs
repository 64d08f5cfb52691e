//! What the command, its benchmarks and the lab print: tables as text and HTML, pictures as SVG, text folded to a width.
#![forbid(unsafe_code)]

pub mod bars;
pub mod plot;
mod table;
pub mod text;

pub use table::Table;
pub use text::{WIDTH, hang, wrap};
