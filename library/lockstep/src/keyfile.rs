//! Key files. A key file is one line: `lockstep-key-256 ` and 64 hex digits, or `lockstep-key-128 ` and 32 hex digits. It is
//! read in UTF-8 with or without a byte order mark, and in UTF-16 with one.

use std::fs::{File, Metadata};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::cobblestone::{FileKey, Suite};
use crate::error::{Error, Result};
use crate::output::{FileMode, OutputFile, OutputOptions};
use crate::read;
use crate::text::to_utf8;

const PREFIXES: [(&str, Suite); 2] =
    [("lockstep-key-256 ", Suite::Cobblestone256), ("lockstep-key-128 ", Suite::Cobblestone128)];

/// Maximum length of the line of a key file.
const LINE: usize = 17 + 64;

/// Maximum number of bytes of line breaks after the line.
const BREAKS: usize = 16;

/// Maximum length of a key file in UTF-16 with its byte order mark, and one byte more to detect longer files.
const ROOM: usize = 2 * (LINE + BREAKS + 1) + 1;

/// Parses the text of a key file. After the line there may be any number of line breaks (LF or CR LF). A byte order mark at the
/// start is skipped; after one of UTF-16 the text is UTF-16. Any other text is an error.
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
    if digits.len() != 2 * suite.key_len() {
        return Err(bad("the number of digits is wrong"));
    }
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
    text.push_str(
        base16ct::lower::encode_str(key.as_bytes(), &mut digits[..]).expect("two digits for each byte"),
    );
    text.push('\n');
    text
}

/// Reads a key file. For a FIFO, the call waits until another process has opened it for writing, and until its writers have closed it.
///
/// # Errors
/// [`Error::File`], [`Error::KeyFile`].
pub fn read(path: &Path) -> Result<FileKey> {
    read_open(open(path)?, path)
}

/// Opens a key file for [`read_open`].
///
/// # Errors
/// [`Error::File`].
pub fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(Error::file("open the key file", path))
}

/// Reads an open key file to its end. The path is for messages.
///
/// # Errors
/// Those of [`read`].
pub fn read_open(mut file: File, path: &Path) -> Result<FileKey> {
    let mut text = Zeroizing::new([0; ROOM]);
    let got = read::full(&mut file, &mut text[..]).map_err(Error::file("read the key file", path))?;
    let name = |reason| Error::KeyFile { path: Some(path.into()), reason };
    if got == ROOM {
        return Err(name("it is too long"));
    }
    parse(&text[..got]).map_err(|error| match error {
        Error::KeyFile { reason, .. } => name(reason),
        other => other,
    })
}

/// Creates a key file that only its owner can read, and puts the file on stable storage. An existing file is never
/// overwritten, since it may contain the only copy of a key.
///
/// # Errors
/// [`Error::Exists`], [`Error::File`].
pub fn create(path: &Path, key: &FileKey) -> Result<()> {
    let mode = FileMode::PRIVATE;
    let mut file = OutputFile::create(
        path,
        OutputOptions { mode, sync: true, regular_only: true, ..Default::default() },
    )?;
    file.write_all(to_text(key).as_bytes()).map_err(Error::file("write the key file", path))?;
    file.commit()
}

/// True for a regular file that users other than its owner can read, write or execute. For a key file, the caller should then
/// print a warning.
pub fn is_open_to_others(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o077 != 0
}

#[cfg(test)]
mod tests;
