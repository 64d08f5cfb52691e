//! Identity files of age, and identities that a passphrase protects. The age crate has such identities too, but it derives the key of an SSH key again for
//! each recipient of a file, and parses the header of an identity file again for each byte.

use std::cell::{Cell, OnceCell};
use std::io;

use age::ssh::EncryptedKey;
use age::{DecryptError, Identity, IdentityFile, ssh};
use age_core::format::{FileKey, Stanza};
use lockstep::read;
use zeroize::Zeroizing;

use crate::age_file::AgeFile;
use crate::answers::Answers;
use crate::error::{Error, Result, failed};
use crate::passphrase::Forms;
use crate::{signals, text};

/// Maximum length of an identity file in bytes.
pub(crate) const MAX_LEN: usize = 1 << 20;

type Opened<T> = OnceCell<std::result::Result<T, DecryptError>>;

/// An age identity file that is an age file with a passphrase. It is decrypted once, when it is first needed.
pub(crate) struct LockedFile {
    name: String,
    /// The encrypted file, until it is decrypted.
    file: Cell<Option<AgeFile<'static>>>,
    answers: Answers,
    opened: Opened<Vec<Box<dyn Identity>>>,
}

impl LockedFile {
    pub(crate) fn new(name: &str, bytes: &[u8], answers: &Answers) -> Result<LockedFile> {
        let in_file = |error: Error| match error {
            Error::OutOfMemory(why) => Error::OutOfMemory(format!("{name}: {why}")),
            other => failed(format!("{name}: {other}")),
        };
        let file = AgeFile::open(bytes.to_vec(), io::empty()).map_err(in_file)?;
        if !file.header.is_passphrase() {
            return Err(failed(format!(
                "{name} is an age file, but not one with a passphrase: decrypt it first"
            )));
        }
        file.header.check_work(answers.max_work()).map_err(in_file)?;
        let (name, file, answers) = (name.into(), Cell::new(Some(file)), answers.clone());
        Ok(LockedFile { name, file, answers, opened: OnceCell::new() })
    }

    fn open(&self) -> std::result::Result<Vec<Box<dyn Identity>>, DecryptError> {
        let question = format!("Passphrase of the identity {}", self.name);
        let passphrase = self.answers.passphrase(&question).ok_or(DecryptError::KeyDecryptionFailed)?;
        let file = self.file.take().ok_or(DecryptError::InvalidHeader)?;
        let forms = Forms::new(&passphrase, self.answers.max_work(), &signals::stopped);
        let mut reader =
            file.header.decrypt(file.rest, std::iter::once(&forms as _)).map_err(|error| match error {
                DecryptError::DecryptionFailed => DecryptError::KeyDecryptionFailed,
                other => other,
            })?;
        // The buffer has one byte more, so that the end of the file is verified, and has its size from the start, since a growing
        // buffer would leave copies in freed memory.
        let mut plain = Zeroizing::new(vec![0; MAX_LEN + 1]);
        let got = read::full(&mut reader, &mut plain)?;
        let plain = lockstep::text::to_utf8(&plain[..got]);
        let text = plain.filter(|text| text.len() <= MAX_LEN).ok_or(DecryptError::DecryptionFailed)?;
        parse_age_identities(&self.name, &text, &self.answers).map_err(|error| {
            self.answers.set_problem(error);
            DecryptError::DecryptionFailed
        })
    }
}

impl Identity for LockedFile {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<std::result::Result<FileKey, DecryptError>> {
        self.unwrap_stanzas(std::slice::from_ref(stanza))
    }

    fn unwrap_stanzas(&self, stanzas: &[Stanza]) -> Option<std::result::Result<FileKey, DecryptError>> {
        match self.opened.get_or_init(|| self.open()) {
            Ok(identities) => identities.iter().find_map(|identity| identity.unwrap_stanzas(stanzas)),
            Err(error) => Some(Err(error.clone())),
        }
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

/// An SSH private key with a passphrase. It is decrypted once, when a file has a recipient of its type.
pub(crate) struct LockedSshKey {
    name: String,
    key: EncryptedKey,
    answers: Answers,
    opened: Opened<ssh::Identity>,
}

impl LockedSshKey {
    pub(crate) fn new(name: &str, key: EncryptedKey, answers: &Answers) -> LockedSshKey {
        LockedSshKey { name: name.into(), key, answers: answers.clone(), opened: OnceCell::new() }
    }

    fn open(&self) -> std::result::Result<ssh::Identity, DecryptError> {
        let question = format!("Passphrase of the SSH key {}", self.name);
        let passphrase = self.answers.passphrase(&question).ok_or(DecryptError::KeyDecryptionFailed)?;
        let forms = passphrase.forms();
        let opened = forms.into_iter().take_while(|_| !signals::stopped()).find_map(|form| {
            match self.key.decrypt(form) {
                Err(DecryptError::KeyDecryptionFailed) => None,
                other => Some(other),
            }
        });
        Ok(opened.unwrap_or(Err(DecryptError::KeyDecryptionFailed))?.into())
    }
}

impl Identity for LockedSshKey {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<std::result::Result<FileKey, DecryptError>> {
        if !stanza.tag.starts_with("ssh-") {
            return None;
        }
        match self.opened.get_or_init(|| self.open()) {
            Ok(identity) => identity.unwrap_stanza(stanza),
            Err(error) => Some(Err(error.clone())),
        }
    }
}
