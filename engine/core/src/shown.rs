//! What messages show of text that a user gave: a name is shown, a key that was given in its place is not.
//!
//! A user can give a key where a name or a path is expected. A message that repeats this text puts the key into a log.

use std::borrow::Cow;
use std::path::Path;

/// The least number of hexadecimal digits of a key: 16 bytes.
const HEX_DIGITS: usize = 32;
/// The numbers of base64 digits of 16, 24, 32, 48 and 64 bytes, without padding.
const KEY_LENGTHS: [usize; 5] = [22, 32, 43, 64, 86];
/// The number of characters after the start of a key file or of an identity from which on a text is taken for one. Names of files can
/// have the same start.
const SECRET_CHARACTERS: usize = 16;

/// True if a text contains the form of a key file (`lockstep-key-256 ...`), of an age identity (`AGE-SECRET-KEY-1...`,
/// `AGE-PLUGIN-NAME-1...`) or of a private key in PEM.
pub fn is_secret(text: &[u8]) -> bool {
    let after = |start: &'static str| {
        let windows = text.windows(start.len()).enumerate();
        let found = windows.filter(move |(_, part)| part.eq_ignore_ascii_case(start.as_bytes()));
        found.map(move |(at, _)| &text[at + start.len()..])
    };
    let run = |text: &[u8], is: fn(&u8) -> bool| text.iter().take_while(|byte| is(byte)).count();
    let is_key_file = |rest: &[u8]| {
        let digits = &rest[run(rest, u8::is_ascii_digit)..];
        let digits = &digits[run(digits, |byte| !byte.is_ascii_alphanumeric()).min(2)..];
        run(digits, u8::is_ascii_hexdigit) >= SECRET_CHARACTERS
    };
    let is_identity = |rest: &[u8]| {
        let parts =
            rest.split(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'_'))).take(8);
        parts.into_iter().any(|part| part.starts_with(b"1") && part.len() > SECRET_CHARACTERS)
    };
    after("lockstep-key-").any(is_key_file)
        || after("age-secret-key-").any(is_identity)
        || after("age-plugin-").any(is_identity)
        || after("-----begin").next().is_some() && after("private key").next().is_some()
}

/// True if a text can be a key: [`is_secret`], or a part of it has the form of a key in hex or base64, or it has the length of a key
/// and bytes that are not text. Some 1 % of the keys of 16 bytes in base64 look like words and are not recognised.
pub fn may_be_key(text: &[u8]) -> bool {
    is_secret(text) || is_raw_key(text) || text.split(|&byte| !is_base64(byte)).any(may_be_digits)
}

/// True if a text is nothing but a key: [`is_secret`], digits in hex or base64, or as many bytes as a key that are not text. A path in
/// a folder is not like this.
pub fn is_only_key(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let is_hex = digits.len() >= HEX_DIGITS && digits.iter().all(u8::is_ascii_hexdigit);
    is_secret(text)
        || is_raw_key(text)
        || is_hex
        || digits.iter().all(|&byte| is_base64(byte)) && is_base64_key(digits)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// True for digits of a key in hex or base64.
fn may_be_digits(run: &[u8]) -> bool {
    let hex = run.split(|byte| !byte.is_ascii_hexdigit()).map(<[u8]>::len).max();
    hex.is_some_and(|digits| digits >= HEX_DIGITS) || parts_of_key_length(run).any(is_base64_key)
}

/// The parts of a run of base64 digits that begin at its start or after a separator, end at its end or before a separator, and are as
/// long as a key. Names use some of the digits as separators.
fn parts_of_key_length(run: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_separator = |byte: &u8| !byte.is_ascii_alphanumeric();
    let starts = (0..run.len()).filter(move |&at| at == 0 || is_separator(&run[at - 1]));
    starts.flat_map(move |at| {
        KEY_LENGTHS.iter().filter_map(move |&len| {
            let part = run.get(at..at + len)?;
            run.get(at + len).is_none_or(is_separator).then_some(part)
        })
    })
}

/// True for base64 digits of 16, 24, 32, 48 or 64 bytes, without padding, that are not words. In words, upper case, lower case
/// and digits alternate less often than in each third place; in random digits they alternate in two of three places.
fn is_base64_key(digits: &[u8]) -> bool {
    let class = |byte: u8| (byte.is_ascii_uppercase(), byte.is_ascii_lowercase(), byte.is_ascii_digit());
    let changes = digits.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    let is_mixed = digits.iter().any(u8::is_ascii_uppercase) && digits.iter().any(u8::is_ascii_lowercase);
    KEY_LENGTHS.contains(&digits.len()) && is_mixed && 3 * changes >= digits.len()
}

/// True for the bytes of a key as text.
fn is_raw_key(text: &[u8]) -> bool {
    let characters = str::from_utf8(text).map_or(text.len(), |text| text.chars().count());
    let is_text = str::from_utf8(text).is_ok_and(|text| !text.chars().any(char::is_control));
    !is_text && [16, 24, 32, 48, 64].iter().any(|len| [characters, text.len()].contains(len))
}

/// A name that a user gave, for a message. If it can be a key, other words take its place.
///
/// ```
/// use lockstep_core::shown::name;
///
/// assert_eq!(name("cuda:7"), "cuda:7");
/// assert_eq!(name("000102030405060708090a0b0c0d0e0f"), "(a key, not shown)");
/// ```
pub fn name(given: &str) -> Cow<'_, str> {
    if may_be_key(given.as_bytes()) { KEY_AS_NAME.into() } else { given.into() }
}

/// A path that a user gave, for an error. If it is a secret, or if no such file exists and it is nothing but a key, other words
/// take its place.
pub fn path(given: &Path, exists: bool) -> Cow<'_, Path> {
    let text = given.as_os_str().as_encoded_bytes();
    let is_key = is_secret(text) || !exists && is_only_key(text);
    if is_key { Path::new(KEY_AS_PATH).into() } else { given.into() }
}

/// What [`name`] returns for a key.
pub const KEY_AS_NAME: &str = "(a key, not shown)";

/// What [`path`] returns for a secret.
pub const KEY_AS_PATH: &str = "(a key in place of a path, not shown)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_recognised() {
        let keys: [&[u8]; 16] = [
            b"lockstep-key-256 000102030405060708090a0b0c0d0e0f",
            b"folder/AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS",
            b"age-secret-key-pq-1qqqsyqcyq5rqwzqfpg9scrg",
            b"AGE-PLUGIN-YUBIKEY-1QQQSYQCYQ5RQWZQFPG",
            b"-----BEGIN OPENSSH PRIVATE KEY-----",
            b"000102030405060708090a0b0c0d0e0f",
            b"000102030405060708090A0B0C0D0E0F1",
            b"--key=000102030405060708090a0b0c0d0e0f",
            b"-k000102030405060708090a0b0c0d0e0f",
            b"AAECAwQFBgcICQoLDA0ODw==",
            b"xkQzPbWfYhTgRmNjLcVvSd",
            b"cpu/jxtsKtlOcFOx5vipLEfTDlqbxNHn8gg2QZreXLcPI9g=",
            b"b'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='",
            b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f",
            &[0xfe; 32],
            "\u{80}\u{81}abcdefghijklmn".as_bytes(),
        ];
        for key in keys {
            assert!(may_be_key(key), "{}", key.escape_ascii());
        }
    }

    #[test]
    fn names_are_not_keys() {
        for name in [
            "",
            "auto",
            "cuda:0",
            "cuda/coarse-shared",
            "opengl/gems-two-channels",
            "person.addresses.list.element.postal_code",
            "XAES-256-GCM",
            "a long name of a column, with words and 3 numbers: 1234567890",
            "deadbeef",
            "caf\u{e9}",
            "Customer_Address_Line_1_Type",
            "addressLine1OfTheCustomerRecord",
            "addressLine1OfCustomer",
            "VGG16_block5_conv3_kernel_M",
            "feature-Vector-Embedding-768",
            "conv_1_a_2_b_3_c_4_d_5",
            "lockstep-key-laptop.txt",
            "age-plugin-yubikey/README-1.md",
            "-----begin",
        ] {
            assert!(!may_be_key(name.as_bytes()), "{name}");
            assert_eq!(super::name(name), name);
        }
    }

    #[test]
    fn names_of_files_can_be_checksums() {
        let sum = Path::new("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
        assert_eq!(path(sum, true), sum);
        assert_eq!(path(sum, false), Path::new(KEY_AS_PATH));
        let identity = Path::new("AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS");
        assert_eq!(path(identity, true), Path::new(KEY_AS_PATH));
        assert_eq!(path(Path::new("lockstep-key-2026"), false), Path::new("lockstep-key-2026"));
        let in_a_folder = Path::new("objects").join(sum);
        assert_eq!(path(&in_a_folder, false), in_a_folder);
        let words = Path::new("a-name-of-more-than-22-characters");
        assert_eq!(path(words, false), words);
    }
}
