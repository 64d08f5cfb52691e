//! Reproduced papers, one module each: their tables compared with new measurements, on a device or in a simulator.
#![forbid(unsafe_code)]

pub mod cell;
pub mod cuda;
mod data;
pub mod geforce;
pub mod opengl;
mod pipes;
pub mod qpu;

/// A documentation page and its pictures.
pub struct Page {
    /// Markdown.
    pub markdown: String,
    /// The name and the SVG of each picture file.
    pub pictures: Vec<(String, String)>,
}
