//! The time of one small call: median and percentiles.

use std::hint::black_box;
use std::time::{Duration, Instant};

use lockstep_report::Table;
use lockstep_report::plot::Plot;
use serde_json::json;

use super::BYTES;
use crate::commands::bench::instruments::timed;
use crate::commands::bench::measure::{Buffers, Contender, Rate, Setting, in_turn};
use crate::commands::bench::report::{self, Section};
use crate::commands::bench::session::Session;
use crate::commands::bench::workload::Shape;
use crate::error::{Result, check_stopped};

const WORKS: &str = "ctr-256 gcm-256";
const SIZES: [usize; 4] = [16, 256, 4 << 10, 64 << 10];
const QUICK_SIZES: [usize; 2] = [16, 4 << 10];

/// The maximum number of calls of a stretch. It is limited because the time of each call is kept in memory.
const MAX_CALLS: usize = 1_000_000;

pub(super) fn run(session: &Session<'_>, section: &mut Section) -> Result<()> {
    let sizes = session.sizes(&SIZES, &QUICK_SIZES);
    let subjects = session.subjects(false)?;
    let setting = session.setting(5, Duration::from_millis(40));
    for work in &session.works(WORKS)? {
        let head = ["size", "who", "calls", "least", "median", "90 %", "99 %", "most"];
        let mut table = Table::new(&format!("{}, time of a call", work.name), &head, 2);
        let title = format!("{}: time of a call, median (bars: minimum to 99 %)", work.name);
        let mut plot = Plot::new(&title, BYTES, "µs");
        for &size in sizes.iter().filter(|size| work.accepts(**size)) {
            session.note(&format!("{}: {}", work.name, report::size(size)));
            let mut contenders = session.contenders(&subjects, work, Shape::one(size), false)?;
            let times = measure(&setting, &mut contenders, size)?;
            for (Contender { name, .. }, sorted) in contenders.iter().zip(times) {
                let last = sorted.len() - 1;
                let quantile = |part: f64| sorted[(last as f64 * part).round() as usize];
                let [least, median, p90, p99, p999, most] = [0.0, 0.5, 0.9, 0.99, 0.999, 1.0].map(quantile);
                let mut row = vec![report::size(size), name.to_string(), sorted.len().to_string()];
                row.extend([least, median, p90, p99, most].map(report::time));
                table.rows.push(row);
                plot.push(name, (size as f64, median * 1e6), (least * 1e6, p99 * 1e6));
                section.results.push(json!({
                    "work": work.name, "size": size, "who": &**name, "calls": sorted.len(),
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

/// The time between two consecutive readings of the clock, in seconds: the median of many measurements.
fn clock() -> f64 {
    let times = (0..1001).map(|_| black_box(Instant::now()).elapsed().as_secs_f64());
    Rate::of(times.collect()).median
}

/// The sorted times of the calls of each contender, in seconds. Runs rounds as in the other suites, but times each call
/// separately.
fn measure(setting: &Setting<'_>, contenders: &mut [Contender], bytes: usize) -> Result<Vec<Vec<f64>>> {
    let mut buffers = Buffers::new(bytes);
    let mut all: Vec<Vec<f64>> = contenders.iter().map(|_| Vec::new()).collect();
    in_turn(setting.rounds, contenders.len(), |round, index| {
        let times = buffers.checked(&mut contenders[index], |data, contender, first| {
            let (mut digest, mut times) = (0u128, Vec::new());
            let (run, spent) = timed(|| {
                let begun = Instant::now();
                while begun.elapsed() < setting.time && times.len() < MAX_CALLS || times.is_empty() {
                    check_stopped()?;
                    let start = Instant::now();
                    let returned = (contender.run)(black_box(data), first + times.len() as u64)?;
                    times.push(start.elapsed().as_secs_f64());
                    digest = digest.rotate_left(1) ^ returned;
                }
                Ok(())
            });
            setting.samples.add(&contender.name, spent);
            run.map(|()| (times.len() as u64, digest, times))
        })?;
        // Round 0 warms up and includes the self-tests.
        if round > 0 {
            all[index].extend(times);
        }
        Ok(())
    })?;
    all.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    Ok(all)
}
