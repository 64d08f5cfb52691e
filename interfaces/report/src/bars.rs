//! Draws bar charts as SVG. A chart compares the results of several contenders for each of several workloads. [`crate::plot`] explains
//! why no crate for plots is used.

use crate::plot::colour;
use crate::svg::Svg;
use crate::text::digits;

/// A chart of horizontal bars in groups.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// The title, with the unit.
    pub title: String,
    /// The contenders, in the order of the legend.
    pub series: Vec<String>,
    /// The groups, each with its name and its bars.
    pub groups: Vec<(String, Vec<Bar>)>,
}

/// A bar.
#[derive(Debug, Clone, Copy)]
pub struct Bar {
    /// The contender: an index into [`Bars::series`].
    pub series: usize,
    /// The value, in the unit of the chart.
    pub value: f64,
    /// The lower and the upper end of the spread.
    pub spread: (f64, f64),
}

/// The width of the names and of the longest bar together. The space to the right of the longest bar is for its number.
const BOTH: f64 = 640.0;
const TOP: f64 = 36.0;
const THICK: f64 = 13.0;
const GAP: f64 = 9.0;

impl Bars {
    /// Adds a group of bars. Each bar has the name of its contender, a value, and the lower and the upper end of the spread.
    pub fn push<'n>(&mut self, group: &str, bars: impl IntoIterator<Item = (&'n str, f64, (f64, f64))>) {
        let bars = bars.into_iter().map(|(name, value, spread)| {
            let known = self.series.iter().position(|series| series == name);
            let series = known.unwrap_or_else(|| {
                self.series.push(name.into());
                self.series.len() - 1
            });
            Bar { series, value, spread }
        });
        let bars = bars.collect();
        self.groups.push((group.into(), bars));
    }

    /// The chart as SVG.
    pub fn svg(&self) -> String {
        // The names get the width of the longest name, with 7 units for each character.
        let longest = self.groups.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let left = (24.0 + 7.0 * longest as f64).clamp(100.0, 400.0);
        let bars = || self.groups.iter().flat_map(|(_, bars)| bars);
        let most = bars().map(|bar| bar.value.max(bar.spread.1)).fold(0.0, f64::max);
        let scale = if most > 0.0 { (BOTH - left) / most } else { 0.0 };
        let rows: f64 = self.groups.iter().map(|(_, bars)| bars.len() as f64 * THICK + GAP).sum();
        let legend = TOP + rows + 18.0;
        // The width is that of a line plot.
        let mut svg = Svg::new(&self.title, 734.0, legend + 18.0 * self.series.len().div_ceil(3) as f64);
        let mut top = TOP;
        for (name, bars) in &self.groups {
            let (right, middle) = (left - 8.0, top + bars.len() as f64 * THICK / 2.0 + 4.0);
            svg.text(format_args!("x=\"{right}\" y=\"{middle:.1}\" text-anchor=\"end\""), name);
            for bar in bars {
                bar.draw(&mut svg, left, top, scale);
                top += THICK;
            }
            top += GAP;
        }
        for (index, name) in self.series.iter().enumerate() {
            let (left, base) = (16.0 + (index % 3) as f64 * 236.0, legend + (index / 3) as f64 * 18.0);
            let (top, colour) = (base - 9.0, colour(index));
            svg.element(format_args!(
                "rect x=\"{left}\" y=\"{top}\" width=\"12\" height=\"10\" fill=\"{colour}\""
            ));
            svg.text(format_args!("x=\"{}\" y=\"{base}\"", left + 18.0), name);
        }
        svg.finish()
    }
}

impl Bar {
    /// Draws the bar, its spread and its value. `scale` is the length of a bar with the value 1.
    fn draw(&self, svg: &mut Svg, left: f64, top: f64, scale: f64) {
        // A minimum length keeps every bar visible.
        let (length, thick) = ((self.value * scale).max(2.0), THICK - 2.0);
        let colour = colour(self.series);
        svg.element(format_args!(
            "rect class=\"series\" x=\"{left}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{thick}\" fill=\"{colour}\""
        ));
        let (from, to) = (left + self.spread.0 * scale, left + self.spread.1 * scale);
        let middle = top + THICK / 2.0 - 1.0;
        svg.element(format_args!("path class=\"mark\" d=\"M{from:.1} {middle:.1}H{to:.1}\" stroke=\"#333\""));
        let (end, base) = (to.max(left + length) + 5.0, top + THICK - 3.5);
        svg.text(format_args!("x=\"{end:.1}\" y=\"{base:.1}\" font-size=\"10\""), &digits(self.value));
    }
}

#[cfg(test)]
mod tests;
