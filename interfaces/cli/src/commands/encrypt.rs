//! `lockstep encrypt`
#![allow(rustdoc::bare_urls, reason = "this documentation is the help, where marks would show")]

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::{ArgGroup, Args, ValueHint};
use lockstep::tree::{self, Direction, Existing, Operation, Pair};
use lockstep::{Engine, Envelope, FileKey, Reader, Sparse, ciphertext_len, file, keyfile};
use serde_json::json;

use crate::answers::Answers;
use crate::error::{Result, ensure, failed};
use crate::input::{Input, check_sources, check_standard_input, names, read_small, warn_if_open_to_others};
use crate::options::{EngineArgs, ManyArgs, OutputArgs, ProgressArgs, is_stdin};
use crate::output::{Content, Output};
use crate::passphrase::{MAX_WORK, Passphrase};
use crate::{age_file, invocation, job, many, recipients, terminal, wrapping};

/// Maximum number of bytes to read from a key file. All valid key files are shorter than this.
const MAX_KEY_FILE: usize = 256;

/// The value that stands for `-r` without a value. No argument can contain this character.
const NO_VALUE: &str = "\0";

const EXAMPLES: &str = "\
Examples:
  lockstep encrypt -k key report.pdf -o report.pdf.enc
  lockstep encrypt -R ~/.ssh/id_ed25519.pub report.pdf -o shared.enc
  lockstep encrypt --age -R ~/.ssh/id_ed25519.pub report.pdf -o report.pdf.age
  lockstep encrypt -k key -r -O enc photos notes.txt
  tar c photos | lockstep encrypt -k key > photos.tar.enc";

/// Encrypt a file or standard input, or many files (-O)
///
/// With a key file (-k), the output is a bare message of C2SP chunked encryption (https://c2sp.org/chunked-encryption),
/// which other programs can read. With recipients (-r, -R) or a passphrase (-p), each call generates a new key. The output
/// then starts with this key, encrypted as an age file (https://age-encryption.org). Only Lockstep reads this format; --age
/// writes a plain age file instead. Age keys, SSH keys and age plugins are supported.
///
/// In all cases the data are authenticated, and divided into chunks. Without --age, the chunks are encrypted on all cores in parallel.
#[derive(Args)]
#[command(group = ArgGroup::new("whom").args(["key", "recipient", "recipients_file", "passphrase", "passphrase_file"]).multiple(true))]
#[command(after_long_help = EXAMPLES)]
pub struct Encrypt {
    /// Encrypt with this key file (see `keygen`); `-` is standard input
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["recipients_file", "passphrase", "passphrase_file"])]
    key: Option<PathBuf>,

    /// Encrypt to this recipient: `age1...` or an SSH public key; may be given several times
    ///
    /// With -k, -p or --passphrase-file, -r without a value means --recursive.
    #[arg(short, long, value_name = "RECIPIENT", num_args = 0..=1, default_missing_value = NO_VALUE)]
    recipient: Vec<String>,

    /// Encrypt to the recipients in this file, one on each line; may be given several times
    #[arg(short = 'R', long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["passphrase", "passphrase_file"])]
    recipients_file: Vec<PathBuf>,

    /// Encrypt with a passphrase, asked for on the terminal
    #[arg(short, long)]
    passphrase: bool,

    /// Encrypt with the passphrase in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    passphrase_file: Option<PathBuf>,

    /// With -k: a string that the writer and the reader know, such as the name of the file; decryption needs the same string
    #[arg(long, value_name = "STRING", conflicts_with_all = ["recipients_file", "passphrase", "passphrase_file"])]
    context: Option<OsString>,

    /// With -r, -R or a passphrase: write a plain age file, which the program `age` reads; one thread, no device
    #[arg(long, conflicts_with_all = ["key", "context", "output_dir", "device", "kernel", "threads", "verify"])]
    age: bool,

    /// The file to encrypt (`-` or none is standard input); with -O, files and folders
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    inputs: Vec<PathBuf>,

    /// With -O: encrypt all files in folders and subfolders, and keep the folder structure; do not follow symbolic links
    #[arg(long, help_heading = "Many files")]
    recursive: bool,

    /// With -k, -O and --recursive: delete encrypted files of earlier runs whose inputs do not exist any more, and
    /// folders in which a file was deleted, if they are then empty
    ///
    /// A file is deleted only if this run has no failures and if the file opens with this key and context.
    #[arg(long, help_heading = "Many files", requires = "output_dir")]
    delete: bool,

    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    many: ManyArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    messages: ProgressArgs,
}

impl Encrypt {
    fn uses_passphrase(&self) -> bool {
        self.passphrase || self.passphrase_file.is_some()
    }

    /// The files that are read in addition to the inputs, each with a description.
    fn sources(&self) -> Vec<(&str, &Path)> {
        let key = self.key.iter().map(|path| ("key file", path.as_path()));
        let passphrase = self.passphrase_file.iter().map(|path| ("passphrase file", path.as_path()));
        let recipients = self.recipients_file.iter().map(|path| ("list of recipients", path.as_path()));
        key.chain(passphrase).chain(recipients).collect()
    }
}

pub(crate) fn run(args: &Encrypt) -> Result<()> {
    let request = Request::new(args)?;
    match &args.many.output_dir {
        Some(folder) => request.run_many(folder),
        None => {
            request.run_one(ManyArgs::single(&request.inputs, request.recursive, &args.output, "encrypt")?)
        }
    }
}

/// The command line, after each `-r` has been interpreted as `--recipient` or `--recursive`.
struct Request<'a> {
    args: &'a Encrypt,
    inputs: Vec<PathBuf>,
    recipients: Vec<&'a str>,
    recursive: bool,
}

impl<'a> Request<'a> {
    fn new(args: &'a Encrypt) -> Result<Request<'a>> {
        let (mut inputs, mut recipients, mut recursive) = (args.inputs.clone(), Vec::new(), args.recursive);
        let excludes_recipients = args.key.is_some() || args.uses_passphrase();
        for value in &args.recipient {
            if value == NO_VALUE {
                recursive = true;
            } else if let Some(option) = attached_option(value) {
                let message = format!("the letters directly after -r are its value: write `-r -{option}`");
                return Err(failed(message));
            } else if excludes_recipients && !value.is_empty() && !is_recipient(value) {
                recursive = true;
                inputs.push(value.into());
            } else {
                let rule = "--recipient cannot be used with --key, --passphrase or --passphrase-file";
                ensure(!excludes_recipients, rule)?;
                // With -O, a value that does not look like a recipient is probably a folder.
                let may_be_recipient = args.many.output_dir.is_none() || is_recipient(value);
                ensure(may_be_recipient, "-r: this is not a recipient; folders need --recursive")?;
                recipients.push(value.as_str());
            }
        }
        let has_at_most_one = args.context.is_none() || recipients.is_empty();
        ensure(has_at_most_one, "--context cannot be used with recipients: give it with --key")?;
        if inputs.is_empty() {
            inputs.push("-".into());
        }
        Ok(Request { args, inputs, recipients, recursive })
    }

    fn run_one(&self, path: &Path) -> Result<()> {
        let args = self.args;
        let engine = args.engine.engine(args.messages.explain, None)?;
        let planner = engine.planner();
        check_sources(&args.output, path, &args.sources())?;
        let input = Input::open(path)?;
        Output::check(&args.output, &input, Content::Binary)?;
        let open_output = || Output::open(&args.output, &input, Content::Binary, Sparse::default());
        if args.age {
            let (encryptor, output) = (self.with_recipients(wrapping::encryptor)?, open_output()?);
            return job::run(planner, &args.messages, input.len, "encrypted", output, |output, report| {
                // The age format does not use AES, so the age crate encrypts, on one thread.
                let mut writer = encryptor.wrap_output(output).map_err(lockstep::Error::Write)?;
                let plaintext = input.for_each_piece(age_file::CHUNK, report, |piece| {
                    Ok(writer.write_all(piece).map_err(lockstep::Error::Write)?)
                })?;
                writer.finish().map_err(lockstep::Error::Write)?;
                Ok((plaintext, json!({ "format": "age", "threads": 1 })))
            });
        }
        let (key, envelope) = self.make_key()?;
        let context = wrapping::context(envelope.as_ref(), args.context.as_deref());
        job::run(planner, &args.messages, input.len, "encrypted", open_output()?, |output, report| {
            let options = job::options(report);
            envelope.iter().try_for_each(|envelope| envelope.write(output))?;
            let summary = match input.len {
                Some(_) => file::encrypt_open_file(&engine, &key, context, &input.file, output, options),
                None => lockstep::encrypt(&engine, &key, context, &input, output, options),
            }?;
            let details = json!({
                "format": key.suite().name(),
                "output_bytes": wrapping::envelope_len(envelope.as_ref()) + summary.ciphertext_len,
                "threads": engine.threads(),
            });
            Ok((summary.plaintext_len, details))
        })
    }

    fn run_many(&self, output_dir: &Path) -> Result<()> {
        let args = self.args;
        let engine = args.engine.engine(args.messages.explain, None)?;
        check_standard_input(&args.sources())?;
        ensure(
            !args.delete || args.key.is_some(),
            "--delete needs -k: without a key file, nothing shows which files are outputs of this command",
        )?;
        let rule = "--delete needs --recursive, and the folders whose outputs are in the output folder";
        ensure(!args.delete || self.recursive, rule)?;
        let operation = EncryptMany { engine: &engine, args, key: OnceLock::new() };
        let set_key = || -> Result<()> {
            if operation.key.get().is_none() {
                let _ = operation.key.set(self.make_key()?);
            }
            Ok(())
        };
        if args.key.is_some() {
            // Existing outputs are compared with their inputs before the first file is encrypted, and the comparison
            // needs the key.
            set_key()?;
        }
        let (recursive, delete, protected) = (self.recursive, args.delete, args.sources());
        let options = many::options(output_dir, &args.many, &args.output);
        let options = tree::Options { recursive, delete, protected, ..options };
        many::run(&engine, &operation, &self.inputs, &options, &args.messages, |_, _| set_key().map(Ok))
    }

    /// Returns the key in the file that `--key` names. Without `--key`, generates a key and returns it with the envelope
    /// that contains the key.
    fn make_key(&self) -> Result<(FileKey, Option<Envelope>)> {
        if let Some(path) = &self.args.key {
            return Ok((read_key(path, self.args.messages.quiet)?, None));
        }
        let key = FileKey::generate()?;
        let envelope = self.with_recipients(|recipients| wrapping::wrap(&key, recipients))?;
        Ok((key, Some(envelope)))
    }

    /// Calls `wrap` with the recipients that the options give. A passphrase is a recipient.
    fn with_recipients<T>(&self, wrap: impl FnOnce(&[Box<dyn age::Recipient>]) -> Result<T>) -> Result<T> {
        let Request { args, recipients, .. } = self;
        let quiet = args.messages.quiet;
        let answers = Answers::new(None, MAX_WORK, true);
        let recipients = if let Some(path) = &args.passphrase_file {
            let passphrase = Passphrase::read(path, quiet)?;
            if let Some(difference) = passphrase.difference() {
                let message = format!("the passphrase is not exactly what was given: {difference}");
                terminal::warn(quiet, &message);
            }
            vec![wrapping::by_passphrase(&passphrase)?]
        } else if args.passphrase {
            vec![wrapping::by_passphrase(&Passphrase::ask_new(&names(&self.inputs))?)?]
        } else if recipients.is_empty() && args.recipients_file.is_empty() {
            let key = if args.age { "" } else { "-k KEYFILE, " };
            return Err(failed(format!(
                "give the keys or recipients that may decrypt: {key}-r RECIPIENT, -R FILE, or -p for a passphrase"
            )));
        } else {
            recipients::read(recipients, &args.recipients_file, &answers, quiet)?
        };
        let wrapped = wrap(&recipients);
        answers.problem().map_or(wrapped, Err)
    }
}

/// True if the text looks like a recipient (even a mistyped one), or like a key that was given with the wrong option.
fn is_recipient(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    ["age1", "age-", "ssh-", "ecdsa-", "sk-", "lockstep-key-"].iter().any(|start| value.starts_with(start))
}

/// If a value of `-r` consists of letters of other options, as in `-rO FOLDER`, returns its first letter for the error message.
/// Otherwise returns `None`: the value can be a passphrase or a key, and a message must not show a part of it.
fn attached_option(value: &str) -> Option<char> {
    let is_attached = || invocation::arguments().iter().any(|argument| *argument == *format!("-r{value}"));
    let are_options = value.chars().all(|letter| "OofqkprRh".contains(letter));
    value.chars().next().filter(|_| are_options && is_attached() && !Path::new(value).exists())
}

/// Reads a key from a file or from standard input, and warns if other users can read the file.
pub(super) fn read_key(path: &Path, quiet: bool) -> Result<FileKey> {
    if is_stdin(path) {
        return keyfile::parse(&read_small(path, "key file", MAX_KEY_FILE)?).map_err(|error| match error {
            lockstep::Error::KeyFile { reason, .. } => {
                failed(format!("standard input is not a key file: {reason}"))
            }
            other => other.into(),
        });
    }
    let key = keyfile::read(path)?;
    warn_if_open_to_others(path, "key file", quiet);
    Ok(key)
}

/// Encrypts all files of a call with the same key. With recipients or a passphrase, all files of a call have the same
/// envelope, so that decryption needs a passphrase or a hardware key only once.
struct EncryptMany<'a> {
    engine: &'a Engine,
    args: &'a Encrypt,
    /// The key, and its envelope if it has one. They are set before the first file is processed. A key from a key file is set
    /// before existing outputs are compared with their inputs, because the comparison needs it.
    key: OnceLock<(FileKey, Option<Envelope>)>,
}

impl EncryptMany<'_> {
    fn key(&self) -> tree::Result<(&FileKey, Option<&Envelope>)> {
        let key = self.key.get().map(|(key, envelope)| (key, envelope.as_ref()));
        key.ok_or_else(|| tree::Error::Failed("there is no key yet".into()))
    }

    fn context<'e>(&'e self, envelope: Option<&'e Envelope>) -> &'e [u8] {
        wrapping::context(envelope, self.args.context.as_deref())
    }
}

impl Operation for EncryptMany<'_> {
    fn direction(&self) -> Direction {
        Direction::Encrypt
    }

    fn compare(&self, pair: &Pair<'_>) -> tree::Result<Existing> {
        if self.args.key.is_some() {
            return Ok(pair.encrypted(self.engine, self.key()?.0, self.context(None)));
        }
        // The key and the recipients of the existing output are unknown here. Only the type of its envelope and its length
        // are compared with those that a new output would have.
        let Ok(Some(envelope)) = Envelope::read_file(pair.output) else {
            return Ok(Existing::Unknown("was not encrypted to recipients or with a passphrase"));
        };
        let uses_passphrase = self.args.uses_passphrase();
        if !wrapping::header(&envelope).is_ok_and(|header| header.is_passphrase() == uses_passphrase) {
            return Ok(Existing::Unknown(match uses_passphrase {
                true => "was encrypted to recipients, not with a passphrase",
                false => "was encrypted with a passphrase, not to recipients",
            }));
        }
        let envelope_len = wrapping::envelope_len(Some(&envelope));
        let is_whole = ciphertext_len(pair.input_len).is_ok_and(|len| pair.output_len == envelope_len + len);
        Ok(pair.own(is_whole))
    }

    fn is_own(&self, output: &File) -> bool {
        let opens = |key| Reader::open(self.engine, key, self.context(None), output).is_ok();
        self.args.key.is_some() && self.key().is_ok_and(|(key, _)| opens(key))
    }

    fn process(
        &self,
        input: &File,
        output: &mut (dyn Write + Send),
        options: lockstep::Options<'_>,
    ) -> tree::Result<u64> {
        let (key, envelope) = self.key()?;
        envelope.iter().try_for_each(|envelope| envelope.write(output))?;
        let context = self.context(envelope);
        let summary = file::encrypt_open_file(self.engine, key, context, input, output, options)?;
        Ok(summary.plaintext_len)
    }
}
