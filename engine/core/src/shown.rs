//! Text that a user gave, as messages show it: a name is shown, and a key that was given in place of a name is not.
//!
//! A user can give a key where a name or a path is expected. A message that repeats this text puts the key into a log.

use std::borrow::Cow;
use std::path::Path;

/// The least number of hexadecimal digits of a key: 16 bytes.
const HEX_DIGITS: usize = 32;
/// The numbers of base64 digits of 16, 24, 32, 48 and 64 bytes, without padding.
const KEY_LENGTHS: [usize; 5] = [22, 32, 43, 64, 86];
/// A text that starts like a key file or an identity is taken for one if at least this number of characters of a key follow. Names of
/// files can have the same start.
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
/// and bytes that are not text. About 1 % of the keys of 16 bytes in base64 look like words and are not recognised.
pub fn may_be_key(text: &[u8]) -> bool {
    is_secret(text) || is_raw_key(text) || text.split(|&byte| !is_base64(byte)).any(may_be_digits)
}

/// True if a text is nothing but a key: [`is_secret`], digits in hex or base64, or as many bytes as a key that are not text. Digits that
/// are only a part of the text, as in a path, do not count.
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

/// The text that [`name`] returns in place of a key.
pub const KEY_AS_NAME: &str = "(a key, not shown)";

/// The path that [`path`] returns in place of a secret.
pub const KEY_AS_PATH: &str = "(a key in place of a path, not shown)";

#[cfg(test)]
mod tests;
