//! Reads the identities that open a file (age identities, SSH private keys, age plugins), and the passphrases of files
//! and of encrypted identities.
//!
//! This module and [`crate::recipients`] do not use the feature `cli-common` of the crate age, for these reasons:
//!
//! - The feature starts any installed `pinentry` instead of asking on the terminal.
//! - The feature cannot read a passphrase from a file.
//! - If a question could not be asked, the feature does not return the reason.
//! - The feature copies identity files through buffers that are not wiped.
//! - The error messages of the feature contain the text of an invalid recipient, which may be a secret.

use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use age::armor::ArmoredReader;
use age::secrecy::SecretString;
use age::{Callbacks, Identity, IdentityFile, encrypted, ssh};
use lockstep::quoted;
use zeroize::Zeroizing;

use crate::age_file::{self, AgeFile};
use crate::error::{Error, Result, failed};
use crate::input::read_small;
use crate::permissions::warn_if_open_to_others;
use crate::unlock::{MAX_WORK, Unlock};
use crate::{terminal, text};

const MAX_LEN: usize = 1 << 20;

/// Reads identity files.
pub(crate) fn read(files: &[PathBuf], answers: Answers, quiet: bool) -> Result<Unlock> {
    let mut identities = Vec::new();
    for path in files {
        let bytes = read_small(path, "identity file", MAX_LEN)?;
        if !age_file::is_age_file(&bytes) {
            // No warning is necessary for an encrypted file, since a passphrase protects it.
            warn_if_open_to_others(path, "identity file", quiet);
        }
        identities.extend(parse(path, bytes, &answers)?);
    }
    Ok(Unlock::Identities { identities, answers })
}

/// The identity file that is used if none is named: `lockstep/identities` in the user's configuration folder.
pub(crate) fn default_file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("lockstep").join("identities"))
}

fn parse(path: &Path, bytes: Zeroizing<Vec<u8>>, answers: &Answers) -> Result<Vec<Box<dyn Identity>>> {
    let name = quoted(path).to_string();
    if bytes.starts_with(b"lockstep-key-") {
        return Err(failed(format!("{name} is a Lockstep key file: give it with -k")));
    }
    if age_file::is_age_file(&bytes) {
        return Ok(vec![parse_encrypted(&name, &bytes, answers)?]);
    }
    match ssh::Identity::from_buffer(&bytes[..], Some(name.clone())) {
        Ok(ssh::Identity::Unsupported(_)) => {
            return Err(failed(format!(
                "{name} is an SSH key of a kind that cannot decrypt: use ssh-ed25519 or ssh-rsa, in OpenSSH's \
                 format (`ssh-keygen -p -f {name}` rewrites older ones)"
            )));
        }
        Ok(identity) => return Ok(vec![Box::new(identity.with_callbacks(answers.clone()))]),
        Err(_) => {}
    }
    let file = IdentityFile::from_buffer(&bytes[..]).map_err(|_| {
        failed(format!("{name} is not an identity: give an age identity file or an SSH private key"))
    })?;
    let identities = file.with_callbacks(answers.clone()).into_identities();
    let identities = identities.map_err(|error| failed(format!("{name}: {}", text::one_line(&error))))?;
    if identities.is_empty() {
        return Err(failed(format!("{name} contains no identity")));
    }
    Ok(identities.into_iter().map(|identity| identity as _).collect())
}

/// Parses an identity file that is an age file with a passphrase.
fn parse_encrypted(name: &str, bytes: &[u8], answers: &Answers) -> Result<Box<dyn Identity>> {
    let in_file = |error: Error| match error {
        Error::OutOfMemory(why) => Error::OutOfMemory(format!("{name}: {why}")),
        other => failed(format!("{name}: {other}")),
    };
    let file = AgeFile::open(bytes.to_vec(), io::empty()).map_err(in_file)?;
    file.header.check_work(answers.max_work).map_err(in_file)?;
    // The age crate keeps the reader until it decrypts, so the reader gets a copy. The copy is ciphertext and need not
    // be wiped.
    let reader = ArmoredReader::new(Cursor::new(bytes.to_vec()));
    let max_work = Some(answers.max_work);
    match encrypted::Identity::from_buffer(reader, Some(name.into()), answers.clone(), max_work) {
        Ok(Some(identity)) => Ok(Box::new(identity)),
        Ok(None) => {
            Err(failed(format!("{name} is an age file, but not one with a passphrase: decrypt it first")))
        }
        Err(error) => Err(failed(format!("{name}: {}", text::one_line(&error)))),
    }
}

/// Answers the questions of identities and plugins: with the passphrase file if there is one, otherwise by asking on
/// the terminal.
#[derive(Clone)]
pub(crate) struct Answers {
    passphrase: Option<SecretString>,
    /// Maximum scrypt work factor of an encrypted identity.
    max_work: u8,
    /// True if questions are asked on the terminal, and messages printed.
    asks: bool,
    /// The error of the first question that could not be asked.
    problem: Arc<Mutex<Option<Error>>>,
}

impl Answers {
    pub(crate) fn new(passphrase: Option<SecretString>) -> Answers {
        Answers { passphrase, max_work: MAX_WORK, asks: true, problem: Arc::default() }
    }

    /// Sets the maximum scrypt work factor of an encrypted identity.
    pub(crate) fn with_max_work(self, max_work: u8) -> Answers {
        Answers { max_work, ..self }
    }

    /// Answers by the passphrase only.
    pub(crate) fn without_questions(self) -> Answers {
        Answers { asks: false, ..self }
    }

    /// Asks, if that is allowed.
    fn ask<T>(&self, ask: impl FnOnce() -> Result<T>) -> Option<T> {
        let unanswered =
            || Err(failed("the identity or recipient asks a question: use the command `lockstep`"));
        self.record_problem(if self.asks { ask() } else { unanswered() })
    }

    /// Takes the error of the first question that could not be asked, if any. If there is such an error, the identity
    /// or plugin that needed the answer could not be used.
    pub(crate) fn problem(&self) -> Option<Error> {
        self.problem.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }

    fn record_problem<T>(&self, asked: Result<T>) -> Option<T> {
        asked
            .map_err(|error| {
                self.problem.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
            })
            .ok()
    }
}

impl Callbacks for Answers {
    fn display_message(&self, message: &str) {
        if self.asks {
            terminal::print_message(&text::one_line(&message));
        }
    }

    fn confirm(&self, message: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        let question = format!(
            "{} (y: {}, n: {})",
            text::one_line(&message),
            text::one_line(&yes),
            text::one_line(&no.unwrap_or("no"))
        );
        let answer = self.ask(|| terminal::ask(&question))?;
        Some(answer.trim().eq_ignore_ascii_case("y") || answer.trim().eq_ignore_ascii_case("yes"))
    }

    fn request_public_string(&self, description: &str) -> Option<String> {
        self.ask(|| terminal::ask(&text::one_line(&description))).filter(|answer| !answer.is_empty())
    }

    fn request_passphrase(&self, description: &str) -> Option<SecretString> {
        if let Some(passphrase) = &self.passphrase {
            return Some(passphrase.clone());
        }
        let typed = self.ask(|| terminal::ask_secret(&text::one_line(&description)))?;
        Some(SecretString::from(typed.as_str()))
    }
}

/// Reads the passphrase in a file, without trailing line breaks.
pub(crate) fn read_passphrase(path: &Path, quiet: bool) -> Result<SecretString> {
    let bytes = read_small(path, "passphrase file", 4096)?;
    warn_if_open_to_others(path, "passphrase file", quiet);
    let name = quoted(path);
    let text =
        str::from_utf8(&bytes).map_err(|_| failed(format!("the passphrase in {name} is not UTF-8")))?;
    let line = text.trim_end_matches(['\r', '\n']);
    if line.is_empty() {
        return Err(failed(format!("the passphrase in {name} is empty")));
    }
    if line.contains('\n') {
        return Err(failed(format!("{name} has several lines: a passphrase has one line")));
    }
    Ok(SecretString::from(line))
}

/// Asks for the passphrase of an existing file.
pub(crate) fn ask_passphrase() -> Result<SecretString> {
    let typed = terminal::ask_secret("Passphrase")?;
    Ok(SecretString::from(typed.as_str()))
}

/// Asks for the passphrase of a new file, twice.
pub(crate) fn ask_new_passphrase() -> Result<SecretString> {
    let typed = terminal::ask_secret("Passphrase")?;
    if typed.is_empty() {
        return Err(failed("an empty passphrase protects nothing: type one"));
    }
    if *terminal::ask_secret("The same again")? != *typed {
        return Err(failed("the two passphrases differ: nothing was encrypted"));
    }
    Ok(SecretString::from(typed.as_str()))
}
