//! Prepares text for terminals: wraps lines, formats amounts, and makes text from other programs and files safe to print.

/// Maximum number of characters in a line of text: the default width of a terminal.
pub const WIDTH: usize = 80;

/// Breaks text at white space into lines of at most `width` characters. A longer word has a line of its own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut words = text.split_whitespace();
    let mut lines = vec![words.next().unwrap_or_default().to_owned()];
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// Minimum number of characters that a label must leave for the text after it.
const MIN_ROOM: usize = 20;

/// A label followed by a wrapped text, in lines of at most `width` characters, each with its line break. All lines
/// except the first begin with `indent` spaces. If the label leaves too little room, the text begins on the next line and is
/// indented by four spaces.
pub fn hang(width: usize, label: &str, indent: usize, text: &str) -> String {
    let (label, indent) = match indent.max(label.chars().count()) {
        taken if taken + MIN_ROOM > width && !label.is_empty() => (format!("{}\n    ", label.trim_end()), 4),
        _ => (label.to_owned(), indent),
    };
    let last_line = label.lines().last().map_or(0, |line| line.chars().count());
    let lines = wrap(text, width.saturating_sub(indent.max(last_line)));
    let begin = |index| if index == 0 { label.clone() } else { " ".repeat(indent) };
    let hung = lines.iter().enumerate().map(|(index, line)| begin(index) + line);
    hung.map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number of things, such as `1 file` or `3 files`.
pub fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A number of bytes with a binary unit, such as `17 bytes` or `2.0 GiB`.
pub fn bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return count(bytes as usize, "byte");
    }
    let mut value = bytes as f64;
    let mut units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].into_iter();
    let unit = units.find(|_| {
        value /= 1024.0;
        // A value of 1023.95 or more would be printed as 1024.0, so it gets the next unit.
        value < 1023.95
    });
    format!("{value:.1} {}", unit.expect("fewer than 1024 EiB"))
}

/// A number with three significant digits, but at most four decimals.
pub fn digits(value: f64) -> String {
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 4.0) as usize;
    format!("{value:.decimals$}")
}

/// A time with its unit, to three significant digits.
pub fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 999.5e-9 => (s * 1e9, "ns"),
        s if s < 999.5e-6 => (s * 1e6, "µs"),
        s if s < 999.5e-3 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    match value {
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

/// Replaces control characters, which could be commands to a terminal. Text from files and other programs must pass through this
/// function before it is printed.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Puts a message of another program or library on one line. The result has no line breaks, control characters or marks of text
/// direction, and no full stop at the end.
pub fn one_line(message: &impl ToString) -> String {
    let message = message.to_string();
    let words: Vec<_> = message.split_whitespace().collect();
    printable(&words.join(" ")).replace(['\u{2068}', '\u{2069}'], "").trim_end_matches('.').into()
}

#[cfg(test)]
mod tests;
