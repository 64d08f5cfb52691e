//! The columns of mistakes in programs. The assemblers report only lines.

/// The column of a mistake, counted from 1: that of the first text that the message of an assembler quotes and the line contains. If there
/// is none, it is the column of the first character of the line that is not a space.
pub(crate) fn column(source: &str, line: usize, message: &str) -> usize {
    let text = line.checked_sub(1).and_then(|before| source.lines().nth(before)).unwrap_or_default();
    let quoted = message.split('`').skip(1).step_by(2).filter(|quoted| !quoted.is_empty());
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    // A text between other letters is a part of another word.
    let is_whole = |at: usize, quoted: &str| {
        let before = quoted.starts_with(is_part) && text[..at].ends_with(is_part);
        let after = quoted.ends_with(is_part) && text[at + quoted.len()..].starts_with(is_part);
        !before && !after
    };
    let place = |quoted| text.match_indices(quoted).map(|(at, _)| at).find(|at| is_whole(*at, quoted));
    let first = text.len() - text.trim_start().len();
    let at = quoted.filter_map(place).next().unwrap_or(first);
    text[..at].chars().count() + 1
}
