//! The common part of encryption and decryption. It runs the work between input and output, shows the progress, and
//! stops after a signal.

use lockstep::Options;
use lockstep::hazmat::planner::Planner;
use serde_json::{Value, json};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::options::ProgressArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::{explain, json, signals, terminal, text};

/// A function that is called with the number of input bytes processed.
pub(crate) type Report<'a> = &'a (dyn Fn(u64) + Sync);

/// The library's options: progress and signals.
pub(crate) fn options(report: Report<'_>) -> Options<'_> {
    Options::new().progress(report).interrupt(signals::flag())
}

/// Prints a warning about devices that failed and whose work was done by the CPU.
pub(crate) fn report_incidents(planner: &Planner, quiet: bool) {
    if let Some((first, more)) = planner.incidents().split_first() {
        let more = if more.is_empty() { String::new() } else { format!(" (and {} times more)", more.len()) };
        terminal::warn(quiet, &format!("{first}{more}. The CPU has repeated that part"));
    }
}

/// Runs the work, which returns the number of plaintext bytes and additional fields for `--json`. If all steps succeed, the output file appears under its name. Otherwise no part of the file remains,
/// except the verified beginning that `decrypt --partial` requests.
pub(crate) fn run(
    planner: &Planner,
    args: &ProgressArgs,
    total: Option<u64>,
    verb: &str,
    mut output: Output,
    work: impl FnOnce(&mut Output, Report<'_>) -> Result<(u64, Value)>,
) -> Result<()> {
    let progress = Progress::start(args, total, None);
    let report = |done| progress.set(done);
    let outcome = work(&mut output, &report);
    let time = progress.end();
    if signals::stopped() {
        // This removes the temporary file. The signal thread ends the program as soon as there is no temporary file.
        drop(output);
        return Err(Error::Stopped);
    }
    report_incidents(planner, args.quiet);
    let (plaintext, details) = match outcome {
        Err(error) if error.keeps_output() => {
            output.commit()?;
            return Err(error);
        }
        outcome => outcome?,
    };
    output.commit()?;
    let explained = args.explain.then(|| explain::explain(planner));
    if args.json {
        let mut summary = summary_json(verb, plaintext, time);
        if let (Some(summary), Value::Object(details)) = (summary.as_object_mut(), details) {
            summary.extend(details);
        }
        print_summary(summary, explained);
        return Ok(());
    }
    explained.iter().for_each(|text| terminal::print_message(text));
    if progress.shows_summary() {
        terminal::print_message(&format!("{verb} {}", text::amount(plaintext, time)));
    }
    Ok(())
}

/// The fields that all summaries have.
pub(crate) fn summary_json(verb: &str, plaintext: u64, time: Duration) -> Value {
    let seconds = time.as_secs_f64();
    json!({
        "done": verb,
        "plaintext_bytes": plaintext,
        "seconds": seconds,
        "bytes_per_second": plaintext as f64 / seconds.max(1e-9),
    })
}

/// Prints a summary to standard error, since standard output may contain the data.
pub(crate) fn print_summary(mut summary: Value, explained: Option<String>) {
    if let Some(explained) = explained {
        summary["explained"] = explained.lines().collect();
    }
    json::print(summary);
}
