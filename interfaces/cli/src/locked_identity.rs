//! Identities that a passphrase protects. The age crate has such identities too, but it derives the key of an SSH key again for
//! each recipient of a file, and parses the header of an identity file again for each byte.

use std::cell::OnceCell;
use std::io::{self, Read};

use age::ssh::EncryptedKey;
use age::{DecryptError, Identity, ssh};
use age_core::format::{FileKey, Stanza};
use zeroize::Zeroizing;

use crate::age_file::AgeFile;
use crate::error::{Error, Result, failed};
use crate::identities::{Answers, MAX_LEN, parse_age_identities};
use crate::passphrase::Forms;
use crate::signals;

type Opened<T> = OnceCell<std::result::Result<T, DecryptError>>;

/// An age identity file that is an age file with a passphrase. It is decrypted once, when it is first needed.
pub(crate) struct LockedFile {
    name: String,
    /// The encrypted file.
    bytes: Vec<u8>,
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
        let (name, bytes, answers) = (name.into(), bytes.to_vec(), answers.clone());
        Ok(LockedFile { name, bytes, answers, opened: OnceCell::new() })
    }

    fn open(&self) -> std::result::Result<Vec<Box<dyn Identity>>, DecryptError> {
        let question = format!("Passphrase of the identity {}", self.name);
        let passphrase = self.answers.passphrase(&question).ok_or(DecryptError::KeyDecryptionFailed)?;
        let file = AgeFile::open(self.bytes.clone(), io::empty()).map_err(|_| DecryptError::InvalidHeader)?;
        let forms = Forms::new(&passphrase, self.answers.max_work(), &signals::stopped);
        let mut reader = file.decrypt_with(std::iter::once(&forms as _)).map_err(|error| match error {
            DecryptError::DecryptionFailed => DecryptError::KeyDecryptionFailed,
            other => other,
        })?;
        // The buffer has one byte more, so that the end of the file is verified, and has its size from the start, since a growing
        // buffer would leave copies in freed memory.
        let mut plain = Zeroizing::new(vec![0; MAX_LEN + 1]);
        let mut got = 0;
        while got < plain.len() {
            match reader.read(&mut plain[got..])? {
                0 => break,
                n => got += n,
            }
        }
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
