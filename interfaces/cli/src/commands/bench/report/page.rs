//! Writes a report as one HTML page that loads no other resource.

use std::fmt::Write;

use lockstep_report::Table;
use lockstep_report::plot::escaped;

use super::{METHOD, Report};

/// The beginning of the page. `html` inserts the date, the method and the style sheet.
const HEAD: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

impl Report<'_> {
    /// The report as one HTML page that loads no other resource.
    pub(in super::super) fn html(&self) -> String {
        let mut out = HEAD.replace("{date}", &escaped(&self.date)).replace("{method}", &escaped(METHOD));
        out = out.replace("{style}", STYLE);
        for (name, what) in self.about() {
            // Writing to a string does not fail.
            let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&what));
        }
        out += "</dl>\n";
        if self.sections.len() > 1 {
            let link = |name| format!("<a href=\"#{name}\">{name}</a>");
            let links: Vec<_> = self.sections.iter().map(|section| link(section.name)).collect();
            let _ = writeln!(out, "<nav>{}</nav>", links.join(" "));
        }
        for section in &self.sections {
            let (name, title, about) = (section.name, escaped(section.title), escaped(section.about));
            let _ = writeln!(out, "<section id=\"{name}\">\n<h2>{name}</h2>\n<p>{title}. {about}</p>");
            if !section.findings.is_empty() {
                let items = section.findings.iter().map(|finding| format!("<li>{}</li>\n", escaped(finding)));
                let items: String = items.collect();
                let _ = writeln!(out, "<ul class=\"findings\">\n{items}</ul>");
            }
            for svg in &section.pictures {
                // A figure gets a scroll bar if it is wider than the page.
                let _ = writeln!(out, "<figure class=\"wide\">\n{svg}</figure>");
            }
            out.extend(section.tables.iter().map(Table::html));
            out += "</section>\n";
        }
        out + "</main>\n</body>\n</html>\n"
    }
}
