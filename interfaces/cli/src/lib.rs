//! The command `lockstep`: AES on parallel hardware, for files and streams.
//!
//! Each subcommand is a module in `commands`, which also defines the command line. The other modules are shared: options of several
//! subcommands (`options`), errors and exit codes (`error`), input and output (`input`, `output`), the common part of encryption and
//! decryption (`job`), keys wrapped by age ([`file_keys`], `recipients`, `identities`, `answers`, `passphrase`,
//! `wrapping`), plain age files (`age_file`), many files in one call (`many`), the arguments of this call (`invocation`), user
//! interaction (`terminal`, `progress`, `signals`), large allocations (`memory`), and locks (`locks`).
#![forbid(unsafe_code)]

mod age_file;
mod answers;
mod commands;
mod error;
pub mod file_keys;
mod identities;
mod input;
mod invocation;
mod job;
mod json;
mod many;
mod memory;
mod options;
mod output;
mod passphrase;
mod progress;
mod recipients;
mod signals;
pub mod standard;
mod terminal;
mod text;
mod wrapping;

/// Parts for programs that have the subcommands of `lockstep` and further subcommands. [`run_program`] runs such a program.
pub mod program {
    pub use crate::commands::bench::OpenSsl;
    pub use crate::commands::{ProgramArgs, SharedCommand, after_help, print, print_json, run_shared};
    pub use crate::error::{Error, Result, failed};
    pub use crate::input::Input;
    pub use crate::memory::check as check_memory;
    pub use crate::output::GuardedFile;
    pub use crate::progress::Note;
    pub use crate::text::{parse_size, today};
}

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use clap::error::ErrorKind;
use lockstep::engine::{BackendOptions, backends};

use crate::error::Error;

/// Runs the command with its arguments and returns its exit code. The first argument is the name of the program. `program` is
/// the path of the program, which some benchmarks start again. It is `None` if the command runs in another program, such as Python.
///
/// The function is for programs that do nothing else, because it installs signal handlers, reads standard input and prints, and
/// because a signal ends the process. It may be called only once, and only in the main thread.
pub fn run(arguments: Vec<OsString>, program: Option<PathBuf>) -> u8 {
    run_program(arguments, program, commands::run)
}

/// Does the same as [`run`] for another command line: parses the arguments as a `C`, and calls `run_command` with the result.
pub fn run_program<C: Parser>(
    arguments: Vec<OsString>,
    program: Option<PathBuf>,
    run_command: fn(C) -> program::Result<()>,
) -> u8 {
    json::look_for_option(&arguments);
    let parsed = C::try_parse_from(&arguments);
    invocation::set(arguments, program);
    let done = match parsed {
        Ok(command) => signals::install(terminal::restore)
            .map_err(|error| error::failed(format!("cannot catch signals: {error}")))
            .and_then(|()| run_command(command)),
        // clap stops at `--version`.
        Err(message) if message.kind() == ErrorKind::DisplayVersion && json::is_requested() => {
            print_version()
        }
        Err(message) => return usage::<C>(&message),
    };
    match done {
        Ok(()) => {
            // If `--json` was given and no JSON object was printed, stored warnings remain. They are printed as text.
            let warnings = json::take_warnings();
            warnings.iter().for_each(|warning| terminal::print_message(&format!("warning: {warning}")));
            0
        }
        // After a signal, reads fail with other errors. The error for the signal replaces such an error.
        Err(_) if signals::stopped() => fail(&Error::Stopped),
        Err(error) => fail(&error),
    }
}

/// Prints one JSON object to standard output: the name of the program and its build.
///
/// - `name`, `version`: of the package.
/// - `commit`: the Git commit of the build, or null if the environment variable `LOCKSTEP_COMMIT` was not set; ends in
///   `-dirty` if files had been changed.
/// - `os`, `arch`: the platform of the build, with Rust's names.
/// - `backends`: the compiled-in backends, whether or not this machine has devices for them.
fn print_version() -> program::Result<()> {
    let backends = backends(&BackendOptions { threads: 1 });
    commands::print_json(&serde_json::json!({
        "name": "lockstep",
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("LOCKSTEP_COMMIT").filter(|commit| !commit.is_empty()),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "backends": backends.iter().map(|backend| backend.name()).collect::<Vec<_>>(),
    }))
}

/// Prints a message of clap and returns the exit code. Help and version are printed to standard output, usage errors to standard
/// error.
fn usage<C: Parser>(message: &clap::Error) -> u8 {
    if !message.use_stderr() {
        return match standard::check_output().map(|()| message.print()) {
            Err(error) => fail(&error),
            Ok(Err(error)) if error.kind() != std::io::ErrorKind::BrokenPipe => error::FAILED,
            Ok(_) => 0,
        };
    }
    let rendered = match message.kind() {
        ErrorKind::InvalidUtf8 => {
            let rule = "only the names of files and the context may be other bytes";
            format!("error: argument {} is not UTF-8: {rule}", number_not_utf8::<C>())
        }
        _ => message.render().to_string(),
    };
    let mistake = rendered.strip_prefix("error: ");
    if json::is_requested() {
        let mistake = mistake.unwrap_or("give a command: `lockstep --help` lists them");
        // The first paragraph is the error. The usage of the command follows and is omitted here.
        let mistake = mistake.split("\n\n").next().unwrap_or_default();
        json::print(json::object(&text::one_line(&mistake), "usage", error::FAILED));
    } else if let Some(mistake) = mistake {
        terminal::print_message(mistake.trim_end());
    } else {
        // Without a command, clap's message is the help.
        let _ = write!(std::io::stderr(), "{rendered}");
    }
    error::FAILED
}

/// The number of the argument, counted from 1, for which the parser returned [`ErrorKind::InvalidUtf8`]. The error of clap does not
/// contain the number, and a message must not contain the argument itself, which can be a key. The function parses the first arguments
/// for each number of them. The parser reads the arguments in order, so the invalid argument is the last one of the shortest command
/// line with this error.
fn number_not_utf8<C: Parser>() -> usize {
    let arguments = invocation::arguments();
    let is_refused = |number: &usize| {
        let line =
            std::iter::once(&OsString::new()).chain(&arguments[..*number]).cloned().collect::<Vec<_>>();
        C::try_parse_from(line).is_err_and(|error| error.kind() == ErrorKind::InvalidUtf8)
    };
    (1..arguments.len()).find(is_refused).unwrap_or(arguments.len())
}

fn fail(error: &Error) -> u8 {
    // No error is printed after a signal, because the signal thread prints none if it ends the program first.
    if !matches!(error, Error::Stopped | Error::Reported(_)) && !error.is_broken_pipe() {
        match json::is_requested() {
            true => json::print(json::of_error(error)),
            false => terminal::print_message(&error.to_string()),
        }
    }
    error.exit_code()
}
