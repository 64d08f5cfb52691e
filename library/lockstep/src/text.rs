//! Encodings of small text files: keys, identities, recipients, passphrases. Editors and shells of Windows write a byte order
//! mark (U+FEFF) at the start of UTF-8, and the `>` of PowerShell 5 writes UTF-16.

use zeroize::{Zeroize, Zeroizing};

/// The encoding of a text, as its byte order mark shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    Utf8,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
}

impl Encoding {
    /// The encoding of a text that begins with these bytes, and the length of its byte order mark in bytes.
    pub fn of(text: &[u8]) -> (Encoding, usize) {
        match text {
            [0xff, 0xfe, ..] => (Encoding::Utf16Le, 2),
            [0xfe, 0xff, ..] => (Encoding::Utf16Be, 2),
            [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
            _ => (Encoding::Utf8, 0),
        }
    }

    /// The code unit of UTF-16 that these two bytes encode.
    pub fn unit(self, pair: [u8; 2]) -> u16 {
        match self {
            Encoding::Utf16Be => u16::from_be_bytes(pair),
            Encoding::Utf8 | Encoding::Utf16Le => u16::from_le_bytes(pair),
        }
    }
}

/// Returns the text without its byte order mark, as UTF-8 if it is UTF-16; `None` for invalid UTF-16. UTF-8 is not checked.
/// The result is wiped when it is dropped.
pub fn to_utf8(text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (encoding, mark) = Encoding::of(text);
    let rest = &text[mark..];
    if encoding == Encoding::Utf8 {
        return Some(Zeroizing::new(rest.to_vec()));
    }
    let pairs = rest.as_chunks::<2>();
    if !pairs.1.is_empty() {
        return None;
    }
    // Two bytes of UTF-16 become at most three bytes of UTF-8. The buffer does not grow, since that would leave copies in freed
    // memory.
    let mut utf8 = Zeroizing::new(Vec::with_capacity(rest.len() / 2 * 3));
    for character in char::decode_utf16(pairs.0.iter().map(|pair| encoding.unit(*pair))) {
        let mut buffer = [0; 4];
        utf8.extend_from_slice(character.ok()?.encode_utf8(&mut buffer).as_bytes());
        buffer.zeroize();
    }
    Some(utf8)
}

#[cfg(test)]
mod tests;
