//! Pictures of layouts and of parts of chips, from cells and words.

use std::fmt::Write;

/// The colours of the four blocks of a vector.
pub(crate) const BLOCKS: [&str; 4] = ["#a6c8e8", "#f6c99f", "#b9dfb0", "#dcc3e8"];
pub(crate) const EMPTY: &str = "#eeeeee";
pub(crate) const PART: &str = "#dce6f0";
pub(crate) const MARKED: &str = "#f28e2b";

/// A picture under construction.
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    body: String,
}

impl Canvas {
    pub(crate) fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, body: String::new() }
    }

    pub(crate) fn cell(
        &mut self,
        (x, y): (usize, usize),
        (width, height): (usize, usize),
        fill: &str,
        words: &str,
    ) {
        // Writing to a string cannot fail.
        let _ = write!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\" stroke=\"#666\" stroke-width=\"0.6\"/>"
        );
        if !words.is_empty() {
            let (x, y) = (x + width / 2, y + height / 2 + 4);
            let _ = write!(self.body, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{words}</text>");
        }
        self.body.push('\n');
    }

    pub(crate) fn words(&mut self, (x, y): (usize, usize), words: &str) {
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\">{words}</text>");
    }

    pub(crate) fn svg(self, title: &str) -> String {
        let Canvas { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\"\n  \
             font-family=\"sans-serif\" font-size=\"11\">\n<title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n{body}</svg>\n"
        )
    }
}
