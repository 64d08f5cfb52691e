//! Formats the output of the command, of its benchmarks and of the lab: tables as text or HTML, plots as SVG, and wrapped text.
#![forbid(unsafe_code)]

pub mod bars;
pub mod plot;
mod svg;
mod table;
pub mod text;

pub use table::Table;
pub use text::{WIDTH, hang, wrap};
