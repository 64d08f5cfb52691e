//! Tables, for the terminal and for pages.

use std::fmt::Write;

use crate::plot::escaped;

/// A table: the first columns are text, the others numbers.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of columns.
    pub head: Vec<String>,
    /// Cells, as many in each row as columns.
    pub rows: Vec<Vec<String>>,
    /// Columns of text.
    pub text_columns: usize,
}

impl Table {
    /// Without rows as yet.
    pub fn new(title: &str, head: &[&str], text_columns: usize) -> Table {
        let head = head.iter().map(|name| (*name).into()).collect();
        Table { title: title.into(), head, rows: Vec::new(), text_columns }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<_> = (0..self.head.len()).map(width).collect();
        let mut text = format!("{}\n\n", self.title);
        for row in lines() {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Writing to a string does not fail.
                let _ = if column < self.text_columns {
                    write!(line, "  {cell:<width$}")
                } else {
                    write!(line, "  {cell:>width$}")
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    /// For a page, without its title.
    pub fn markdown(&self) -> String {
        let line = |row: &[String]| format!("| {} |\n", row.join(" | "));
        let mut text = line(&self.head);
        let marks = (0..self.head.len()).map(|column| if column < self.text_columns { "---" } else { "--:" });
        text += &format!("|{}|\n", marks.collect::<Vec<_>>().join("|"));
        text.extend(self.rows.iter().map(|row| line(row)));
        text
    }

    /// For a page in HTML, with its title; classes `text` and `number` tell what is in a cell.
    pub fn html(&self) -> String {
        let row = |cells: &[String], tag: &str| {
            let cell = |(column, cell): (usize, &String)| {
                let class = if column < self.text_columns { "text" } else { "number" };
                format!("<{tag} class=\"{class}\">{}</{tag}>", escaped(cell))
            };
            format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
        };
        let rows: String = self.rows.iter().map(|cells| row(cells, "td")).collect();
        format!(
            "<h3>{}</h3>\n<div class=\"wide\"><table>\n<thead>{}</thead>\n<tbody>{rows}</tbody>\n</table></div>\n",
            escaped(&self.title),
            row(&self.head, "th")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let mut table = Table::new("Rates", &["who", "Gbit/s"], 1);
        table.rows.push(vec!["ours".into(), "12.5".into()]);
        assert_eq!(table.text(), "Rates\n\n  who   Gbit/s\n  ours    12.5\n");
        assert_eq!(table.markdown(), "| who | Gbit/s |\n|---|--:|\n| ours | 12.5 |\n");
        table.rows.push(vec!["a<b".into(), "1".into()]);
        assert!(table.html().contains("<td class=\"text\">a&lt;b</td><td class=\"number\">1</td>"));
    }
}
