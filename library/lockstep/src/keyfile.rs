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

/// True if users other than the owner can read or change a key file. Callers should then print a warning.
///
/// # Errors
/// [`Error::File`].
pub fn is_open_to_others(path: &Path) -> Result<bool> {
    let metadata = std::fs::metadata(path).map_err(Error::file("look at the key file", path))?;
    Ok(is_file_of_others(&metadata))
}

/// True for a regular file that others than its owner can access.
#[doc(hidden)]
pub fn is_file_of_others(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o077 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte in the place of the last digit, in keys of both lengths.
    #[test]
    fn hex_digits() {
        for (prefix, len) in [("lockstep-key-256 ", 64), ("lockstep-key-128 ", 32)] {
            for last in 0..=255u8 {
                let mut text = [prefix.as_bytes(), &vec![b'a'; len - 1]].concat();
                text.push(last);
                let value = char::from(last).to_digit(16);
                match parse(&text) {
                    Ok(key) => {
                        assert_eq!(key.as_bytes().last().map(|byte| u32::from(byte & 15)), value, "{last}");
                        assert_eq!(
                            to_text(&key).as_bytes(),
                            [&text.to_ascii_lowercase()[..], b"\n"].concat()
                        );
                    }
                    Err(error) => {
                        assert!(value.is_none() && matches!(error, Error::KeyFile { .. }), "{last}")
                    }
                }
            }
        }
    }

    #[test]
    fn round_trip() {
        for suite in [Suite::Cobblestone128, Suite::Cobblestone256] {
            let key = FileKey::generate_for(suite).unwrap();
            let text = to_text(&key);
            assert_eq!(text.len(), 17 + 2 * suite.key_len() + 1);
            assert_eq!(parse(text.as_bytes()).unwrap().as_bytes(), key.as_bytes());
            assert_eq!(parse(text.trim_end().as_bytes()).unwrap().suite(), suite);
            assert_eq!(
                parse(text.to_uppercase().replace("LOCKSTEP-KEY", "lockstep-key").as_bytes())
                    .unwrap()
                    .as_bytes(),
                key.as_bytes()
            );
        }
        let key = FileKey::from_bytes(&(0..32).collect::<Vec<u8>>()).unwrap();
        assert_eq!(
            *to_text(&key),
            "lockstep-key-256 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
        );
    }

    #[test]
    fn line_breaks_of_every_system_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for suite in [Suite::Cobblestone128, Suite::Cobblestone256] {
            let key = FileKey::generate_for(suite).unwrap();
            for end in ["", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n", "\n\r\n", &"\r\n".repeat(BREAKS / 2)] {
                let text = format!("{}{end}", to_text(&key).trim_end());
                assert_eq!(parse(text.as_bytes()).unwrap().as_bytes(), key.as_bytes(), "{end:?}");
                std::fs::write(&path, text).unwrap();
                assert_eq!(read(&path).unwrap().as_bytes(), key.as_bytes(), "{end:?}");
            }
        }
    }

    #[test]
    fn encodings_of_other_systems_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for suite in [Suite::Cobblestone128, Suite::Cobblestone256] {
            let key = FileKey::generate_for(suite).unwrap();
            let text = format!("\u{feff}{}\r\n", to_text(&key).trim_end());
            let utf16 =
                |to_bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to_bytes).collect::<Vec<u8>>();
            for bytes in [text.as_bytes().to_vec(), utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)] {
                assert_eq!(parse(&bytes).unwrap().as_bytes(), key.as_bytes());
                std::fs::write(&path, bytes).unwrap();
                assert_eq!(read(&path).unwrap().as_bytes(), key.as_bytes());
            }
        }
        assert!(matches!(parse(b"\xff\xfel"), Err(Error::KeyFile { .. })));
    }

    #[test]
    fn other_text_is_refused() {
        let good = to_text(&FileKey::from_bytes(&[0xab; 32]).unwrap());
        let good = good.trim_end();
        let bad = [
            String::new(),
            "\n".into(),
            format!(" {good}"),
            format!("{good} "),
            format!("{good}\r\n#"),
            format!("\n{good}"),
            good.replacen(" ab", " \r\nab", 1),
            format!("{good}0"),
            good[..good.len() - 1].into(),
            good.replace("256", "128"),
            good.replace("256", "192"),
            good.replace("256 ", "256  "),
            good.replacen("ab", "ag", 1),
            good.replacen("ab", "+1", 1),
            "AGE-SECRET-KEY-1".into(),
        ];
        for text in bad {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error, Error::KeyFile { .. }), "{text:?}");
            assert!(!error.to_string().contains("abab"));
        }
    }

    #[test]
    fn files_are_private_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = FileKey::generate().unwrap();
        create(&path, &key).unwrap();
        assert_eq!(read(&path).unwrap().as_bytes(), key.as_bytes());
        assert!(matches!(create(&path, &FileKey::generate().unwrap()), Err(Error::Exists { .. })));
        assert_eq!(read(&path).unwrap().as_bytes(), key.as_bytes());
        assert!(!is_open_to_others(&path).unwrap());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            assert!(is_open_to_others(&path).unwrap());
        }
        std::fs::write(&path, [b'x'; 10_000]).unwrap();
        assert!(matches!(read(&path), Err(Error::KeyFile { .. })));
        assert!(matches!(read(folder.path()), Err(Error::File { .. })));
        assert!(matches!(read(&folder.path().join("none")), Err(Error::File { .. })));
    }
}
