//! The results of all files: printed at the end, and returned as the exit code.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use lockstep::{Engine, quoted};
use serde_json::json;

use crate::args::ProgressArgs;
use crate::error::{self, Error, Result};
use crate::tree::{Inputs, Outcome};
use crate::{explain, job, json, signals, terminal, text};

/// Prints the skipped and failed files, and a summary.
///
/// # Errors
/// [`Error::Reported`] with the exit code of the worst failure; [`Error::Stopped`] after a signal.
pub(crate) fn report(
    engine: &Engine,
    verb: &str,
    mut inputs: Inputs,
    mut outcome: Outcome,
    messages: &ProgressArgs,
) -> Result<()> {
    if signals::stopped() {
        return Err(Error::Stopped);
    }
    inputs.failed.append(&mut outcome.failed);
    inputs.failed.sort_by(|(a, _), (b, _)| a.cmp(b));
    job::report_incidents(engine.planner(), messages.quiet);
    for path in &outcome.changed {
        terminal::warn(
            messages.quiet,
            &format!(
                "{} changed while it was {verb}, so its output may be a mixture of two versions; --resume writes the \
                 output again",
                quoted(path)
            ),
        );
    }
    let worst = worst(&inputs.failed);
    if messages.json {
        let mut summary = summary_json(verb, engine, &inputs, &outcome, worst);
        if messages.explain {
            summary["explained"] = explain::explain(engine.planner()).lines().collect();
        }
        json::add_warnings(&mut summary);
        // The summary is written to standard error, as for single files.
        let _ = writeln!(std::io::stderr(), "{summary}");
    } else {
        if messages.explain {
            terminal::print_message(&explain::explain(engine.planner()));
        }
        print(verb, &inputs, &outcome, messages);
    }
    worst.map_or(Ok(()), |error| Err(Error::Reported(error.exit_code())))
}

fn print(verb: &str, inputs: &Inputs, outcome: &Outcome, messages: &ProgressArgs) {
    if !messages.quiet {
        for (path, reason) in &inputs.skipped {
            terminal::print_message(&format!("skipped {}: it is {reason}", quoted(path)));
        }
    }
    if !messages.quiet {
        for path in &outcome.leftovers {
            terminal::print_message(&format!("without input: {}", quoted(path)));
        }
        for path in &outcome.deleted {
            terminal::print_message(&format!("deleted: {}", quoted(path)));
        }
    }
    for (path, error) in &inputs.failed {
        terminal::print_message(&format!("failed: {}: {error}", quoted(path)));
    }
    let without_input = outcome.leftovers.len() + outcome.deleted.len();
    let is_notable = !inputs.failed.is_empty() || !inputs.skipped.is_empty() || without_input > 0;
    if messages.quiet || !(is_notable || outcome.shows_summary) {
        return;
    }
    let mut summary = format!("{verb} {}", files(outcome.done));
    if outcome.done > 0 {
        summary += &format!(
            ", {} in {:.2} s, {}",
            text::bytes(outcome.plaintext),
            outcome.time.as_secs_f64(),
            text::rate(outcome.plaintext, outcome.time)
        );
    }
    let others = [
        (outcome.up_to_date, "up to date"),
        (inputs.skipped.len(), "skipped"),
        (outcome.deleted.len(), "deleted"),
        (outcome.leftovers.len(), "without input"),
        (inputs.failed.len(), "failed"),
    ];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        summary += &format!("; {count} {what}");
    }
    terminal::print_message(&summary);
}

fn summary_json(
    verb: &str,
    engine: &Engine,
    inputs: &Inputs,
    outcome: &Outcome,
    worst: Option<&Error>,
) -> serde_json::Value {
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let skipped = inputs.skipped.iter().map(|(path, reason)| json!({ "path": name(path), "reason": reason }));
    let failed = inputs.failed.iter().map(|(path, error)| {
        let mut failed = json!({
            "path": name(path),
            "error": error.to_string(),
            "exit_code": error.exit_code(),
            "kind": error.kind(),
        });
        json::add_verified(&mut failed, error);
        failed
    });
    let names = |paths: &[PathBuf]| paths.iter().map(|path| name(path)).collect::<Vec<_>>();
    let seconds = outcome.time.as_secs_f64();
    let mut summary = json!({
        "done": verb,
        "files": outcome.done,
        "up_to_date": outcome.up_to_date,
        "skipped": skipped.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
        "without_input": names(&outcome.leftovers),
        "deleted": names(&outcome.deleted),
        "exit_code": worst.map_or(0, Error::exit_code),
        "plaintext_bytes": outcome.plaintext,
        "seconds": seconds,
        "bytes_per_second": outcome.plaintext as f64 / seconds.max(1e-9),
        "threads": engine.threads(),
    });
    if let Some(worst) = worst {
        // Every JSON error has these fields.
        summary["error"] = format!("{} failed", files(inputs.failed.len())).into();
        summary["kind"] = worst.kind().into();
    }
    summary
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".into() } else { format!("{count} files") }
}

/// The worst failure: data that are not authentic are worse than files that cannot be read.
fn worst(failed: &[(PathBuf, Error)]) -> Option<&Error> {
    let mut errors = failed.iter().map(|(_, error)| error);
    errors.clone().find(|error| error.exit_code() == error::NOT_AUTHENTIC).or_else(|| errors.next())
}
