//! A file's key, wrapped in its envelope by age.

use std::io::{Read, Write};

use age::secrecy::SecretString;
use age::{DecryptError, Decryptor, EncryptError, Encryptor, Identity, Recipient, scrypt};
use lockstep::envelope::MAX_PAYLOAD;
use lockstep::{Envelope, FileKey};
use zeroize::Zeroizing;

use crate::error::{Error, Result, failed};
use crate::identities::{Answers, MAX_WORK};
use crate::text;

/// The work of a passphrase, as the power of two of scrypt's N: that of age, about a second and 256 MiB.
const WORK: u8 = 18;
const KEY: usize = 32;

/// An envelope that any of the recipients can open.
pub(crate) fn wrap(key: &FileKey, recipients: &[Box<dyn Recipient>]) -> Result<Envelope> {
    let encryptor = Encryptor::with_recipients(recipients.iter().map(|recipient| &**recipient));
    let encryptor = encryptor.map_err(|error| match error {
        EncryptError::MissingRecipients => failed("there are no recipients: give one with -r or -R"),
        EncryptError::IncompatibleRecipients { .. } => failed(
            "these recipients cannot share a file, such as post-quantum ones and others: leave some out",
        ),
        other => failed(text::one_line(&other)),
    })?;
    let mut payload = Vec::new();
    let wrapped = encryptor.wrap_output(&mut payload).and_then(|mut writer| {
        writer.write_all(key.as_bytes())?;
        writer.finish()
    });
    wrapped.map_err(|error| failed(format!("cannot wrap the file's key: {error}")))?;
    if payload.len() > MAX_PAYLOAD {
        let len = payload.len();
        return Err(failed(format!("too many recipients: they take {len} bytes of at most {MAX_PAYLOAD}")));
    }
    Ok(Envelope::new(&payload)?)
}

/// An envelope that the passphrase opens.
pub(crate) fn wrap_with_passphrase(key: &FileKey, passphrase: SecretString) -> Result<Envelope> {
    let mut recipient = scrypt::Recipient::new(passphrase);
    recipient.set_work_factor(WORK);
    wrap(key, &[Box::new(recipient)])
}

/// The key in an envelope, by the identities of some recipient.
pub(crate) fn unwrap(
    envelope: &Envelope,
    identities: &[Box<dyn Identity>],
    answers: &Answers,
) -> Result<FileKey> {
    if is_passphrase(envelope) {
        return Err(failed("this file is encrypted with a passphrase: give -p"));
    }
    let opened = open(envelope, identities.iter().map(|identity| &**identity));
    // A passphrase that could not be asked for tells more than the identity that stayed closed.
    answers.problem().map_or(opened, Err)
}

/// The key in an envelope, by its passphrase.
pub(crate) fn unwrap_with_passphrase(envelope: &Envelope, passphrase: SecretString) -> Result<FileKey> {
    if !is_passphrase(envelope) {
        // Not a mistake on the command line only: damage can look like this too.
        return Err(Error::NotAuthentic(format!(
            "no passphrase opens this file: it is encrypted {}",
            whom(envelope)
        )));
    }
    let mut identity = scrypt::Identity::new(passphrase);
    identity.set_max_work_factor(MAX_WORK);
    open(envelope, std::iter::once(&identity as &dyn Identity))
}

/// True if a passphrase opens it, and nothing else.
pub(crate) fn is_passphrase(envelope: &Envelope) -> bool {
    stanzas(envelope.payload()).is_some_and(|stanzas| stanzas.iter().any(|(kind, _)| kind == "scrypt"))
}

/// For messages: what opens this envelope.
pub(crate) fn whom(envelope: &Envelope) -> String {
    if is_passphrase(envelope) {
        return "with a passphrase: give -p, or --passphrase-file FILE".into();
    }
    let kinds = match stanzas(envelope.payload()) {
        None => "unreadable".into(),
        Some(stanzas) => {
            let mut kinds: Vec<_> = kinds(&stanzas).collect();
            kinds.sort_unstable();
            kinds.dedup();
            kinds.join(", ")
        }
    };
    format!("to recipients ({kinds}): give an identity with -i")
}

fn open<'a>(envelope: &Envelope, identities: impl Iterator<Item = &'a dyn Identity>) -> Result<FileKey> {
    let mut reader = Decryptor::new_buffered(envelope.payload())
        .and_then(|decryptor| decryptor.decrypt(identities))
        .map_err(|error| explain(error, is_passphrase(envelope)))?;
    // One byte more, so that a longer payload shows, and its end is verified.
    let mut key = Zeroizing::new([0; KEY + 1]);
    let mut got = 0;
    while got < key.len() {
        match reader.read(&mut key[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(_) => return Err(damaged()),
        }
    }
    if got != KEY {
        return Err(Error::NotAuthentic("the envelope holds something else than the key of a file".into()));
    }
    Ok(FileKey::from_bytes(&key[..KEY])?)
}

fn damaged() -> Error {
    Error::NotAuthentic("the file's envelope was damaged or changed: get an intact copy".into())
}

fn explain(error: DecryptError, passphrase: bool) -> Error {
    match error {
        DecryptError::NoMatchingKeys => Error::NotAuthentic(
            "none of the identities opens this file: it is encrypted to other recipients".into(),
        ),
        DecryptError::DecryptionFailed if passphrase => {
            Error::NotAuthentic("wrong passphrase, or the file's envelope was changed".into())
        }
        DecryptError::KeyDecryptionFailed => Error::NotAuthentic("wrong passphrase for the identity".into()),
        DecryptError::DecryptionFailed
        | DecryptError::InvalidHeader
        | DecryptError::InvalidMac
        | DecryptError::UnknownFormat
        | DecryptError::Io(_) => damaged(),
        DecryptError::ExcessiveWork { required, .. } => failed(format!(
            "this passphrase asks for too much work (2^{required}, at most 2^{MAX_WORK}): the file is not to be trusted"
        )),
        other => failed(text::one_line(&other)),
    }
}

/// The kinds of recipients that an age file names, with what each says of itself; `None` if it is no age file.
/// Printable, whatever the file holds.
pub(crate) fn stanzas(payload: &[u8]) -> Option<Vec<(String, Vec<String>)>> {
    let mut lines = payload.split(|&byte| byte == b'\n');
    if lines.next()? != b"age-encryption.org/v1" {
        return None;
    }
    let mut found = Vec::new();
    for line in lines {
        if line.starts_with(b"---") {
            return Some(found);
        }
        if let Some(stanza) = line.strip_prefix(b"-> ") {
            let mut words = stanza
                .split(|&byte| byte == b' ')
                .map(|word| text::printable(&String::from_utf8_lossy(word)));
            found.push((words.next()?, words.collect()));
        }
    }
    None
}

/// The kinds of real recipients. Some programs add a stanza that means nothing, so that nobody relies on there being
/// none.
pub(crate) fn kinds(stanzas: &[(String, Vec<String>)]) -> impl Iterator<Item = &str> {
    stanzas.iter().map(|(kind, _)| kind.as_str()).filter(|kind| !kind.ends_with("-grease"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use age::x25519;

    fn key() -> FileKey {
        FileKey::from_bytes(&[7; 32]).unwrap()
    }

    #[test]
    fn round_trip() {
        let identity = x25519::Identity::generate();
        let envelope = wrap(&key(), &[Box::new(identity.to_public())]).unwrap();
        let answers = Answers::new(None);
        let identities: Vec<Box<dyn Identity>> =
            vec![Box::new(x25519::Identity::generate()), Box::new(identity)];
        assert_eq!(unwrap(&envelope, &identities, &answers).unwrap().as_bytes(), key().as_bytes());
        let error = unwrap(&envelope, &identities[..1], &answers).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert_eq!(stanzas(envelope.payload()).unwrap()[0].0, "X25519");
        assert!(!is_passphrase(&envelope));
    }

    #[test]
    fn any_change_of_the_envelope_is_found() {
        let identity = x25519::Identity::generate();
        let envelope = wrap(&key(), &[Box::new(identity.to_public())]).unwrap();
        let identities: [Box<dyn Identity>; 1] = [Box::new(identity)];
        for at in 0..envelope.payload().len() {
            let mut payload = envelope.payload().to_vec();
            payload[at] ^= 1;
            let error =
                unwrap(&Envelope::new(&payload).unwrap(), &identities, &Answers::new(None)).unwrap_err();
            assert_eq!(error.exit_code(), 1, "{at}: {error}");
            let error = unwrap(&Envelope::new(&payload[..at]).unwrap(), &identities, &Answers::new(None))
                .unwrap_err();
            assert_eq!(error.exit_code(), 1, "{at}: {error}");
        }
    }

    #[test]
    fn keys_of_another_length_are_refused() {
        let identity = x25519::Identity::generate();
        for len in [0, 16, 31, 33, 100] {
            let payload = age::encrypt(&identity.to_public(), &vec![1; len]).unwrap();
            let identities: [Box<dyn Identity>; 1] = [Box::new(identity.clone())];
            let envelope = Envelope::new(&payload).unwrap();
            assert!(unwrap(&envelope, &identities, &Answers::new(None)).is_err(), "{len}");
        }
    }

    #[test]
    fn strange_headers_are_printable() {
        let found = stanzas(b"age-encryption.org/v1\n-> \x1b[31m evil\xff\nbody\n---\n").unwrap();
        assert!(found[0].0.chars().chain(found[0].1[0].chars()).all(|c| !c.is_control()));
        assert!(stanzas(b"").is_none());
        assert!(stanzas(b"age-encryption.org/v1\n-> X25519").is_none());
    }
}
