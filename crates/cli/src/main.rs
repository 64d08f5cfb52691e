//! The command `lockstep`: AES on parallel hardware, for files and streams.
//!
//! Each subcommand is a module in [`commands`]. The other modules are shared: the definition of the command line
//! ([`args`]), errors and exit codes ([`error`]), input and output ([`input`], [`output`]), keys wrapped by age
//! ([`recipients`], [`identities`], [`unlock`], [`wrapping`]), plain age files ([`age_file`]), many files in one call
//! ([`tree`]), the version ([`version`]), pictures ([`picture`]), and user interaction ([`terminal`], [`progress`],
//! [`signals`]).
#![deny(unsafe_code)]

mod age_file;
mod args;
mod commands;
mod date;
mod error;
mod explain;
mod identities;
mod input;
mod job;
mod json;
mod memory;
mod output;
mod permissions;
mod picture;
mod progress;
mod raw;
mod recipients;
mod signals;
mod sources;
mod terminal;
mod text;
mod tree;
mod unlock;
mod version;
mod wrapping;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::error::Error;

fn main() -> ExitCode {
    disable_device_selection();
    json::look_for_option(std::env::args_os());
    let done = match Cli::try_parse() {
        Ok(cli) => signals::install().and_then(|()| commands::run(cli)),
        Err(message) if version::is_wanted_as_json(&message) => version::print(),
        Err(message) => return usage(&message),
    };
    match done {
        Ok(()) => {
            json::show_stored_warnings();
            ExitCode::SUCCESS
        }
        // A signal makes reads fail with other errors. The error for the signal replaces them.
        Err(_) if signals::stopped() => fail(&Error::Stopped),
        Err(error) => fail(&error),
    }
}

/// Disables Mesa's device selection layer for Vulkan if there is no display server, unless the user has configured the
/// layer. The layer would query the display server and print an error.
#[allow(unsafe_code, reason = "one variable, before there are threads")]
fn disable_device_selection() {
    let is_set = |name| std::env::var_os(name).is_some();
    if !["XDG_RUNTIME_DIR", "MESA_VK_DEVICE_SELECT", "NODEVICE_SELECT"].into_iter().any(is_set) {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}

/// Prints clap's messages. Help and version are printed to standard output, usage errors to standard error.
fn usage(message: &clap::Error) -> ExitCode {
    if !message.use_stderr() {
        return match message.print() {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::from(error::FAILED),
            _ => ExitCode::SUCCESS,
        };
    }
    let rendered = message.render().to_string();
    if json::is_requested() {
        let mistake =
            rendered.strip_prefix("error: ").unwrap_or("give a command: `lockstep --help` lists them");
        // The first paragraph is the error. The usage of the command follows and is omitted here.
        let mistake = mistake.split("\n\n").next().unwrap_or_default();
        json::show_error(&text::one_line(&mistake), "usage", error::FAILED);
        return ExitCode::from(error::FAILED);
    }
    match rendered.strip_prefix("error: ") {
        Some(mistake) => terminal::print_message(mistake.trim_end()),
        // Without a command, clap's message is the help.
        None => {
            let _ = write!(std::io::stderr(), "{rendered}");
        }
    }
    ExitCode::from(error::FAILED)
}

fn fail(error: &Error) -> ExitCode {
    // After a signal nothing is printed, whether this thread or the signal thread ends the program.
    if !matches!(error, Error::Stopped | Error::Reported(_)) && !error.is_broken_pipe() {
        match json::is_requested() {
            true => json::show_error(&error.to_string(), error.kind(), error.exit_code()),
            false => terminal::print_message(&error.to_string()),
        }
    }
    ExitCode::from(error.exit_code())
}
