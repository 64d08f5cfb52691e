//! Throughput by mode, key length, size, device and kernel.

use std::time::Duration;

use lockstep_report::Table;
use serde_json::json;

use super::{BYTES, Outcome, Suite, by_shape, names, plot};
use crate::Session;
use crate::error::{Result, failed};
use crate::report::{self, Picture, Section};
use crate::workload::Shape;

const WORKS: [&str; 13] = [
    "ecb-128",
    "ecb-256",
    "ctr-128",
    "ctr-256",
    "xts-128",
    "xts-256",
    "gcm-128",
    "gcm-256",
    "gcm-256-open",
    "cbc-128-decrypt",
    "cbc-256-decrypt",
    "cfb-256-decrypt",
    "cbc-256",
];
const SIZES: [usize; 5] = [256, 4 << 10, 64 << 10, 1 << 20, 16 << 20];
const QUICK_SIZES: [usize; 2] = [1 << 10, 64 << 10];

pub(super) fn run(session: &Session) -> Result<Section> {
    let works = session.works(if session.options.quick { &WORKS[2..4] } else { &WORKS })?;
    let shapes: Vec<_> = session.sizes(&SIZES, &QUICK_SIZES).into_iter().map(Shape::one).collect();
    let subjects = session.kernels()?;
    let setting = session.setting(3, Duration::from_millis(20));
    let (mut tables, mut pictures, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let mut all = Vec::new();
    for work in &works {
        let outcomes = by_shape(session, &setting, &subjects, work, &shapes)?;
        if outcomes.is_empty() {
            continue;
        }
        tables.push(table(&format!("{}, GB/s", work.name), &outcomes, report::size_of));
        if outcomes.len() > 1 {
            pictures.push(Picture::Plot(plot(
                &format!("{}: throughput against size", work.name),
                BYTES,
                &outcomes,
                |outcome| outcome.shape.size as f64,
            )));
        }
        results.extend(super::json(&work.name, &outcomes));
        all.push((work.name.clone(), outcomes));
    }
    if all.is_empty() {
        return Err(failed("none of the kernels supports any of these workloads at these sizes"));
    }
    tables.push(costs("CPU time at the largest size, seconds for a gigabyte", &all, report::cpu));
    if let Ok(meter) = &session.meter {
        let title = |whose: &str| format!("Energy of {whose} at the largest size, joules for a gigabyte");
        if meter.has_packages() {
            tables.push(costs(&title("processors"), &all, report::cpu_joules));
        }
        if meter.has_gpus() {
            tables.push(costs(&title("GPUs"), &all, report::gpu_joules));
        }
    }
    let measured = all.iter().flat_map(|(_, outcomes)| outcomes).flat_map(|outcome| &outcome.measured);
    let findings = report::first_calls(measured).into_iter().collect();
    Ok(Section { suite: Suite::Throughput, tables, pictures, findings, json: json!({"results": results}) })
}

/// A table with a row for each outcome and a column for each name.
pub(super) fn table(title: &str, outcomes: &[Outcome], row: impl Fn(&Outcome) -> String) -> Table {
    let names = names(outcomes);
    let head: Vec<&str> = std::iter::once("").chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(title, &head, 1);
    for outcome in outcomes {
        let cells =
            names.iter().map(|name| outcome.of(name).map_or("-".into(), |one| report::rate(one.rate)));
        table.rows.push(std::iter::once(row(outcome)).chain(cells).collect());
    }
    table
}

/// The cost of each workload at its largest size: a row for each workload, a column for each name.
pub(super) fn costs(
    title: &str,
    all: &[(String, Vec<Outcome>)],
    cost: impl Fn(&crate::measure::Measured) -> String,
) -> Table {
    let mut all_names: Vec<String> = Vec::new();
    for name in all.iter().flat_map(|(_, outcomes)| names(outcomes)) {
        if !all_names.contains(&name) {
            all_names.push(name);
        }
    }
    let head: Vec<&str> = std::iter::once("").chain(all_names.iter().map(String::as_str)).collect();
    let mut table = Table::new(title, &head, 1);
    for (work, outcomes) in all {
        let last = |name: &String| outcomes.iter().rev().find_map(|outcome| outcome.of(name));
        let cells = all_names.iter().map(|name| last(name).map_or("-".into(), &cost));
        table.rows.push(std::iter::once(work.clone()).chain(cells).collect());
    }
    table
}
