//! Prints messages, and asks questions on the terminal.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::sync::Mutex;

use lockstep::hazmat::share::lock;
use lockstep_report::text::WIDTH;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use zeroize::Zeroizing;

use crate::error::{Result, failed};
use crate::{invocation, json, text};

/// Maximum length of a line that is read from a terminal. No longer line fits into the line buffer of a terminal.
const MAX_LEN: usize = 4096;

/// The terminal whose echo is off, and the mode to which it must be set back.
static SILENCED: Mutex<Option<(File, Termios)>> = Mutex::new(None);

/// The maximum number of characters in a line of a report. This is the width of the terminal or, without a terminal, the value of the
/// environment variable `COLUMNS`, but at most 80. The help, which clap prints, has the same width.
pub(crate) fn width() -> usize {
    let of_terminal = || tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stderr())).ok();
    let columns = of_terminal().map(|size| size.ws_col.into()).filter(|columns| *columns > 0);
    let of_variable = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    columns.or_else(of_variable).map_or(WIDTH, |columns: usize| columns.min(WIDTH))
}

/// A label followed by a text, wrapped for the terminal: see [`lockstep_report::hang`].
pub(crate) fn hang(label: &str, indent: usize, text: &str) -> String {
    lockstep_report::hang(width(), label, indent, text)
}

/// Prints a message to standard error. A failure is ignored, because there is no other place to report it.
pub(crate) fn print_message(message: &str) {
    // Names of files may contain any characters, including control sequences for the terminal.
    let message = invocation::without_keys(message);
    let lines: Vec<_> = message.lines().map(text::printable).collect();
    let _ = writeln!(io::stderr(), "lockstep: {}", lines.join("\n"));
}

/// Prints a warning, unless `quiet` is set.
pub(crate) fn warn(quiet: bool, message: &str) {
    if !quiet && !json::store_warning(message) {
        print_message(&format!("warning: {message}"));
    }
}

/// Asks for a secret on the terminal, with echo off.
///
/// Do not call this function while a temporary file exists: a signal would then not end the program at once.
pub(crate) fn ask_secret(question: &str) -> Result<Zeroizing<String>> {
    let tty = open_tty()?;
    let before = tcgetattr(&tty).map_err(|error| cannot_ask(error.into()))?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ECHONL);
    *lock(&SILENCED) = Some((tty.try_clone().map_err(cannot_ask)?, before));
    let answer = tcsetattr(&tty, OptionalActions::Flush, &silent)
        .map_err(|error| cannot_ask(error.into()))
        .and_then(|()| ask_on(&tty, question));
    restore();
    answer
}

/// Asks for a line on the terminal.
pub(crate) fn ask(question: &str) -> Result<String> {
    ask_on(&open_tty()?, question).map(|line| line.to_string())
}

/// Switches the echo of the terminal on again, if [`ask_secret`] has switched it off.
pub(crate) fn restore() {
    if let Some((tty, before)) = lock(&SILENCED).take() {
        // An error is ignored, since the terminal may be closed.
        let _ = tcsetattr(&tty, OptionalActions::Now, &before);
    }
}

fn open_tty() -> Result<File> {
    let tty = OpenOptions::new().read(true).write(true).open("/dev/tty");
    tty.map_err(|_| failed("there is no terminal to ask on: give the passphrase with --passphrase-file FILE"))
}

fn ask_on(mut tty: &File, question: &str) -> Result<Zeroizing<String>> {
    tty.write_all(format!("{question}: ").as_bytes()).map_err(cannot_ask)?;
    // Allocates the whole size at once, since a growing buffer would leave copies in freed memory.
    let mut line = Zeroizing::new(Vec::with_capacity(MAX_LEN));
    let mut byte = Zeroizing::new([0]);
    while line.len() < MAX_LEN {
        match tty.read(&mut byte[..]) {
            Ok(0) if line.is_empty() => return Err(failed("no input was typed")),
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(cannot_ask(error)),
        }
    }
    let text = str::from_utf8(&line).map_err(|_| failed("the typed text is not UTF-8"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

fn cannot_ask(error: io::Error) -> crate::error::Error {
    failed(format!("cannot ask on the terminal: {error}"))
}
