//! `lockstep bench`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use lockstep::engine::{ENV_DEVICE, ENV_KERNEL, Verify};
use lockstep::{OutputFile, OutputOptions, quoted};
use lockstep_bench::{self as bench, FolderGuard, Host, OpenSsl, Options, Session, Suite};

use super::{print, print_json};
use crate::error::{Error, Result, failed};
use crate::invocation;
use crate::options::How;
use crate::output::GuardedFile;
use crate::progress::Note;
use crate::signals::{self, Guard, Results};
use crate::{date, memory, terminal, text};

/// Maximum total size in bytes of the messages of one call, and therefore also the maximum size of one message.
const MAX_SIZE: u64 = bench::MAX_CALL_BYTES as u64;
const MAX_MESSAGES: u64 = 1 << 20;

/// Measure devices and kernels, and compare them with other implementations
///
/// In each round, the contenders run one after another on random data in host memory. The report has medians with their
/// spread. Every timed call is verified by another CPU kernel. docs/benchmarks.md explains the results.
#[derive(Args)]
pub struct Bench {
    /// What to measure [default: peers]
    #[arg(value_name = "SUITE", value_enum)]
    suites: Vec<SuiteName>,

    /// Measure only modes whose names start with MODE, such as `ctr` or `gcm-128`; may be repeated
    #[arg(short, long, value_name = "MODE")]
    mode: Vec<String>,

    /// Measure only messages (or files) of this size, such as `16K` or `64M`; may be repeated
    #[arg(short, long, value_name = "SIZE", value_parser = text::parse_size)]
    size: Vec<u64>,

    /// In the suite `batch`, measure only this number of messages per call; may be repeated
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_MESSAGES))]
    messages: Vec<u64>,

    /// Number of rounds [default: 3 to 9, depending on the suite]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// Seconds for each contender in each round (always 1 for `openssl speed`) [default: 0.02 to 0.2, depending on the
    /// suite]
    #[arg(long, visible_alias = "time", value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Run a quick test whose figures are not reliable: few short rounds, small sizes, no `openssl speed`
    #[arg(long)]
    quick: bool,

    /// Also measure this `openssl` program; may be repeated [env: OPENSSL_NEWEST]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    openssl: Vec<PathBuf>,

    /// Do not measure OpenSSL
    #[arg(long, conflicts_with = "openssl")]
    no_openssl: bool,

    /// Folder for the suite `files` [default: the system's folder for temporary files]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,

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
    #[arg(long, value_name = "N", help_heading = "Devices")]
    threads: Option<usize>,

    /// Verify the results of devices other than the CPU during the measurement: off, one block in 64 KiB, or all [env:
    /// LOCKSTEP_VERIFY] [default: sample]
    #[arg(long, value_name = "HOW", help_heading = "Devices")]
    verify: Option<How>,
}

/// A suite on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SuiteName {
    /// Each kernel of each device, by mode, key size and message size
    Throughput,
    /// Each device and the planner's choice, from 16 bytes to 256 MiB: which device is the fastest for each size
    Crossover,
    /// Many messages at once, each with its own key
    Batch,
    /// Encrypting and decrypting files, compared with `cp` and `openssl enc`
    Files,
    /// The time of one small call
    Latency,
    /// Comparison with OpenSSL, AWS-LC and RustCrypto
    Peers,
    /// Whether the speed depends on the data
    Patterns,
    /// All suites
    All,
}

impl SuiteName {
    fn suites(self) -> &'static [Suite] {
        match self {
            SuiteName::Throughput => &[Suite::Throughput],
            SuiteName::Crossover => &[Suite::Crossover],
            SuiteName::Batch => &[Suite::Batch],
            SuiteName::Files => &[Suite::Files],
            SuiteName::Latency => &[Suite::Latency],
            SuiteName::Peers => &[Suite::Peers],
            SuiteName::Patterns => &[Suite::Patterns],
            SuiteName::All => &Suite::ALL,
        }
    }
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
    let date = date::now();
    let session = Session::new(options, Rc::new(CommandHost { note: (!args.quiet).then(Note::new) }));
    // A signal stops the suite that is being measured; the results of the suites before it are printed.
    let _results = Results::awaited();
    let named = if args.suites.is_empty() { &[SuiteName::Peers][..] } else { &args.suites };
    let suites: Vec<Suite> = named.iter().flat_map(|name| name.suites()).copied().collect();
    let (sections, failures) = Suite::run_each(&suites, &session);
    let all_failed = sections.len() == failures.len();
    let mut failures: Vec<(Suite, Error)> =
        failures.into_iter().map(|(suite, error)| (suite, error.into())).collect();
    failures.retain(|(_, error)| !matches!(error, Error::Stopped));
    if all_failed {
        let mut errors = failures.into_iter().map(|(_, error)| error);
        let first = if signals::stopped() { None } else { errors.next() };
        errors.for_each(|error| terminal::print_or_keep(&error.to_string()));
        return Err(first.unwrap_or(Error::Stopped));
    }
    let report = session.into_report(sections, date, command());
    // The results are printed first: they must not be lost if the page cannot be written.
    let printed = if args.json { print_json(&report.json()) } else { print(&report.text()) };
    // The page is written even if standard output is full or closed by its reader.
    let page = args.html.as_ref().map_or(Ok(()), |path| write_page(path, args.force, &report.html()));
    let mut errors: Vec<Error> = [printed.err(), page.err()].into_iter().flatten().collect();
    errors.retain(|error| !error.is_broken_pipe());
    if !failures.is_empty() {
        let reasons: Vec<_> =
            failures.iter().map(|(suite, error)| format!("{}: {error}", suite.name())).collect();
        errors.push(failed(format!("not everything was measured: {}", reasons.join("; "))));
    }
    if signals::stopped() {
        errors.push(Error::Stopped);
    }
    let last = errors.pop();
    errors.iter().for_each(|error| terminal::print_or_keep(&error.to_string()));
    last.map_or(Ok(()), Err)
}

/// Implements the functions that the benchmarks need from this command.
struct CommandHost {
    /// Shows the progress, unless `--quiet` was given.
    note: Option<Note>,
}

impl Host for CommandHost {
    fn is_stopped(&self) -> bool {
        signals::stopped()
    }

    fn show_step(&self, step: &str) {
        if let Some(note) = &self.note {
            note.show(step);
        }
    }

    fn check_memory(&self, bytes: u64, purpose: &str) -> bench::Result<()> {
        memory::check(bytes, purpose).map_err(|error| bench::Error::OutOfMemory(error.to_string()))
    }

    fn guard_folder(&self) -> Box<dyn FolderGuard> {
        Box::new(Guard::creating())
    }

    fn program(&self) -> io::Result<PathBuf> {
        let missing =
            || io::Error::other("the command is not a program of its own: run the program `lockstep`");
        invocation::program().map(PathBuf::from).ok_or_else(missing)
    }
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
                return Err(failed(format!(
                    "{} is not an `openssl` program, or does not run",
                    quoted(&program)
                )));
            }
            None => terminal::warn(quiet, "there is no `openssl` program: it is not measured"),
        }
    }
    // As in all commands, an environment variable sets the default of an option.
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

/// The command line, quoted for a shell.
fn command() -> String {
    let words = invocation::arguments().iter().map(|word| {
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

/// Checks that the page can be written. The command calls this before the measurement.
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
