//! `lockstep encrypt`
#![allow(rustdoc::bare_urls, reason = "this documentation is the help, where marks would show")]

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueHint};
use lockstep::{Envelope, FileKey, file, keyfile};
use serde_json::json;

use crate::args::{EngineArgs, OutputArgs, ProgressArgs};
use crate::error::{Result, failed};
use crate::identities::{self, Answers};
use crate::input::{Input, read_small};
use crate::job::{self, Done};
use crate::output::{Content, Output};
use crate::permissions::warn_if_open_to_others;
use crate::recipients::Recipients;
use crate::{sources, wrapping};

/// More than the longest key file.
const LONGEST_KEY: usize = 256;

/// Encrypt a file, or standard input
///
/// With a key file (-k) the output is a bare message of C2SP chunked encryption (https://c2sp.org/chunked-encryption),
/// which other programs read too. With recipients (-r, -R) or a passphrase (-p) each file gets a key of its own, which
/// lies in front, encrypted as an age file (https://age-encryption.org): age keys, SSH keys and age plugins work as
/// they are.
///
/// Either way the data are authenticated, and cut into chunks that all cores encrypt at once.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whom").args(["key", "recipient", "recipients_file", "passphrase", "passphrase_file"]).multiple(true))]
pub(crate) struct Encrypt {
    /// Encrypt with this key file (see `keygen`); `-` is standard input
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["recipient", "recipients_file", "passphrase", "passphrase_file"])]
    key: Option<PathBuf>,

    /// Encrypt to this recipient: `age1...` or an SSH public key; may be given several times
    #[arg(short, long, value_name = "RECIPIENT", conflicts_with_all = ["passphrase", "passphrase_file"])]
    recipient: Vec<String>,

    /// Encrypt to the recipients in this file, one on each line; may be given several times
    #[arg(short = 'R', long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["passphrase", "passphrase_file"])]
    recipients_file: Vec<PathBuf>,

    /// Encrypt with a passphrase, which is asked for on the terminal
    #[arg(short, long)]
    passphrase: bool,

    /// Encrypt with the passphrase in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    passphrase_file: Option<PathBuf>,

    /// With -k: what both sides know about the data, such as a name; decryption needs the same
    #[arg(long, value_name = "STRING", conflicts_with_all = ["recipient", "recipients_file", "passphrase", "passphrase_file"])]
    context: Option<String>,

    /// What to encrypt; `-` is standard input
    #[arg(value_name = "INPUT", default_value = "-", value_hint = ValueHint::FilePath)]
    input: PathBuf,

    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    messages: ProgressArgs,
}

pub(crate) fn run(args: &Encrypt) -> Result<()> {
    let engine = args.engine.engine_for(&args.messages)?;
    sources::check(&args.output, &args.input, &sources_of(args))?;
    let input = Input::open(&args.input)?;
    Output::check(&args.output, &input, Content::Binary)?;
    let (key, envelope) = make_key(args)?;
    let context = match &envelope {
        Some(envelope) => envelope.as_bytes(),
        None => args.context.as_deref().unwrap_or_default().as_bytes(),
    };
    let output = Output::open(&args.output, &input, Content::Binary)?;
    job::run(engine.planner(), &args.messages, input.len(), "encrypted", output, |output, report| {
        let options = job::options(report);
        if let Some(envelope) = &envelope {
            output.write_all(envelope.as_bytes()).map_err(lockstep::Error::Write)?;
        }
        let summary = match input.len() {
            Some(_) => file::encrypt_open_file(&engine, &key, context, input.file(), output, options),
            None => lockstep::encrypt(&engine, &key, context, input.reader(), output, options),
        }?;
        let envelope_len = envelope.as_ref().map_or(0, |envelope| envelope.as_bytes().len() as u64);
        let details = json!({
            "format": key.suite().name(),
            "output_bytes": envelope_len + summary.ciphertext_len,
            "threads": engine.threads(),
        });
        Ok(Done { plaintext: summary.plaintext_len, details })
    })
}

fn sources_of(args: &Encrypt) -> Vec<(&str, &Path)> {
    let key = args.key.iter().map(|path| ("key file", path.as_path()));
    let passphrase = args.passphrase_file.iter().map(|path| ("passphrase file", path.as_path()));
    let recipients = args.recipients_file.iter().map(|path| ("list of recipients", path.as_path()));
    key.chain(passphrase).chain(recipients).collect()
}

/// The key that was given; or a new one, and the envelope that it lies in.
fn make_key(args: &Encrypt) -> Result<(FileKey, Option<Envelope>)> {
    if let Some(path) = &args.key {
        return Ok((read_key(path, args.messages.quiet)?, None));
    }
    let key = FileKey::generate()?;
    let envelope = if let Some(path) = &args.passphrase_file {
        wrapping::wrap_with_passphrase(&key, identities::read_passphrase(path, args.messages.quiet)?)?
    } else if args.passphrase {
        wrapping::wrap_with_passphrase(&key, identities::ask_new_passphrase()?)?
    } else if args.recipient.is_empty() && args.recipients_file.is_empty() {
        return Err(failed("say who may decrypt: -k KEYFILE, -r RECIPIENT, -R FILE, or -p for a passphrase"));
    } else {
        let answers = Answers::new(None);
        let recipients = Recipients::read(&args.recipient, &args.recipients_file)?.resolve(&answers)?;
        let wrapped = wrapping::wrap(&key, &recipients);
        answers.problem().map_or(wrapped, Err)?
    };
    Ok((key, Some(envelope)))
}

/// Reads a key file, or a key from standard input, and warns if others can read the file.
pub(super) fn read_key(path: &Path, quiet: bool) -> Result<FileKey> {
    if path == Path::new("-") {
        return Ok(keyfile::parse(&read_small(path, "key file", LONGEST_KEY)?)?);
    }
    let key = keyfile::read(path)?;
    warn_if_open_to_others(path, "key file", quiet);
    Ok(key)
}
