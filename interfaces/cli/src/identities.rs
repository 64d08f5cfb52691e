//! Reads the identities that open a file (age identities, SSH private keys, age plugins).
//!
//! This module and [`crate::recipients`] do not use the feature `cli-common` of the crate age, for these reasons:
//!
//! - The feature starts any installed `pinentry` instead of asking on the terminal.
//! - The feature cannot read a passphrase from a file.
//! - If a question could not be asked, the feature does not return the reason.
//! - The feature copies identity files through buffers that are not wiped.
//! - The error messages of the feature contain the text of an invalid recipient, which may be a secret.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use age::secrecy::SecretString;
use age::{Callbacks, Identity, IdentityFile, ssh};
use lockstep::quoted;
use lockstep::text::to_utf8;
use zeroize::Zeroizing;

use crate::age_file::{self, AtOnce};
use crate::error::{Error, Result, failed};
use crate::input::read_small;
use crate::locked_identity::{LockedFile, LockedSshKey};
use crate::passphrase::Passphrase;
use crate::permissions::warn_if_open_to_others;
use crate::unlock::{MAX_WORK, Unlock};
use crate::{terminal, text};

/// Maximum length of an identity file in bytes.
pub(crate) const MAX_LEN: usize = 1 << 20;

/// Reads identity files.
pub(crate) fn read(files: &[PathBuf], answers: Answers, quiet: bool) -> Result<Unlock> {
    let mut identities = Vec::new();
    for path in files {
        let bytes = read_small(path, "identity file", MAX_LEN)?;
        let not_text = || failed(format!("{} is not valid UTF-16: save it as UTF-8", quoted(path)));
        let bytes = to_utf8(&bytes).ok_or_else(not_text)?;
        if !age_file::is_age_file(&bytes) {
            // No warning is necessary for an encrypted file, since a passphrase protects it.
            warn_if_open_to_others(path, "identity file", quiet);
        }
        identities.extend(parse(path, &bytes, &answers)?);
    }
    Ok(Unlock::Identities { identities, answers })
}

/// The identity file that is used if none is named: `lockstep/identities` in the user's configuration folder.
pub(crate) fn default_file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("lockstep").join("identities"))
}

fn parse(path: &Path, bytes: &[u8], answers: &Answers) -> Result<Vec<Box<dyn Identity>>> {
    let name = quoted(path).to_string();
    if bytes.starts_with(b"lockstep-key-") {
        return Err(failed(format!("{name} is a Lockstep key file: give it with -k")));
    }
    if age_file::is_age_file(bytes) {
        return Ok(vec![Box::new(LockedFile::new(&name, bytes, answers)?)]);
    }
    match ssh::Identity::from_buffer(AtOnce::new(bytes, io::empty()), Some(name.clone())) {
        Ok(ssh::Identity::Unsupported(_)) => Err(failed(format!(
            "{name} is an SSH key of a kind that cannot decrypt: use ssh-ed25519 or ssh-rsa, in OpenSSH's \
             format (`ssh-keygen -p -f {name}` rewrites older ones)"
        ))),
        Ok(ssh::Identity::Encrypted(key)) => Ok(vec![Box::new(LockedSshKey::new(&name, key, answers))]),
        Ok(identity) => Ok(vec![Box::new(identity)]),
        Err(_) => parse_age_identities(&name, bytes, answers),
    }
}

/// Parses age identities, one on each line.
pub(crate) fn parse_age_identities(
    name: &str,
    bytes: &[u8],
    answers: &Answers,
) -> Result<Vec<Box<dyn Identity>>> {
    // The age crate accepts no white space around an identity.
    let mut lines = Zeroizing::new(Vec::with_capacity(bytes.len() + 1));
    for line in bytes.split(|&byte| byte == b'\n') {
        lines.extend_from_slice(line.trim_ascii());
        lines.push(b'\n');
    }
    let file = IdentityFile::from_buffer(&lines[..]).map_err(|_| {
        failed(format!("{name} is not an identity: give an age identity file or an SSH private key"))
    })?;
    let identities = file.with_callbacks(answers.clone()).into_identities();
    let identities = identities.map_err(|error| failed(format!("{name}: {}", text::one_line(&error))))?;
    if identities.is_empty() {
        return Err(failed(format!("{name} contains no identity")));
    }
    Ok(identities.into_iter().map(|identity| identity as _).collect())
}

/// Answers the questions of identities and plugins: with the passphrase file if there is one, otherwise by asking on
/// the terminal.
#[derive(Clone)]
pub(crate) struct Answers {
    passphrase: Option<Passphrase>,
    /// Maximum scrypt work factor of an encrypted identity.
    max_work: u8,
    /// True if questions are asked on the terminal, and messages printed.
    asks: bool,
    /// The error of the first question that could not be asked.
    problem: Arc<Mutex<Option<Error>>>,
}

impl Answers {
    pub(crate) fn new(passphrase: Option<Passphrase>) -> Answers {
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

    /// Maximum scrypt work factor of an encrypted identity.
    pub(crate) fn max_work(&self) -> u8 {
        self.max_work
    }

    /// The passphrase that was given, or that is typed.
    pub(crate) fn passphrase(&self, question: &str) -> Option<Passphrase> {
        match &self.passphrase {
            Some(passphrase) => Some(passphrase.clone()),
            None => self.ask(|| Passphrase::ask(&text::one_line(&question))),
        }
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

    /// Stores an error for [`Answers::problem`], unless there is an earlier one.
    pub(crate) fn set_problem(&self, error: Error) {
        self.problem.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
    }

    fn record_problem<T>(&self, asked: Result<T>) -> Option<T> {
        asked.map_err(|error| self.set_problem(error)).ok()
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
        self.passphrase(description).map(|passphrase| passphrase.without_mark())
    }
}
