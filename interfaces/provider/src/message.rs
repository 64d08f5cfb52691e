//! Escaping of messages: text from the environment or a file name must not contain terminal control sequences or line
//! breaks.

use std::fmt::Write as _;

/// Escapes control characters and other non-printing characters, as [`lockstep::quoted`] does.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // These two characters are escaped only inside quotes.
            '\\' | '\'' => escaped.push(c),
            _ if c.is_ascii_graphic() || c == ' ' => escaped.push(c),
            _ => {
                let mut character = String::new();
                let _ = write!(character, "{}", lockstep::quoted(c.encode_utf8(&mut [0; 4]) as &str));
                escaped.push_str(character.trim_matches('\''));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_contain_no_line_breaks_and_control_characters() {
        assert_eq!(
            escaped("x\x1b[31m\r\n\tlockstep: \u{9b}\u{202e}"),
            r"x\x1b[31m\r\n\tlockstep: \u{9b}\u{202e}"
        );
        let plain = "no device `cuda:77`: 'ä' \"b\" \\";
        assert_eq!(escaped(plain), plain);
    }
}
