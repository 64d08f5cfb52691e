//! `lockstep inspect`

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use lockstep::cobblestone::{CHUNK, HEADER, plaintext_len};
use lockstep::envelope::Start;
use lockstep::{Envelope, foreign, keyfile};
use lockstep_report::hang;
use serde_json::{Value, json};

use crate::age_file::{self, AgeFile, Header};
use crate::error::{Error, NOT_AUTHENTIC, Result, other_format};
use crate::input::{Input, read_full};
use crate::{text, unlock, wrapping};

/// Print the type and the properties of a file; needs no key
///
/// The output is not authenticated: anyone can have written the file. Secrets are never shown.
#[derive(Args)]
pub struct Inspect {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The report on a file.
struct Report {
    /// The type for JSON: `message`, `envelope`, `key`, `age`, `other`.
    kind: &'static str,
    /// Label and text of each line.
    lines: Vec<(&'static str, String)>,
    /// The fields for JSON.
    fields: Value,
    /// The error that was found in the file, if any.
    error: Option<Error>,
}

pub(crate) fn run(args: &Inspect) -> Result<()> {
    let input = Input::open(&args.file)?;
    let mut reader = input.reader();
    let report = match Envelope::read(&mut reader) {
        Ok(Start::Envelope(envelope)) => {
            let rest = rest_of(&input, envelope.as_bytes().len() as u64, &mut reader)?;
            envelope_report(&envelope, rest)
        }
        Ok(Start::Bare(first_bytes)) if age_file::is_age_file(&first_bytes) => {
            let file = AgeFile::open(first_bytes, &mut reader);
            age_report(file, &input)?
        }
        Ok(Start::Bare(mut first_bytes)) => {
            let read = first_bytes.len();
            first_bytes.resize(foreign::START, 0);
            let got = read_full(&mut reader, &mut first_bytes[read..])?;
            first_bytes.truncate(read + got);
            let rest = rest_of(&input, first_bytes.len() as u64, &mut reader)?;
            bare_report(&first_bytes, first_bytes.len() as u64 + rest)
        }
        Err(error @ lockstep::Error::Envelope { .. }) => Report {
            kind: "envelope",
            lines: vec![("what", "a Lockstep file whose envelope is damaged".into())],
            fields: json!({}),
            error: Some(error.into()),
        },
        Err(error) => return Err(error.into()),
    };
    report.print(args)
}

impl Report {
    fn print(self, args: &Inspect) -> Result<()> {
        if args.json {
            let mut all = json!({ "kind": self.kind, "intact_length": self.error.is_none() });
            if let (Some(all), Some(fields)) = (all.as_object_mut(), self.fields.as_object()) {
                all.extend(fields.clone());
            }
            super::print_json(&all)?;
        } else {
            let lines = self.lines.iter().map(|(label, text)| hang(&format!("{label:>11}: "), 13, text));
            super::print(&lines.collect::<String>())?;
        }
        self.error.map_or(Ok(()), Err)
    }
}

fn envelope_report(envelope: &Envelope, message: u64) -> Report {
    let header = wrapping::header(envelope);
    let (recipients_text, recipients) = header
        .as_ref()
        .map_or_else(|_| ("(the recipients in its envelope cannot be read)".into(), json!([])), recipients);
    let envelope_len = envelope.as_bytes().len() as u64;
    let mut lines = vec![
        ("what", format!("a Lockstep file, encrypted {recipients_text}")),
        ("envelope", size(envelope_len)),
        ("format", "Cobblestone-256".into()),
    ];
    let mut fields = json!({
        "file_bytes": envelope_len + message,
        "envelope_bytes": envelope_len,
        "recipients": recipients,
        "passphrase": header.as_ref().is_ok_and(Header::is_passphrase),
        "format": "Cobblestone-256",
    });
    let error = message_lines(message, true, &mut lines, &mut fields);
    Report { kind: "envelope", lines, fields, error: header.err().or(error) }
}

fn age_report(file: Result<AgeFile<'_>>, input: &Input) -> Result<Report> {
    let mut file = match file {
        Ok(file) => file,
        Err(error) if error.exit_code() == NOT_AUTHENTIC => {
            let lines = vec![("what", "an age file whose header is damaged".into())];
            return Ok(Report { kind: "age", lines, fields: json!({}), error: Some(error) });
        }
        Err(error) => return Err(error),
    };
    let (recipients_text, recipients) = recipients(&file.header);
    let armored = if file.is_armored { "armored " } else { "" };
    let mut lines = vec![(
        "what",
        format!("an {armored}age file, encrypted {recipients_text}; `lockstep decrypt` opens it"),
    )];
    let mut fields = json!({
        "armored": file.is_armored,
        "recipients": recipients,
        "passphrase": file.header.is_passphrase(),
    });
    let len = match input.len() {
        None if !file.is_armored => Some(file.count()?),
        len => len,
    };
    let mut error = None;
    if let Some(len) = len {
        lines.push(("size", size(len)));
        fields["file_bytes"] = len.into();
        match file.plaintext_len(len) {
            Some(plain) => {
                lines.push(("plaintext", size(plain)));
                fields["plaintext_bytes"] = plain.into();
            }
            None if file.is_armored => {}
            None => error = Some(unlock::damaged()),
        }
    }
    Ok(Report { kind: "age", lines, fields, error })
}

fn bare_report(first_bytes: &[u8], len: u64) -> Report {
    if let Ok(key) = keyfile::parse(first_bytes) {
        let name = key.suite().name();
        return Report {
            kind: "key",
            lines: vec![("what", format!("a Lockstep key file, for {name}: keep it secret"))],
            fields: json!({ "file_bytes": len, "format": name }),
            error: None,
        };
    }
    if let Some(format) = foreign::recognise(first_bytes) {
        return Report {
            kind: "other",
            lines: vec![("what", format!("not a Lockstep file; it begins like {format}"))],
            fields: json!({ "file_bytes": len, "other": format.name() }),
            error: Some(other_format(format)),
        };
    }
    let mut lines = vec![
        (
            "what",
            "possibly a bare message, encrypted with a key file; such a file has no marker, so check it with its key; or \
             not a Lockstep file"
                .into(),
        ),
        ("format", "Cobblestone-256 or Cobblestone-128, depending on the key".into()),
    ];
    let mut fields = json!({ "file_bytes": len });
    let error = message_lines(len, false, &mut lines, &mut fields);
    let error = error.map(|error| {
        Error::NotAuthentic(format!("this is not a Lockstep file, or it is incomplete: {error}"))
    });
    Report { kind: "message", lines, fields, error }
}

/// Adds the lengths of a message, and returns an error if no message has this length. `is_certain` is false if the input may be
/// something else.
fn message_lines(
    len: u64,
    is_certain: bool,
    lines: &mut Vec<(&'static str, String)>,
    fields: &mut Value,
) -> Option<Error> {
    let condition = if is_certain { "" } else { ", if this is a message" };
    lines.push(("ciphertext", size(len)));
    fields["message_bytes"] = len.into();
    match plaintext_len(len) {
        Ok(plain) => {
            let chunks = plain / CHUNK as u64 + 1;
            lines.push(("plaintext", format!("{}{condition}", size(plain))));
            lines.push(("chunks", format!("{chunks}, after {HEADER} bytes of header{condition}")));
            fields["plaintext_bytes"] = plain.into();
            fields["chunks"] = chunks.into();
            None
        }
        Err(error) => Some(error.into()),
    }
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
    let count = kinds.len();
    let s = if count == 1 { "" } else { "s" };
    (format!("to {count} recipient{s}: {}", kinds.join(", ")), json)
}

/// The number of bytes that follow the first `read` bytes.
fn rest_of(input: &Input, read: u64, reader: &mut impl Read) -> Result<u64> {
    if let Some(len) = input.len() {
        return Ok(len.saturating_sub(read));
    }
    let mut buffer = vec![0; 1 << 16];
    let mut rest = 0;
    loop {
        match read_full(reader, &mut buffer)? {
            0 => return Ok(rest),
            got => rest += got as u64,
        }
    }
}

fn size(len: u64) -> String {
    if len < 1024 { text::bytes(len) } else { format!("{len} bytes ({})", text::bytes(len)) }
}
