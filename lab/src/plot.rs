//! Plots as SVG: lines over logarithmic axes, as the papers draw throughput against size.

use std::fmt::Write;

/// A line of a plot.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Points, from left to right; both coordinates are above 0.
    pub points: Vec<(f64, f64)>,
}

/// A plot with logarithmic axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What is to the right, and how its values are written.
    pub across: (String, fn(f64) -> String),
    /// What is upwards.
    pub up: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// Told apart by people who do not see all colours, too: each has dashes of its own.
const STYLES: [(&str, &str); 8] = [
    ("#1f5fa8", ""),
    ("#d1495b", "7 3"),
    ("#2f8f4e", "2 3"),
    ("#8a5a00", "9 3 2 3"),
    ("#6a4c93", "5 2"),
    ("#00798c", "12 4"),
    ("#444444", "3 2"),
    ("#b5179e", "8 2 2 2 2 2"),
];

const LEFT: f64 = 70.0;
const TOP: f64 = 34.0;
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 340.0;

/// The smallest and the largest of some values, each rounded away to a power of the base.
fn span(values: impl Iterator<Item = f64>, base: f64) -> Option<(f64, f64)> {
    let logs = values.filter(|value| *value > 0.0 && value.is_finite()).map(|value| value.log(base));
    let (low, high) = logs.fold((f64::MAX, f64::MIN), |(low, high), log| (low.min(log), high.max(log)));
    // Rounding errors of logarithms must not add a power.
    let (low, high) = ((low + 1e-9).floor(), (high - 1e-9).ceil());
    (low <= high).then_some((low, if low < high { high } else { high + 1.0 }))
}

impl Plot {
    /// The picture; empty axes say that there is nothing to show.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = span(points().map(|point| point.0), 2.0);
        let up = span(points().map(|point| point.1), 10.0);
        let (total_width, legend) = (LEFT + WIDTH + 20.0, TOP + HEIGHT + 58.0);
        let total_height = legend + 18.0 * self.lines.len().div_ceil(3) as f64;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {total_width} {total_height}\" \
             width=\"{total_width}\" height=\"{total_height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{title}</text>\n",
            title = escaped(&self.title)
        );
        let (Some(across), Some(up)) = (across, up) else {
            return out + "<text x=\"70\" y=\"60\">nothing was measured</text>\n</svg>\n";
        };
        let x = |value: f64| LEFT + (value.log2() - across.0) / (across.1 - across.0) * WIDTH;
        let y = |value: f64| TOP + HEIGHT - (value.log10() - up.0) / (up.1 - up.0) * HEIGHT;
        self.axes(&mut out, across, up, x, y);
        for (index, line) in self.lines.iter().enumerate() {
            let (colour, dashes) = STYLES[index % STYLES.len()];
            let mut path = String::new();
            for (number, &(right, high)) in line.points.iter().enumerate() {
                let letter = if number == 0 { 'M' } else { 'L' };
                // Writing to a string does not fail.
                let _ = write!(path, "{letter}{:.1} {:.1}", x(right), y(high));
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{colour}\"/>",
                    x(right),
                    y(high)
                );
            }
            let style = format!("stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dashes}\"");
            let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" {style}/>");
            let (left, top) = (LEFT + (index % 3) as f64 * 210.0, legend + (index / 3) as f64 * 18.0);
            let _ = writeln!(out, "<path d=\"M{left} {}h28\" fill=\"none\" {style}/>", top - 4.0);
            let _ = writeln!(out, "<text x=\"{}\" y=\"{top}\">{}</text>", left + 34.0, escaped(&line.name));
        }
        out + "</svg>\n"
    }

    fn axes(
        &self,
        out: &mut String,
        across: (f64, f64),
        up: (f64, f64),
        x: impl Fn(f64) -> f64,
        y: impl Fn(f64) -> f64,
    ) {
        let (bottom, right) = (TOP + HEIGHT, LEFT + WIDTH);
        // At most a dozen numbers.
        let step = ((across.1 - across.0) / 12.0).ceil().max(1.0);
        let mut at = across.0;
        while at <= across.1 {
            let (value, place) = (at.exp2(), x(at.exp2()));
            let _ = writeln!(out, "<path d=\"M{place:.1} {TOP}V{bottom}\" stroke=\"#e4e4e4\"/>");
            let label = escaped(&(self.across.1)(value));
            let _ = writeln!(
                out,
                "<text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 16.0
            );
            at += step;
        }
        for power in up.0 as i32..=up.1 as i32 {
            for digit in 1..10 {
                let value = f64::from(digit) * 10f64.powi(power);
                if value.log10() > up.1 + 1e-9 {
                    break;
                }
                let colour = if digit == 1 { "#cccccc" } else { "#f0f0f0" };
                let _ = writeln!(out, "<path d=\"M{LEFT} {:.1}H{right}\" stroke=\"{colour}\"/>", y(value));
            }
            let value = 10f64.powi(power);
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
                LEFT - 6.0,
                y(value) + 4.0
            );
        }
        let middle = LEFT + WIDTH / 2.0;
        let _ = writeln!(
            out,
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 34.0,
            escaped(&self.across.0)
        );
        let centre = TOP + HEIGHT / 2.0;
        let _ = writeln!(
            out,
            "<text x=\"16\" y=\"{centre}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {centre})\">{}</text>",
            escaped(&self.up)
        );
    }
}

/// A size as people write it: powers of two.
pub fn bytes(value: f64) -> String {
    let bytes = value.round() as u64;
    match bytes {
        ..1024 => format!("{bytes}"),
        1024..1_048_576 => format!("{} Ki", bytes / 1024),
        1_048_576..1_073_741_824 => format!("{} Mi", bytes >> 20),
        _ => format!("{} Gi", bytes >> 30),
    }
}

/// A number as it is.
pub fn number(value: f64) -> String {
    format!("{value:.0}")
}

/// Text for XML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> String {
        let lines = vec![Line { name: "a < b".into(), points }];
        Plot { title: "T".into(), across: ("bytes".into(), bytes), up: "GB/s".into(), lines }.svg()
    }

    #[test]
    fn axes_end_at_powers() {
        assert_eq!(span([4096.0, 65536.0].into_iter(), 2.0), Some((12.0, 16.0)));
        assert_eq!(span([0.3, 250.0].into_iter(), 10.0), Some((-1.0, 3.0)));
        assert_eq!(span([1000.0].into_iter(), 10.0), Some((3.0, 4.0)));
        assert_eq!(span([0.0].into_iter(), 10.0), None);
    }

    #[test]
    fn points_lie_where_their_values_are() {
        let svg = plot(vec![(1024.0, 1.0), (4096.0, 100.0)]);
        assert!(svg.contains("M70.0 374.0L710.0 34.0"), "{svg}");
        assert!(svg.contains(">2 Ki<") && svg.contains("a &lt; b"));
        assert!(plot(Vec::new()).contains("nothing was measured"));
    }
}
