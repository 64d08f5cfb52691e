//! Draws line plots as SVG. The axes are either linear or logarithmic. In the papers, plots of throughput over size are logarithmic.
//!
//! The SVG is complete without a style sheet. The style sheet of a page sets the colours of the classes `ground`, `grid`,
//! `ink`, `mark` and `series`, also for dark colour schemes.
//!
//! The crate plotters (0.3) is not used, for these reasons. Its SVG has no classes, so a plot cannot follow the colour scheme of the
//! page. The SVG has no `<title>`, and its coordinates are whole pixels. Each dash of a line is a separate element: a plot of four lines
//! with 13 points takes 56 kB, and only 13 kB with this module. The legend of plotters covers a part of the plot. plotters has no
//! grouped horizontal bars, so this crate would still have to lay out legends and the charts of [`crate::bars`].

use crate::svg::Svg;
pub use crate::svg::escaped;

/// A line of a plot.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// The name in the legend.
    pub name: String,
    /// The points, from left to right. On logarithmic axes both coordinates must be above 0.
    pub points: Vec<(f64, f64)>,
    /// The lower and the upper end of the spread at each point. Empty if the line has no spread.
    pub spread: Vec<(f64, f64)>,
}

/// The scale of the axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Logarithmic.
    #[default]
    Logarithmic,
    /// Linear, from 0.
    Even,
}

/// A plot.
#[derive(Debug, Clone)]
pub struct Plot {
    /// The title above the plot.
    pub title: String,
    /// The label of the horizontal axis, and the format of its values.
    pub across: (String, fn(f64) -> String),
    /// The label of the vertical axis.
    pub up: String,
    /// The scale of both axes.
    pub scale: Scale,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
    /// Marked values on the horizontal axis, with their labels.
    pub marks: Vec<(f64, String)>,
}

/// The colour and the dash pattern of each series. Readers who cannot distinguish the colours can distinguish the patterns.
const STYLES: [(&str, &str); 8] = [
    ("#2f74c0", ""),
    ("#d1495b", "7 3"),
    ("#2f8f4e", "2 3"),
    ("#b07400", "9 3 2 3"),
    ("#8a63c9", "5 2"),
    ("#008c9e", "12 4"),
    ("#7a7a7a", "3 2"),
    ("#c2379f", "8 2 2 2 2 2"),
];

/// The colour of the series with this index.
pub fn colour(index: usize) -> &'static str {
    STYLES[index % STYLES.len()].0
}

const LEFT: f64 = 70.0;
const TOP: f64 = 34.0;
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 340.0;

/// The range and the ticks of an axis.
struct Axis {
    low: f64,
    high: f64,
    labels: Vec<f64>,
    /// The values of the grid lines without a label.
    minor: Vec<f64>,
}

/// The least and the greatest of the values that can be shown on this scale.
fn extent(values: impl Iterator<Item = f64>, scale: Scale) -> Option<(f64, f64)> {
    let shown = |value: &f64| value.is_finite() && (*value > 0.0 || scale == Scale::Even && *value >= 0.0);
    let (low, high) = values
        .filter(shown)
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    (low <= high).then_some((low, high))
}

impl Axis {
    /// A range whose ends are powers of two, with at most 13 labels.
    fn powers_of_two((low, high): (f64, f64)) -> Axis {
        // Without the term 1e-9, a rounding error of the logarithm could add a power of two to the range.
        let (low, high) = ((low.log2() + 1e-9).floor(), (high.log2() - 1e-9).ceil());
        let high = if low < high { high } else { low + 1.0 };
        let step = ((high - low) / 12.0).ceil().max(1.0);
        let labels = (0..).map(|i| low + f64::from(i) * step).take_while(|at| *at <= high).map(f64::exp2);
        Axis { labels: labels.collect(), low: low.exp2(), high: high.exp2(), minor: Vec::new() }
    }

    /// A range whose ends are 1, 2 or 5 times a power of ten.
    fn decades((low, high): (f64, f64)) -> Axis {
        let (first, last) = (low.log10().floor() as i32 - 1, high.log10().ceil() as i32 + 1);
        let steps = |digits: &'static [f64]| {
            (first..=last).flat_map(move |power| digits.iter().map(move |digit| digit * 10f64.powi(power)))
        };
        let all = || steps(&[1.0, 2.0, 5.0]);
        let from = all().rfind(|at| *at <= low * (1.0 + 1e-9)).unwrap_or(low);
        let to = all().find(|at| *at >= high * (1.0 - 1e-9) && *at > from * 1.5).unwrap_or(high);
        let inside = |at: &f64| *at >= from * (1.0 - 1e-9) && *at <= to * (1.0 + 1e-9);
        // A long axis has fewer labels per decade.
        let labels: &'static [f64] = if to / from > 2000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let labels = steps(labels).filter(inside).collect();
        let minor = steps(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]).filter(inside).collect();
        Axis { low: from, high: to, labels, minor }
    }

    /// A range from 0, in at most eight steps of 1, 2 or 5 times a power of ten.
    fn even((_, high): (f64, f64)) -> Axis {
        let high = if high > 0.0 { high } else { 1.0 };
        let power = 10f64.powi((high / 8.0).log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        let step = step.into_iter().find(|step| high / step <= 8.0).unwrap_or(10.0 * power);
        let count = (high / step - 1e-9).ceil() as u32;
        let labels: Vec<f64> = (0..=count).map(|i| f64::from(i) * step).collect();
        Axis { low: 0.0, high: f64::from(count) * step, labels, minor: Vec::new() }
    }
}

/// The two axes. They determine the position of a value in the picture.
struct Area {
    scale: Scale,
    across: Axis,
    up: Axis,
}

impl Area {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.place(&self.across, value) * WIDTH
    }

    fn y(&self, value: f64) -> f64 {
        TOP + HEIGHT - self.place(&self.up, value) * HEIGHT
    }

    /// The position of a value on an axis: 0 is the low end of the axis, 1 is its high end.
    fn place(&self, Axis { low, high, .. }: &Axis, value: f64) -> f64 {
        match self.scale {
            Scale::Logarithmic => (value / low).ln() / (high / low).ln(),
            Scale::Even => (value - low) / (high - low),
        }
    }
}

impl Line {
    /// Draws the points with their spread, and the line between them.
    fn draw(&self, svg: &mut Svg, area: &Area, colour: &str, style: &str) {
        let mut path = String::new();
        for (number, &(right, high)) in self.points.iter().enumerate() {
            let letter = if number == 0 { 'M' } else { 'L' };
            let (x, y) = (area.x(right), area.y(high));
            path += &format!("{letter}{x:.1} {y:.1}");
            if let Some(&(least, most)) = self.spread.get(number) {
                let (from, to) = (area.y(least), area.y(most));
                svg.element(format_args!(
                    "path d=\"M{x:.1} {from:.1}V{to:.1}\" stroke=\"{colour}\" stroke-width=\"3\" opacity=\"0.35\""
                ));
            }
            svg.element(format_args!("circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\""));
        }
        svg.element(format_args!("path class=\"series\" d=\"{path}\" fill=\"none\" {style}"));
    }
}

impl Plot {
    /// A plot with logarithmic axes and without lines.
    pub fn new(title: &str, across: (&str, fn(f64) -> String), up: &str) -> Plot {
        let across = (across.0.into(), across.1);
        let (lines, marks) = (Vec::new(), Vec::new());
        Plot { title: title.into(), across, up: up.into(), scale: Scale::Logarithmic, lines, marks }
    }

    /// Adds a point, with the ends of its spread, at the right end of the line with this name.
    pub fn push(&mut self, name: &str, point: (f64, f64), spread: (f64, f64)) {
        let known = self.lines.iter().position(|line| line.name == name);
        let index = known.unwrap_or_else(|| {
            self.lines.push(Line { name: name.into(), ..Line::default() });
            self.lines.len() - 1
        });
        self.lines[index].points.push(point);
        self.lines[index].spread.push(spread);
    }

    /// The plot as SVG. If there are no points, the picture has the text "nothing was measured".
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let spreads = self.lines.iter().flat_map(|line| &line.spread).flat_map(|(low, high)| [*low, *high]);
        let across = extent(points().map(|point| point.0), self.scale);
        let up = extent(points().map(|point| point.1).chain(spreads), self.scale);
        // The legend has two columns if a name is long, otherwise three.
        let longest = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or_default();
        let columns = if longest > 26 { 2 } else { 3 };
        let (width, legend) = (WIDTH + 20.0, TOP + HEIGHT + 58.0);
        let height = legend + 18.0 * self.lines.len().div_ceil(columns) as f64;
        // The picture is wider than the plot, because half of the last label on the horizontal axis may lie to the right of the plot.
        let mut svg = Svg::new(&self.title, LEFT + width + 4.0, height);
        let (Some(across), Some(up)) = (across, up) else {
            svg.text(format_args!("x=\"70\" y=\"60\""), "nothing was measured");
            return svg.finish();
        };
        let (across, up) = match self.scale {
            Scale::Logarithmic => (Axis::powers_of_two(across), Axis::decades(up)),
            Scale::Even => (Axis::even(across), Axis::even(up)),
        };
        let area = Area { scale: self.scale, across, up };
        self.axes(&mut svg, &area);
        self.marked(&mut svg, &area);
        for (index, line) in self.lines.iter().enumerate() {
            // If a colour is used a second time, its dash pattern differs.
            let dashes = STYLES[(index + index / STYLES.len()) % STYLES.len()].1;
            let colour = colour(index);
            let style = format!("stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dashes}\"");
            line.draw(&mut svg, &area, colour, &style);
            let left = LEFT + (index % columns) as f64 * (width / columns as f64);
            let base = legend + (index / columns) as f64 * 18.0;
            let (right, middle) = (left + 34.0, base - 4.0);
            svg.element(format_args!("path d=\"M{left:.1} {middle}h28\" fill=\"none\" {style}"));
            svg.text(format_args!("x=\"{right:.1}\" y=\"{base}\""), &line.name);
        }
        svg.finish()
    }

    fn marked(&self, svg: &mut Svg, area: &Area) {
        let is_inside = |value: &f64| (area.across.low..=area.across.high).contains(value);
        let marks = self.marks.iter().enumerate().filter(|(_, (value, _))| is_inside(value));
        for (number, (value, words)) in marks {
            let (x, bottom) = (area.x(*value), TOP + HEIGHT);
            svg.element(format_args!(
                "path class=\"mark\" d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#333\" stroke-dasharray=\"4 4\""
            ));
            // Each label lies within the plot. It is lower than the label of the previous mark, so that the labels do not overlap.
            let (x, anchor) = if x > LEFT + WIDTH / 2.0 { (x - 5.0, "end") } else { (x + 5.0, "start") };
            let place = format!("x=\"{x:.1}\" y=\"{}\"", TOP + 14.0 + 15.0 * (number % 6) as f64);
            svg.text(format_args!("{place} text-anchor=\"{anchor}\" font-style=\"italic\""), words);
        }
    }

    fn axes(&self, svg: &mut Svg, area: &Area) {
        let (bottom, right) = (TOP + HEIGHT, LEFT + WIDTH);
        for &value in &area.across.labels {
            let (x, y) = (area.x(value), bottom + 16.0);
            svg.element(format_args!("path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#dcdcdc\""));
            svg.text(format_args!("x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\""), &(self.across.1)(value));
        }
        for (values, colour) in [(&area.up.minor, "#eeeeee"), (&area.up.labels, "#d0d0d0")] {
            for y in values.iter().map(|value| area.y(*value)) {
                let line = format!("M{LEFT} {y:.1}H{right}");
                svg.element(format_args!("path class=\"grid\" d=\"{line}\" stroke=\"{colour}\""));
            }
        }
        for &value in &area.up.labels {
            let (x, y) = (LEFT - 6.0, area.y(value) + 4.0);
            svg.text(format_args!("x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\""), &decimal(value));
        }
        let (x, y) = (LEFT + WIDTH / 2.0, bottom + 34.0);
        svg.text(format_args!("x=\"{x}\" y=\"{y}\" text-anchor=\"middle\""), &self.across.0);
        let y = TOP + HEIGHT / 2.0;
        let turned = format!("transform=\"rotate(-90 16 {y})\"");
        svg.text(format_args!("x=\"16\" y=\"{y}\" text-anchor=\"middle\" {turned}"), &self.up);
    }
}

/// A size with a binary prefix, such as `64 Ki`.
pub fn bytes(value: f64) -> String {
    let bytes = value.round() as u64;
    let mut units = [("Gi", 30), ("Mi", 20), ("Ki", 10)].into_iter();
    let unit = units.find(|(_, shift)| bytes >> shift > 0);
    unit.map_or(bytes.to_string(), |(unit, shift)| format!("{} {unit}", bytes >> shift))
}

/// A whole number.
pub fn number(value: f64) -> String {
    format!("{value:.0}")
}

/// A number with up to six decimals, without trailing zeros.
fn decimal(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
