//! The suite `latency`, which measures the time of one small call and reports the median and percentiles.

use std::hint::black_box;
use std::time::{Duration, Instant};

use lockstep_bench::workload::Shape;
use lockstep_report::Table;
use lockstep_report::plot::Plot;
use serde_json::json;

use super::{BYTES, Measured, Rate, Section, Session, Setting, report, rounds};
use crate::error::Result;

pub(super) fn run(session: &Session<'_>, section: &mut Section) -> Result<()> {
    let sizes = session.sizes(&[16, 256, 4 << 10, 64 << 10], &[16, 4 << 10]);
    let subjects = session.subjects(false)?;
    let setting = Setting { times_calls: true, ..session.setting(5, Duration::from_millis(40)) };
    for work in &session.works("ctr-256 gcm-256")? {
        let head = ["size", "who", "calls", "least", "median", "90 %", "99 %", "most"];
        let mut table = Table::new(&format!("{}, time of a call", work.name), &head, 2);
        let title = format!("{}: time of a call, median (bars: minimum to 99 %)", work.name);
        let mut plot = Plot::new(&title, BYTES, "µs");
        for &size in sizes.iter().filter(|size| work.accepts(**size)) {
            session.note(&format!("{}: {}", work.name, report::size(size)));
            let mut contenders = session.contenders(&subjects, work, Shape::one(size), false)?;
            for Measured { name, times, .. } in rounds(&setting, &mut contenders, size, |_| Ok(()))? {
                let last = times.len() - 1;
                let quantile = |part: f64| times[(last as f64 * part).round() as usize];
                let [least, median, p90, p99, p999, most] = [0.0, 0.5, 0.9, 0.99, 0.999, 1.0].map(quantile);
                let mut row = vec![report::size(size), name.to_string(), times.len().to_string()];
                row.extend([least, median, p90, p99, most].map(report::time));
                table.rows.push(row);
                plot.push(&name, (size as f64, median * 1e6), (least * 1e6, p99 * 1e6));
                section.results.push(json!({
                    "work": work.name, "size": size, "who": &*name, "calls": times.len(),
                    "seconds": {"min": least, "median": median, "p90": p90, "p99": p99, "p999": p999, "max": most},
                }));
            }
        }
        if !table.rows.is_empty() {
            section.tables.push(table);
            section.pictures.push(plot.svg());
        }
    }
    section.findings.push(format!("Reading the clock takes {} of each call.", report::time(clock())));
    Ok(())
}

/// The seconds between two consecutive readings of the clock. The value is the median of many measurements.
fn clock() -> f64 {
    let times = (0..1001).map(|_| black_box(Instant::now()).elapsed().as_secs_f64());
    Rate::of(times.collect()).median
}
