//! Recognition of files that Lockstep has not encrypted, for error messages. The first bytes of a message are random and can by
//! chance be the first bytes of any format. Therefore this module is used only after a key has failed, or if there is no key.

use crate::text::to_utf8;

/// Number of bytes from the start of a file that [`recognise`] uses.
pub const START: usize = 4096;

/// A format that is not a message for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    name: &'static str,
    advice: &'static str,
}

impl Foreign {
    /// The name of the format, with its article.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True for an encrypted file that was damaged or converted.
    pub fn is_damaged(&self) -> bool {
        [DAMAGED_ARMOR, CONVERTED].contains(&self.name)
    }
}

impl std::fmt::Display for Foreign {
    /// Writes the name of the format, and what to do with the file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.advice)
    }
}

const UNENCRYPTED: &str = "Lockstep has not encrypted it; check the name of the file";
const BY_AGE: &str =
    "decrypt it with age, or with an identity or a passphrase by the command `lockstep decrypt`";
const BY_IDENTITY: &str = "no key file opens it; use an identity or the passphrase";
const BY_GPG: &str = "decrypt it with gpg";
const BY_OPENSSL: &str = "decrypt it with openssl";
const BY_CMS: &str = "decrypt it with `openssl cms`";
const BY_PARQUET: &str = "use a reader of Parquet, such as the Python module `lockstep.parquet`";
const AS_BINARY: &str = "get a copy that was transferred as binary data";
const WITHOUT_TEXT: &str = "remove the text before `-----BEGIN AGE ENCRYPTED FILE-----`";

/// The condition by which a format is recognised.
enum Mark {
    /// The file begins with this constant.
    Start(&'static [u8]),
    /// The first bytes of the file pass this test.
    Test(fn(&[u8]) -> bool),
}
use Mark::{Start, Test};

/// The formats, each with its name and advice. The first format that is recognised is the result. A start that begins with a shorter
/// start of this list therefore precedes the shorter start.
const FORMATS: &[(Mark, &str, &str)] = &[
    (Test(is_damaged_armor), DAMAGED_ARMOR, "get an intact copy"),
    (Start(b"Salted__"), "a file of `openssl enc`", BY_OPENSSL),
    (Start(b"U2FsdGVkX1"), "a file of `openssl enc -a`", BY_OPENSSL),
    (Start(b"lockstep.file/v1\n"), WRAPPED, BY_IDENTITY),
    (Start(b"lockstep.file/v1\r"), CONVERTED_BREAKS, AS_BINARY),
    (Start(b"lockstep-key-"), "a Lockstep key file", "it is the key; give the encrypted file"),
    (Start(AGE_MAGIC), "an age file", BY_AGE),
    (Start(AGE_ARMOR), "an armored age file", "decrypt it with age or by the command `lockstep decrypt`"),
    (Start(b"-----BEGIN PGP "), "an OpenPGP message", BY_GPG),
    (Start(b"-----BEGIN CMS-----"), "a CMS message in PEM", BY_CMS),
    (Start(b"-----BEGIN PKCS7-----"), "a CMS message in PEM", BY_CMS),
    (Start(b"-----BEGIN "), "a PEM file", UNENCRYPTED),
    (Start(b"PK\x03\x04"), "a zip archive", UNENCRYPTED),
    (Start(b"PK\x05\x06"), "an empty zip archive", UNENCRYPTED),
    (Start(b"\xfd7zXZ\x00"), "an xz file", UNENCRYPTED),
    (Start(b"\x28\xb5\x2f\xfd"), "a Zstandard file", UNENCRYPTED),
    (Start(b"7z\xbc\xaf\x27\x1c"), "a 7z archive", UNENCRYPTED),
    (Start(b"PARE"), "a Parquet file with an encrypted footer", BY_PARQUET),
    (Start(b"PAR1"), "a Parquet file", BY_PARQUET),
    (Start(b"SQLite format 3\0"), "an SQLite database", UNENCRYPTED),
    (Start(b"%PDF-"), "a PDF file", UNENCRYPTED),
    (Test(is_newer), "a file of a newer version of Lockstep", "use that version"),
    // The fourth byte contains the flags of gzip, whose three highest bits are reserved and zero.
    (Test(|start| matches!(start, [0x1f, 0x8b, 0x08, ..0x20, ..])), "a gzip file", UNENCRYPTED),
    (
        Test(|start| start.starts_with(b"BZh") && start.get(4..10) == Some(b"1AY&SY")),
        "a bzip2 file",
        UNENCRYPTED,
    ),
    (Test(|start| start.get(257..262) == Some(b"ustar")), "a tar archive", UNENCRYPTED),
    (Test(is_openpgp), "an OpenPGP message", BY_GPG),
    (Test(is_cms), "a CMS message", BY_CMS),
    (Test(is_converted), CONVERTED, "its data are lost; encrypt again, directly to a file"),
    (Test(|start| has_line(start, AGE_ARMOR)), "text that contains an armored age file", WITHOUT_TEXT),
    (Test(|start| has_line(start, PGP_ARMOR)), "text that contains an OpenPGP message", BY_GPG),
    (Test(is_text), "text", UNENCRYPTED),
];

const WRAPPED: &str = "a file that Lockstep encrypted to recipients or with a passphrase";
const CONVERTED_BREAKS: &str = "a Lockstep file whose line breaks were converted, as for text";
const DAMAGED_ARMOR: &str = "an armored age file with a damaged first line";
const CONVERTED: &str = "an encrypted file that was converted from bytes to text, as by `>` of PowerShell";

/// The first bytes of an age file.
#[doc(hidden)]
pub const AGE_MAGIC: &[u8] = b"age-encryption.org/v";
/// The first line of an armored age file.
#[doc(hidden)]
pub const AGE_ARMOR: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";
const PGP_ARMOR: &[u8] = b"-----BEGIN PGP MESSAGE-----";

/// Recognises the format of a file by its first bytes. At most [`START`] bytes are used. The result is `None` for unknown formats.
/// It is also `None` for a message that is encrypted for a key, unless its random first bytes look like another format.
pub fn recognise(start: &[u8]) -> Option<Foreign> {
    let start = &start[..start.len().min(START)];
    let (_, name, advice) = FORMATS.iter().find(|(mark, ..)| match mark {
        Start(bytes) => start.starts_with(bytes),
        Test(is_recognised) => is_recognised(start),
    })?;
    Some(Foreign { name, advice })
}

/// True if the file begins with the first line of an envelope of any version. Version 1 is recognised before this test.
fn is_newer(start: &[u8]) -> bool {
    let Some(version) = start.strip_prefix(b"lockstep.file/v") else { return false };
    let digits = version.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=3).contains(&digits) && version.get(digits) == Some(&b'\n')
}

/// True if the file begins with the first packet of an OpenPGP message (RFC 9580). This packet contains a session key that is
/// encrypted to a public key (tag 1) or with a passphrase (tag 3).
fn is_openpgp(start: &[u8]) -> bool {
    // `body` begins after the tag and the length of the packet. The length has one or two bytes.
    let (tag, body) = match start {
        [tag @ (0x84 | 0x8c), _, body @ ..] | [tag @ (0xc1 | 0xc3), ..=191, body @ ..] => (tag, body),
        [tag @ 0x85, _, _, body @ ..] | [tag @ 0xc1, 192..=223, _, body @ ..] => (tag, body),
        _ => return false,
    };
    match (tag, body) {
        // After the version, version 4 has the cipher and the method that derives a key from the passphrase.
        (0x8c | 0xc3, [4, cipher, method, ..]) => matches!((cipher, method), (1..=13, 0 | 1 | 3 | 4)),
        (0x8c | 0xc3, [5 | 6, len, cipher, ..]) => matches!((len, cipher), (1..=40, 1..=13)),
        (0x8c | 0xc3, _) => false,
        // Version 3: a key identifier of 8 bytes, and then the algorithm: RSA, Elgamal, ECDH, X25519 or X448. Version 6: the length
        // of a fingerprint.
        (_, [3, rest @ ..]) => matches!(rest.get(8), Some(1..=3 | 16 | 18 | 25 | 26)),
        (_, body) => matches!(body, [6, 0 | 21 | 33, ..]),
    }
}

/// True for a SEQUENCE in DER or BER whose first element is an object identifier of PKCS #7 (1.2.840.113549.1.7).
fn is_cms(start: &[u8]) -> bool {
    const PKCS7: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07];
    start.first() == Some(&0x30) && (2..=6).any(|at| start.get(at..at + PKCS7.len()) == Some(PKCS7))
}

/// True if the file begins like an age file or an envelope that was converted to UTF-16, or to UTF-8 with a byte order mark.
fn is_converted(start: &[u8]) -> bool {
    [&b"age-encryption.org/v1"[..], b"lockstep.file/v1"].into_iter().any(|first| {
        // In UTF-16 with a byte order mark, an ASCII text takes 2 bytes more than twice its length; in UTF-8 it takes fewer.
        let text = start.get(..2 + 2 * first.len()).and_then(to_utf8);
        text.is_some_and(|text| text.starts_with(first)) && !start.starts_with(first)
    })
}

/// True if most bytes, but not all, are equal to the first line of an armored age file.
fn is_damaged_armor(start: &[u8]) -> bool {
    !start.starts_with(AGE_ARMOR)
        && start.iter().zip(AGE_ARMOR).filter(|(byte, armor)| byte == armor).count() >= AGE_ARMOR.len() - 4
}

/// True if a line of text begins with these bytes.
fn has_line(start: &[u8], bytes: &[u8]) -> bool {
    start.split(|&byte| byte == b'\n').any(|line| line.trim_ascii_start().starts_with(bytes))
}

/// True for at least 16 bytes of UTF-8 without control characters other than white space. The probability that 16 random bytes
/// look like text is less than 2^-20.
fn is_text(start: &[u8]) -> bool {
    let text = start.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    // Up to 3 bytes of the last character may be cut off from it.
    let is_whole = start.len() - text.len() <= 3;
    text.len() >= 16 && is_whole && !text.chars().any(|c| c.is_control() && !c.is_ascii_whitespace())
}

#[cfg(test)]
mod tests;
