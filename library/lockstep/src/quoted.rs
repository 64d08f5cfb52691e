//! Quoting of file names in messages.

use std::fmt::Display;
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
    let name = path.as_ref().as_os_str().as_encoded_bytes();
    let name = if shown::is_secret(name) { shown::KEY_AS_PATH.as_bytes() } else { name };
    let mut quoted = String::from("'");
    for part in name.utf8_chunks() {
        part.valid().chars().for_each(|c| push(&mut quoted, c));
        part.invalid().iter().for_each(|byte| quoted += &format!("\\x{byte:02x}"));
    }
    quoted + "'"
}

fn push(quoted: &mut String, c: char) {
    match c {
        '\n' | '\r' | '\t' | '\\' | '\'' => quoted.extend(c.escape_default()),
        '\0'..='\x7f' if c.is_control() => *quoted += &format!("\\x{:02x}", u32::from(c)),
        _ if c.is_control() || is_invisible(c) => quoted.extend(c.escape_unicode()),
        _ => quoted.push(c),
    }
}

/// True for Unicode characters that end a line or change the order or the visibility of other characters. Control
/// characters are not included.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests;
