//! Calls on many messages, for each combination of number and size of the messages.

use std::time::Duration;

use lockstep_report::plot as axis;

use super::{Outcome, by_shape, plot, table};
use crate::Session;
use crate::error::{Result, failed};
use crate::report::{self, Picture, Section};
use crate::workload::Shape;

const WORKS: [&str; 2] = ["gcm-256", "cbc-256"];
const SIZES: [usize; 3] = [64, 1 << 10, 16 << 10];
const MESSAGES: [usize; 6] = [1, 4, 16, 64, 1024, 16_384];
const QUICK_SIZES: [usize; 1] = [256];
const QUICK_MESSAGES: [usize; 2] = [1, 16];

/// The maximum number of bytes of a call.
const MAX_CALL: usize = 256 << 20;

pub(super) fn run(session: &Session, section: &mut Section) -> Result<()> {
    let works = session.works(&WORKS)?;
    let sizes = session.sizes(&SIZES, &QUICK_SIZES);
    let counts = match (&session.options.messages, session.options.quick) {
        (asked, _) if !asked.is_empty() => asked.clone(),
        (_, true) => QUICK_MESSAGES.to_vec(),
        _ => MESSAGES.to_vec(),
    };
    let subjects = session.subjects()?;
    let setting = session.setting(3, Duration::from_millis(50));
    let mut firsts = Vec::new();
    for work in &works {
        for &size in &sizes {
            let shapes: Vec<_> = counts
                .iter()
                .filter(|&&messages| size.saturating_mul(messages) <= MAX_CALL)
                .map(|&messages| Shape { size, messages })
                .collect();
            let outcomes = by_shape(session, &setting, &subjects, work, &shapes)?;
            if outcomes.is_empty() {
                continue;
            }
            let title = format!("{}, messages of {}", work.name, report::size(size));
            let messages = |outcome: &Outcome| outcome.shape.messages.to_string();
            section.tables.push(table(&format!("{title}, GB/s by messages in a call"), &outcomes, messages));
            if outcomes.len() > 1 {
                let across = ("messages in a call", axis::number as fn(f64) -> String);
                section.pictures.push(Picture::Plot(plot(&title, across, &outcomes, |outcome| {
                    outcome.shape.messages as f64
                })));
            }
            section.results.extend(super::json(&work.name, &outcomes));
            firsts.extend(outcomes.into_iter().flat_map(|outcome| outcome.measured));
        }
    }
    if section.results.is_empty() {
        return Err(failed("none of the devices supports any of these workloads in these batches"));
    }
    section.findings.extend(report::first_calls(firsts.iter()));
    Ok(())
}
