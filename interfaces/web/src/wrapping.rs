//! Keys of files: key files, and envelopes, whose keys age has encrypted.

use js_sys::{Array, Uint8Array};
use lockstep::envelope::Start;
use lockstep::{Envelope, keyfile};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use crate::age::{self, Failure, Identity, Recipient};
use crate::copy;
use crate::errors::{error, of_file};

/// The scrypt work factor of new files (log2 of N), the same as in the command: 256 MiB.
const WORK: u8 = 18;
/// The maximum scrypt work factor of existing files, the same as in the command: 1 GiB.
const MAX_WORK: u8 = 20;

/// The key of a file.
#[wasm_bindgen]
pub struct FileKey(pub(crate) lockstep::FileKey);

#[wasm_bindgen]
impl FileKey {
    /// A random key.
    pub fn generate() -> Result<FileKey, JsValue> {
        lockstep::FileKey::generate().map(FileKey).map_err(of_file)
    }

    /// Reads the key from the text of a key file.
    pub fn parse(text: Vec<u8>) -> Result<FileKey, JsValue> {
        keyfile::parse(&Zeroizing::new(text)).map(FileKey).map_err(of_file)
    }

    /// Makes a key of these bytes.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(bytes: Vec<u8>) -> Result<FileKey, JsValue> {
        lockstep::FileKey::from_bytes(&Zeroizing::new(bytes)).map(FileKey).map_err(of_file)
    }

    /// Returns the bytes of the key.
    pub fn bytes(&self) -> Uint8Array {
        copy(self.0.as_bytes())
    }

    /// Returns the text of a key file for this key.
    #[wasm_bindgen(js_name = toText)]
    pub fn to_text(&self) -> Uint8Array {
        copy(keyfile::to_text(&self.0).as_bytes())
    }
}

/// Generates an identity. Returns the identity and its recipient.
#[wasm_bindgen(js_name = generateIdentity)]
pub fn generate_identity() -> Result<Array, JsValue> {
    let identity = Identity::generate().ok_or_else(no_random)?;
    Ok(Array::of2(&identity.to_text().as_str().into(), &identity.recipient().to_text().into()))
}

/// Creates an envelope with a new key for recipients; returns the key and the envelope.
#[wasm_bindgen(js_name = wrapForRecipients)]
pub fn wrap_for_recipients(recipients: Vec<String>) -> Result<Array, JsValue> {
    let parsed = recipients.iter().map(|text| {
        Recipient::parse(text.trim()).ok_or_else(|| {
            // The text is not shown, because it may be a secret key.
            error("recipient", "this is not a recipient of age with X25519, `age1` and 58 characters; use the command for others")
        })
    });
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    if parsed.is_empty() {
        return Err(error("recipient", "there are no recipients: give at least one"));
    }
    wrap(|key| age::seal_to(&parsed, key))
}

/// Creates an envelope with a new key for a passphrase; returns the key and the envelope. Takes a second and 256 MiB.
#[wasm_bindgen(js_name = wrapForPassphrase)]
pub fn wrap_for_passphrase(passphrase: String) -> Result<Array, JsValue> {
    let passphrase = Zeroizing::new(passphrase);
    wrap(|key| age::seal_by_passphrase(&passphrase, WORK, key))
}

fn wrap(seal: impl FnOnce(&[u8]) -> Option<Vec<u8>>) -> Result<Array, JsValue> {
    let key = FileKey::generate()?;
    let payload = seal(key.0.as_bytes()).ok_or_else(no_random)?;
    let envelope = Envelope::new(&payload)
        .map_err(|_| error("recipient", "too many recipients: they take more than 64 KiB"))?;
    Ok(Array::of2(&key.into(), &copy(envelope.as_bytes())))
}

fn no_random() -> JsValue {
    error("failed", "the browser returned no random bytes: nothing was encrypted")
}

/// True if the key of the envelope is encrypted with a passphrase.
#[wasm_bindgen(js_name = hasPassphrase)]
pub fn has_passphrase(envelope: &[u8]) -> Result<bool, JsValue> {
    Ok(read(&payload(envelope)?)?.has_passphrase())
}

/// The key in an envelope. Each identity is the text of a file of identities, or one line of it.
#[wasm_bindgen(js_name = unwrapByIdentities)]
pub fn unwrap_by_identities(envelope: &[u8], identities: Vec<String>) -> Result<FileKey, JsValue> {
    let texts = Zeroizing::new(identities);
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let identities = lines.map(|line| {
        Identity::parse(line).ok_or_else(|| {
            error("identity", "this is not an identity of age with X25519, `AGE-SECRET-KEY-1...`; use the command for others")
        })
    });
    let identities = identities.collect::<Result<Vec<_>, _>>()?;
    unwrap(envelope, |file| file.open_by(&identities))
}

/// Decrypts the key in an envelope with a passphrase. The call takes a second or more, and 256 MiB to 1 GiB of memory.
#[wasm_bindgen(js_name = unwrapByPassphrase)]
pub fn unwrap_by_passphrase(envelope: &[u8], passphrase: String) -> Result<FileKey, JsValue> {
    let passphrase = Zeroizing::new(passphrase);
    unwrap(envelope, |file| file.open_by_passphrase(&passphrase, MAX_WORK))
}

fn unwrap(
    envelope: &[u8],
    open: impl FnOnce(&age::File<'_>) -> Result<Zeroizing<Vec<u8>>, Failure>,
) -> Result<FileKey, JsValue> {
    let envelope = payload(envelope)?;
    let key = open(&read(&envelope)?).map_err(|failure| match failure {
        Failure::Damaged => damaged(),
        Failure::NoMatch => {
            error("wrong-key", "none of the keys opens this file: it is encrypted to other recipients")
        }
        Failure::WrongPassphrase => {
            error("wrong-key", "wrong passphrase, or the header of the file was changed")
        }
        Failure::Work(work) => {
            let needed = format!(
                "the passphrase of this file requires more than 1 GiB of memory (scrypt work factor {work})"
            );
            error("memory", &format!("{needed}: use the command"))
        }
    })?;
    // Files with an envelope always use Cobblestone-256.
    if key.len() != 32 {
        return Err(error("envelope", "the envelope does not contain a file key"));
    }
    lockstep::FileKey::from_bytes(&key).map(FileKey).map_err(of_file)
}

fn payload(mut envelope: &[u8]) -> Result<Envelope, JsValue> {
    match Envelope::read(&mut envelope).map_err(of_file)? {
        Start::Envelope(envelope) => Ok(envelope),
        Start::Bare(_) => Err(error("needs-key-file", "this file has no envelope: give its key file")),
    }
}

fn read(envelope: &Envelope) -> Result<age::File<'_>, JsValue> {
    age::File::read(envelope.payload()).ok_or_else(damaged)
}

fn damaged() -> JsValue {
    error("damaged", "the header of the file is damaged or was changed: get an intact copy")
}
