//! Reads the identities that open a file (age identities, SSH private keys, age plugins).
//!
//! This module and [`crate::recipients`] do not use the feature `cli-common` of the crate age, for these reasons:
//!
//! - The feature starts any installed `pinentry` instead of asking on the terminal.
//! - The feature cannot read a passphrase from a file.
//! - If a question could not be asked, the feature does not return the reason.
//! - The feature copies identity files through buffers that are not wiped.
//! - The error messages of the feature contain the text of an invalid recipient, which may be a secret.
//!
//! The age crate also has types for identities that a passphrase protects. This module does not use them because they are slow: its
//! type for SSH keys derives the key from the passphrase again for each recipient of a file, and its type for identity files parses
//! the header of the identity file again for each byte.

use std::cell::LazyCell;
use std::io;
use std::path::{Path, PathBuf};

use age::ssh::EncryptedKey;
use age::{DecryptError, Identity, IdentityFile, ssh};
use age_core::format::{FileKey, Stanza};
use lockstep::text::to_utf8;
use lockstep::{quoted, read};
use zeroize::Zeroizing;

use crate::age_file::{self, AgeFile, AtOnce};
use crate::answers::Answers;
use crate::error::{Error, Result, ensure, failed};
use crate::input::{read_small, warn_if_open_to_others};
use crate::passphrase::Forms;
use crate::wrapping::Unlock;
use crate::{signals, text};

/// Maximum length of an identity file in bytes.
const MAX_LEN: usize = 1 << 20;

type Identities = Vec<Box<dyn Identity>>;
type Opened = std::result::Result<Identities, DecryptError>;

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

/// The path of the identity file that is used if no option names one: `lockstep/identities` in the user's configuration folder.
pub(crate) fn default_file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("lockstep").join("identities"))
}

fn parse(path: &Path, bytes: &[u8], answers: &Answers) -> Result<Identities> {
    let name = quoted(path).to_string();
    let is_key_file = bytes.starts_with(b"lockstep-key-");
    ensure(!is_key_file, format_args!("{name} is a Lockstep key file: give it with -k"))?;
    if age_file::is_age_file(bytes) {
        return Ok(vec![Box::new(Locked::file(&name, bytes, answers)?)]);
    }
    match ssh::Identity::from_buffer(AtOnce::new(bytes, io::empty()), Some(name.clone())) {
        Ok(ssh::Identity::Unsupported(_)) => Err(failed(format!(
            "{name} is an SSH key of a kind that cannot decrypt: use ssh-ed25519 or ssh-rsa, in OpenSSH's \
             format (`ssh-keygen -p -f {name}` rewrites older ones)"
        ))),
        Ok(ssh::Identity::Encrypted(key)) => Ok(vec![Box::new(Locked::ssh_key(&name, key, answers))]),
        Ok(identity) => Ok(vec![Box::new(identity)]),
        Err(_) => parse_age_identities(&name, bytes, answers),
    }
}

/// Identities that a passphrase protects. They are decrypted only once, and not before a file has a recipient whose type they can open.
pub(crate) struct Locked {
    /// The identities can open only recipients whose type starts with this text. If the text is empty, the type can be any type.
    types: &'static str,
    identities: LazyCell<Opened, Box<dyn FnOnce() -> Opened>>,
}

impl Locked {
    fn new(types: &'static str, open: impl FnOnce() -> Opened + 'static) -> Locked {
        Locked { types, identities: LazyCell::new(Box::new(open)) }
    }

    /// The identities in an identity file that was encrypted by age with a passphrase.
    pub(crate) fn file(name: &str, bytes: &[u8], answers: &Answers) -> Result<Locked> {
        let in_file = |error: Error| match error {
            Error::OutOfMemory(why) => Error::OutOfMemory(format!("{name}: {why}")),
            other => failed(format!("{name}: {other}")),
        };
        let file = AgeFile::open(bytes.to_vec(), io::empty()).map_err(in_file)?;
        ensure(
            file.header.is_passphrase(),
            format_args!("{name} is an age file, but not one with a passphrase: decrypt it first"),
        )?;
        file.header.check_work(answers.max_work).map_err(in_file)?;
        let (name, answers) = (name.to_owned(), answers.clone());
        Ok(Locked::new("", move || open_file(&name, file, &answers)))
    }

    /// The identity of an SSH private key that a passphrase protects.
    fn ssh_key(name: &str, key: EncryptedKey, answers: &Answers) -> Locked {
        let (question, answers) = (format!("Passphrase of the SSH key {name}"), answers.clone());
        Locked::new("ssh-", move || {
            let passphrase = answers.passphrase(&question).ok_or(DecryptError::KeyDecryptionFailed)?;
            let forms = passphrase.forms().into_iter().take_while(|_| !signals::stopped());
            let mut attempts = forms.map(|form| key.decrypt(form));
            let opened = attempts.find(|opened| !matches!(opened, Err(DecryptError::KeyDecryptionFailed)));
            let key = opened.unwrap_or(Err(DecryptError::KeyDecryptionFailed))?;
            Ok(vec![Box::new(ssh::Identity::from(key))])
        })
    }
}

impl Identity for Locked {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<std::result::Result<FileKey, DecryptError>> {
        self.unwrap_stanzas(std::slice::from_ref(stanza))
    }

    fn unwrap_stanzas(&self, stanzas: &[Stanza]) -> Option<std::result::Result<FileKey, DecryptError>> {
        if !stanzas.iter().any(|stanza| stanza.tag.starts_with(self.types)) {
            return None;
        }
        match &*self.identities {
            Ok(identities) => identities.iter().find_map(|identity| identity.unwrap_stanzas(stanzas)),
            Err(error) => Some(Err(error.clone())),
        }
    }
}

fn open_file(name: &str, file: AgeFile<'_>, answers: &Answers) -> Opened {
    let question = format!("Passphrase of the identity {name}");
    let passphrase = answers.passphrase(&question).ok_or(DecryptError::KeyDecryptionFailed)?;
    let (forms, max_work) = (passphrase.forms(), answers.max_work);
    let forms = Forms { forms, max_work, stop: &signals::stopped };
    let opened = file.header.decrypt(file.rest, std::iter::once(&forms as _));
    let mut reader = opened.map_err(|error| match error {
        DecryptError::DecryptionFailed => DecryptError::KeyDecryptionFailed,
        other => other,
    })?;
    // The buffer has one byte more than the maximum length, so that the read reaches the end of a valid file and verifies that the file
    // is complete. The buffer never grows, because a growing buffer would leave copies of the identities in freed memory.
    let mut plain = Zeroizing::new(vec![0; MAX_LEN + 1]);
    let got = read::full(&mut reader, &mut plain)?;
    let plain = to_utf8(&plain[..got]);
    let text = plain.filter(|text| text.len() <= MAX_LEN).ok_or(DecryptError::DecryptionFailed)?;
    parse_age_identities(name, &text, answers).map_err(|error| {
        answers.set_problem(error);
        DecryptError::DecryptionFailed
    })
}

/// Parses age identities, one on each line.
pub(crate) fn parse_age_identities(name: &str, bytes: &[u8], answers: &Answers) -> Result<Identities> {
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
    ensure(!identities.is_empty(), format_args!("{name} contains no identity"))?;
    Ok(identities.into_iter().map(|identity| identity as _).collect())
}
