//! The time of one small call: median and percentiles.

use std::hint::black_box;
use std::time::{Duration, Instant};

use lockstep_report::Table;
use lockstep_report::plot::Plot;
use serde_json::{Value, json};

use super::BYTES;
use crate::Session;
use crate::error::{Result, failed};
use crate::measure::{Buffers, Contender, Setting, in_turn};
use crate::report::{self, Picture, Section};
use crate::workload::Shape;

const WORKS: [&str; 2] = ["ctr-256", "gcm-256"];
const SIZES: [usize; 4] = [16, 256, 4 << 10, 64 << 10];
const QUICK_SIZES: [usize; 2] = [16, 4 << 10];

/// The maximum number of calls of a stretch. It is limited because the time of each call is kept in memory.
const MAX_CALLS: usize = 1_000_000;

/// The times of one contender's calls, in seconds, sorted.
struct Times {
    name: String,
    sorted: Vec<f64>,
}

impl Times {
    fn at(&self, part: f64) -> f64 {
        let last = self.sorted.len() - 1;
        self.sorted[((last as f64) * part).round() as usize]
    }
}

pub(super) fn run(session: &Session, section: &mut Section) -> Result<()> {
    let works = session.works(&WORKS)?;
    let sizes = session.sizes(&SIZES, &QUICK_SIZES);
    let subjects = session.subjects()?;
    let setting = session.setting(5, Duration::from_millis(40));
    for work in &works {
        let head = ["size", "who", "calls", "least", "median", "90 %", "99 %", "most"];
        let mut table = Table::new(&format!("{}, time of a call", work.name), &head, 2);
        let title = format!("{}: time of a call, median (bars: minimum to 99 %)", work.name);
        let mut plot = Plot::new(&title, BYTES, "µs");
        for &size in sizes.iter().filter(|size| work.accepts(**size)) {
            session.note(&format!("{}: {}", work.name, report::size(size)));
            let shape = Shape::one(size);
            let inputs = session.inputs(work, shape)?;
            let mut contenders = Vec::new();
            for subject in &subjects {
                contenders.extend(session.contender(subject, work, &inputs, shape)?);
            }
            for times in measure(&setting, &mut contenders, size)? {
                let quantiles = [0.0, 0.5, 0.9, 0.99, 1.0].map(|part| times.at(part));
                let mut row = vec![report::size(size), times.name.clone(), times.sorted.len().to_string()];
                row.extend(quantiles.map(report::time));
                table.rows.push(row);
                let [least, median, _, most, _] = quantiles.map(|seconds| seconds * 1e6);
                plot.push(&times.name, (size as f64, median), (least, most));
                section.results.push(result(&work.name, size, &times));
            }
        }
        if !table.rows.is_empty() {
            section.tables.push(table);
            section.pictures.push(Picture::Plot(plot));
        }
    }
    if section.tables.is_empty() {
        return Err(failed("none of the devices supports any of these workloads at these sizes"));
    }
    section.findings.push(format!("Reading the clock takes {} of each call.", report::time(clock())));
    Ok(())
}

fn result(work: &str, size: usize, times: &Times) -> Value {
    json!({
        "work": work, "size": size, "who": times.name, "calls": times.sorted.len(),
        "seconds": {
            "min": times.at(0.0), "median": times.at(0.5), "p90": times.at(0.9), "p99": times.at(0.99),
            "p999": times.at(0.999), "max": times.at(1.0),
        },
    })
}

/// The time between two consecutive readings of the clock, in seconds: the median of many measurements.
fn clock() -> f64 {
    let mut times: Vec<f64> = (0..1001)
        .map(|_| {
            let start = Instant::now();
            black_box(start).elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Runs rounds as in the other suites, but times each call separately.
fn measure(setting: &Setting, contenders: &mut [Contender], bytes: usize) -> Result<Vec<Times>> {
    let mut buffers = Buffers::new(bytes);
    let mut all: Vec<Vec<f64>> = contenders.iter().map(|_| Vec::new()).collect();
    in_turn(setting, contenders.len(), |round, index| {
        let times = buffers.checked(setting, &mut contenders[index], |data, contender, first| {
            let (mut digest, mut times) = (0u128, Vec::new());
            let (run, _) = setting.curve.timed(&contender.name, || {
                let begun = Instant::now();
                while begun.elapsed() < setting.time && times.len() < MAX_CALLS || times.is_empty() {
                    setting.host.check_stopped()?;
                    let start = Instant::now();
                    let returned = (contender.run)(black_box(data), first + times.len() as u64)?;
                    times.push(start.elapsed().as_secs_f64());
                    digest = digest.rotate_left(1) ^ returned;
                }
                Ok(())
            });
            run.map(|()| (times.len() as u64, digest, times))
        })?;
        // Round 0 warms up and includes the self-tests.
        if round > 0 {
            all[index].extend(times);
        }
        Ok(())
    })?;
    let sorted = contenders.iter().zip(all).map(|(contender, mut sorted)| {
        sorted.sort_by(f64::total_cmp);
        Times { name: contender.name.to_string(), sorted }
    });
    Ok(sorted.collect())
}
