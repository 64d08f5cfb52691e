//! `lockstep bench`: measures the library's devices and kernels together with its peers, which are other implementations of AES.
//!
//! Method: each round runs every contender once, in turn, so that a change of the clock rate affects all of them. The
//! result is the median of the rounds, with the spread. The first round is a warm-up and is not counted. The first
//! call, which includes self-tests and compilation, is timed separately. Data are random. Times include memory
//! traffic: the data are in host memory, and each call reads and writes them. Every timed call is verified: another
//! kernel of the CPU makes the same calls on the same data, and both results must be equal.
//!
//! | | |
//! |---|---|
//! | `workload` in the crate `lockstep-bench` | the calls that are measured |
//! | `peers` in the same crate | the other implementations |
//! | `session` | the engines that are measured, and those that verify them |
//! | `measure` | rounds, timed stretches, verification |
//! | `suite` | the suites, one module each |
//! | `report` | the machine, and the results as text, JSON and HTML |

mod measure;
mod report;
mod session;
mod suite;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use lockstep::engine::{MAX_THREADS, Verify};
use lockstep::{OutputFile, OutputOptions, quoted};
use lockstep_bench::peers::ENV_NEWEST;
pub use lockstep_bench::peers::OpenSsl;
use lockstep_bench::workload;

use self::report::Report;
use self::session::Session;
use super::{print, print_json};
use crate::error::{Error, Result, ensure, failed};
use crate::options::{VERIFY, choice, number};
use crate::output::GuardedFile;
use crate::signals::{self, Guard};
use crate::{invocation, json, terminal, text};

/// Maximum total size in bytes of the messages of one call. One message may therefore have this size too.
const MAX_SIZE: u64 = workload::MAX_CALL_BYTES as u64;
const MAX_MESSAGES: u64 = 1 << 20;

/// Measure devices and kernels, and compare them with other implementations
///
/// In each round, the contenders run one after another on random data in host memory. The report has medians with their
/// spread. Every timed call is verified by another CPU kernel. docs/benchmarks.md explains the results.
#[derive(Args)]
#[command(
    after_long_help = "Examples:\n  lockstep bench --quick\n  lockstep bench crossover --html page.html"
)]
pub struct Bench {
    /// What to measure [default: peers]
    #[arg(value_name = "SUITE", value_parser = suite::names())]
    suites: Vec<String>,

    /// Measure only modes whose names start with MODE, such as `ctr` or `gcm-128`; may be repeated
    #[arg(short, long, value_name = "MODE")]
    mode: Vec<String>,

    /// Measure only messages of this size, such as `16K` or `64M`; may be repeated
    #[arg(short, long, value_name = "SIZE", value_parser = text::parse_size)]
    size: Vec<u64>,

    /// In the suite `batch`, measure only this number of messages per call; may be repeated
    #[arg(long, value_name = "N", value_parser = number(1..=MAX_MESSAGES))]
    messages: Vec<u64>,

    /// Number of rounds [default: 3 to 9, depending on the suite]
    #[arg(long, value_name = "N", value_parser = number(1..=u16::MAX))]
    rounds: Option<u16>,

    /// Seconds for each contender in each round (always 1 for `openssl speed`) [default: 0.02 to 0.2, depending on the
    /// suite]
    #[arg(long, visible_alias = "time", value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Run a quick test whose figures are not reliable: few short rounds, small sizes, OpenSSL only if --openssl names it
    #[arg(long)]
    quick: bool,

    /// Also measure this `openssl` program; may be repeated [env: OPENSSL_NEWEST]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    openssl: Vec<PathBuf>,

    /// Do not measure OpenSSL
    #[arg(long, conflicts_with = "openssl")]
    no_openssl: bool,

    /// Print JSON, with rates in bytes per second
    #[arg(long)]
    json: bool,

    /// Also write a page with plots to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,

    /// Replace the file of --html if it exists
    #[arg(short, long, requires = "html")]
    force: bool,

    /// Show no progress and no warnings
    #[arg(short, long)]
    quiet: bool,

    /// Measure this device, such as `cpu`, or `auto` for the planner's choice; may be repeated [env: LOCKSTEP_DEVICE]
    /// [default: auto and all real devices]
    #[arg(long, value_name = "DEVICE", help_heading = "Devices")]
    device: Vec<String>,

    /// Measure this kernel, such as `cpu/soft`; may be repeated [env: LOCKSTEP_KERNEL] [default: depends on the suite]
    #[arg(long, value_name = "KERNEL", help_heading = "Devices")]
    kernel: Vec<String>,

    /// Number of CPU threads [env: LOCKSTEP_THREADS] [default: 1 in the suite `peers`, otherwise one for each
    /// processor]
    #[arg(long, value_name = "N", help_heading = "Devices", value_parser = number(1..=MAX_THREADS))]
    threads: Option<usize>,

    /// Launch options of the measured devices other than the CPU, such as `threads=128,blocks=64` for
    /// --kernel cuda/coarse-shared
    #[arg(long, value_name = "NAME=NUMBER,...", help_heading = "Devices")]
    launch: Option<String>,

    /// Verify the results of devices other than the CPU during the measurement: off, one block in 64 KiB, or all [env:
    /// LOCKSTEP_VERIFY] [default: sample]
    #[arg(long, value_name = "HOW", help_heading = "Devices", value_parser = choice(&VERIFY))]
    verify: Option<Verify>,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if seconds > 0.0 && seconds <= 3600.0 => Ok(time),
        _ => Err("give more than 0 and at most 3600 seconds".into()),
    }
}

pub(crate) fn run(args: &Bench) -> Result<()> {
    check_sizes(args)?;
    let openssl = find_openssl(args)?;
    let page_options = OutputOptions { force: args.force, ..Default::default() };
    if let Some(path) = &args.html {
        // The command checks before the measurement that the page can be written.
        let _guard = Guard::creating();
        OutputFile::check(path, page_options)?;
    }
    let date = text::now();
    let session = Session::new(args, openssl);
    // A signal stops the suite that is being measured; the results of the suites before it are printed.
    signals::hold_for_results();
    let sections = suite::run_each(&args.suites, &session);
    let mut errors: Vec<Error> = Vec::new();
    if sections.iter().all(|section| section.error.is_some()) {
        errors.extend(sections.into_iter().filter_map(|section| section.error));
        errors.retain(|error| !matches!(error, Error::Stopped));
        // The command returns the last element of `errors`, so the order is reversed to return the first error.
        errors.reverse();
    } else {
        let report = Report { session: &session, date, command: command(), sections };
        // The results are printed before the page is written: they must not be lost if the page cannot be written.
        let printed = if args.json { print_json(&report.json()) } else { print(&report.text()) };
        // The page is written even if standard output is full or closed by its reader.
        let write = |path: &PathBuf| GuardedFile::write(path, page_options, report.html().as_bytes());
        let page = args.html.as_ref().map_or(Ok(()), write);
        let unwritten = [printed.err(), page.err()].into_iter().flatten();
        errors.extend(unwritten.filter(|error| !error.is_broken_pipe()));
        let failures =
            report.sections.iter().filter_map(|section| Some((section.name, section.error.as_ref()?)));
        let failures = failures.filter(|(_, error)| !matches!(error, Error::Stopped));
        let reasons: Vec<_> = failures.map(|(suite, error)| format!("{suite}: {error}")).collect();
        if !reasons.is_empty() {
            errors.push(failed(format!("not everything was measured: {}", reasons.join("; "))));
        }
    }
    errors.extend(signals::stopped().then_some(Error::Stopped));
    let last = errors.pop();
    // With --json, `store_warning` stores the messages for the JSON object that is printed at the end.
    let messages = errors.iter().map(Error::to_string).filter(|message| !json::store_warning(message));
    messages.for_each(|message| terminal::print_message(&message));
    last.map_or(Ok(()), Err)
}

fn check_sizes(args: &Bench) -> Result<()> {
    for &size in &args.size {
        let is_valid = size > 0 && size.is_multiple_of(16) && size <= MAX_SIZE;
        ensure(is_valid, format_args!("{size} bytes: sizes are multiples of 16, up to 1 GiB"))?;
    }
    let bytes = args.size.iter().max().zip(args.messages.iter().max());
    let fits = bytes.is_none_or(|(size, messages)| size * messages <= MAX_SIZE);
    ensure(fits, "that is more than 1 GiB in a call: take smaller or fewer messages")
}

/// The `openssl` programs that are measured.
fn find_openssl(args: &Bench) -> Result<Vec<OpenSsl>> {
    let (mut openssl, mut named): (Vec<OpenSsl>, _) = (Vec::new(), args.openssl.clone());
    if !args.no_openssl && !args.quick {
        let newest = std::env::var_os(ENV_NEWEST).filter(|program| !program.is_empty());
        named.extend(newest.map(PathBuf::from));
        match OpenSsl::find("openssl".as_ref()) {
            Some(found) => openssl.push(found),
            None => terminal::warn(args.quiet, "there is no `openssl` program: it is not measured"),
        }
    }
    for program in named {
        let is_variable = !args.openssl.contains(&program);
        let from = if is_variable { format!("{ENV_NEWEST}: ") } else { String::new() };
        let name = format!("{from}{}", quoted(&program));
        let found = OpenSsl::find(&program)
            .ok_or_else(|| failed(format!("{name} is not an `openssl` program, or does not run")))?;
        if openssl.iter().any(|other| other.version == found.version) {
            terminal::warn(args.quiet, &format!("{name} is {} again: measured once", found.version));
        } else {
            openssl.push(found);
        }
    }
    Ok(openssl)
}

/// The command line, quoted for a shell.
fn command() -> String {
    let words = invocation::arguments().iter().map(|word| text::printable(&word.to_string_lossy()));
    let words: Vec<_> = std::iter::once("lockstep".to_owned()).chain(words).collect();
    shlex::try_join(words.iter().map(String::as_str)).expect("`printable` leaves no zero byte")
}
