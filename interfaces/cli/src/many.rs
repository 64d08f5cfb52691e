//! Processes many files in one call, with `-O`. At the end, the results of all files are printed, and they determine the exit code.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockstep::tree::{Advice, Direction, Host, Operation, Options, Outcome, Run};
use lockstep::{Engine, quoted};
use serde_json::json;

use crate::error::{self, Error, Result};
use crate::options::{ManyArgs, OutputArgs, ProgressArgs};
use crate::progress::Progress;
use crate::signals::Guard;
use crate::{job, json, signals, terminal, text};

const ADVICE: Advice = Advice {
    existing: "keep those that are up to date with --resume, or use --force",
    unknown: "--force replaces it",
    same_output: "run the command once for each",
    name: "decrypt it by itself, with -o",
};

/// The options of a run that writes into the folder `output_dir`. The caller sets the options for folders, deletion and protected files.
pub(crate) fn options<'a>(output_dir: &'a Path, many: &ManyArgs, output: &OutputArgs) -> Options<'a> {
    Options {
        output_dir,
        recursive: false,
        resume: many.resume,
        force: output.force,
        sync: output.sync,
        delete: false,
        protected: Vec::new(),
        advice: &ADVICE,
        stream: lockstep::Options { interrupt: Some(&signals::STOPPED), ..lockstep::Options::default() },
    }
}

/// The host while a run is being planned. It shows no progress.
struct Planning;

impl Host for Planning {
    fn guard(&self) -> Box<dyn Send> {
        Box::new(Guard::creating())
    }
}

/// Processes all files. The failure of a file does not affect the other files.
///
/// `prepare` finds keys and asks for passphrases. It is called on this thread for each file, before the first file is
/// processed.
///
/// If the work cannot start, returns the reason, such as an error of `prepare`. If some files have failed, prints a
/// list of them and returns [`Error::Reported`].
pub(crate) fn run(
    engine: &Engine,
    operation: &dyn Operation,
    given: &[PathBuf],
    options: &Options<'_>,
    messages: &ProgressArgs,
    prepare: impl FnMut(File, &Path) -> Result<lockstep::Result<()>>,
) -> Result<()> {
    let mut run = Run::plan(engine, operation, given, options, &Planning)?;
    run.prepare(prepare)?;
    let (mut time, mut shows_summary) = (Duration::ZERO, false);
    if !run.has_failed() {
        let progress = Progress::start(messages, Some(run.bytes()), Some(run.files()));
        run.process(&progress)?;
        (time, shows_summary) = (progress.end(), progress.shows_summary());
    }
    let mut outcome = run.finish();
    if signals::stopped() {
        return Err(Error::Stopped);
    }
    let failed = outcome.failed.drain(..).map(|(path, error)| (path, error.into())).collect();
    let verb = match operation.direction() {
        Direction::Encrypt => "encrypted",
        Direction::Decrypt => "decrypted",
    };
    Report { engine, verb, outcome, failed, time, shows_summary }.print(messages)
}

/// The results of all files.
struct Report<'a> {
    engine: &'a Engine,
    verb: &'a str,
    outcome: Outcome,
    failed: Vec<(PathBuf, Error)>,
    time: Duration,
    shows_summary: bool,
}

impl Report<'_> {
    /// Prints the skipped and failed files, and a summary.
    ///
    /// # Errors
    /// [`Error::Reported`] with the exit code of the worst failure, if a file failed.
    fn print(&self, messages: &ProgressArgs) -> Result<()> {
        let planner = self.engine.planner();
        job::report_incidents(planner, messages.quiet);
        job::report_assisted(planner, messages.quiet);
        for path in &self.outcome.changed {
            let changed = format!("{} changed while it was {}", quoted(path), self.verb);
            let advice = "its output may be a mixture of two versions; --resume writes the output again";
            terminal::warn(messages.quiet, &format!("{changed}, so {advice}"));
        }
        job::print_summary(planner, messages, || self.json(), || self.print_text(messages.quiet));
        self.worst().map_or(Ok(()), |error| Err(Error::Reported(error.exit_code())))
    }

    fn print_text(&self, quiet: bool) {
        let Report { outcome, verb, failed, .. } = self;
        let skipped = outcome.skipped.iter();
        let skipped = skipped.map(|(path, reason)| format!("skipped {}: it is {reason}", quoted(path)));
        let leftovers = outcome.leftovers.iter().map(|path| format!("without input: {}", quoted(path)));
        let deleted = outcome.deleted.iter().map(|path| format!("deleted: {}", quoted(path)));
        if !quiet {
            skipped.chain(leftovers).chain(deleted).for_each(|line| terminal::print_message(&line));
        }
        for (path, error) in failed {
            terminal::print_message(&format!("failed: {}: {error}", quoted(path)));
        }
        let others = [
            (outcome.up_to_date, "up to date"),
            (outcome.skipped.len(), "skipped"),
            (outcome.deleted.len(), "deleted"),
            (outcome.leftovers.len(), "without input"),
            (failed.len(), "failed"),
        ];
        let is_notable = others[1..].iter().any(|(count, _)| *count > 0);
        if quiet || !(is_notable || self.shows_summary) {
            return;
        }
        let mut summary = format!("{verb} {}", text::count(outcome.done, "file"));
        if outcome.done > 0 {
            summary += &format!(", {}", text::amount(outcome.plaintext, self.time));
        }
        for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
            summary += &format!("; {count} {what}");
        }
        terminal::print_message(&summary);
    }

    fn json(&self) -> serde_json::Value {
        let outcome = &self.outcome;
        let name = |path: &PathBuf| path.to_string_lossy().into_owned();
        let names = |paths: &[PathBuf]| paths.iter().map(name).collect::<Vec<_>>();
        let skipped = outcome.skipped.iter();
        let skipped = skipped.map(|(path, reason)| json!({ "path": name(path), "reason": reason }));
        let failed = self.failed.iter().map(|(path, error)| {
            let mut failed = json::of_error(error);
            failed["path"] = name(path).into();
            failed
        });
        let mut fields = json!({
            "files": outcome.done,
            "up_to_date": outcome.up_to_date,
            "skipped": skipped.collect::<Vec<_>>(),
            "failed": failed.collect::<Vec<_>>(),
            "without_input": names(&outcome.leftovers),
            "deleted": names(&outcome.deleted),
            "exit_code": self.worst().map_or(0, Error::exit_code),
            "threads": self.engine.threads(),
        });
        if let Some(worst) = self.worst() {
            // These are the fields that the JSON object of every error has.
            fields["error"] = format!("{} failed", text::count(self.failed.len(), "file")).into();
            fields["kind"] = worst.kind().into();
        }
        job::summary_json(self.verb, outcome.plaintext, self.time, fields)
    }

    /// The first failure with exit code 1 (data that are not authentic); if there is none, the first failure.
    fn worst(&self) -> Option<&Error> {
        let mut errors = self.failed.iter().map(|(_, error)| error);
        errors.clone().find(|error| error.exit_code() == error::NOT_AUTHENTIC).or_else(|| errors.next())
    }
}
