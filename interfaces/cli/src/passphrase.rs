//! Passphrases. Systems encode the same characters in different forms: with or without a byte order mark, and in different Unicode
//! normalisation forms.
//!
//! A new file is encrypted with the passphrase as given, but without a byte order mark at its start. For an existing file, the
//! passphrase is tried as given, and then in the other forms, so that the form in which the user gives it does not matter.

use std::path::Path;

use age::scrypt;
use age::secrecy::{ExposeSecret, SecretString};
use age::{DecryptError, Identity};
use age_core::format::{FileKey, Stanza};
use lockstep::quoted;
use lockstep::text::{Encoding, to_utf8};
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

use crate::error::{Result, ensure, failed};
use crate::input::{read_small, warn_if_open_to_others};
use crate::terminal;

/// Default maximum of the scrypt work factor (log2 of N). With this value scrypt needs 1 GiB of memory.
pub(crate) const MAX_WORK: u8 = 20;
/// Maximum length of a passphrase file in bytes.
const MAX_LEN: usize = 4096;
/// Normalisation to NFC or NFD multiplies the length of a UTF-8 text by at most this factor.
const MAX_GROWTH: usize = 3;
const MARK: char = '\u{feff}';

/// A passphrase as it was given.
#[derive(Clone)]
pub(crate) struct Passphrase {
    given: SecretString,
    /// A text for a warning that states how the passphrase was converted when it was read. `None` if it was not converted.
    converted: Option<&'static str>,
}

impl From<&str> for Passphrase {
    fn from(given: &str) -> Passphrase {
        Passphrase { given: SecretString::from(given), converted: None }
    }
}

impl Passphrase {
    /// Reads the passphrase in a file, without trailing line breaks. A file in UTF-16 begins with a byte order mark.
    pub(crate) fn read(path: &Path, quiet: bool) -> Result<Passphrase> {
        let bytes = read_small(path, "passphrase file", MAX_LEN)?;
        warn_if_open_to_others(path, "passphrase file", quiet);
        let name = quoted(path);
        let is_utf16 = Encoding::of(&bytes).0 != Encoding::Utf8;
        let decoded = if is_utf16 { to_utf8(&bytes) } else { None };
        let text = str::from_utf8(decoded.as_deref().unwrap_or(&bytes))
            .map_err(|_| failed(format!("the passphrase in {name} is not UTF-8: save the file as UTF-8")))?;
        let line = text.trim_end_matches(['\r', '\n']);
        ensure(!line.contains('\n'), format_args!("{name} has several lines: a passphrase has one line"))?;
        let converted = is_utf16.then_some("the file was converted from UTF-16 to UTF-8");
        let passphrase = Passphrase { given: SecretString::from(line), converted };
        ensure(!passphrase.is_empty(), format_args!("the passphrase in {name} is empty"))?;
        Ok(passphrase)
    }

    /// Asks for the passphrase of an existing file.
    pub(crate) fn ask(question: &str) -> Result<Passphrase> {
        Ok(Passphrase::from(terminal::ask_secret(question)?.as_str()))
    }

    /// Asks twice for the passphrase of a new file. The question names `input`.
    pub(crate) fn ask_new(input: &str) -> Result<Passphrase> {
        let typed = terminal::ask_secret(&format!("New passphrase for {input}"))?;
        ensure(!typed.is_empty(), "an empty passphrase protects nothing: type one")?;
        let is_same = *terminal::ask_secret("The same again")? == *typed;
        ensure(is_same, "the two passphrases differ: nothing was encrypted")?;
        Ok(Passphrase::from(typed.as_str()))
    }

    /// True if the passphrase is empty or consists only of a byte order mark.
    pub(crate) fn is_empty(&self) -> bool {
        self.without_mark().expose_secret().is_empty()
    }

    /// The passphrase without a byte order mark, with which new files are encrypted.
    pub(crate) fn without_mark(&self) -> SecretString {
        let given = self.given.expose_secret();
        SecretString::from(given.strip_prefix(MARK).unwrap_or(given))
    }

    /// If a new file is not encrypted with exactly the bytes that the user gave, returns a description of the difference. The user must be
    /// warned, because other programs open the file only with the passphrase that was used.
    pub(crate) fn difference(&self) -> Option<&'static str> {
        let is_marked = self.given.expose_secret().starts_with(MARK);
        is_marked.then_some("the byte order mark at its start was left out").or(self.converted)
    }

    /// The forms of the passphrase to be tried on an existing file: as given, without a byte order mark, in the Unicode normalisation form
    /// NFC, and in the form NFD. Equal forms appear once.
    pub(crate) fn forms(&self) -> Vec<SecretString> {
        let plain = self.without_mark();
        let text = plain.expose_secret();
        let mut forms = vec![self.given.clone(), plain.clone()];
        if !text.is_ascii() {
            forms.push(collect(text, text.nfc()));
            forms.push(collect(text, text.nfd()));
        }
        let mut different: Vec<SecretString> = Vec::with_capacity(forms.len());
        for form in forms {
            if different.iter().all(|other| other.expose_secret() != form.expose_secret()) {
                different.push(form);
            }
        }
        different
    }
}

/// Collects the characters of a normalised text. The buffer never grows, because a growing buffer would leave copies in freed memory.
fn collect(text: &str, characters: impl Iterator<Item = char>) -> SecretString {
    let mut normalised = Zeroizing::new(String::with_capacity(text.len() * MAX_GROWTH));
    normalised.extend(characters);
    SecretString::from(normalised.as_str())
}

/// The forms of a passphrase, as an identity of the age crate. Each form that is tried requires one key derivation, which takes about a
/// second with the usual work factor.
pub(crate) struct Forms<'a> {
    pub(crate) forms: Vec<SecretString>,
    /// The maximum scrypt work factor.
    pub(crate) max_work: u8,
    /// After this function has returned true, no other form is tried.
    pub(crate) stop: &'a dyn Fn() -> bool,
}

impl Identity for Forms<'_> {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<std::result::Result<FileKey, DecryptError>> {
        let mut last = None;
        for form in self.forms.iter().take_while(|_| !(self.stop)()) {
            let mut identity = scrypt::Identity::new(form.clone());
            identity.set_max_work_factor(self.max_work);
            last = identity.unwrap_stanza(stanza);
            if !matches!(last, Some(Err(DecryptError::DecryptionFailed))) {
                break;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests;
