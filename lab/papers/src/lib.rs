//! Reproduced papers, one module each: their tables compared with new measurements, on a device or in a simulator.
#![forbid(unsafe_code)]

mod canvas;
pub mod cell;
pub mod cuda;
mod data;
pub mod g80;
pub mod geforce;
mod memory;
mod mistake;
pub mod opengl;
mod pipes;
pub mod qpu;

pub use memory::round_keys;

use lockstep_report::Table;

/// A documentation page and its pictures.
pub struct Page {
    /// The text of the page in Markdown.
    pub markdown: String,
    /// The name and the SVG of each picture file.
    pub pictures: Vec<(String, String)>,
}

/// A table in Markdown, without its title.
fn markdown(table: &Table) -> String {
    let line = |row: &[String]| format!("| {} |\n", row.join(" | "));
    let mut text = line(&table.head);
    let marks = (0..table.head.len()).map(|column| if column < table.text_columns { "---" } else { "--:" });
    text += &format!("|{}|\n", marks.collect::<Vec<_>>().join("|"));
    text.extend(table.rows.iter().map(|row| line(row)));
    text
}

#[cfg(test)]
mod tests;
