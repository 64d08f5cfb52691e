//! Pictures of two pipes over time. A column stands for a cycle, and the first pipe is above the second. A picture has several rows of
//! columns.

use std::fmt::Write;

const LANE: usize = 12;
const BETWEEN: usize = 4;
const GAP: usize = 8;
const LEFT: usize = 64;
const TOP: usize = 30;
const ROW: usize = 2 * LANE + BETWEEN + GAP;
/// The width of a legend's column: a mark and up to 23 characters.
const LEGEND_COLUMN: usize = 176;
const LEGEND_COLUMNS: usize = 4;
const LEGEND_ROW: usize = 18;

/// One column of the picture: the state of both pipes in a cycle.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Column {
    /// The colours of both pipes, as indices of [`Picture::colours`]. `None` for a pipe that is idle while the other
    /// one is busy.
    pub(crate) lanes: [Option<usize>; 2],
    /// The bar between the pipes.
    pub(crate) bar: Option<Bar>,
}

/// The bar between the pipes of a column.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Bar {
    /// The bar shows that both pipes have work.
    Dual,
    /// The bar has this colour, an index of [`Picture::colours`].
    Colour(usize),
}

/// A picture without its rows.
pub(crate) struct Picture<'a> {
    pub(crate) title: &'a str,
    pub(crate) summary: String,
    /// The colours of the cells, with their meaning.
    pub(crate) colours: &'a [(&'a str, &'a str)],
    /// The meaning of [`Bar::Dual`], for the legend.
    pub(crate) dual: Option<&'a str>,
    /// Maximum number of columns in a row of the picture.
    pub(crate) row: usize,
}

impl Picture<'_> {
    /// The picture as SVG. Each row has the number of its first cycle and its columns.
    pub(crate) fn svg(&self, rows: &[(u64, &[Column])]) -> String {
        let cell = (860 / self.row).clamp(6, 20);
        let width = (LEFT + self.row * cell + 10).max(760);
        let entries = self.colours.len() + usize::from(self.dual.is_some());
        let height = TOP + rows.len() * ROW + 20 + entries.div_ceil(LEGEND_COLUMNS) * LEGEND_ROW;
        let mut paths: Vec<String> = vec![String::new(); self.colours.len()];
        let (mut dual, mut names) = (String::new(), String::new());
        for (number, (first, columns)) in rows.iter().enumerate() {
            let y = TOP + number * ROW;
            // Writing to a string cannot fail.
            let _ = writeln!(
                names,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{first}</text>",
                LEFT - 6,
                y + 18
            );
            for lane in 0..2 {
                let y = y + lane * (LANE + BETWEEN);
                for (start, len, colour) in runs(columns, |column| column.lanes[lane]) {
                    rectangle(&mut paths[colour], LEFT + start * cell, y, len * cell, LANE);
                }
            }
            for (start, len, bar) in runs(columns, |column| column.bar) {
                let path = match bar {
                    Bar::Dual => &mut dual,
                    Bar::Colour(colour) => &mut paths[colour],
                };
                rectangle(path, LEFT + start * cell, y + LANE + 1, len * cell, BETWEEN - 2);
            }
        }
        let mut out = self.frame(width, height);
        for (path, (fill, _)) in paths.iter().zip(self.colours).filter(|(path, _)| !path.is_empty()) {
            let _ = writeln!(out, "<path fill=\"{fill}\" d=\"{path}\"/>");
        }
        let _ = writeln!(out, "<path fill=\"#000\" d=\"{dual}\"/>");
        // Thin lines separate the columns in all rows.
        let mut lines = String::new();
        for column in 1..self.row {
            let _ = write!(lines, "M{} {TOP}v{}", LEFT + column * cell, rows.len() * ROW - GAP);
        }
        let _ = writeln!(out, "<path stroke=\"#fff\" stroke-width=\"0.8\" d=\"{lines}\"/>");
        out += &names;
        self.legend(&mut out, TOP + rows.len() * ROW + 14);
        out += "</svg>\n";
        out
    }

    fn frame(&self, width: usize, height: usize) -> String {
        let Picture { title, summary, .. } = self;
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"
  font-family="sans-serif" font-size="11">
<title>{title}</title>
<desc>{summary}</desc>
<rect width="{width}" height="{height}" fill="#fff"/>
<text x="10" y="18" font-size="13">{title}</text>
"##
        )
    }

    fn legend(&self, out: &mut String, y: usize) {
        let place =
            |i: usize| (LEFT + i % LEGEND_COLUMNS * LEGEND_COLUMN, y + i / LEGEND_COLUMNS * LEGEND_ROW);
        for (i, (fill, words)) in self.colours.iter().enumerate() {
            let (x, y) = place(i);
            let _ =
                write!(out, "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{fill}\"/>", y - 9);
            let _ = writeln!(out, "<text x=\"{}\" y=\"{y}\">{words}</text>", x + 14);
        }
        if let Some(words) = self.dual {
            let (x, y) = place(self.colours.len());
            let _ = write!(out, "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"2\"/>", y - 5);
            let _ = writeln!(out, "<text x=\"{}\" y=\"{y}\">{words}</text>", x + 14);
        }
    }
}

fn rectangle(path: &mut String, x: usize, y: usize, width: usize, height: usize) {
    let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
}

/// The runs of neighbouring columns with equal values. Columns without a value are skipped.
fn runs<T: PartialEq>(columns: &[Column], of: impl Fn(&Column) -> Option<T>) -> Vec<(usize, usize, T)> {
    let mut runs: Vec<(usize, usize, T)> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let Some(what) = of(column) else { continue };
        match runs.last_mut() {
            Some((start, len, same)) if *start + *len == at && *same == what => *len += 1,
            _ => runs.push((at, 1, what)),
        }
    }
    runs
}
