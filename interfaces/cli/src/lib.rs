//! The command `lockstep`: AES on parallel hardware, for files and streams.
//!
//! Each subcommand is a module in `commands`. The other modules are shared: the definition of the command line (`args`),
//! options of several subcommands (`options`), errors and exit codes (`error`), input and output (`input`, `output`), keys
//! wrapped by age ([`file_keys`], `recipients`, `identities`, `answers`, `passphrase`, `wrapping`), plain age files (`age_file`), many files in one call (`many`), the arguments of this call (`invocation`),
//! the version (`version`), pictures (`picture`), and user interaction (`terminal`, `progress`, `signals`).
#![forbid(unsafe_code)]

mod age_file;
mod answers;
mod args;
mod commands;
mod error;
mod explain;
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
mod picture;
mod progress;
mod raw;
mod recipients;
mod signals;
mod sources;
pub mod standard;
mod terminal;
mod text;
mod version;
mod wrapping;

/// For programs that have the subcommands of `lockstep` and others: [`run_program`] runs them.
pub mod program {
    pub use crate::args::{AFTER, ProgramArgs, SharedCommand};
    pub use crate::commands::bench::OpenSsl;
    pub use crate::commands::{print, print_json, run_shared};
    pub use crate::error::{Error, Result, failed};
    pub use crate::input::{Input, Reader};
    pub use crate::memory::check as check_memory;
    pub use crate::output::GuardedFile;
    pub use crate::progress::Note;
    pub use crate::text::{parse_size, today};
}

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Parser;

use crate::error::Error;

/// Runs the command with its arguments and returns its exit code. The first argument is the name of the program. `program` is
/// the path of the program, which some benchmarks start again; None if the command is not a program of its own.
///
/// The function is for programs that do nothing else. It may be called once, in the main thread: it installs signal
/// handlers, reads standard input, prints, and a signal ends the process.
pub fn run(arguments: Vec<OsString>, program: Option<PathBuf>) -> u8 {
    run_program(arguments, program, commands::run)
}

/// The same for a program whose command line is `C`: `run_command` runs the parsed command.
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
        Err(message) if version::is_wanted_as_json(&message) => version::print(),
        Err(message) => return usage(&message),
    };
    match done {
        Ok(()) => {
            terminal::show_stored_warnings();
            0
        }
        // A signal makes reads fail with other errors. The error for the signal replaces them.
        Err(_) if signals::stopped() => fail(&Error::Stopped),
        Err(error) => fail(&error),
    }
}

/// Prints clap's messages. Help and version are printed to standard output, usage errors to standard error.
fn usage(message: &clap::Error) -> u8 {
    if !message.use_stderr() {
        if let Err(error) = standard::check_output() {
            return fail(&error);
        }
        return match message.print() {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => error::FAILED,
            _ => 0,
        };
    }
    let rendered = message.render().to_string();
    if json::is_requested() {
        let mistake =
            rendered.strip_prefix("error: ").unwrap_or("give a command: `lockstep --help` lists them");
        // The first paragraph is the error. The usage of the command follows and is omitted here.
        let mistake = mistake.split("\n\n").next().unwrap_or_default();
        json::show_usage_error(&text::one_line(&mistake));
        return error::FAILED;
    }
    match rendered.strip_prefix("error: ") {
        Some(mistake) => terminal::print_message(mistake.trim_end()),
        // Without a command, clap's message is the help.
        None => {
            let _ = write!(std::io::stderr(), "{rendered}");
        }
    }
    error::FAILED
}

fn fail(error: &Error) -> u8 {
    // After a signal nothing is printed, whether this thread or the signal thread ends the program.
    if !matches!(error, Error::Stopped | Error::Reported(_)) && !error.is_broken_pipe() {
        match json::is_requested() {
            true => json::print(json::of_error(error)),
            false => terminal::print_message(&error.to_string()),
        }
    }
    error.exit_code()
}
