//! The part of the format age (<https://age-encryption.org/v1>, <https://c2sp.org/age>) that envelopes use: recipients of the types X25519
//! and scrypt, and a payload of one chunk. The crate `age` has further types, and its messages in several languages; with that crate, the
//! module would be larger by half.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use lockstep::cobblestone::random;
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

const VERSION: &str = "age-encryption.org/v1";
const X25519: &str = "X25519";
const SCRYPT: &str = "scrypt";
/// The label of the key that wraps the file key for a recipient.
const X25519_LABEL: &[u8] = b"age-encryption.org/v1/X25519";
/// The first bytes of the salt of scrypt.
const SCRYPT_LABEL: &[u8] = b"age-encryption.org/v1/scrypt";
/// Parts of texts of recipients and identities.
const RECIPIENT: Hrp = Hrp::parse_unchecked("age");
const IDENTITY: Hrp = Hrp::parse_unchecked("age-secret-key-");
/// The maximum number of characters of a text in Bech32 (BIP 173).
const TEXT: usize = 90;
/// Characters of a full line of Base64.
const LINE: usize = 64;
/// The nonce of the only chunk of a payload: number 0, and a last byte that marks the last chunk.
const LAST_CHUNK: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// A key of 32 bytes, wiped on drop.
type Key = Zeroizing<[u8; 32]>;
/// The key that an age file encrypts for its recipients.
type FileKey = Zeroizing<[u8; 16]>;

/// The reason why an age file is not opened.
pub(crate) enum Failure {
    /// The file is not an age file, or was changed.
    Damaged,
    /// The file has no recipient that belongs to the identities or to a passphrase.
    NoMatch,
    /// The passphrase is wrong, or the header was changed.
    WrongPassphrase,
    /// The passphrase requires this scrypt work factor, which is above the limit.
    Work(u8),
}

/// An identity: a secret key of X25519.
pub(crate) struct Identity(StaticSecret);

impl Identity {
    /// A random identity; `None` if the system provides no random numbers.
    pub(crate) fn generate() -> Option<Identity> {
        let mut bytes = Key::default();
        random(&mut *bytes).ok()?;
        Some(Identity(StaticSecret::from(*bytes)))
    }

    pub(crate) fn parse(text: &str) -> Option<Identity> {
        parse(text, IDENTITY, "AGE-SECRET-KEY-1").map(|bytes| Identity(StaticSecret::from(*bytes)))
    }

    pub(crate) fn to_text(&self) -> Zeroizing<String> {
        let bytes = Zeroizing::new(self.0.to_bytes());
        // The text has its full capacity from the start. If it had to grow, a copy of its content would remain in memory.
        let mut text = Zeroizing::new(String::with_capacity(TEXT));
        bech32::encode_upper_to_fmt::<Bech32, _>(&mut *text, IDENTITY, &*bytes)
            .expect("90 characters are enough");
        text
    }

    pub(crate) fn recipient(&self) -> Recipient {
        Recipient(PublicKey::from(&self.0))
    }
}

/// A recipient: a public key of X25519.
pub(crate) struct Recipient(PublicKey);

impl Recipient {
    /// The recipient with this text; `None` also for a point of low order, whose shared secrets are all zero.
    pub(crate) fn parse(text: &str) -> Option<Recipient> {
        let key = PublicKey::from(*parse(text, RECIPIENT, "age1")?);
        // Every scalar of X25519 is a multiple of 8, so its product with a point of low order is zero. Any scalar therefore detects such a
        // point.
        let shared = StaticSecret::from([0; 32]).diffie_hellman(&key);
        shared.was_contributory().then_some(Recipient(key))
    }

    pub(crate) fn to_text(&self) -> String {
        bech32::encode_lower::<Bech32>(RECIPIENT, self.0.as_bytes()).expect("90 characters are enough")
    }
}

/// The 32 bytes in a text in Bech32 with this human-readable part. The text must begin with `start`: Bech32 permits upper case and lower
/// case, but age permits only one of them.
fn parse(text: &str, hrp: Hrp, start: &str) -> Option<Key> {
    let parsed = CheckedHrpstring::new::<Bech32>(text).ok()?;
    if !text.starts_with(start) || parsed.hrp() != hrp || parsed.byte_iter().len() != 32 {
        return None;
    }
    let mut bytes = Key::default();
    bytes.iter_mut().zip(parsed.byte_iter()).for_each(|(place, byte)| *place = byte);
    Some(bytes)
}

/// Encrypts content of at most 64 KiB to recipients; `None` if the system provides no random numbers.
pub(crate) fn seal_to(recipients: &[Recipient], content: &[u8]) -> Option<Vec<u8>> {
    seal(content, |file_key| {
        let stanzas = recipients.iter().map(|Recipient(recipient)| {
            let ephemeral = Identity::generate()?.0;
            let share = PublicKey::from(&ephemeral);
            let key = x25519_key(&ephemeral, recipient, &share, recipient)?;
            Some(stanza(&[X25519, &BASE64.encode(share.as_bytes())], &encrypt(&key, &[0; 12], file_key)))
        });
        stanzas.collect()
    })
}

/// Encrypts content of at most 64 KiB with a passphrase and this scrypt work factor; `None` if the system provides no random numbers.
pub(crate) fn seal_by_passphrase(passphrase: &str, work: u8, content: &[u8]) -> Option<Vec<u8>> {
    seal(content, |file_key| {
        let mut salt = [0; 16];
        random(&mut salt).ok()?;
        let key = scrypt_key(passphrase, &salt, work)?;
        Some(stanza(&[SCRYPT, &BASE64.encode(salt), &work.to_string()], &encrypt(&key, &[0; 12], file_key)))
    })
}

fn seal(content: &[u8], stanzas: impl FnOnce(&[u8]) -> Option<String>) -> Option<Vec<u8>> {
    let (mut file_key, mut nonce) = (FileKey::default(), [0; 16]);
    random(&mut *file_key).ok()?;
    random(&mut nonce).ok()?;
    let mut header = format!("{VERSION}\n{}---", stanzas(&*file_key)?);
    let mac = mac(&file_key, header.as_bytes()).finalize().into_bytes();
    header += &format!(" {}\n", BASE64.encode(mac));
    let sealed = encrypt(&derive(&*file_key, &nonce, b"payload"), &LAST_CHUNK, content);
    Some([header.as_bytes(), &nonce, &sealed].concat())
}

/// The text of a recipient stanza.
fn stanza(arguments: &[&str], body: &[u8]) -> String {
    let mut text = format!("-> {}\n", arguments.join(" "));
    let encoded = BASE64.encode(body);
    for line in encoded.as_bytes().chunks(LINE) {
        text.extend(line.iter().map(|&byte| char::from(byte)));
        text.push('\n');
    }
    // The last line of a body must be shorter than a full line.
    if encoded.len().is_multiple_of(LINE) {
        text.push('\n');
    }
    text
}

/// A recipient stanza.
struct Stanza<'a> {
    arguments: Vec<&'a str>,
    body: Vec<u8>,
}

/// An age file whose header has been read.
pub(crate) struct File<'a> {
    stanzas: Vec<Stanza<'a>>,
    /// The bytes that the MAC authenticates.
    header: &'a [u8],
    mac: Vec<u8>,
    /// A nonce and a chunk.
    payload: &'a [u8],
}

impl<'a> File<'a> {
    /// Reads the header; `None` if it is malformed.
    pub(crate) fn read(file: &'a [u8]) -> Option<File<'a>> {
        let mut rest = file;
        let mut stanzas = Vec::new();
        if line(&mut rest)? != VERSION {
            return None;
        }
        loop {
            let start = file.len() - rest.len();
            let text = line(&mut rest)?;
            if let Some(mac) = text.strip_prefix("--- ") {
                let mac = BASE64.decode(mac).ok()?;
                return Some(File { stanzas, header: &file[..start + 3], mac, payload: rest });
            }
            let arguments = text.strip_prefix("-> ")?.split(' ').collect::<Vec<_>>();
            let is_valid = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
            if !arguments.iter().all(is_valid) {
                return None;
            }
            let mut encoded = String::new();
            loop {
                let text = line(&mut rest)?;
                encoded += text;
                match text.len() {
                    LINE => {}
                    0..LINE => break,
                    _ => return None,
                }
            }
            stanzas.push(Stanza { arguments, body: BASE64.decode(encoded).ok()? });
        }
    }

    /// True if a passphrase opens the file, which then must have no other recipient.
    pub(crate) fn has_passphrase(&self) -> bool {
        self.stanzas.iter().any(|stanza| stanza.arguments[0] == SCRYPT)
    }

    /// Opens the file by one of the identities.
    pub(crate) fn open_by(&self, identities: &[Identity]) -> Result<Zeroizing<Vec<u8>>, Failure> {
        // A file with a passphrase has no other recipients, so no identity can open it.
        if self.has_passphrase() {
            return Err(Failure::Damaged);
        }
        for stanza in self.stanzas.iter().filter(|stanza| stanza.arguments[0] == X25519) {
            let [_, share] = stanza.arguments[..] else { return Err(Failure::Damaged) };
            let share: [u8; 32] = decode(share).ok_or(Failure::Damaged)?;
            let share = PublicKey::from(share);
            for identity in identities {
                let key = x25519_key(&identity.0, &share, &share, &identity.recipient().0)
                    .ok_or(Failure::Damaged)?;
                if let Some(file_key) = unwrap(&key, stanza)? {
                    return self.open(&file_key);
                }
            }
        }
        Err(Failure::NoMatch)
    }

    /// Opens the file by a passphrase, with a scrypt work factor of at most `most`.
    pub(crate) fn open_by_passphrase(
        &self,
        passphrase: &str,
        most: u8,
    ) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let [stanza] = &self.stanzas[..] else { return Err(Failure::Damaged) };
        if stanza.arguments[0] != SCRYPT {
            return Err(Failure::NoMatch);
        }
        let [_, salt, work] = stanza.arguments[..] else { return Err(Failure::Damaged) };
        let salt: [u8; 16] = decode(salt).ok_or(Failure::Damaged)?;
        let is_number = !work.starts_with('0') && work.bytes().all(|byte| byte.is_ascii_digit());
        let work: u8 = work.parse().ok().filter(|_| is_number).ok_or(Failure::Damaged)?;
        if work > most {
            return Err(Failure::Work(work));
        }
        let key = scrypt_key(passphrase, &salt, work).ok_or(Failure::Damaged)?;
        self.open(&unwrap(&key, stanza)?.ok_or(Failure::WrongPassphrase)?)
    }

    /// Checks the header, and opens the payload.
    fn open(&self, file_key: &FileKey) -> Result<Zeroizing<Vec<u8>>, Failure> {
        mac(file_key, self.header).verify_slice(&self.mac).map_err(|_| Failure::Damaged)?;
        let (nonce, chunk) = self.payload.split_first_chunk::<16>().ok_or(Failure::Damaged)?;
        decrypt(&derive(&**file_key, nonce, b"payload"), &LAST_CHUNK, chunk).ok_or(Failure::Damaged)
    }
}

/// The next line, without its end.
fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    let text = rest.split_off(..=end)?;
    str::from_utf8(&text[..end]).ok()
}

/// Decodes an argument of a stanza to this number of bytes; `None` if the argument has another length.
fn decode<const N: usize>(argument: &str) -> Option<[u8; N]> {
    BASE64.decode(argument).ok()?.try_into().ok()
}

/// Decrypts the file key in a stanza; `None` if the key is another one.
fn unwrap(key: &Key, stanza: &Stanza<'_>) -> Result<Option<FileKey>, Failure> {
    // Bodies of another length are refused, because a longer body could be made such that several keys decrypt it.
    if stanza.body.len() != 16 + 16 {
        return Err(Failure::Damaged);
    }
    Ok(decrypt(key, &[0; 12], &stanza.body).map(|opened| {
        let mut file_key = FileKey::default();
        file_key.copy_from_slice(&opened);
        file_key
    }))
}

/// The key that wraps the file key for a recipient; `None` if the shared secret is zero.
fn x25519_key(
    secret: &StaticSecret,
    other: &PublicKey,
    share: &PublicKey,
    recipient: &PublicKey,
) -> Option<Key> {
    let shared = secret.diffie_hellman(other);
    let salt = [*share.as_bytes(), *recipient.as_bytes()].concat();
    shared.was_contributory().then(|| derive(shared.as_bytes(), &salt, X25519_LABEL))
}

fn scrypt_key(passphrase: &str, salt: &[u8; 16], work: u8) -> Option<Key> {
    let parameters = scrypt::Params::new(work, 8, 1, 32).ok()?;
    let mut key = Key::default();
    scrypt::scrypt(passphrase.as_bytes(), &[SCRYPT_LABEL, salt].concat(), &parameters, &mut *key).ok()?;
    Some(key)
}

/// HKDF with SHA-256.
fn derive(secret: &[u8], salt: &[u8], label: &[u8]) -> Key {
    let mut key = Key::default();
    Hkdf::<Sha256>::new(Some(salt), secret).expand(label, &mut *key).expect("32 bytes are few");
    key
}

/// The MAC of a header.
fn mac(file_key: &FileKey, header: &[u8]) -> Hmac<Sha256> {
    let key = derive(&**file_key, &[], b"header");
    let mac = <Hmac<Sha256> as Mac>::new_from_slice(&*key).expect("HMAC takes keys of any length");
    mac.chain_update(header)
}

fn encrypt(key: &Key, nonce: &[u8; 12], plain: &[u8]) -> Vec<u8> {
    let cipher = ChaCha20Poly1305::new((&**key).into());
    cipher.encrypt(Nonce::from_slice(nonce), plain).expect("the plaintext is short")
}

fn decrypt(key: &Key, nonce: &[u8; 12], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let cipher = ChaCha20Poly1305::new((&**key).into());
    cipher.decrypt(Nonce::from_slice(nonce), sealed).ok().map(Zeroizing::new)
}

#[cfg(test)]
mod tests;
