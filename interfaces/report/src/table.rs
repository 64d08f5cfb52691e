//! Formats tables for the terminal and for HTML pages.

use crate::svg::escaped;
use crate::text::{WIDTH, wrap};

/// A table. The first columns contain text, and all further columns contain numbers.
#[derive(Debug, Clone)]
pub struct Table {
    /// The title above the table.
    pub title: String,
    /// The titles of the columns.
    pub head: Vec<String>,
    /// The cells of each row, one for each column.
    pub rows: Vec<Vec<String>>,
    /// The number of text columns.
    pub text_columns: usize,
}

/// The layout of a column on a terminal.
struct Column {
    /// The lines of the title.
    head: Vec<String>,
    /// The width of the widest cell and of the two spaces before it, in characters.
    width: usize,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(title: &str, head: &[&str], text_columns: usize) -> Table {
        let head = head.iter().map(|name| (*name).into()).collect();
        Table { title: title.into(), head, rows: Vec::new(), text_columns }
    }

    /// The table for a terminal, with lines of at most [`WIDTH`] characters.
    ///
    /// If the table is too wide, titles are broken into several lines. If the table is then still too wide, the columns that
    /// do not fit are printed below, and the text columns are repeated before them. Adjacent columns whose titles start with
    /// the same word stay together.
    pub fn text(&self) -> String {
        let columns =
            |lines| -> Vec<Column> { (0..self.head.len()).map(|index| self.column(index, lines)).collect() };
        let fits = |columns: &Vec<Column>| columns.iter().map(|column| column.width).sum::<usize>() <= WIDTH;
        let columns = (1..=3).map(columns).find(fits).unwrap_or_else(|| columns(2));
        let mut text = wrap(&self.title, WIDTH).join("\n") + "\n";
        for part in self.parts(&columns) {
            text.push('\n');
            let lines = part.iter().map(|&index| columns[index].head.len()).max().unwrap_or_default();
            // A title with fewer lines than other titles starts further down, so that all titles end in the same line.
            let title = |line: usize, column: &Column| {
                let at = (line + column.head.len()).checked_sub(lines);
                at.map_or(String::new(), |at| column.head[at].clone())
            };
            let head = (0..lines).map(|line| columns.iter().map(|column| title(line, column)).collect());
            for row in head.chain(self.rows.iter().cloned()) {
                let row: Vec<String> = row;
                let mut line = String::new();
                for &index in &part {
                    let (cell, width) = (format!("  {}", row[index]), columns[index].width);
                    let is_text = index < self.text_columns;
                    line += &if is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
                }
                text += line.trim_end();
                text.push('\n');
            }
        }
        text
    }

    /// The layout of a column. The column is wide enough for its cells, and for its title in at most `lines` lines.
    fn column(&self, index: usize, lines: usize) -> Column {
        let head = &self.head[index];
        let words = head.split_whitespace().map(|word| word.chars().count()).max().unwrap_or_default();
        let cells = self.rows.iter().map(|row| row[index].chars().count()).max().unwrap_or_default();
        let width = (words.max(cells)..).find(|&width| wrap(head, width).len() <= lines);
        let width = width.expect("a line takes all words if it is long enough");
        Column { head: wrap(head, width), width: 2 + width }
    }

    /// The columns, divided into groups that fit side by side. A column is represented by its index.
    fn parts(&self, columns: &[Column]) -> Vec<Vec<usize>> {
        let width = |part: &[usize]| part.iter().map(|&index| columns[index].width).sum::<usize>();
        let text: Vec<usize> = (0..self.text_columns).collect();
        let numbers: Vec<usize> = (self.text_columns..self.head.len()).collect();
        let first_word = |index: usize| self.head[index].split_whitespace().next();
        let mut parts = vec![text.clone()];
        for together in numbers.chunk_by(|&one, &next| first_word(one) == first_word(next)) {
            let part = parts.last().expect("one at least");
            if part.len() > text.len() && width(part) + width(together) > WIDTH {
                parts.push(text.clone());
            }
            parts.last_mut().expect("one at least").extend(together);
        }
        parts
    }

    /// The table in HTML, with its title. Cells with text have the class `text`, and cells with numbers the class `number`.
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
mod tests;
