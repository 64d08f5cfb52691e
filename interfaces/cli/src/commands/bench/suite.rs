//! The suites, one module each. A suite fills a section of the report.

mod latency;
mod peers;
mod sweeps;

use clap::builder::{PossibleValue, PossibleValuesParser};
use lockstep_bench::limit;
use lockstep_bench::workload::Shape;
use lockstep_report::plot;
use serde_json::{Map, Value, json};

// The suites import these names from here.
use super::measure::{Measured, Rate, Setting, rounds};
use super::report::{self, Section};
use super::session::{AUTO, Session, Subject};
use crate::error::{Error, Result, check_stopped, ensure, failed};
use crate::signals;

struct Suite {
    /// The name on the command line.
    name: &'static str,
    /// The subject of the suite, which is also its help on the command line.
    help: &'static str,
    /// A text for the report that explains how to read the results.
    about: &'static str,
    /// Makes the measurements and adds the results to the section. If it fails, the report contains no results of this suite.
    run: fn(&Session<'_>, &mut Section) -> Result<()>,
}

const SUITES: [Suite; 5] = [
    Suite {
        name: "throughput",
        help: "Each kernel of each device, by mode, key size and message size",
        about: "Kernels that leak timing are measured only if they are named. With one thread, `limit` is what the processor permits: \
                the AES rounds and carry-less products of the mode, on registers, without output.",
        run: sweeps::throughput,
    },
    Suite {
        name: "crossover",
        help: "Each device and the planner's choice, from 16 bytes to 256 MiB: which device is the fastest for each size",
        about: "The planner's choice is `auto`. Below the crossover size the fixed cost of a device dominates, above it its rate.",
        run: sweeps::crossover,
    },
    Suite {
        name: "batch",
        help: "Many messages at once, each with its own key",
        about: "The key is new in each call, so that its expansion is part of the measurement.",
        run: sweeps::batch,
    },
    Suite {
        name: "latency",
        help: "The time of one small call",
        about: "Each call is timed separately. Percentiles: this percentage of calls took at most this time. Reading the clock \
                is included.",
        run: latency::run,
    },
    Suite {
        name: PEERS,
        help: "Comparison with OpenSSL, AWS-LC and RustCrypto",
        about: "On one thread by default: this library, AWS-LC and RustCrypto in this process, on the same data, and OpenSSL by \
                `openssl speed`, which runs for a second in turn with them and whose output cannot be verified. `limit` is what the \
                processor permits: the AES rounds and carry-less products of the mode, on registers, without output. Ratios: \
                speed of lockstep divided by that of the other contender.",
        run: peers::run,
    },
];

/// The name of the suite that is run by default.
const PEERS: &str = "peers";
/// The name on the command line that selects all suites.
const ALL: &str = "all";

/// The names of suites on the command line.
pub(super) fn names() -> PossibleValuesParser {
    let suites = SUITES.iter().map(|suite| PossibleValue::new(suite.name).help(suite.help));
    suites.chain([PossibleValue::new(ALL).help("All suites")]).collect::<Vec<_>>().into()
}

/// Measures each of the suites with these names once, in this order. If a suite fails or is stopped, its section contains only the
/// error. The results of the other suites are kept.
pub(super) fn run_each(names: &[String], session: &Session<'_>) -> Vec<Section> {
    let mut sections = Vec::<Section>::new();
    let of_name = |name| SUITES.iter().filter(move |suite| suite.name == name || name == ALL);
    let is_default = names.is_empty() || names[0] == ALL;
    let names = is_default.then_some(PEERS).into_iter().chain(names.iter().map(String::as_str));
    for Suite { name, help, about, run } in names.flat_map(of_name) {
        if signals::stopped() && !sections.is_empty() {
            break;
        }
        if sections.iter().any(|section| section.name == *name) {
            continue;
        }
        let empty = || Section { name, title: help, about, ..Section::default() };
        let mut section = empty();
        let done = check_stopped().and_then(|()| run(session, &mut section));
        let nothing = "the measured devices and kernels support none of these workloads at these sizes";
        let error = match done {
            // A signal can also make a measured program fail. The error is then that the user stopped the run.
            Err(_) if signals::stopped() => Some(Error::Stopped),
            Ok(()) if section.results.is_empty() => Some(failed(nothing)),
            done => done.err(),
        };
        if let Some(error) = error {
            let findings = vec![format!("This suite failed and has no results: {error}")];
            section = Section { findings, error: Some(error), ..empty() };
        }
        section.report_first_calls();
        sections.push(section);
    }
    sections
}

/// The results of all contenders for one workload and shape.
struct Outcome {
    work: String,
    shape: Shape,
    measured: Vec<Measured>,
    /// The name of the kernel that this library used. Only the suite `peers` sets it.
    kernel: &'static str,
}

impl Outcome {
    fn of(&self, name: &str) -> Option<&Measured> {
        self.measured.iter().find(|one| &*one.name == name)
    }

    /// The rate of this contender relative to the limit of the processor.
    fn ratio_to_limit(&self, one: &Measured) -> Option<f64> {
        Some(one.rate.median / self.of(limit::NAME)?.rate.median)
    }

    /// Fails if one of these contenders is faster than the limit by more than the tolerance and the spread. The loop that measures the
    /// limit is then too slow, and all ratios to the limit are too high. The contenders must compute on one thread of the CPU. Short
    /// calls are not checked.
    fn check_limit<'m>(&self, contenders: impl IntoIterator<Item = &'m Measured>) -> Result<()> {
        let is_checked = |_: &&Measured| self.shape.bytes() >= LIMIT_CHECKED_FROM;
        let Some(limit) = self.of(limit::NAME).filter(is_checked) else { return Ok(()) };
        let (work, size) = (&self.work, report::size(self.shape.size));
        contenders.into_iter().try_for_each(|Measured { name, rate, .. }| {
            let ratio = rate.median / limit.rate.median;
            let fault = format_args!("{name} has {ratio:.2} times the speed of the limit, which is wrong");
            let is_impossible = ratio > LIMIT_TOLERANCE && rate.least > limit.rate.most;
            ensure(!is_impossible, format_args!("{work} at {size}: {fault}: report this"))
        })
    }

    /// The number of messages, and their size with its unit.
    fn shape_text(&self) -> String {
        let size = report::size(self.shape.size);
        if self.shape.messages > 1 { format!("{} x {size}", self.shape.messages) } else { size }
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

/// The greatest ratio of a contender's rate to the limit of the processor that errors of measurement can explain.
const LIMIT_TOLERANCE: f64 = 1.03;

/// Calls with at least this number of bytes are checked against the limit. Shorter calls are not checked, because the start of a loop
/// takes up to 10 nanoseconds, which is 3 % of the time of a call with 8 KiB at 25 GB/s.
const LIMIT_CHECKED_FROM: usize = 16 << 10;

/// The label of an axis of message sizes, and the function that formats its values.
const BYTES: (&str, fn(f64) -> String) = ("bytes of a message", plot::bytes);

#[cfg(test)]
mod tests;
