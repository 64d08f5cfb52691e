//! Key files. A key file is one line: `lockstep-key-256 ` and 64 hex digits, or `lockstep-key-128 ` and 32 hex digits. Its encoding
//! can be UTF-8, with or without a byte order mark, or UTF-16 with a byte order mark.

#[cfg(feature = "files")]
mod files;

#[cfg(feature = "files")]
pub use files::{create, is_open_to_others, open, read, read_open};
use zeroize::Zeroizing;

use crate::cobblestone::{FileKey, Suite};
use crate::error::{Error, Result, ensure};
use crate::text::to_utf8;

const PREFIXES: [(&str, Suite); 2] =
    [("lockstep-key-256 ", Suite::Cobblestone256), ("lockstep-key-128 ", Suite::Cobblestone128)];

/// Maximum length of the line of a key file.
const LINE: usize = 17 + 64;

/// Parses the text of a key file. After the line there may be any number of line breaks (LF or CR LF). A byte order mark at the
/// start is skipped. If it is a byte order mark of UTF-16, the text is decoded as UTF-16. Any other text is an error.
///
/// # Errors
/// [`Error::KeyFile`], which contains no part of the text.
pub fn parse(text: &[u8]) -> Result<FileKey> {
    let bad = |reason| Error::KeyFile { path: None, reason };
    let text = to_utf8(text).ok_or(bad("it is not valid UTF-16"))?;
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
    let line = &text[..end];
    let found =
        PREFIXES.iter().find_map(|(prefix, suite)| Some((line.strip_prefix(prefix.as_bytes())?, *suite)));
    let (digits, suite) = found.ok_or(bad("it does not start with `lockstep-key-`"))?;
    ensure(digits.len() == 2 * suite.key_len(), || bad("the number of digits is wrong"))?;
    let mut bytes = Zeroizing::new([0; 32]);
    let decoded = base16ct::mixed::decode(digits, &mut bytes[..]);
    FileKey::from_bytes(decoded.map_err(|_| bad("a character is not a hex digit"))?)
}

/// The text of a key file, with its newline.
pub fn to_text(key: &FileKey) -> Zeroizing<String> {
    let prefix = PREFIXES.iter().find(|(_, suite)| *suite == key.suite()).map_or("", |(prefix, _)| prefix);
    // Allocates the whole size at once, since a growing buffer would leave copies in freed memory.
    let mut text = Zeroizing::new(String::with_capacity(LINE + 1));
    text.push_str(prefix);
    let mut digits = Zeroizing::new([0; 64]);
    let digits = base16ct::lower::encode_str(key.as_bytes(), &mut digits[..]);
    text.push_str(digits.expect("two digits for each byte"));
    text.push('\n');
    text
}

#[cfg(all(test, feature = "files"))]
mod tests;
