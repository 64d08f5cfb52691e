
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::*;

#[test]
fn non_printing_characters_are_escaped() {
    let cases: [(&[u8], &str); 8] = [
        (b"plain name.txt", "'plain name.txt'"),
        ("caf\u{e9} \u{4e2d}".as_bytes(), "'caf\u{e9} \u{4e2d}'"),
        (b"a\x1b[2J\x07\x7f", r"'a\x1b[2J\x07\x7f'"),
        (b"two\nlines\r\t", r"'two\nlines\r\t'"),
        ("\u{9b}31m".as_bytes(), r"'\u{9b}31m'"),
        ("gpj\u{202e}exe.\u{2028}".as_bytes(), r"'gpj\u{202e}exe.\u{2028}'"),
        (b"\xff\xc3(", r"'\xff\xc3('"),
        (br"it's a \ here", r"'it\'s a \\ here'"),
    ];
    for (name, expected) in cases {
        assert_eq!(quoted(OsStr::from_bytes(name)).to_string(), expected);
    }
}
