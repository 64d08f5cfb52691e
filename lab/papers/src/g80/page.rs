//! Generates the documentation page from a template and the results.

use super::Results;
use super::figures::{GOOD, NAIVE, passes};
use super::hypotheses::line_errors;
use super::multiprocessor::ISSUE;
use super::rows::Row;
use super::variants::MANY_INSTRUCTIONS;
use super::{plots, report};
use crate::Page;

/// The template: a hand-written text in which each `{{name}}` is replaced by results.
const TEMPLATE: &str = include_str!("page.md");

/// Generates the page. `folder` is the folder in the links to the pictures.
///
/// # Panics
/// If the template contains an unknown name, which is a bug.
pub fn page(results: &Results, folder: &str) -> Page {
    let tables = report::tables(results).into_iter();
    let places: Vec<(String, String)> = tables
        .map(|(name, table)| (format!("{{{{{name}}}}}\n"), crate::markdown(&table)))
        .chain(values(results).into_iter().map(|(name, value)| (format!("{{{{{name}}}}}"), value)))
        .chain([("{{folder}}".into(), folder.into())])
        .collect();
    let mut markdown = TEMPLATE.to_owned();
    for (place, text) in &places {
        assert!(markdown.contains(place), "the template has no {place}");
        markdown = markdown.replace(place, text);
    }
    assert!(!markdown.contains("{{"), "the template has an unknown name");
    Page { markdown, pictures: plots::all(results) }
}

/// Words of the state that a thread of coarse grain reads and writes for an AES block: four reads and four writes in each round.
const STATE_ACCESSES: f64 = 80.0;

/// Returns the additional clocks of the issue port in coarse grain if an access to the state takes this number of passes, as a fraction of
/// all clocks.
fn more_clocks(results: &Results, passes: u32) -> f64 {
    let port = ISSUE as f64;
    // A pass of both half-warps takes as many clocks as the issue of an instruction.
    let lookups = 160.0 * port * (results.passes[1][0] - 1.0);
    let all = f64::from(results.fit.instructions) * port + lookups;
    STATE_ACCESSES * port * f64::from(passes - 1) / all
}

/// The figures that replace the names in the template.
fn values(results: &Results) -> Vec<(&'static str, String)> {
    let number = |value: f64, decimals: usize| format!("{value:.decimals$}");
    let worst = results.table_1.iter().map(|row| row.percent().abs()).fold(0.0, f64::max);
    let line = line_errors().as_flattened().iter().map(|error| error.abs()).fold(0.0, f64::max);
    // The percentage by which the rate of the 8800 GT is lower at 32 MB than at 128 MB.
    let less = |of: fn(&Row) -> f64| 100.0 * (1.0 - of(&results.table_1[2]) / of(&results.table_1[3]));
    let [a1, a2, a3, a4] = [0, 1, 2, 3].map(|at| results.thesis[at].thesis);
    let longer = (a1 + a3 - a2 - a4) / 2.0;
    let many = results.variants.iter().find(|variant| variant.name == MANY_INSTRUCTIONS).expect("a variant");
    vec![
        ("worst", number(worst, 1)),
        ("line", number(line, 1)),
        ("instructions", results.fit.instructions.to_string()),
        ("call", number(1e6 * results.fit.call, 0)),
        ("clock", number(results.fit.clock, 3)),
        ("naive", passes(NAIVE).to_string()),
        ("good", passes(GOOD).to_string()),
        ("naive_percent", number(100.0 * more_clocks(results, passes(NAIVE)), 0)),
        ("nominal_rate", number(results.nominal[3].model, 0)),
        ("paper_less", number(less(|row| row.paper), 1)),
        ("model_less", number(less(|row| row.model), 1)),
        ("coarse_from", number(results.figures_5_and_6[1].model, 0)),
        ("thesis_longer", number(longer, 1)),
        ("fine_even", (many.break_even[0] >> 10).to_string()),
        ("accesses", results.traffic.accesses.to_string()),
        ("bytes", results.traffic.bytes.to_string()),
        ("gems_lookups", (results.gems.accesses - 2).to_string()),
        ("gems_bytes", results.gems.bytes.to_string()),
        ("gems_bytes_with_keys", results.gems.bytes_with_keys().to_string()),
        ("gems_rate", number(results.gems.largest_rates().0 / 1e6, 0)),
        ("gems_rate_with_keys", number(results.gems.largest_rates().1 / 1e6, 0)),
        ("shared_rate", number(results.table_1[3].model / 8.0, 0)),
    ]
}
