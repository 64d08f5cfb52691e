//! Suites that measure how the rate depends on the size of a message, or on the number of messages in a call.

use std::time::Duration;

use indexmap::IndexSet;
use lockstep_bench::workload::{Shape, Workload};
use lockstep_report::Table;
use lockstep_report::plot::{self, Plot};
use serde_json::json;

use super::{AUTO, BYTES, Measured, Outcome, Section, Session, Setting, Subject, report, rounds};
use crate::commands::bench::session::numbers;
use crate::error::Result;

/// The report names a size if the rate of `auto` at this size, divided by the rate of the best single device, is below this value.
const TOLERANCE: f64 = 0.97;

/// The maximum number of bytes of a call with many messages.
const MAX_BATCH: usize = 256 << 20;

/// Measures the throughput of each mode, key length, size, device and kernel.
pub(super) fn throughput(session: &Session<'_>, section: &mut Section) -> Result<()> {
    const WORKS: &str = "ecb-128 ecb-256 ctr-128 ctr-256 xts-128 xts-256 gcm-128 gcm-256 gcm-256-open cbc-128-decrypt \
                         cbc-256-decrypt cfb-256-decrypt cbc-256";
    let works = session.works(if session.args.quick { "ctr-128 ctr-256" } else { WORKS })?;
    let sizes = session.sizes(&[256, 4 << 10, 64 << 10, 1 << 20, 16 << 20], &[1 << 10, 64 << 10]);
    let setting = session.setting(3, Duration::from_millis(20));
    let sweep = Sweep { with_limit: true, ..Sweep::new(session, setting, session.subjects(true)?) };
    let all = sweep.by_size(section, &works, &sizes, "throughput", |_| Vec::new())?;
    for outcomes in &all {
        section.findings.extend(parts_of_limit(outcomes));
        section.results.extend(outcomes.iter().map(|outcome| {
            let mut json = outcome.json();
            json["ratio_to_limit"] = best_of_limit(outcome).map(|(_, ratio)| ratio).into();
            json
        }));
    }
    Ok(())
}

/// Measures each device and the planner's choice at each size, and reports the fastest device at each size.
pub(super) fn crossover(session: &Session<'_>, section: &mut Section) -> Result<()> {
    let works = session.works("ctr-256")?;
    // 16 bytes to 256 MiB, each four times the previous size.
    let sizes: [usize; 13] = std::array::from_fn(|step| 16 << (2 * step));
    let sizes = session.sizes(&sizes, &[16, 4 << 10, 256 << 10]);
    let setting = session.setting(5, Duration::from_millis(50));
    let sweep = Sweep::new(session, setting, session.subjects(false)?);
    let marks = |outcomes: &[Outcome]| {
        crossings(outcomes).into_iter().map(|(size, to)| (size, format!("from here {to}"))).collect()
    };
    for outcomes in sweep.by_size(section, &works, &sizes, "each device", marks)? {
        let work = &outcomes[0].work;
        section.findings.push(format!("{work}: {}", winners(&outcomes)));
        section.findings.extend(slower_than_best(work, &outcomes));
        let crossovers = crossings(&outcomes).into_iter();
        let crossovers: Vec<_> =
            crossovers.map(|(size, to)| json!({"bytes": size.round(), "to": to})).collect();
        let sizes: Vec<_> = outcomes.iter().map(Outcome::json).collect();
        section.results.push(json!({"work": work, "sizes": sizes, "crossovers": crossovers}));
    }
    Ok(())
}

/// Measures calls on many messages, for each combination of the number and the size of the messages.
pub(super) fn batch(session: &Session<'_>, section: &mut Section) -> Result<()> {
    let sizes = session.sizes(&[64, 1 << 10, 16 << 10], &[256]);
    let usual = if session.args.quick { &[1, 16][..] } else { &[1, 4, 16, 64, 1024, 16_384] };
    let counts = numbers(&session.args.messages, usual);
    let setting = session.setting(3, Duration::from_millis(50));
    let sweep = Sweep { over_messages: true, ..Sweep::new(session, setting, session.subjects(false)?) };
    for work in &session.works("gcm-256 cbc-256")? {
        for &size in &sizes {
            let shapes = counts.iter().map(|&messages| Shape { size, messages });
            let shapes = shapes.filter(|shape| shape.bytes() <= MAX_BATCH);
            let title = format!("{}, messages of {}", work.name, report::size(size));
            let titles = (&*format!("{title}, GB/s by messages in a call"), &*title);
            let outcomes = sweep.run(section, work, shapes, titles, |_| Vec::new())?;
            section.results.extend(outcomes.iter().map(Outcome::json));
        }
    }
    Ok(())
}

/// A function that returns the values to be marked on the horizontal axis of a plot, with their labels.
type Marks = fn(&[Outcome]) -> Vec<(f64, String)>;

/// Measurements of workloads with calls of several shapes.
struct Sweep<'s> {
    session: &'s Session<'s>,
    setting: Setting,
    subjects: Vec<Subject>,
    /// True if the calls differ in the number of messages, false if they differ in the size of the message.
    over_messages: bool,
    /// True if the limit of the processor is measured too.
    with_limit: bool,
}

impl<'s> Sweep<'s> {
    /// A sweep over the size of the message. The limit of the processor is not measured.
    fn new(session: &'s Session<'s>, setting: Setting, subjects: Vec<Subject>) -> Sweep<'s> {
        Sweep { session, setting, subjects, over_messages: false, with_limit: false }
    }

    /// Measures workloads at each size as [`Sweep::run`] does, and adds a table of CPU time to the section.
    fn by_size(
        &self,
        section: &mut Section,
        works: &[Workload],
        sizes: &[usize],
        what: &str,
        marks: Marks,
    ) -> Result<Vec<Vec<Outcome>>> {
        let mut all = Vec::new();
        for work in works {
            let titles = (&*format!("{}, GB/s", work.name), &*format!("{}: {what} against size", work.name));
            all.push(self.run(section, work, sizes.iter().copied().map(Shape::one), titles, marks)?);
        }
        all.retain(|outcomes| !outcomes.is_empty());
        let title = "CPU time at the largest size, seconds for a gigabyte";
        let rows = all.iter().map(|outcomes| (outcomes[0].work.clone(), &outcomes[..]));
        section.tables.push(table(title, rows, |one| report::per_gb(one.cpu)));
        Ok(all)
    }

    /// Measures one workload at each shape, with the subjects that support the workload. If a call of a subject exceeds the time
    /// limit at one shape, the subject is not measured at the following shapes. Adds a table of GB/s to the section, and a plot if
    /// there is more than one outcome.
    fn run(
        &self,
        section: &mut Section,
        work: &Workload,
        shapes: impl Iterator<Item = Shape>,
        (table_title, plot_title): (&str, &str),
        marks: Marks,
    ) -> Result<Vec<Outcome>> {
        let max_call_time = if self.session.args.quick { 0.1 } else { 2.0 };
        let mut slow: Vec<String> = Vec::new();
        let mut outcomes = Vec::new();
        for shape in shapes.filter(|shape| work.accepts(shape.size)) {
            let fast = self.subjects.iter().filter(|subject| !slow.contains(&subject.name));
            let mut contenders = self.session.contenders(fast, work, shape, false)?;
            if contenders.is_empty() {
                continue;
            }
            if self.with_limit {
                contenders.extend(self.session.limit(&self.subjects, work, shape));
            }
            let mut outcome = Outcome { work: work.name.clone(), shape, measured: Vec::new(), kernel: "" };
            self.session.note(&format!("{}: {}", work.name, outcome.shape_text()));
            outcome.measured = rounds(&self.setting, &mut contenders, shape.bytes(), |_| Ok(()))?;
            if !self.session.args.quick {
                outcome.check_limit(on_cpu(&outcome))?;
            }
            let late = |one: &&Measured| shape.bytes() as f64 / one.rate.median > max_call_time;
            slow.extend(outcome.measured.iter().filter(late).map(|one| one.name.to_string()));
            outcome.measured.iter().for_each(|one| section.add_first_call(one));
            outcomes.push(outcome);
        }
        if !outcomes.is_empty() {
            let rows = outcomes.iter().map(|outcome| {
                let Shape { size, messages } = outcome.shape;
                let first = if self.over_messages { messages.to_string() } else { report::size(size) };
                (first, std::slice::from_ref(outcome))
            });
            section.tables.push(table(table_title, rows, |one| report::rate(one.rate)));
        }
        if outcomes.len() > 1 {
            let messages = ("messages in a call", plot::number as fn(f64) -> String);
            let across = if self.over_messages { messages } else { BYTES };
            let mut plot = Plot::new(plot_title, across, "GB/s");
            plot.marks = marks(&outcomes);
            for Outcome { shape, measured, .. } in &outcomes {
                for Measured { name, rate, .. } in measured {
                    let [median, least, most] = [rate.median, rate.least, rate.most].map(|rate| rate / 1e9);
                    let x = if self.over_messages { shape.messages } else { shape.size };
                    plot.push(name, (x as f64, median), (least, most));
                }
            }
            section.pictures.push(plot.svg());
        }
        Ok(outcomes)
    }
}

/// A table with a row for each element of `rows` and a column for each contender. A cell has the last result of the contender in the
/// outcomes of the row.
fn table<'o>(
    title: &str,
    rows: impl Iterator<Item = (String, &'o [Outcome])> + Clone,
    cell: impl Fn(&Measured) -> String,
) -> Table {
    let all = rows.clone().flat_map(|(_, outcomes)| outcomes).flat_map(|outcome| &outcome.measured);
    let names: IndexSet<&str> = all.map(|one| &*one.name).collect();
    let head: Vec<_> = std::iter::once("").chain(names.iter().copied()).collect();
    let mut table = Table::new(title, &head, 1);
    for (first, outcomes) in rows {
        let last = |name: &&str| outcomes.iter().rev().find_map(|outcome| outcome.of(name));
        let cells = names.iter().map(|name| last(name).map_or("-".into(), &cell));
        table.rows.push(std::iter::once(first).chain(cells).collect());
    }
    table
}

fn devices(outcome: &Outcome) -> impl Iterator<Item = &Measured> {
    outcome.measured.iter().filter(|one| &*one.name != AUTO)
}

/// The results of the contenders that are kernels of the CPU.
fn on_cpu(outcome: &Outcome) -> impl Iterator<Item = &Measured> {
    outcome.measured.iter().filter(|one| one.name.starts_with("cpu/"))
}

/// The fastest kernel of the CPU, with its rate relative to the limit of the processor.
fn best_of_limit(outcome: &Outcome) -> Option<(&Measured, f64)> {
    let best = on_cpu(outcome).max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))?;
    Some((best, outcome.ratio_to_limit(best)?))
}

/// A sentence that compares the fastest kernel of the CPU at each size with the limit of the processor.
fn parts_of_limit(outcomes: &[Outcome]) -> Option<String> {
    let parts = outcomes.iter().filter_map(|outcome| {
        let (best, ratio) = best_of_limit(outcome)?;
        Some(format!("{ratio:.2} at {} ({})", outcome.shape_text(), best.name))
    });
    let (work, parts) = (&outcomes.first()?.work, parts.collect::<Vec<_>>());
    let list = parts.join(", ");
    (!parts.is_empty()).then(|| format!("{work}: the fastest kernel, divided by the limit: {list}"))
}

/// The fastest device.
fn best(outcome: &Outcome) -> Option<&Measured> {
    devices(outcome).max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))
}

/// The sizes at which the fastest device changes, with the names of the new fastest devices. At such a size, the lines of the
/// previous and of the new fastest device cross in the plot.
fn crossings(outcomes: &[Outcome]) -> Vec<(f64, String)> {
    let crossing = |pair: &[Outcome]| {
        let (before, after) = (best(&pair[0])?, best(&pair[1])?);
        if before.name == after.name {
            return None;
        }
        // The logarithm of the rate of the new fastest device minus that of the previous one, because the plot is logarithmic.
        let lead = |outcome: &Outcome| {
            let rate = |name: &str| outcome.of(name).map(|one| one.rate.median.ln());
            Some(rate(&after.name)? - rate(&before.name)?)
        };
        let [from, to] = [&pair[0], &pair[1]].map(|outcome| (outcome.shape.size as f64).ln());
        let at = match (lead(&pair[0]), lead(&pair[1])) {
            (Some(low), Some(high)) if high > low => from + (to - from) * (-low / (high - low)),
            // If one of the two devices was not measured at one of the sizes, the middle between the sizes is marked.
            _ => (from + to) / 2.0,
        };
        Some((at.exp(), after.name.to_string()))
    };
    outcomes.windows(2).filter_map(crossing).collect()
}

/// A sentence with the fastest device of each range of sizes.
fn winners(outcomes: &[Outcome]) -> String {
    let fastest = outcomes.iter().filter_map(|outcome| Some((&best(outcome)?.name, outcome.shape.size)));
    let fastest: Vec<_> = fastest.collect();
    let sentences = fastest.chunk_by(|(one, _), (next, _)| one == next).map(|range| {
        let [name, from, to] =
            [range[0].0.to_string(), report::size(range[0].1), report::size(range[range.len() - 1].1)];
        format!("{name} is the fastest device from {from} to {to}")
    });
    let text = sentences.collect::<Vec<_>>().join("; ");
    let alone = outcomes.iter().all(|outcome| devices(outcome).count() < 2);
    if alone { format!("{text}, and the only one measured") } else { text }
}

/// A sentence with the sizes at which `auto` is slower than the best single device.
fn slower_than_best(work: &str, outcomes: &[Outcome]) -> Option<String> {
    let compared =
        || outcomes.iter().filter_map(|outcome| Some((outcome, outcome.of(AUTO)?, best(outcome)?)));
    compared().next()?;
    let slower = compared().filter_map(|(outcome, auto, best)| {
        let ratio = auto.rate.median / best.rate.median;
        let doubt = if auto.rate.most >= best.rate.least { ", within the spread" } else { "" };
        let less = (1.0 - ratio) * 100.0;
        (ratio < TOLERANCE).then(|| format!("{} by {less:.0} % ({}{doubt})", outcome.shape_text(), best.name))
    });
    let slower: Vec<_> = slower.collect();
    let behind = "more than 3 % behind the best single device";
    Some(match &slower[..] {
        [] => format!("{work}: auto is nowhere {behind}"),
        _ => format!("{work}: auto is {behind} at {}", slower.join(", ")),
    })
}

#[cfg(test)]
mod tests;
