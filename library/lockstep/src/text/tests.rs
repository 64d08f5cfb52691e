
use super::*;

/// The text in UTF-16 with a byte order mark.
fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(to_bytes).collect()
}

#[test]
fn marks_and_utf16_are_removed() {
    for text in ["", "a", "lockstep-key-256 0", "caf\u{e9} \u{4e2d} \u{1f511}"] {
        let marked = ["\u{feff}".as_bytes(), text.as_bytes()].concat();
        for bytes in
            [text.as_bytes().to_vec(), marked, utf16(text, u16::to_le_bytes), utf16(text, u16::to_be_bytes)]
        {
            assert_eq!(&to_utf8(&bytes).unwrap()[..], text.as_bytes(), "{bytes:x?}");
        }
    }
    // An odd number of bytes, and half of a surrogate pair.
    assert!(to_utf8(b"\xff\xfea").is_none() && to_utf8(b"\xff\xfe\x00\xd8").is_none());
    assert_eq!(&to_utf8(b"\xff").unwrap()[..], b"\xff");
}
