//! Quoting of file names in messages.

use std::ffi::OsStr;
use std::fmt::{self, Display, Write as _};
use std::path::Path;

use lockstep_core::shown;

/// Quotes a file name for a message. The result is in single quotes. All characters that could control a terminal,
/// start a new line or change the direction of the text are escaped.
///
/// Control characters and bytes that are not UTF-8 appear in forms such as `\n`, `\t` or `\x1b`. Other non-printing
/// characters appear in the form `\u{202e}`. A backslash or a single quote is preceded by a backslash. A key file's text or an age
/// identity, which somebody has given in place of a path, is not shown.
///
/// ```
/// assert_eq!(lockstep::quoted("notes.txt").to_string(), "'notes.txt'");
/// assert_eq!(lockstep::quoted("a\x1b[31m\nb").to_string(), r"'a\x1b[31m\nb'");
/// ```
pub fn quoted<P: AsRef<Path> + ?Sized>(path: &P) -> impl Display + '_ {
    let is_secret = shown::is_secret(path.as_ref().as_os_str().as_encoded_bytes());
    Quoted(if is_secret { OsStr::new(shown::KEY_AS_PATH) } else { path.as_ref().as_os_str() })
}

struct Quoted<'a>(&'a OsStr);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('\'')?;
        for part in self.0.as_encoded_bytes().utf8_chunks() {
            part.valid().chars().try_for_each(|c| character(f, c))?;
            part.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        f.write_char('\'')
    }
}

fn character(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        '\\' | '\'' => write!(f, "\\{c}"),
        _ if c.is_control() => match u32::from(c) {
            code @ ..0x80 => write!(f, "\\x{code:02x}"),
            code => write!(f, "\\u{{{code:x}}}"),
        },
        _ if is_invisible(c) => write!(f, "\\u{{{:x}}}", u32::from(c)),
        _ => f.write_char(c),
    }
}

/// True for Unicode characters that end a line or change the order or the visibility of other characters. Control
/// characters are not included.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
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
}
