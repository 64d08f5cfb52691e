//! Writes an SVG picture as text, element by element.

use std::fmt::{Arguments, Write};

/// A picture under construction.
pub(crate) struct Svg(String);

impl Svg {
    /// A picture of this size, with its background and title.
    pub(crate) fn new(title: &str, width: f64, height: f64) -> Svg {
        Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{title}</title>\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text class=\"ink\" x=\"16\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{title}</text>\n",
            title = escaped(title)
        ))
    }

    /// Adds an element without content. `element` is its name and its attributes.
    pub(crate) fn element(&mut self, element: Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "<{element}/>");
    }

    /// Adds a text with these attributes.
    pub(crate) fn text(&mut self, attributes: Arguments<'_>, text: &str) {
        let _ = writeln!(self.0, "<text class=\"ink\" {attributes}>{}</text>", escaped(text));
    }

    /// The complete picture.
    pub(crate) fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}

/// Escapes the special characters of XML in a text.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
