//! Shows the progress on standard error: a bar on a terminal, or lines elsewhere if the user requests them.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lockstep::tree::Host;

use crate::options::{ProgressArgs, When};
use crate::signals::Guard;
use crate::{terminal, text};

/// No bar and no summary are shown for work that takes less time than this.
const MIN_DURATION: Duration = Duration::from_millis(500);
/// Time between two lines of progress.
const INTERVAL: Duration = Duration::from_secs(1);

/// The progress of the work.
pub(crate) struct Progress {
    kind: Kind,
    started: Instant,
    total: Option<u64>,
    /// Number of files, if there are several.
    files: Option<usize>,
    files_done: AtomicUsize,
    /// Bytes of input processed so far in all files together. Used only if there are several files.
    bytes_done: AtomicU64,
    /// True if progress was requested by `always`.
    always: bool,
}

enum Kind {
    Silent,
    Bar(ProgressBar),
    /// Time when the next line is due, in milliseconds after the start.
    Lines(AtomicU64),
}

impl Progress {
    /// Starts to show the progress. `total` is the number of input bytes if it is known, and `files` is the number of files if there are
    /// several.
    pub(crate) fn start(args: &ProgressArgs, total: Option<u64>, files: Option<usize>) -> Progress {
        let always = args.progress == When::Always;
        let kind = match (args.progress, io::stderr().is_terminal()) {
            (When::Auto | When::Always, true) if !args.quiet => Kind::Bar(bar(total, files.is_some())),
            (When::Always, false) if !args.quiet => Kind::Lines(AtomicU64::new(INTERVAL.as_millis() as u64)),
            _ => Kind::Silent,
        };
        let (files_done, bytes_done) = Default::default();
        Progress { kind, started: Instant::now(), total, files, files_done, bytes_done, always }
    }

    /// Sets the number of input bytes processed so far. Several threads call this function often.
    pub(crate) fn set(&self, done: u64) {
        let elapsed = self.started.elapsed();
        match &self.kind {
            Kind::Bar(bar) if elapsed >= MIN_DURATION => {
                bar.set_message(self.files_text().unwrap_or_default());
                bar.set_position(done);
            }
            Kind::Silent | Kind::Bar(_) => {}
            Kind::Lines(due) => {
                let now = elapsed.as_millis() as u64;
                if now >= due.load(Ordering::Relaxed) {
                    due.store(now + INTERVAL.as_millis() as u64, Ordering::Relaxed);
                    terminal::print_message(&self.line(done, elapsed));
                }
            }
        }
    }

    fn files_text(&self) -> Option<String> {
        self.files.map(|files| format!("{} of {files} files", self.files_done.load(Ordering::Relaxed)))
    }

    /// Removes the bar and returns the total time.
    pub(crate) fn end(&self) -> Duration {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
        self.started.elapsed()
    }

    /// True if the command shows a summary at the end.
    pub(crate) fn shows_summary(&self) -> bool {
        let is_shown = !matches!(self.kind, Kind::Silent);
        is_shown && (self.always || self.started.elapsed() >= MIN_DURATION)
    }

    fn line(&self, done: u64, elapsed: Duration) -> String {
        let rate = text::rate(done, elapsed);
        match self.total {
            Some(total) if total > 0 && done > 0 => {
                let left = elapsed.as_secs_f64() * total.saturating_sub(done) as f64 / done as f64;
                let percent = done as f64 * 100.0 / total as f64;
                let files = self.files_text().map_or(String::new(), |files| format!("{files}, "));
                let [done, total] = [done, total].map(text::bytes);
                format!("{files}{done} of {total}, {percent:.0} %, {rate}, {left:.0} s left")
            }
            _ => format!("{}, {rate}", text::bytes(done)),
        }
    }
}

impl Host for Progress {
    fn guard(&self) -> Box<dyn Send> {
        Box::new(Guard::creating())
    }

    fn advance(&self, bytes: u64) {
        self.set(self.bytes_done.fetch_add(bytes, Ordering::Relaxed) + bytes);
    }

    fn file_done(&self) {
        self.files_done.fetch_add(1, Ordering::Relaxed);
    }
}

fn bar(total: Option<u64>, with_files: bool) -> ProgressBar {
    let template = match total {
        Some(_) if with_files => {
            "{percent:>3} % [{bar:10}] {msg}, {binary_bytes} of {binary_total_bytes}, {decimal_bytes_per_sec}, {eta} left"
        }
        Some(_) => {
            "{percent:>3} % [{bar:30}] {binary_bytes} of {binary_total_bytes}, {decimal_bytes_per_sec}, {eta} left"
        }
        None => "{spinner} {binary_bytes}, {decimal_bytes_per_sec}, {elapsed}",
    };
    drawn(total, template)
}

/// A progress bar, or a line of text, that is drawn on standard error.
fn drawn(total: Option<u64>, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    bar.with_style(style.progress_chars("=> "))
}

/// A line on a terminal that shows the current step, and is removed at the end.
pub struct Note(ProgressBar);

impl Note {
    /// An empty line.
    #[allow(clippy::new_without_default, reason = "it has an effect")]
    pub fn new() -> Note {
        Note(drawn(None, "{msg}"))
    }

    /// Shows a step.
    pub fn show(&self, what: &str) {
        self.0.set_message(what.to_owned());
        self.0.tick();
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests;
