//! The suites, one module each. A suite fills a section of the report.

mod batch;
mod crossover;
mod files;
mod latency;
mod patterns;
mod peers;
mod throughput;

use clap::builder::{PossibleValue, PossibleValuesParser};
use lockstep_report::Table;
use lockstep_report::plot::{self, Plot};
use serde_json::{Map, Value, json};

use super::measure::{self, Measured, Rate, Setting};
use super::report::{self, Section};
use super::session::{Session, Subject};
use super::workload::{Shape, Workload};
use crate::error::{Error, Result, check_stopped, failed};
use crate::signals;

/// A suite.
struct Suite {
    /// The name on the command line.
    name: &'static str,
    /// The help on the command line.
    help: &'static str,
    /// A description for the report: what the suite measures, and how the results are read.
    about: &'static str,
    /// Measures, and adds the results to the section. The results are left out of the report if this fails.
    run: fn(&Session<'_>, &mut Section) -> Result<()>,
}

const SUITES: [Suite; 7] = [
    Suite {
        name: "throughput",
        help: "Each kernel of each device, by mode, key size and message size",
        about: "each kernel of each device, on messages of increasing size. Kernels that leak timing are measured only if \
                they are named.",
        run: throughput::run,
    },
    Suite {
        name: "crossover",
        help: "Each device and the planner's choice, from 16 bytes to 256 MiB: which device is the fastest for each size",
        about: "each device and the planner's choice (auto), on one message of increasing size. Below the crossover size \
                the fixed cost of a device dominates, above it its rate.",
        run: crossover::run,
    },
    Suite {
        name: "batch",
        help: "Many messages at once, each with its own key",
        about: "many messages in one call, each with its own key, which is new in each call, so that its expansion is part \
                of the measurement.",
        run: batch::run,
    },
    Suite {
        name: "files",
        help: "Encrypting and decrypting files, compared with `cp` and `openssl enc`",
        about: "whole programs, one after the other in each round, on a file that is in the page cache: the disk has no \
                influence. Every output file is read back and compared. `openssl enc` does not authenticate; `lockstep \
                encrypt` does. CPU time is that of the program, in steps of a hundredth of a second.",
        run: files::run,
    },
    Suite {
        name: "latency",
        help: "The time of one small call",
        about: "single calls on small messages, each timed separately. Percentiles: this percentage of calls took at most \
                this time. Reading the clock is included.",
        run: latency::run,
    },
    Suite {
        name: PEERS,
        help: "Comparison with OpenSSL, AWS-LC and RustCrypto",
        about: "this library and others, on one thread by default: AWS-LC and RustCrypto in this process, on the same data, \
                and OpenSSL by `openssl speed`, which runs for a second in turn with them and whose output cannot be \
                verified. Ratios: speed of lockstep divided by that of the peer.",
        run: peers::run,
    },
    Suite {
        name: "patterns",
        help: "Whether the speed depends on the data",
        about: "the same work on four patterns of data: counting bytes, one byte, random bytes in an increasing range, random \
                bytes. A constant-time kernel takes the same time for each. Calls are timed separately and each is verified. \
                Only workloads in which the data are the input of the block cipher: ECB, and decryption with CBC, PCBC and CFB.",
        run: patterns::run,
    },
];

/// The suite that is run by default, and the first one of all suites.
const PEERS: &str = "peers";
/// The name for all suites.
const ALL: &str = "all";

/// The names of suites on the command line.
pub(super) fn names() -> PossibleValuesParser {
    let suites = SUITES.iter().map(|suite| PossibleValue::new(suite.name).help(suite.help));
    suites.chain([PossibleValue::new(ALL).help("All suites")]).collect::<Vec<_>>().into()
}

/// Measures each of the suites with these names once, in this order. If a suite fails or is stopped, its section contains the
/// error, and the error is also returned, with the name of the suite. The results of the other suites are kept.
pub(super) fn run_each(
    names: &[String],
    session: &Session<'_>,
) -> (Vec<Section>, Vec<(&'static str, Error)>) {
    let (mut sections, mut failures) = (Vec::<Section>::new(), Vec::new());
    let of_name = |name| SUITES.iter().filter(move |suite| suite.name == name || name == ALL);
    let is_default = names.is_empty() || names[0] == ALL;
    let names = is_default.then_some(PEERS).into_iter().chain(names.iter().map(String::as_str));
    for Suite { name, about, run, .. } in names.flat_map(of_name) {
        if sections.iter().any(|section| section.name == *name) {
            continue;
        }
        let mut section = Section { name, about, ..Section::default() };
        let done = check_stopped().and_then(|()| run(session, &mut section));
        let Err(error) = done.and_then(|()| check_results(&section)) else {
            section.report_first_calls();
            sections.push(section);
            continue;
        };
        // A signal can also make a measured program fail. The error is then `Error::Stopped`, not the failure of
        // the program.
        let error = if signals::stopped() { Error::Stopped } else { error };
        sections.push(Section::failed(name, about, &error));
        failures.push((*name, error));
        if signals::stopped() {
            break;
        }
    }
    (sections, failures)
}

/// Returns an error if the section has no results.
fn check_results(section: &Section) -> Result<()> {
    match section.results.is_empty() {
        true => {
            Err(failed("the measured devices and kernels support none of these workloads at these sizes"))
        }
        false => Ok(()),
    }
}

/// The results of all contenders for one workload and shape.
struct Outcome {
    work: String,
    shape: Shape,
    measured: Vec<Measured>,
}

impl Outcome {
    fn of(&self, name: &str) -> Option<&Measured> {
        self.measured.iter().find(|one| &*one.name == name)
    }

    /// Number and size of the messages, with the unit.
    fn shape_text(&self) -> String {
        let many =
            if self.shape.messages > 1 { format!("{} x ", self.shape.messages) } else { String::new() };
        format!("{many}{}", report::size(self.shape.size))
    }

    fn json(&self) -> Value {
        let by: Map<_, _> = self.measured.iter().map(|one| (one.name.to_string(), one.json())).collect();
        json!({
            "work": self.work,
            "size": self.shape.size,
            "messages": self.shape.messages,
            "bytes_per_second": by,
        })
    }
}

/// Measures one workload at each shape, with the subjects that support it. If a subject exceeds the time limit of a
/// call at one shape, it is not measured at the following shapes.
fn by_shape(
    session: &Session<'_>,
    section: &mut Section,
    setting: &Setting<'_>,
    subjects: &[Subject],
    work: &Workload,
    shapes: impl IntoIterator<Item = Shape>,
) -> Result<Vec<Outcome>> {
    let max_call_time = if session.args.quick { 0.1 } else { 2.0 };
    let mut slow: Vec<String> = Vec::new();
    let mut outcomes = Vec::new();
    for shape in shapes.into_iter().filter(|shape| work.accepts(shape.size)) {
        let fast = subjects.iter().filter(|subject| !slow.contains(&subject.name));
        let (mut contenders, _) = session.contenders(fast, work, shape)?;
        if contenders.is_empty() {
            continue;
        }
        let mut outcome = Outcome { work: work.name.clone(), shape, measured: Vec::new() };
        session.note(&format!("{}: {}", work.name, outcome.shape_text()));
        outcome.measured = measure::rounds(setting, &mut contenders, shape.bytes(), |_| Ok(()))?;
        let late = |one: &&Measured| shape.bytes() as f64 / one.rate.median > max_call_time;
        slow.extend(outcome.measured.iter().filter(late).map(|one| one.name.to_string()));
        outcome.measured.iter().for_each(|one| section.add_first_call(one));
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Measures workloads at each size, and adds a table and a plot of each workload to the section, and a table of CPU time.
/// `marks` are the marked sizes of a plot.
fn by_size(
    session: &Session<'_>,
    section: &mut Section,
    setting: &Setting<'_>,
    subjects: &[Subject],
    (works, sizes): (&[Workload], &[usize]),
    (what, marks): (&str, fn(&[Outcome]) -> Vec<(f64, String)>),
) -> Result<Vec<Vec<Outcome>>> {
    let mut all = Vec::new();
    for work in works {
        let shapes = sizes.iter().copied().map(Shape::one);
        let outcomes = by_shape(session, section, setting, subjects, work, shapes)?;
        if outcomes.is_empty() {
            continue;
        }
        let titles = (&*format!("{}, GB/s", work.name), &*format!("{}: {what} against size", work.name));
        add(section, titles, &BYTES, &outcomes, marks(&outcomes));
        all.push(outcomes);
    }
    section.tables.push(costs("CPU time at the largest size, seconds for a gigabyte", &all, |one| one.cpu));
    Ok(all)
}

/// The horizontal axis of a plot, and the first column of its table.
struct Axis {
    label: &'static str,
    format: fn(f64) -> String,
    value: fn(Shape) -> usize,
    cell: fn(Shape) -> String,
}

/// The axis of message sizes.
const BYTES: Axis = Axis {
    label: "bytes of a message",
    format: plot::bytes,
    value: |shape| shape.size,
    cell: |shape| report::size(shape.size),
};

/// Adds a table of GB/s to the section, with a row for each outcome and a column for each contender, and a plot with a line
/// for each contender if there is more than one outcome. `marks` are marked values on the horizontal axis.
fn add(
    section: &mut Section,
    (table_title, plot_title): (&str, &str),
    axis: &Axis,
    outcomes: &[Outcome],
    marks: Vec<(f64, String)>,
) {
    let rate = |one: &Measured| report::rate(one.rate);
    let rows = outcomes.iter().map(|outcome| ((axis.cell)(outcome.shape), std::slice::from_ref(outcome)));
    section.tables.push(table(table_title, rows, rate));
    if outcomes.len() < 2 {
        return;
    }
    let mut plot = Plot::new(plot_title, (axis.label, axis.format), "GB/s");
    plot.marks = marks;
    for outcome in outcomes {
        for Measured { name, rate, .. } in &outcome.measured {
            let x = (axis.value)(outcome.shape) as f64;
            let [median, least, most] = [rate.median, rate.least, rate.most].map(|rate| rate / 1e9);
            plot.push(name, (x, median), (least, most));
        }
    }
    section.pictures.push(plot.svg());
}

/// A table of the costs of each workload at its largest size: a row for each workload, a column for each contender.
fn costs(title: &str, all: &[Vec<Outcome>], cost: fn(&Measured) -> Option<f64>) -> Table {
    let rows = all.iter().filter_map(|outcomes| Some((outcomes.first()?.work.clone(), &outcomes[..])));
    table(title, rows, |one| report::per_gb(cost(one)))
}

/// A table with a column for each contender. A row has the last result of each contender.
fn table<'o>(
    title: &str,
    rows: impl Iterator<Item = (String, &'o [Outcome])> + Clone,
    cell: impl Fn(&Measured) -> String,
) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for one in rows.clone().flat_map(|(_, outcomes)| outcomes).flat_map(|outcome| &outcome.measured) {
        if !names.contains(&&*one.name) {
            names.push(&one.name);
        }
    }
    let mut table = Table::new(title, &[&[""], &names[..]].concat(), 1);
    for (first, outcomes) in rows {
        let last = |name: &&str| outcomes.iter().rev().find_map(|outcome| outcome.of(name));
        let cells = names.iter().map(|name| last(name).map_or("-".into(), &cell));
        table.rows.push(std::iter::once(first).chain(cells).collect());
    }
    table
}

/// The bar of a contender in a chart of GB/s.
fn bar(name: &str, rate: Rate) -> (&str, f64, (f64, f64)) {
    (name, rate.median / 1e9, (rate.least / 1e9, rate.most / 1e9))
}
