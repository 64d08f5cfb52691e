//! The common part of encryption and decryption. It runs the work that reads the input and writes the output, shows the progress, and
//! stops the work after a signal.

use std::time::Duration;

use lockstep::Options;
use lockstep::hazmat::planner::{Considered, Decision, Planner};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::error::{Error, Result, check_stopped};
use crate::input::{Input, read_full};
use crate::options::ProgressArgs;
use crate::output::{Output, Writer};
use crate::progress::Progress;
use crate::{json, signals, terminal, text};

/// Number of bytes of input that are read and processed at once.
pub(crate) const PIECE: usize = 1 << 20;

/// A function that gets the number of input bytes processed so far.
pub(crate) type Report<'a> = &'a (dyn Fn(u64) + Sync);

/// Options that make a call of the library report its progress and stop after a signal.
pub(crate) fn options(report: Report<'_>) -> Options<'_> {
    Options { progress: Some(report), interrupt: Some(&signals::STOPPED), ..Options::default() }
}

impl Input {
    /// Reads the input in pieces of `len` bytes and passes each to `work`; returns the number of input bytes.
    pub(crate) fn for_each_piece(
        &self,
        len: usize,
        report: Report<'_>,
        mut work: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut reader = self;
        let mut piece = Zeroizing::new(vec![0; len]);
        let mut total = 0;
        loop {
            let got = read_full(&mut reader, &mut piece)?;
            check_stopped()?;
            if got > 0 {
                work(&mut piece[..got])?;
            }
            total += got as u64;
            report(total);
            if got < len {
                return Ok(total);
            }
        }
    }
}

/// Prints the notices of devices, and a warning if the CPU has repeated work of a device.
pub(crate) fn report_incidents(planner: &Planner, quiet: bool) {
    for device in planner.devices_so_far() {
        if let Some(notice) = device.notice() {
            terminal::warn(quiet, &format!("{}: {notice}", device.id()));
        }
    }
    if let Some((first, more)) = planner.incidents().split_first() {
        let more = if more.is_empty() { String::new() } else { format!(" (and {} times more)", more.len()) };
        terminal::warn(quiet, &format!("{first}{more}. The CPU has repeated that part"));
    }
}

/// Prints a warning about each pass that the CPU computed because no named device supports it.
pub(crate) fn report_assisted(planner: &Planner, quiet: bool) {
    for (pass, bytes) in planner.assisted() {
        let device = planner.devices_so_far().first().map_or_else(String::new, |it| it.id().to_string());
        let (pass, bytes) = (pass.words(), text::bytes(bytes));
        terminal::warn(quiet, &format!("{device} cannot do {pass}: the CPU did it ({bytes})"));
    }
}

/// Runs the work, which returns the number of plaintext bytes and additional fields for `--json`. If all steps succeed, the output
/// file appears under its name. Otherwise no part of the file remains, except the verified beginning that `decrypt --partial`
/// requests.
pub(crate) fn run(
    planner: &Planner,
    args: &ProgressArgs,
    total: Option<u64>,
    verb: &str,
    mut output: Output,
    work: impl FnOnce(&mut Writer, Report<'_>) -> Result<(u64, Value)>,
) -> Result<()> {
    let progress = Progress::start(args, total, None);
    let report = |done| progress.set(done);
    let outcome = work(output.writer(), &report);
    let time = progress.end();
    if signals::stopped() {
        // The drop removes the temporary file. The signal thread ends the program when no temporary file is left.
        drop(output);
        return Err(Error::Stopped);
    }
    report_incidents(planner, args.quiet);
    let (plaintext, details) = match outcome {
        // The verified beginning of a damaged file is kept.
        Err(error) if error.verified().is_some_and(|verified| verified > 0) => {
            output.commit()?;
            return Err(error);
        }
        outcome => outcome?,
    };
    report_assisted(planner, args.quiet);
    output.commit()?;
    let print_text = || {
        if progress.shows_summary() {
            terminal::print_message(&format!("{verb} {}", text::amount(plaintext, time)));
        }
    };
    print_summary(planner, args, || summary_json(verb, plaintext, time, details), print_text);
    Ok(())
}

/// Adds the fields that all summaries have in common to the fields in `fields`.
pub(crate) fn summary_json(verb: &str, plaintext: u64, time: Duration, mut fields: Value) -> Value {
    let seconds = time.as_secs_f64();
    fields["done"] = verb.into();
    fields["plaintext_bytes"] = plaintext.into();
    fields["seconds"] = seconds.into();
    fields["bytes_per_second"] = (plaintext as f64 / seconds.max(1e-9)).into();
    fields
}

/// Prints the decisions of the planner, if they are requested, and a summary. With `--json` the summary is one JSON object, otherwise
/// `print_text` prints it. Both are printed to standard error, because the data may be on standard output.
pub(crate) fn print_summary(
    planner: &Planner,
    args: &ProgressArgs,
    summary_json: impl FnOnce() -> Value,
    print_text: impl FnOnce(),
) {
    let explained = args.explain.then(|| explain(planner));
    if !args.json {
        explained.iter().for_each(|text| terminal::print_message(text));
        return print_text();
    }
    let mut summary = summary_json();
    if let Some(explained) = explained {
        summary["explained"] = explained.lines().collect();
    }
    json::print(summary);
}

/// Maximum number of kernels that `--explain` lists after the chosen kernel.
const MAX_OTHERS: usize = 4;

/// The decisions of a planner, as text.
fn explain(planner: &Planner) -> String {
    let decisions = planner.decisions();
    if decisions.is_empty() {
        return "no work was planned".into();
    }
    decisions.iter().map(describe).collect::<String>().trim_end().to_owned()
}

fn describe(decision: &Decision) -> String {
    let Decision { operation, key, shape, calls, bytes, considered } = decision;
    let messages = match shape.messages {
        1 => String::new(),
        messages => format!(" in {messages} messages"),
    };
    let [each, all] = [shape.bytes as u64, *bytes].map(text::bytes);
    let (operation, calls) = (operation.words(), text::count(*calls as usize, "such call"));
    let summary = format!("{operation}, AES-{}, {each}{messages}; {calls}, {all} in total", key.bits());
    // The other lines are indented by ten characters, the length of `lockstep: ` at the start of the first line.
    let mut report = terminal::hang("", 10, &summary);
    let (chosen, others): (Vec<_>, Vec<_>) = considered.iter().partition(|choice| choice.is_chosen);
    for choice in chosen.iter().chain(others.iter().take(MAX_OTHERS)) {
        report += &line(choice);
    }
    if others.len() > MAX_OTHERS {
        report += &format!("  and {} slower ones\n", others.len() - MAX_OTHERS);
    }
    report
}

fn line(choice: &Considered) -> String {
    let mark = if choice.is_chosen { "->" } else { "  " };
    let source = if choice.is_measured { "measured" } else { "estimated" };
    let why = choice.passed_over.as_ref().map_or(String::new(), |why| format!("; passed over: {why}"));
    let label = format!("  {mark} {:>9}  ", text::time(choice.ns / 1e9));
    let words = format!("{} on {}, {source}{why}", choice.kernel, choice.device);
    terminal::hang(&label, label.chars().count(), &words)
}
