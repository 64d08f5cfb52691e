//! The names of outputs: `.enc` is added by encryption and removed by decryption.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::aead::Direction;

const SUFFIX: &[u8] = b".enc";

/// The name of the output for an input with this name; `None` if there is to be no output.
pub(super) fn of_output(direction: Direction, input: &OsStr) -> Option<OsString> {
    match direction {
        Direction::Encrypt => Some(encrypted(input)),
        Direction::Decrypt => decrypted(input),
    }
}

/// Converts `report.pdf` to `report.pdf.enc`.
pub(super) fn encrypted(name: &OsStr) -> OsString {
    OsString::from_vec([name.as_bytes(), SUFFIX].concat())
}

/// Converts `report.pdf.enc` to `report.pdf`. Returns `None` for a name without the suffix, or if no file name would
/// remain.
pub(super) fn decrypted(name: &OsStr) -> Option<OsString> {
    let stem = name.as_bytes().strip_suffix(SUFFIX)?;
    let is_name = !matches!(stem, b"" | b"." | b"..") && !stem.contains(&b'/');
    is_name.then(|| OsString::from_vec(stem.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_is_added_and_removed() {
        for name in ["a", "a.txt", ".hidden", "a.enc", " "] {
            let name = OsStr::new(name);
            assert_eq!(decrypted(&encrypted(name)).as_deref(), Some(name));
        }
        let not_utf8 = OsStr::from_bytes(b"\xff\xfe");
        assert_eq!(decrypted(&encrypted(not_utf8)).as_deref(), Some(not_utf8));
    }

    #[test]
    fn names_outside_the_folder_are_refused() {
        for name in [".enc", "..enc", "...enc", "a", "a.ENC", "enc", "a.enc.bak"] {
            assert_eq!(decrypted(OsStr::new(name)), None, "{name}");
        }
    }
}
