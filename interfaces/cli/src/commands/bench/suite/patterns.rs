//! The suite `patterns`, which measures whether the speed depends on the data. The patterns come from a thesis on AES with CUDA and
//! OpenSSL: see `docs/benchmarks.md`.

use std::time::Duration;

use lockstep_bench::workload::{Inputs, PATTERNS, Shape, Workload, pattern};
use lockstep_report::Table;
use lockstep_report::bars::Bars;
use serde_json::json;

use super::{Rate, Section, Session, bar, report, rounds};
use crate::error::{Result, ensure};

const NOT_CIPHER_INPUT: &str = "the data are not the input of the block cipher";

pub(super) fn run(session: &Session<'_>, section: &mut Section) -> Result<()> {
    // In ECB mode the inputs of the block cipher are the blocks of the data.
    let (works, unsuitable): (Vec<_>, Vec<_>) =
        session.works("ecb-256")?.into_iter().partition(Workload::has_data_as_cipher_input);
    let unsuitable: Vec<_> = unsuitable.into_iter().map(|work| work.name).collect();
    let unsuitable = unsuitable.join(", ");
    let message = format_args!("data patterns cannot be measured with {unsuitable}: {NOT_CIPHER_INPUT}");
    ensure(!works.is_empty(), message)?;
    let sizes = session.sizes(&[1 << 20], &[64 << 10]);
    let subjects = session.subjects(true)?;
    let setting = session.setting(9, Duration::from_millis(20));
    let head = [&["work", "size", "who"], &PATTERNS[..], &["difference", "spread", "inside"]].concat();
    let mut table = Table::new("GB/s by pattern", &head, 3);
    for work in &works {
        for &size in sizes.iter().filter(|size| work.accepts(**size)) {
            let of_what = format!("{} of {}", work.name, report::size(size));
            let mut bars = Bars { title: format!("{of_what}: GB/s by pattern"), ..Bars::default() };
            let (shape, inputs) = (Shape::one(size), session.inputs(work, Shape::one(size))?);
            for subject in &subjects {
                let name = &*subject.name;
                session.note(&format!("{}: {name}", work.name));
                let contender = |number| {
                    let inputs = Inputs { source: pattern(number, size).into(), ..inputs.clone() };
                    session.contender(subject, work, &inputs, shape).transpose()
                };
                let mut contenders = (0..PATTERNS.len()).filter_map(contender).collect::<Result<Vec<_>>>()?;
                let measured = rounds(&setting, &mut contenders, size, |_| Ok(()))?;
                let Ok(rates) = <[_; PATTERNS.len()]>::try_from(measured) else { continue };
                let rates = rates.map(|one| one.rate);
                let (difference, spread) = compare(&rates);
                let (inside, verdict) = match difference <= spread {
                    true => ("yes", "no significant difference"),
                    false => ("no", "a significant difference"),
                };
                let mut row = vec![work.name.clone(), report::size(size), name.to_owned()];
                row.extend(rates.map(report::rate));
                let [apart, within] = [difference, spread].map(|part| format!("{:.1} %", part * 100.0));
                let facts =
                    format!("patterns differ by {apart}, rounds of one pattern by {within}: {verdict}");
                section.findings.push(format!("{name}, {of_what}: {facts}"));
                row.extend([apart, within, inside.into()]);
                table.rows.push(row);
                bars.push(name, PATTERNS.into_iter().zip(rates).map(|(pattern, rate)| bar(pattern, rate)));
                let by: serde_json::Map<_, _> =
                    PATTERNS.iter().zip(&rates).map(|(name, rate)| ((*name).into(), rate.json())).collect();
                section.results.push(json!({
                    "work": work.name, "size": size, "who": name, "bytes_per_second": by,
                    "difference": difference, "spread": spread, "inside_spread": difference <= spread,
                }));
            }
            if !bars.groups.is_empty() {
                section.pictures.push(bars.svg());
            }
        }
    }
    if !unsuitable.is_empty() {
        section.findings.push(format!("Left out: {unsuitable}; {NOT_CIPHER_INPUT}."));
    }
    section.tables.push(table);
    Ok(())
}

/// Returns two values. The first value is the difference between the medians of the fastest and of the slowest pattern, divided by
/// the median of the fastest pattern. The second value is the largest spread of a pattern: the difference between its fastest and
/// its slowest round, divided by its median. If the first value does not exceed the second, no dependence of the speed on the data
/// has been measured.
fn compare(rates: &[Rate]) -> (f64, f64) {
    let over = |value: fn(&Rate) -> f64| rates.iter().map(value);
    let fastest = over(|rate| rate.median).fold(f64::MIN, f64::max);
    let slowest = over(|rate| rate.median).fold(f64::MAX, f64::min);
    let spread = over(|rate| (rate.most - rate.least) / rate.median).fold(0.0, f64::max);
    (1.0 - slowest / fastest, spread)
}

#[cfg(test)]
mod tests;
