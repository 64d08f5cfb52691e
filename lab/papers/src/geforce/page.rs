//! The documentation page, generated from a template and the results.

use lockstep_report::bars::{Bar, Bars};
use lockstep_report::plot::{self, Line, Plot, Scale};

use super::fit::measured;
use super::model::MACHINE;
use super::predict::{Model, REPEATED, Row};
use super::report;
use super::sweep::{self, Sizes, Sweep};
use super::thesis;
use crate::Page;

/// The template: a hand-written text in which each `{{name}}` is replaced by results.
const TEMPLATE: &str = include_str!("page.md");

/// Generates the page. `folder` is the folder in the links to the pictures.
///
/// # Panics
/// If the template contains an unknown name, which is a bug.
pub fn page(model: &Model, sweep: &Sweep, folder: &str) -> Page {
    let of_model =
        [("times", times(model)), ("repeated", repeated(model).svg()), ("sizes", sizes(sweep).svg())];
    let pictures = of_model.into_iter().chain(thesis::pictures());
    let tables = report::tables(model).into_iter().chain([("variants", report::variants(sweep))]);
    let places: Vec<(String, String)> = tables
        .map(|(name, table)| (format!("{{{{{name}}}}}\n"), crate::markdown(&table)))
        .chain(values(model, sweep).map(|(name, value)| (format!("{{{{{name}}}}}"), value)))
        .chain([("{{folder}}".into(), folder.into())])
        .collect();
    let mut markdown = TEMPLATE.to_owned();
    for (place, text) in &places {
        assert!(markdown.contains(place), "the template has no {place}");
        markdown = markdown.replace(place, text);
    }
    assert!(!markdown.contains("{{"), "the template has an unknown name");
    Page { markdown, pictures: pictures.map(|(name, svg)| (format!("{name}.svg"), svg)).collect() }
}

/// The figures that replace the names in the template.
fn values(model: &Model, sweep: &Sweep) -> [(&'static str, String); 14] {
    let number = |value: f64, decimals: usize| format!("{value:.decimals$}");
    let of_repeated = |at: usize| {
        let (low, high) = sweep.extent(|variant| variant.repeated[at]);
        format!("{low:.0} to {high:.0}")
    };
    let [two, many] = [0, 3].map(|at| {
        assert_eq!([sweep::REPEATED[0], sweep::REPEATED[3]], [2, 1024]);
        sweep.extent(|variant| variant.repeated[at])
    });
    let others = model.others.iter().map(|other| 100.0 * (other.tuned.seconds / measured(1) - 1.0));
    let least_other = others.fold(f64::MAX, f64::min);
    let fit = &model.fit;
    let group = f64::from(fit.machine.quads) * fit.cost.base;
    let of_file_7 =
        |rows: &[Row]| rows.iter().find(|row| row.file == 7).map_or(0.0, |row| row.thesis - row.model);
    [
        ("miss", number(fit.cost.miss, 1)),
        ("quads", fit.machine.quads.to_string()),
        ("quads_interleaved", model.interleaved.machine.quads.to_string()),
        ("group_clocks", number(group, 0)),
        ("line_throughput", number(fit.line_throughput() / 1e9, 0)),
        ("simulated", model.misses[0].quads.to_string()),
        ("simulated_of_file_3", model.misses[2].quads.to_string()),
        ("missing_of_file_7", number(of_file_7(&model.rows), 1)),
        ("start", number(model.with_start.start, 1)),
        ("least_other", number(least_other, 0)),
        ("at_most_for_2", number(two.1, 1)),
        ("at_least_for_1024", number(many.0, 0)),
        ("for_64", of_repeated(1)),
        ("for_512", of_repeated(2)),
    ]
}

/// A picture with the times of the model and of the thesis as bars.
fn times(model: &Model) -> String {
    let group = |row: &Row| {
        let bar = |series, value, spread| Bar { series, value, spread };
        let of = if row.whole { "whole program, file" } else { "shader, file" };
        let name = format!("{of} {} at {}: {}", row.file, row.edge, row.basis.name());
        (name, vec![bar(0, row.thesis, row.range), bar(1, row.model, (row.model, row.model))])
    };
    let bars = Bars {
        title: "Seconds of the thesis and of the model".into(),
        series: vec!["thesis, and its three runs".into(), "model".into()],
        groups: model.rows.iter().map(group).collect(),
    };
    bars.svg()
}

fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.into(), points, spread: Vec::new() }
}

/// A plot of the seconds by the number of different blocks.
fn repeated(model: &Model) -> Plot {
    let of = |which: usize| {
        REPEATED
            .iter()
            .zip(&model.repeated)
            .map(|(blocks, seconds)| (*blocks as f64, seconds[which]))
            .collect()
    };
    Plot {
        title: "Seconds of the shader for random blocks that are repeated".into(),
        across: ("different blocks".into(), plot::number),
        up: "seconds".into(),
        scale: Scale::Logarithmic,
        lines: vec![
            line("quads successive", of(0)),
            line("quads interleaved", of(1)),
            line("thesis: files 2 and 1", vec![(1.0, measured(2)), (16.0, measured(1))]),
        ],
        marks: Vec::new(),
    }
}

/// A plot of the misses by the size of the cache.
fn sizes(sweep: &Sweep) -> Plot {
    let of = |sizes: &Sizes| {
        // Caches that hold everything have no misses, which a logarithmic axis cannot show.
        let points = sizes.points.iter().filter(|(_, rate)| *rate > 1e-4);
        let name = format!("file {}, lines of {} bytes", sizes.file, sizes.line);
        line(&name, points.map(|&(bytes, rate)| (f64::from(bytes), rate)).collect())
    };
    Plot {
        title: "Misses per lookup by the size of the cache".into(),
        across: ("bytes of the cache of a quad pipeline".into(), plot::bytes),
        up: "misses per lookup".into(),
        scale: Scale::Logarithmic,
        lines: sweep.sizes.iter().map(of).collect(),
        marks: vec![(f64::from(MACHINE.cache.bytes), "the model".into())],
    }
}
