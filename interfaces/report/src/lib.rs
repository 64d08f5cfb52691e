//! Output of the command, its benchmarks and the lab: tables as text and HTML, plots as SVG, and wrapping of text.
#![forbid(unsafe_code)]

pub mod bars;
pub mod plot;
mod svg;
mod table;
pub mod text;

pub use table::Table;
pub use text::{WIDTH, hang, wrap};
