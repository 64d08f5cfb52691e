//! What became of all files: printed at the end, and returned as the exit code.

use std::io::Write as _;
use std::path::Path;

use lockstep::{Engine, quoted};
use serde_json::json;

use super::inputs::Inputs;
use super::run::Outcome;
use crate::args::ProgressArgs;
use crate::error::{self, Error, Result};
use crate::{explain, job, signals, terminal, text};

/// Prints what was skipped and what failed, and a summary.
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
    job::report_incidents(engine.planner(), messages.quiet);
    if messages.explain {
        terminal::say(&explain::explain(engine.planner()));
    }
    let code = worst(&inputs.failed);
    if messages.json {
        // Standard error, as for single files.
        let _ = writeln!(std::io::stderr(), "{}", summary_json(verb, engine, &inputs, &outcome, code));
    } else {
        print(verb, &inputs, &outcome, messages);
    }
    if inputs.failed.is_empty() { Ok(()) } else { Err(Error::Reported(code)) }
}

fn print(verb: &str, inputs: &Inputs, outcome: &Outcome, messages: &ProgressArgs) {
    if !messages.quiet {
        for (path, reason) in &inputs.skipped {
            terminal::say(&format!("skipped {}: it is {reason}", quoted(path)));
        }
    }
    for (path, error) in &inputs.failed {
        terminal::say(&format!("failed: {}: {error}", quoted(path)));
    }
    let is_notable = !inputs.failed.is_empty() || !inputs.skipped.is_empty();
    if messages.quiet || !(is_notable || outcome.wants_summary) {
        return;
    }
    let files = |count| if count == 1 { "1 file".into() } else { format!("{count} files") };
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
        (inputs.failed.len(), "failed"),
    ];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        summary += &format!("; {count} {what}");
    }
    terminal::say(&summary);
}

fn summary_json(
    verb: &str,
    engine: &Engine,
    inputs: &Inputs,
    outcome: &Outcome,
    code: u8,
) -> serde_json::Value {
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let skipped = inputs.skipped.iter().map(|(path, reason)| json!({ "path": name(path), "reason": reason }));
    let failed = inputs.failed.iter().map(|(path, error)| {
        json!({ "path": name(path), "error": error.to_string(), "exit_code": error.exit_code() })
    });
    let seconds = outcome.time.as_secs_f64();
    json!({
        "done": verb,
        "files": outcome.done,
        "up_to_date": outcome.up_to_date,
        "skipped": skipped.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
        "exit_code": if inputs.failed.is_empty() { 0 } else { code },
        "plaintext_bytes": outcome.plaintext,
        "seconds": seconds,
        "bytes_per_second": outcome.plaintext as f64 / seconds.max(1e-9),
        "threads": engine.threads(),
    })
}

/// The exit code of the worst failure: data that are not authentic are worse than files that cannot be read.
fn worst(failed: &[(std::path::PathBuf, Error)]) -> u8 {
    let forged = failed.iter().any(|(_, error)| error.exit_code() == error::NOT_AUTHENTIC);
    if forged { error::NOT_AUTHENTIC } else { error::FAILED }
}
