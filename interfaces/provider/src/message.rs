//! Escapes messages. Text from the environment or from a file name may contain terminal control sequences or line breaks, which
//! must not be printed.

/// Escapes control characters and other non-printing characters, as [`lockstep::quoted`] does. Quotes and backslashes are not escaped,
/// because the text is not in quotes.
pub(crate) fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        ' '..='~' => c.to_string(),
        _ => lockstep::quoted(&*c.encode_utf8(&mut [0; 4])).to_string().trim_matches('\'').into(),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests;
