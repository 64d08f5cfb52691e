//! Throughput by mode, key length, size, device and kernel.

use std::time::Duration;

use super::{BYTES, by_shape, costs, plot, size_of, table};
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

pub(super) fn run(session: &Session, section: &mut Section) -> Result<()> {
    let works = session.works(if session.options.quick { &WORKS[2..4] } else { &WORKS })?;
    let shapes: Vec<_> = session.sizes(&SIZES, &QUICK_SIZES).into_iter().map(Shape::one).collect();
    let subjects = session.kernels()?;
    let setting = session.setting(3, Duration::from_millis(20));
    let mut all = Vec::new();
    for work in &works {
        let outcomes = by_shape(session, &setting, &subjects, work, &shapes)?;
        if outcomes.is_empty() {
            continue;
        }
        section.tables.push(table(&format!("{}, GB/s", work.name), &outcomes, size_of));
        if outcomes.len() > 1 {
            let title = format!("{}: throughput against size", work.name);
            section
                .pictures
                .push(Picture::Plot(plot(&title, BYTES, &outcomes, |outcome| outcome.shape.size as f64)));
        }
        section.results.extend(super::json(&work.name, &outcomes));
        all.push((work.name.clone(), outcomes));
    }
    if all.is_empty() {
        return Err(failed("none of the kernels supports any of these workloads at these sizes"));
    }
    section.tables.push(costs("CPU time at the largest size, seconds for a gigabyte", &all, report::cpu));
    if let Ok(meter) = &session.meter {
        let title = |whose: &str| format!("Energy of {whose} at the largest size, joules for a gigabyte");
        if meter.has_packages() {
            section.tables.push(costs(&title("processors"), &all, report::cpu_joules));
        }
        if meter.has_gpus() {
            section.tables.push(costs(&title("GPUs"), &all, report::gpu_joules));
        }
    }
    let measured = all.iter().flat_map(|(_, outcomes)| outcomes).flat_map(|outcome| &outcome.measured);
    section.findings.extend(report::first_calls(measured));
    Ok(())
}
