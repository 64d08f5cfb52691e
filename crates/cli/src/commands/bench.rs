//! `lockstep bench`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use lockstep::engine::{ENV_DEVICE, ENV_KERNEL, Verify};
use lockstep::{OutputFile, OutputOptions, quoted};
use std::io::Write;

use super::{print, print_json};
use crate::args::How;
use crate::bench::{self, OpenSsl, Options, Report, Session, Suite};
use crate::error::{Error, Result, failed};
use crate::output::GuardedFile;
use crate::signals::{self, Guard, Results};
use crate::{date, json, terminal, text};

/// Most bytes of one message, and of all in a call.
const MAX_SIZE: u64 = bench::MOST_BYTES as u64;
const MAX_MESSAGES: u64 = 1 << 20;

/// Measure this machine: its devices and kernels, and other implementations beside them
///
/// Everybody runs once in each round, in turn, on random data in host memory; medians are told, with their spread. Every
/// call that is timed is verified by another kernel of the processor. docs/benchmarks.md says how to read the results.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// What to measure [default: peers]
    #[arg(value_name = "SUITE", value_enum)]
    suites: Vec<Suite>,

    /// Measure these only: the beginning of a name, such as `ctr` or `gcm-128`; may be repeated
    #[arg(short, long, value_name = "MODE")]
    mode: Vec<String>,

    /// Measure messages (or files) of this size only, such as `16K` or `64M`; may be repeated
    #[arg(short, long, value_name = "SIZE", value_parser = text::parse_size)]
    size: Vec<u64>,

    /// In the suite `batch`, measure so many messages at once only; may be repeated
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_MESSAGES))]
    messages: Vec<u64>,

    /// Rounds, of which the median is told [default: 3 to 9, by suite]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// Seconds for each in each round (`openssl speed` takes one always) [default: 0.02 to 0.2, by suite]
    #[arg(long, visible_alias = "time", value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Only try it out: few and short rounds, small sizes, no `openssl speed`. The figures are worth little
    #[arg(long)]
    quick: bool,

    /// Measure this `openssl` program, too; may be repeated [env: OPENSSL_NEWEST]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    openssl: Vec<PathBuf>,

    /// Leave OpenSSL out
    #[arg(long, conflicts_with = "openssl")]
    no_openssl: bool,

    /// In the suite `files`, work in this folder [default: the system's for temporary files]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,

    /// Tell it as JSON, rates in bytes per second
    #[arg(long)]
    json: bool,

    /// Write a page with plots to this file, too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,

    /// Replace that file if it exists
    #[arg(short, long, requires = "html")]
    force: bool,

    /// No progress, no warnings
    #[arg(short, long)]
    quiet: bool,

    /// Measure this device, such as `cpu`, or `auto` for what the planner chooses; may be repeated [env: LOCKSTEP_DEVICE]
    /// [default: auto and all real ones]
    #[arg(long, value_name = "DEVICE", help_heading = "Devices")]
    device: Vec<String>,

    /// Measure this kernel, such as `cpu/soft`; may be repeated [env: LOCKSTEP_KERNEL] [default: by suite]
    #[arg(long, value_name = "KERNEL", help_heading = "Devices")]
    kernel: Vec<String>,

    /// Use so many CPU threads [env: LOCKSTEP_THREADS] [default: one in `peers`, else one for each processor]
    #[arg(long, value_name = "N", help_heading = "Devices")]
    threads: Option<usize>,

    /// Compare what other devices compute with the CPU while they are measured: not at all, a block in 64 KiB, or all
    /// [env: LOCKSTEP_VERIFY] [default: sample]
    #[arg(long, value_name = "HOW", help_heading = "Devices")]
    verify: Option<How>,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if seconds > 0.0 && seconds <= 3600.0 => Ok(time),
        _ => Err("more than 0 and at most 3600 seconds".into()),
    }
}

pub(crate) fn run(args: &Bench) -> Result<()> {
    let options = options(args)?;
    if let Some(path) = &args.html {
        check_page(path, args.force)?;
    }
    let openssl = options.openssl.iter().map(|openssl| openssl.version.clone()).collect();
    let machine = bench::Machine::here();
    let date = date::now();
    let session = Session::new(options, !args.quiet);
    // A signal ends the suite that is being measured; what those before it found is told.
    let _results = Results::awaited();
    let suites = if args.suites.is_empty() { &[Suite::Peers][..] } else { &args.suites };
    let (chapters, mut failures) = Suite::run_each(suites, &session);
    // Where nothing was measured there is nothing to tell but why.
    if chapters.len() == failures.len() {
        failures.retain(|(_, error)| !matches!(error, Error::Stopped));
        let mut errors = failures.into_iter().map(|(_, error)| error);
        let told = if signals::stopped() { None } else { errors.next() };
        errors.for_each(|error| json::say_or_keep(&error.to_string()));
        return Err(told.unwrap_or(Error::Stopped));
    }
    let report = Report {
        date,
        command: command(),
        machine,
        devices: session.described(),
        openssl,
        energy: session.energy(),
        chapters,
        cpu_use: session.curve.finish(),
    };
    drop(session);
    // What was measured is told first: it took its time.
    let told = if args.json { print_json(&report.json()) } else { print(&report.text()) };
    // The page was asked for, too, if standard output is full or its reader has gone away.
    let page = args.html.as_ref().map_or(Ok(()), |path| write_page(path, args.force, &report.html()));
    let mut wrong: Vec<Error> = [told.err(), page.err()].into_iter().flatten().collect();
    wrong.retain(|error| !error.is_broken_pipe());
    failures.retain(|(_, error)| !matches!(error, Error::Stopped));
    if !failures.is_empty() {
        let told: Vec<_> =
            failures.iter().map(|(suite, error)| format!("{}: {error}", suite.name())).collect();
        wrong.push(failed(format!("not everything was measured: {}", told.join("; "))));
    }
    if signals::stopped() {
        wrong.push(Error::Stopped);
    }
    let last = wrong.pop();
    wrong.iter().for_each(|error| json::say_or_keep(&error.to_string()));
    last.map_or(Ok(()), Err)
}

fn options(args: &Bench) -> Result<Options> {
    if let Some(size) = args.size.iter().find(|&&size| size == 0 || size % 16 != 0 || size > MAX_SIZE) {
        return Err(failed(format!("{size} bytes: sizes are multiples of 16, up to 1 GiB")));
    }
    let bytes = args.size.iter().max().zip(args.messages.iter().max());
    if bytes.is_some_and(|(size, messages)| size * messages > MAX_SIZE) {
        return Err(failed("that is more than 1 GiB in a call: take smaller or fewer messages"));
    }
    let quiet = args.quiet;
    let newest = std::env::var_os(bench::ENV_NEWEST).filter(|program| !program.is_empty());
    let mut programs: Vec<(PathBuf, bool)> = args.openssl.iter().map(|path| (path.clone(), true)).collect();
    if !args.no_openssl && !args.quick {
        programs.insert(0, ("openssl".into(), false));
        programs.extend(newest.map(|program| (program.into(), true)));
    }
    let mut openssl: Vec<OpenSsl> = Vec::new();
    for (program, wanted) in programs {
        match OpenSsl::find(&program) {
            Some(found) if openssl.iter().any(|other| other.version == found.version) => terminal::warn(
                quiet,
                &format!("{} is {} again: measured once", quoted(&program), found.version),
            ),
            Some(found) => openssl.push(found),
            None if wanted => {
                return Err(failed(format!("{} is no `openssl` program that runs", quoted(&program))));
            }
            None => terminal::warn(quiet, "there is no `openssl` here: it is left out"),
        }
    }
    // As for all commands, the environment stands in for what is not said.
    let from_env = |named: &[String], variable| match std::env::var(variable) {
        Ok(value) if named.is_empty() && !value.is_empty() && value != "auto" => vec![value],
        _ => named.to_vec(),
    };
    Ok(Options {
        modes: args.mode.clone(),
        sizes: args.size.iter().map(|size| *size as usize).collect(),
        messages: args.messages.iter().map(|messages| *messages as usize).collect(),
        devices: from_env(&args.device, ENV_DEVICE),
        kernels: from_env(&args.kernel, ENV_KERNEL),
        threads: args.threads,
        verify: args.verify.map(Verify::from),
        rounds: args.rounds.map(usize::from),
        time: args.seconds,
        quick: args.quick,
        folder: args.dir.clone(),
        openssl,
    })
}

/// The command line as it was given.
fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| {
        let word = text::printable(&word.to_string_lossy());
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    std::iter::once("lockstep".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Finds out before minutes are spent whether the page can be written.
fn check_page(path: &Path, force: bool) -> Result<()> {
    let _guard = Guard::creating();
    Ok(OutputFile::check(path, page_options(force))?)
}

fn write_page(path: &Path, force: bool, html: &str) -> Result<()> {
    let mut page = GuardedFile::create(path, page_options(force))?;
    page.file().write_all(html.as_bytes()).map_err(Error::io("write", path))?;
    page.commit()
}

fn page_options(force: bool) -> OutputOptions {
    OutputOptions { force, ..Default::default() }
}
