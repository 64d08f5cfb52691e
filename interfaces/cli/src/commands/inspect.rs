//! `lockstep inspect`

use std::io::{self, Read};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use lockstep::cobblestone::{CHUNK, HEADER, plaintext_len};
use lockstep::envelope::Start;
use lockstep::{Envelope, foreign, keyfile};
use serde_json::{Value, json};

use crate::age_file::{self, AgeFile, Header};
use crate::error::{Error, NOT_AUTHENTIC, Result, not_authentic, other_format};
use crate::input::Input;
use crate::{terminal, text, wrapping};

/// Print the type and the properties of a file; needs no key
///
/// The output is not authenticated: anyone can have written the file. Secrets are never shown.
#[derive(Args)]
#[command(
    after_long_help = "Examples:\n  lockstep inspect report.pdf.enc\n  lockstep inspect --json report.pdf.enc"
)]
pub struct Inspect {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result of `lockstep inspect`.
struct Report {
    /// The lines of the report, each with a label and a text.
    lines: Vec<(&'static str, String)>,
    /// The fields for JSON. `kind` is the type of the file: `message`, `envelope`, `key`, `age`, `other`.
    fields: Value,
    /// The error that was found in the file, if any.
    error: Option<Error>,
}

pub(crate) fn run(args: &Inspect) -> Result<()> {
    let input = Input::open(&args.file)?;
    let mut reader = &input;
    let report = match Envelope::read(&mut reader) {
        Ok(Start::Envelope(envelope)) => {
            let rest = rest_of(&input, envelope.as_bytes().len() as u64, &mut reader)?;
            envelope_report(&envelope, rest)
        }
        Ok(Start::Bare(first_bytes)) if age_file::is_age_file(&first_bytes) => {
            match AgeFile::open(first_bytes, &mut reader) {
                Ok(file) => age_report(file, &input)?,
                Err(error) if error.exit_code() == NOT_AUTHENTIC => {
                    Report::of("age", "an age file whose header is damaged").with(error)
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Start::Bare(mut first_bytes)) => {
            let more = foreign::START.saturating_sub(first_bytes.len()) as u64;
            reader.by_ref().take(more).read_to_end(&mut first_bytes).map_err(lockstep::Error::read)?;
            let rest = rest_of(&input, first_bytes.len() as u64, &mut reader)?;
            bare_report(&first_bytes, first_bytes.len() as u64 + rest)
        }
        Err(error @ lockstep::Error::Envelope { .. }) => {
            Report::of("envelope", "a Lockstep file whose envelope is damaged").with(error.into())
        }
        Err(error) => return Err(error.into()),
    };
    report.print(args)
}

impl Report {
    fn of(kind: &str, what: impl Into<String>) -> Report {
        Report { lines: vec![("what", what.into())], fields: json!({ "kind": kind }), error: None }
    }

    fn with(mut self, error: Error) -> Report {
        self.error.get_or_insert(error);
        self
    }

    /// Adds a number of bytes as a line and as a field. In the line, `condition` follows the number: it states when the number
    /// applies, and is empty if it always applies.
    fn add_size(&mut self, label: &'static str, field: &str, bytes: u64, condition: &str) {
        self.lines.push((label, format!("{}{condition}", size(bytes))));
        self.fields[field] = bytes.into();
    }

    /// Adds the lengths of the ciphertext and of the plaintext, and an error if no message has this length. `is_certain` is
    /// false if the input may be something other than a message.
    fn add_message(&mut self, len: u64, is_certain: bool) {
        self.add_size("ciphertext", "message_bytes", len, "");
        match plaintext_len(len) {
            Ok(plain) => {
                let condition = if is_certain { "" } else { ", if this is a message" };
                self.add_size("plaintext", "plaintext_bytes", plain, condition);
                let chunks = plain / CHUNK as u64 + 1;
                self.lines.push(("chunks", format!("{chunks}, after {HEADER} bytes of header{condition}")));
                self.fields["chunks"] = chunks.into();
            }
            Err(error) => {
                let message = "this is not a Lockstep file, or it is incomplete: no message has this length";
                let error = if is_certain { error.into() } else { not_authentic(message) };
                self.error.get_or_insert(error);
            }
        }
    }

    fn print(mut self, args: &Inspect) -> Result<()> {
        if args.json {
            self.fields["intact_length"] = self.error.is_none().into();
            super::print_json(&self.fields)?;
        } else {
            let lines =
                self.lines.iter().map(|(label, words)| terminal::hang(&format!("{label:>11}: "), 13, words));
            super::print(&lines.collect::<String>())?;
        }
        self.error.map_or(Ok(()), Err)
    }
}

fn envelope_report(envelope: &Envelope, message: u64) -> Report {
    let header = wrapping::header(envelope);
    let unreadable = || ("(the recipients in its envelope cannot be read)".into(), json!([]));
    let (recipients_text, recipients) = header.as_ref().map_or_else(|_| unreadable(), recipients);
    let envelope_len = envelope.as_bytes().len() as u64;
    let mut report = Report::of("envelope", format!("a Lockstep file, encrypted {recipients_text}"));
    report.add_size("envelope", "envelope_bytes", envelope_len, "");
    report.lines.push(("format", "Cobblestone-256".into()));
    report.fields["format"] = "Cobblestone-256".into();
    report.fields["file_bytes"] = (envelope_len + message).into();
    report.fields["recipients"] = recipients;
    report.fields["passphrase"] = header.as_ref().is_ok_and(Header::is_passphrase).into();
    report.error = header.err();
    report.add_message(message, true);
    report
}

fn age_report(mut file: AgeFile<'_>, input: &Input) -> Result<Report> {
    let (recipients_text, recipients) = recipients(&file.header);
    let armored = if file.is_armored { "armored " } else { "" };
    let what = format!("an {armored}age file, encrypted {recipients_text}; `lockstep decrypt` opens it");
    let mut report = Report::of("age", what);
    report.fields["armored"] = file.is_armored.into();
    report.fields["recipients"] = recipients;
    report.fields["passphrase"] = file.header.is_passphrase().into();
    let len = match input.len {
        None if !file.is_armored => Some(file.count()?),
        len => len,
    };
    let Some(len) = len else { return Ok(report) };
    report.add_size("size", "file_bytes", len, "");
    match file.plaintext_len(len) {
        Some(plain) => report.add_size("plaintext", "plaintext_bytes", plain, ""),
        None if file.is_armored => {}
        None => return Ok(report.with(wrapping::damaged())),
    }
    Ok(report)
}

fn bare_report(first_bytes: &[u8], len: u64) -> Report {
    let mut report;
    if let Ok(key) = keyfile::parse(first_bytes) {
        let name = key.suite().name();
        report = Report::of("key", format!("a Lockstep key file, for {name}: keep it secret"));
        report.fields["format"] = name.into();
    } else if let Some(format) = foreign::recognise(first_bytes) {
        let what = format!("not a Lockstep file; it begins like {format}");
        report = Report::of("other", what).with(other_format(format));
        report.fields["other"] = format.name().into();
    } else {
        report = Report::of(
            "message",
            "possibly a bare message, encrypted with a key file; such a file has no marker, so check it with its key; or \
             not a Lockstep file",
        );
        report.lines.push(("format", "Cobblestone-256 or Cobblestone-128, depending on the key".into()));
        report.add_message(len, false);
    }
    report.fields["file_bytes"] = len.into();
    report
}

/// The recipients, as text and as JSON.
fn recipients(header: &Header) -> (String, Value) {
    if header.is_passphrase() {
        let work = header.work_factor();
        let report = work.map_or(String::new(), |work| format!(" (scrypt, 2^{work})"));
        return (format!("with a passphrase{report}"), json!([{ "type": "scrypt", "work_factor": work }]));
    }
    let kinds: Vec<_> = header.kinds().collect();
    let json = kinds.iter().map(|kind| json!({ "type": kind })).collect();
    (format!("to {}: {}", text::count(kinds.len(), "recipient"), kinds.join(", ")), json)
}

/// The number of bytes of the input after the first `read` bytes, which `reader` has already read.
fn rest_of(input: &Input, read: u64, reader: &mut impl Read) -> Result<u64> {
    match input.len {
        Some(len) => Ok(len.saturating_sub(read)),
        None => Ok(io::copy(reader, &mut io::sink()).map_err(lockstep::Error::read)?),
    }
}

fn size(len: u64) -> String {
    if len < 1024 { text::bytes(len) } else { format!("{len} bytes ({})", text::bytes(len)) }
}
