//! Progress on standard error: a bar on a terminal, lines elsewhere if they are asked for.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::{ProgressArgs, When};
use crate::{terminal, text};

/// What takes less is not worth a bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// Between lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// How far the work is.
pub(crate) struct Progress {
    kind: Kind,
    started: Instant,
    total: Option<u64>,
    /// True if it was asked for whatever comes.
    always: bool,
}

enum Kind {
    Silent,
    Bar(ProgressBar),
    /// Milliseconds after the start when the next line is due.
    Lines(AtomicU64),
}

impl Progress {
    /// Starts to show progress over so many bytes of input, if that is known.
    pub(crate) fn start(args: &ProgressArgs, total: Option<u64>) -> Progress {
        let terminal = io::stderr().is_terminal();
        let always = args.progress == When::Always;
        let kind = match args.progress {
            _ if args.quiet => Kind::Silent,
            When::Never => Kind::Silent,
            When::Auto if !terminal => Kind::Silent,
            _ if terminal => Kind::Bar(bar(total)),
            _ => Kind::Lines(AtomicU64::new(INTERVAL.as_millis() as u64)),
        };
        Progress { kind, started: Instant::now(), total, always }
    }

    /// Says that so many bytes of input are done. Called often, by several threads.
    pub(crate) fn set(&self, done: u64) {
        let elapsed = self.started.elapsed();
        match &self.kind {
            Kind::Silent => {}
            Kind::Bar(bar) if elapsed >= PATIENCE => bar.set_position(done),
            Kind::Bar(_) => {}
            Kind::Lines(due) => {
                let now = elapsed.as_millis() as u64;
                if now >= due.load(Ordering::Relaxed) {
                    due.store(now + INTERVAL.as_millis() as u64, Ordering::Relaxed);
                    terminal::say(&self.line(done, elapsed));
                }
            }
        }
    }

    /// Removes the bar. How long it all took.
    pub(crate) fn end(&self) -> Duration {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
        self.started.elapsed()
    }

    /// True if a word at the end is welcome.
    pub(crate) fn wants_summary(&self) -> bool {
        match self.kind {
            Kind::Silent => false,
            _ => self.always || self.started.elapsed() >= PATIENCE,
        }
    }

    fn line(&self, done: u64, elapsed: Duration) -> String {
        let rate = text::rate(done, elapsed);
        match self.total {
            Some(total) if total > 0 && done > 0 => {
                let left = elapsed.mul_f64((total.saturating_sub(done)) as f64 / done as f64);
                let percent = done as f64 * 100.0 / total as f64;
                format!(
                    "{} of {}, {percent:.0} %, {rate}, {:.0} s left",
                    text::bytes(done),
                    text::bytes(total),
                    left.as_secs_f64()
                )
            }
            _ => format!("{}, {rate}", text::bytes(done)),
        }
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => {
            "{percent:>3} % [{bar:30}] {binary_bytes} of {binary_total_bytes}, {decimal_bytes_per_sec}, {eta} left"
        }
        None => "{spinner} {binary_bytes}, {decimal_bytes_per_sec}, {elapsed}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let target = ProgressDrawTarget::stderr();
    ProgressBar::with_draw_target(total, target).with_style(style.progress_chars("=> "))
}

/// A line on a terminal that says what is being done, and goes when that is over.
pub(crate) struct Note(ProgressBar);

impl Note {
    pub(crate) fn new() -> Note {
        let style =
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        let target = ProgressDrawTarget::stderr();
        Note(ProgressBar::with_draw_target(None, target).with_style(style))
    }

    pub(crate) fn show(&self, what: &str) {
        self.0.set_message(what.to_owned());
        self.0.tick();
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
