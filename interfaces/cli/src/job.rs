//! The common part of encryption and decryption. It runs the work between input and output, shows the progress, and
//! stops after a signal.

use lockstep::Options;
use lockstep::hazmat::planner::Planner;
use serde_json::json;
use std::io::Write as _;

use crate::args::ProgressArgs;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::progress::Progress;
use crate::{explain, json, signals, terminal, text};

/// The result of the work.
pub(crate) struct Done {
    /// Number of plaintext bytes, from which the rate is computed.
    pub(crate) plaintext: u64,
    /// Additional fields for `--json`.
    pub(crate) details: serde_json::Value,
}

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

/// Runs the work. If all steps succeed, the output file appears under its name. Otherwise no part of the file remains,
/// except the verified beginning that `decrypt --partial` requests.
pub(crate) fn run(
    planner: &Planner,
    args: &ProgressArgs,
    total: Option<u64>,
    verb: &str,
    mut output: Output,
    work: impl FnOnce(&mut Output, Report<'_>) -> Result<Done>,
) -> Result<()> {
    let progress = Progress::start(args, total);
    let report = |done| progress.set(done);
    let outcome = work(&mut output, &report);
    let time = progress.end();
    if signals::stopped() {
        // This removes the temporary file. The signal thread ends the program as soon as there is no temporary file.
        drop(output);
        return Err(Error::Stopped);
    }
    report_incidents(planner, args.quiet);
    let done = match outcome {
        Err(error) if error.keeps_output() => {
            output.commit()?;
            return Err(error);
        }
        outcome => outcome?,
    };
    output.commit()?;
    if args.explain && !args.json {
        terminal::print_message(&explain::explain(planner));
    }
    if args.json {
        let mut summary = json!({
            "done": verb,
            "plaintext_bytes": done.plaintext,
            "seconds": time.as_secs_f64(),
            "bytes_per_second": done.plaintext as f64 / time.as_secs_f64().max(1e-9),
        });
        if let (Some(summary), Some(details)) = (summary.as_object_mut(), done.details.as_object()) {
            summary.extend(details.clone());
        }
        if args.explain {
            summary["explained"] = explain::explain(planner).lines().collect();
        }
        json::add_warnings(&mut summary);
        // The summary is written to standard error, since standard output may contain the data.
        let _ = writeln!(std::io::stderr(), "{summary}");
    } else if progress.shows_summary() {
        terminal::print_message(&format!(
            "{verb} {} in {:.2} s, {}",
            text::bytes(done.plaintext),
            time.as_secs_f64(),
            text::rate(done.plaintext, time)
        ));
    }
    Ok(())
}
