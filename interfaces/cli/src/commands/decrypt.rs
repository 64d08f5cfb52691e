//! `lockstep decrypt`
#![allow(rustdoc::bare_urls, reason = "this documentation is the help, where marks would show")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use clap::{Args, ValueHint};
use lockstep::envelope::{MAGIC, Start};
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::share::lock;
use lockstep::tree::{self, Direction, Existing, Operation, Pair};
use lockstep::{Engine, Envelope, FileKey, Reader, Sparse, file, foreign, quoted};
use serde_json::json;
use zeroize::Zeroizing;

use super::encrypt::read_key;
use crate::age_file::{self, AgeFile, Header};
use crate::answers::Answers;
use crate::error::{Error, Result, ensure, failed, not_authentic, other_format};
use crate::input::{Input, check_sources, check_standard_input, names};
use crate::options::{EngineArgs, ManyArgs, OutputArgs, ProgressArgs, SPARSE, choice, number};
use crate::output::{Content, Output};
use crate::passphrase::{MAX_WORK, Passphrase};
use crate::wrapping::{self, Unlock};
use crate::{identities, job, many, signals, text};

const EXAMPLES: &str = "\
Examples:
  lockstep decrypt -k key report.pdf.enc -o copy.pdf
  lockstep decrypt -i ~/.ssh/id_ed25519 shared.enc -o shared.pdf
  lockstep decrypt -k key -r -O back enc
  lockstep decrypt -k key --range 20000:4K report.pdf.enc > part";

/// Decrypt a file or standard input, or many files (-O)
///
/// The command detects whether the data were encrypted with a key file, to recipients or with a passphrase. It also
/// decrypts files of age (https://age-encryption.org), binary and armored.
///
/// Only verified data are written, and an output file appears only if all of the data are authentic and complete. Data may
/// be written to standard output before a damaged or missing part is detected: use that output only if the exit code is 0.
/// With --partial the verified beginning of a damaged file is kept.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Decrypt {
    /// Decrypt with this key file; `-` is standard input
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["identity", "passphrase", "passphrase_file"])]
    key: Option<PathBuf>,

    /// Decrypt with the identities in this file: an age identity file or an SSH private key; may be given several times
    /// [default: lockstep/identities in $XDG_CONFIG_HOME or ~/.config, if it exists]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "passphrase")]
    identity: Vec<PathBuf>,

    /// Ask for a passphrase on the terminal (the default for files that were encrypted with a passphrase)
    #[arg(short, long)]
    passphrase: bool,

    /// Read the passphrase from this file; with -i, the passphrase of the identity
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    passphrase_file: Option<PathBuf>,

    /// Accept scrypt work factors up to WF (N = 2^WF), which need 2^WF KiB of memory, and a time proportional to it
    #[arg(long, value_name = "WF", default_value_t = MAX_WORK, value_parser = number::<u8>(1..=40))]
    max_work_factor: u8,

    /// With -k: the context that was used for encryption
    #[arg(long, value_name = "STRING", conflicts_with_all = ["identity", "passphrase", "passphrase_file"])]
    context: Option<OsString>,

    /// Decrypt only this part of the plaintext, such as `4096:512` or `1G:16K`; `1G:` extends to the end
    ///
    /// Only the chunks of this part and the last chunk are read and verified; the last chunk shows whether the file was
    /// truncated. The input must be a file. A part that extends beyond the end is shortened.
    #[arg(long, value_name = "OFFSET:LENGTH", value_parser = text::parse_range, conflicts_with = "output_dir")]
    range: Option<(u64, Option<u64>)>,

    /// If the input is damaged or was cut off, keep its beginning, up to the first part that is not authentic
    ///
    /// This applies to files and to standard input, and to each of many files. The exit code is 1, or 2 if the input cannot be
    /// read further. The message states the number of verified bytes. If nothing could be verified, no output file
    /// appears. Nothing in the output shows that it is incomplete.
    #[arg(long, conflicts_with_all = ["range", "resume", "force"])]
    partial: bool,

    /// The file to decrypt (`-` is standard input); with -O, files and folders
    #[arg(value_name = "INPUT", default_value = "-", value_hint = ValueHint::FilePath)]
    inputs: Vec<PathBuf>,

    /// With -O: decrypt all files named `*.enc` in folders and subfolders, and keep the folder structure; do not follow
    /// symbolic links
    #[arg(short, long, help_heading = "Many files")]
    recursive: bool,

    #[command(flatten)]
    output: OutputArgs,
    /// With -o or -O: `always` skips blocks of 4096 zeros, so that they become holes, which take no space on the disk;
    /// `never` writes them
    #[arg(long, value_name = "WHEN", default_value = "always", value_parser = choice(&SPARSE))]
    sparse: Sparse,
    #[command(flatten)]
    many: ManyArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    messages: ProgressArgs,
}

pub(crate) fn run(args: &Decrypt) -> Result<()> {
    match &args.many.output_dir {
        Some(folder) => args.run_many(folder),
        None => args.run_one(ManyArgs::single(&args.inputs, args.recursive, &args.output, "decrypt")?),
    }
}

impl Decrypt {
    fn run_many(&self, output_dir: &Path) -> Result<()> {
        let engine = &self.engine.engine(self.messages.explain, None)?;
        let mut protected = self.sources();
        check_standard_input(&protected)?;
        let key = self.key.as_ref().map(|path| read_key(path, self.messages.quiet)).transpose()?;
        let operation = DecryptMany { engine, args: self, key, keys: Mutex::default() };
        let default = identities::default_file();
        protected.extend(default.iter().map(|path| ("identity file", path.as_path())));
        let options = many::options(output_dir, &self.many, &self.output);
        let options = tree::Options { recursive: self.recursive, protected, ..options };
        let mut unlocks = Unlocks::default();
        let prepare = |input, path: &Path| operation.prepare(&mut unlocks, &input, path);
        many::run(engine, &operation, &self.inputs, &options, &self.messages, prepare)
    }

    fn run_one(&self, path: &Path) -> Result<()> {
        let engine = &self.engine.engine(self.messages.explain, None)?;
        check_sources(&self.output, path, &self.sources())?;
        let input = Input::open(path)?;
        let range_is_readable = self.range.is_none() || input.len.is_some();
        ensure(range_is_readable, "--range needs a file to read from, not a pipe")?;
        Output::check(&self.output, &input, Content::Unknown)?;

        let (envelope, first_bytes) = match Envelope::read(&mut &input)? {
            Start::Envelope(envelope) => (Some(envelope), Vec::new()),
            Start::Bare(first_bytes) if age_file::is_age_file(&first_bytes) => {
                let file = AgeFile::open(first_bytes, &input)?;
                let rule = "this is an age file, which is decrypted as a whole: leave out --range";
                ensure(self.range.is_none(), rule)?;
                return self.decrypt_age(engine.planner(), &input, file, path);
            }
            Start::Bare(first_bytes) => (None, first_bytes),
        };
        let regular = input.len.map(|_| &input.file);
        let key = match (&envelope, &self.key) {
            (Some(envelope), _) => {
                let unlock = self.find_unlock(&wrapping::header(envelope)?, path)?;
                wrapping::unwrap(envelope, &unlock, &signals::stopped)?
            }
            (None, Some(path)) => read_key(path, self.messages.quiet)?,
            (None, None) => return Err(no_key(regular, &first_bytes)),
        };
        let context = wrapping::context(envelope.as_ref(), self.context.as_deref());
        let total = match self.range {
            Some((_, len)) => len,
            None => input.len.map(|len| len.saturating_sub(wrapping::envelope_len(envelope.as_ref()))),
        };
        if let Some(mut file) = regular {
            // The file is set back to the start of the message.
            file.seek_relative(-(first_bytes.len() as i64)).map_err(lockstep::Error::Read)?;
        }
        let output = Output::open(&self.output, &input, Content::Unknown, self.sparse)?;
        job::run(engine.planner(), &self.messages, total, "decrypted", output, |output, report| {
            let options = lockstep::Options { partial: self.partial, ..job::options(report) };
            let plaintext = if let Some((offset, len)) = self.range {
                let mut input = &input.file;
                let start = input.stream_position().map_err(lockstep::Error::Read)?;
                let reader = Reader::open_from(engine, &key, context, input, start)?;
                let bytes = reader.len();
                let message = format_args!("the range begins at {offset}, but there are {bytes} bytes");
                ensure(offset <= bytes, message)?;
                let copied = reader.copy_range(offset, len.unwrap_or(u64::MAX), output, options)?;
                reader.check_unchanged()?;
                copied
            } else if let Some(input) = regular {
                file::decrypt_open_file(engine, &key, context, input, output, options)?.plaintext_len
            } else {
                let reader = std::io::Cursor::new(first_bytes).chain(&input);
                lockstep::decrypt(engine, &key, context, reader, output, options)?.plaintext_len
            };
            let details = json!({ "format": key.suite().name(), "threads": engine.threads() });
            Ok((plaintext, details))
        })
    }

    /// The files that are read in addition to the inputs, each with a description.
    fn sources(&self) -> Vec<(&str, &Path)> {
        let key = self.key.iter().map(|path| ("key file", path.as_path()));
        let passphrase = self.passphrase_file.iter().map(|path| ("passphrase file", path.as_path()));
        let identities = self.identity.iter().map(|path| ("identity", path.as_path()));
        key.chain(passphrase).chain(identities).collect()
    }

    /// Returns the passphrase or the identities for an age file or an envelope. If the options give neither, the header
    /// determines whether the command asks for a passphrase or reads the default identity file. The question names `path`.
    fn find_unlock(&self, header: &Header, path: &Path) -> Result<Unlock> {
        self.check_unlockable(header)?;
        let (quiet, max_work) = (self.messages.quiet, self.max_work_factor);
        let passphrase = self.passphrase_file.as_deref();
        let passphrase = passphrase.map(|path| Passphrase::read(path, quiet)).transpose()?;
        if !self.identity.is_empty() {
            return identities::read(&self.identity, Answers::new(passphrase, max_work, true), quiet);
        }
        if passphrase.is_some() || header.is_passphrase() {
            let ask = || Passphrase::ask(&format!("Passphrase for {}", names(&[path.into()])));
            return Ok(Unlock::Passphrase { passphrase: passphrase.map_or_else(ask, Ok)?, max_work });
        }
        let default = identities::default_file().ok_or_else(|| no_identity(header))?;
        if let [input] = &self.inputs[..] {
            check_sources(&self.output, input, &[("identity file", default.as_path())])?;
        }
        identities::read(&[default], Answers::new(None, max_work, true), quiet)
    }

    /// Refuses a file that cannot be opened with the given options. This check precedes the question for a passphrase.
    fn check_unlockable(&self, header: &Header) -> Result<()> {
        if self.key.is_some() {
            let instead = if header.is_passphrase() { "leave out -k" } else { "give an identity with -i" };
            return Err(failed(format!("this file is encrypted {}: {instead}", header.recipients_text())));
        }
        if header.is_passphrase() {
            return header.check_work(self.max_work_factor);
        }
        if self.passphrase {
            return Err(wrapping::no_passphrase(header));
        }
        let has_default = || identities::default_file().is_some_and(|path| path.exists());
        if self.identity.is_empty() && self.passphrase_file.is_none() && !has_default() {
            return Err(no_identity(header));
        }
        Ok(())
    }

    /// Decrypts a file of the program age on one thread, with the age crate. The library cannot decrypt it, because age does not use AES.
    fn decrypt_age(&self, planner: &Planner, input: &Input, file: AgeFile<'_>, path: &Path) -> Result<()> {
        let unlock = self.find_unlock(&file.header, path)?;
        // The file key is unwrapped before the output is created, so that a wrong passphrase or identity leaves no output.
        let total = input.len.and_then(|len| file.plaintext_len(len));
        let mut plaintext = unlock.open(&file.header, file.rest, &signals::stopped)?;
        let output = Output::open(&self.output, input, Content::Unknown, self.sparse)?;
        job::run(planner, &self.messages, total, "decrypted", output, |output, report| {
            let mut piece = Zeroizing::new(vec![0; age_file::CHUNK]);
            let mut done = 0;
            loop {
                let got = match plaintext.read(&mut piece).map_err(age_file::read_error) {
                    _ if signals::stopped() => return Err(Error::Stopped),
                    Err(error) if self.partial => {
                        output.flush().map_err(lockstep::Error::Write)?;
                        return Err(lockstep::Error::Partial { verified: done, source: error.into() }.into());
                    }
                    read => read?,
                };
                if got == 0 {
                    return Ok((done, json!({ "format": "age", "threads": 1 })));
                }
                output.write_all(&piece[..got]).map_err(lockstep::Error::Write)?;
                done += got as u64;
                report(done);
            }
        })
    }
}

/// Returns the error for a message without an envelope if the user gave no key file. `first_bytes` are the bytes of the message that
/// have already been read. The function reads more bytes only from a regular file: a read from a pipe could wait for a long time.
fn no_key(regular: Option<&File>, first_bytes: &[u8]) -> Error {
    if first_bytes.is_empty() {
        return not_authentic("the input is empty: it was cut off");
    }
    let mut start = first_bytes.to_vec();
    let more = foreign::START.saturating_sub(start.len()) as u64;
    if let Some(Err(error)) = regular.map(|file| file.take(more).read_to_end(&mut start)) {
        return lockstep::Error::Read(error).into();
    }
    match foreign::recognise(&start) {
        Some(format) if resembles_magic(first_bytes) => {
            not_authentic(format!("the input begins like {format}"))
        }
        Some(format) => other_format(format),
        None if resembles_magic(first_bytes) => {
            not_authentic("the file's first bytes were damaged or changed: get an intact copy")
        }
        None => failed(
            "this file was not encrypted to recipients or with a passphrase: give its key file with -k. Otherwise it is not \
             a Lockstep file, or its start was damaged",
        ),
    }
}

fn no_identity(header: &Header) -> Error {
    let default = identities::default_file();
    let place = default.map_or(String::new(), |path| format!(", or keep one in {}", quoted(&path)));
    failed(format!("this file is encrypted {}: give an identity with -i{place}", header.recipients_text()))
}

/// True if the bytes are probably the damaged or truncated magic of an envelope: at least 8 of the 17 bytes of the
/// magic match, or all given bytes match. The first bytes of a bare message are random.
fn resembles_magic(first_bytes: &[u8]) -> bool {
    let same = first_bytes.iter().zip(MAGIC).filter(|(byte, magic)| byte == magic).count();
    same >= MAGIC.len() / 2 || (!first_bytes.is_empty() && same == first_bytes.len())
}

/// The SHA-256 digest of an envelope.
type EnvelopeId = [u8; 32];
/// The key in an envelope, or the reason why the envelope cannot be opened.
type Opened = std::result::Result<Arc<FileKey>, Arc<Error>>;

/// Decrypts many files. A file with an envelope is decrypted with the key in the envelope, a file without one with the key of the key
/// file.
struct DecryptMany<'a> {
    engine: &'a Engine,
    args: &'a Decrypt,
    /// The key of the key file.
    key: Option<FileKey>,
    /// The keys of the envelopes. All files that one call of `encrypt` wrote have the same envelope, so each envelope is opened
    /// only once. The map contains pointers to the keys, so that no copies of keys remain in memory when the map grows.
    keys: Mutex<HashMap<EnvelopeId, Opened>>,
}

/// The identities and the passphrase. The identities are read once, and the passphrase is asked for once. Both are used only on the
/// thread that reads them, because identities cannot be sent to another thread.
type Unlocks = [Option<Unlock>; 2];

impl DecryptMany<'_> {
    /// Finds the key of a file and stores it. If the key cannot be found, the inner result is the reason, and other files can still be
    /// decrypted.
    ///
    /// # Errors
    /// If the passphrase or the identities cannot be read. Then no file that needs them can be decrypted.
    fn prepare(&self, unlocks: &mut Unlocks, mut input: &File, path: &Path) -> Result<tree::Result<()>> {
        let envelope = match Envelope::read(&mut input) {
            Ok(Start::Envelope(envelope)) => envelope,
            Ok(Start::Bare(first_bytes)) if age_file::is_age_file(&first_bytes) => {
                let message = "this is an age file: decrypt it by itself, with -o";
                return Ok(Err(tree::Error::Failed(message.into())));
            }
            Ok(Start::Bare(_)) if self.key.is_some() => return Ok(Ok(())),
            Ok(Start::Bare(first_bytes)) => {
                return Ok(Err(for_file(&no_key(Some(input), &first_bytes))));
            }
            Err(error) => return Ok(Err(error)),
        };
        let id = id(&envelope);
        let known = lock(&self.keys).get(&id).cloned();
        // Other threads can take the lock while this thread asks for a passphrase and derives a key from it.
        let opened = match known {
            Some(opened) => opened,
            None => {
                let opened = self.open(unlocks, &envelope, path)?;
                lock(&self.keys).insert(id, opened.clone());
                opened
            }
        };
        Ok(opened.map(drop).map_err(|error| for_file(&error)))
    }

    fn open(&self, unlocks: &mut Unlocks, envelope: &Envelope, path: &Path) -> Result<Opened> {
        let header = wrapping::header(envelope);
        let header = header.and_then(|header| self.args.check_unlockable(&header).map(|()| header));
        let header = match header {
            Ok(header) => header,
            Err(error) => return Ok(Err(Arc::new(error))),
        };
        let place = &mut unlocks[usize::from(header.is_passphrase())];
        let unlock = match place {
            Some(unlock) => unlock,
            None => place.insert(self.args.find_unlock(&header, path)?),
        };
        Ok(wrapping::unwrap(envelope, unlock, &signals::stopped).map(Arc::new).map_err(Arc::new))
    }
}

/// Copies the error for one file. The original stays in the map, because other files with the same envelope have the same error.
fn for_file(error: &Error) -> tree::Error {
    error.with_message(error.to_string())
}

fn id(envelope: &Envelope) -> EnvelopeId {
    digest(&SHA256, envelope.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

impl Operation for DecryptMany<'_> {
    fn direction(&self) -> Direction {
        Direction::Decrypt
    }

    fn sparse(&self) -> Sparse {
        self.args.sparse
    }

    fn compare(&self, pair: &Pair<'_>) -> tree::Result<Existing> {
        pair.decrypted()
    }

    fn process(
        &self,
        input: &File,
        output: &mut (dyn Write + Send),
        options: lockstep::Options<'_>,
    ) -> tree::Result<u64> {
        let envelope = Envelope::read_file(input)?;
        let opened = match &envelope {
            Some(envelope) => lock(&self.keys).get(&id(envelope)).cloned(),
            None => self.key.clone().map(|key| Ok(Arc::new(key))),
        };
        let changed =
            || tree::Error::Failed("the file changed after its key had been found: try again".into());
        let key = opened.ok_or_else(changed)?.map_err(|error| for_file(&error))?;
        let context = wrapping::context(envelope.as_ref(), self.args.context.as_deref());
        let options = lockstep::Options { partial: self.args.partial, ..options };
        let summary = file::decrypt_open_file(self.engine, &key, context, input, output, options)?;
        Ok(summary.plaintext_len)
    }
}

#[cfg(test)]
mod tests;
