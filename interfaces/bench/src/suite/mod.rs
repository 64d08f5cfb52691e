//! The suites, one module each. A suite returns a section of the report.

mod batch;
mod crossover;
mod files;
mod latency;
mod patterns;
mod peers;
mod throughput;

use lockstep_report::Table;
use lockstep_report::plot::{self, Plot};

use super::Session;
use super::measure::{self, Contender, Measured, Rate, Setting};
use super::report::{self, Section};
use super::session::Subject;
use super::workload::{Shape, Workload};
use crate::error::{Error, Result};

/// A suite by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Each kernel of each device, by mode, key length and size.
    Throughput,
    /// Each device and the planner's choice, by size.
    Crossover,
    /// Many messages in a call; each message has a different key.
    Batch,
    /// Encryption and decryption of files, compared with `cp` and `openssl enc`.
    Files,
    /// The time of one small call.
    Latency,
    /// Comparison with OpenSSL, AWS-LC and RustCrypto.
    Peers,
    /// Dependence of the speed on the data.
    Patterns,
}

impl Suite {
    /// All suites, in the order in which they are run.
    pub const ALL: [Suite; 7] = [
        Suite::Peers,
        Suite::Throughput,
        Suite::Crossover,
        Suite::Batch,
        Suite::Latency,
        Suite::Files,
        Suite::Patterns,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The name, a description for the report (what the suite measures, and how the results are read), and the function
    /// that measures.
    fn row(self) -> (&'static str, &'static str, Run) {
        match self {
            Suite::Throughput => (
                "throughput",
                "each kernel of each device, on messages of increasing size. Kernels that leak timing are measured \
                 only if they are named.",
                throughput::run,
            ),
            Suite::Crossover => (
                "crossover",
                "each device and the planner's choice (auto), on one message of increasing size. Below the \
                 crossover size the fixed cost of a device dominates, above it its rate.",
                crossover::run,
            ),
            Suite::Batch => (
                "batch",
                "many messages in one call, each with its own key, which is new in each call, so that its expansion \
                 is part of the measurement.",
                batch::run,
            ),
            Suite::Files => (
                "files",
                "whole programs, one after the other in each round, on a file that is in the page cache: \
                 the disk has no influence. Every output file is read back and compared. `openssl enc` does \
                 not authenticate; `lockstep encrypt` does. CPU time is that of the program, in steps of a \
                 hundredth of a second.",
                files::run,
            ),
            Suite::Latency => (
                "latency",
                "single calls on small messages, each timed separately. Percentiles: this percentage of calls took at most \
                 this time. Reading the clock is included.",
                latency::run,
            ),
            Suite::Peers => (
                "peers",
                "this library and others, on one thread by default: AWS-LC and RustCrypto in this process, on the \
                 same data, and OpenSSL by `openssl speed`, which runs for a second in turn with them and whose output \
                 cannot be verified. Ratios: speed of lockstep divided by that of the peer.",
                peers::run,
            ),
            Suite::Patterns => (
                "patterns",
                "the same work on four patterns of data: counting bytes, one byte, random bytes in an increasing range, random \
                 bytes. A constant-time kernel takes the same time for each. Calls are timed separately and each is verified. \
                 Only workloads in which the data are the input of the block cipher: ECB, and decryption with CBC, PCBC and CFB.",
                patterns::run,
            ),
        }
    }

    /// Measures each of `suites` once, in this order. If a suite fails or is stopped, its section contains the error,
    /// and the error is also returned. The results of the other suites are kept.
    pub fn run_each(suites: &[Suite], session: &Session) -> (Vec<Section>, Vec<(Suite, Error)>) {
        let (mut sections, mut failed) = (Vec::<Section>::new(), Vec::new());
        for &suite in suites {
            let (name, about, run) = suite.row();
            if sections.iter().any(|section| section.name == name) {
                continue;
            }
            let mut section = Section::new(name, about);
            let Err(error) = session.host.check_stopped().and_then(|()| run(session, &mut section)) else {
                sections.push(section);
                continue;
            };
            // A signal can also make a measured program fail. The error is then `Error::Stopped`, not the failure of
            // the program.
            let is_stopped = session.host.is_stopped();
            let error = if is_stopped { Error::Stopped } else { error };
            sections.push(Section::failed(name, about, &error));
            failed.push((suite, error));
            if is_stopped {
                break;
            }
        }
        (sections, failed)
    }
}

/// Measures a suite and adds its results to the section. The results are left out of the report if this fails.
type Run = fn(&Session, &mut Section) -> Result<()>;

/// The results of all subjects for one workload and shape.
pub(super) struct Outcome {
    pub(super) shape: Shape,
    measured: Vec<Measured>,
}

impl Outcome {
    fn of(&self, name: &str) -> Option<&Measured> {
        self.measured.iter().find(|one| &*one.name == name)
    }
}

/// Measures one workload at each shape, with the subjects that support it. If a subject exceeds the time limit of a
/// call at one shape, it is not measured at the following shapes.
fn by_shape(
    session: &Session,
    setting: &Setting,
    subjects: &[Subject],
    work: &Workload,
    shapes: &[Shape],
) -> Result<Vec<Outcome>> {
    let mut slow: Vec<String> = Vec::new();
    let mut outcomes = Vec::new();
    for &shape in shapes.iter().filter(|shape| work.accepts(shape.size)) {
        let inputs = session.inputs(work, shape)?;
        let mut contenders: Vec<Contender> = Vec::new();
        for subject in subjects.iter().filter(|subject| !slow.contains(&subject.name)) {
            contenders.extend(session.contender(subject, work, &inputs, shape)?);
        }
        if contenders.is_empty() {
            continue;
        }
        let many = if shape.messages > 1 { format!("{} x ", shape.messages) } else { String::new() };
        session.note(&format!("{}: {many}{}", work.name, report::size(shape.size)));
        let measured = measure::rounds(setting, &mut contenders, shape.bytes(), |_| Ok(()))?;
        let call = |one: &Measured| shape.bytes() as f64 / one.rate.median;
        let late = measured.iter().filter(|one| call(one) > setting.max_call_time.as_secs_f64());
        slow.extend(late.map(|one| one.name.to_string()));
        outcomes.push(Outcome { shape, measured });
    }
    Ok(outcomes)
}

/// The names of the subjects that were measured, in order.
fn names<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>) -> Vec<&'o str> {
    let mut names: Vec<&str> = Vec::new();
    for one in outcomes.into_iter().flat_map(|outcome| &outcome.measured) {
        if !names.contains(&&*one.name) {
            names.push(&one.name);
        }
    }
    names
}

/// A table with a row for each outcome and a column for each name.
fn table(title: &str, outcomes: &[Outcome], row: impl Fn(&Outcome) -> String) -> Table {
    let names = names(outcomes);
    let mut table = Table::new(title, &[&[""], &names[..]].concat(), 1);
    for outcome in outcomes {
        let cells =
            names.iter().map(|name| outcome.of(name).map_or("-".into(), |one| report::rate(one.rate)));
        table.rows.push(std::iter::once(row(outcome)).chain(cells).collect());
    }
    table
}

/// The cost of each workload at its largest size: a row for each workload, a column for each name.
fn costs(title: &str, all: &[(String, Vec<Outcome>)], cost: impl Fn(&Measured) -> String) -> Table {
    let names = names(all.iter().flat_map(|(_, outcomes)| outcomes));
    let mut table = Table::new(title, &[&[""], &names[..]].concat(), 1);
    for (work, outcomes) in all {
        let last = |name: &&str| outcomes.iter().rev().find_map(|outcome| outcome.of(name));
        let cells = names.iter().map(|name| last(name).map_or("-".into(), &cost));
        table.rows.push(std::iter::once(work.clone()).chain(cells).collect());
    }
    table
}

/// The size of the messages of an outcome, with its unit.
fn size_of(outcome: &Outcome) -> String {
    report::size(outcome.shape.size)
}

/// The bar of a contender in a chart of GB/s.
fn bar(name: &str, rate: Rate) -> (&str, f64, (f64, f64)) {
    (name, rate.median / 1e9, (rate.least / 1e9, rate.most / 1e9))
}

/// A plot of GB/s over `x` of each outcome, with a line for each name.
fn plot(
    title: &str,
    across: (&str, fn(f64) -> String),
    outcomes: &[Outcome],
    x: impl Fn(&Outcome) -> f64,
) -> Plot {
    let mut plot = Plot::new(title, across, "GB/s");
    for outcome in outcomes {
        for one in &outcome.measured {
            let [median, least, most] =
                [one.rate.median, one.rate.least, one.rate.most].map(|rate| rate / 1e9);
            plot.push(&one.name, (x(outcome), median), (least, most));
        }
    }
    plot
}

/// The axis of message sizes.
const BYTES: (&str, fn(f64) -> String) = ("bytes of a message", plot::bytes);

/// The outcomes of a workload as JSON.
fn json(work: &str, outcomes: &[Outcome]) -> Vec<serde_json::Value> {
    let one = |outcome: &Outcome| {
        let by: serde_json::Map<_, _> =
            outcome.measured.iter().map(|one| (one.name.to_string(), one.json())).collect();
        serde_json::json!({
            "work": work,
            "size": outcome.shape.size,
            "messages": outcome.shape.messages,
            "bytes_per_second": by,
        })
    };
    outcomes.iter().map(one).collect()
}
