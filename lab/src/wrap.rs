//! Lines of text for people.

/// Characters in a line of text for people, at most: what a terminal has unless it was made larger.
pub const WIDTH: usize = 80;

/// Breaks text at white space into lines of at most `width` characters. A longer word is a line by itself.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("one at least");
        let length = word.chars().count();
        if used == 0 {
            line.push_str(word);
            used = length;
        } else if used + 1 + length > width {
            lines.push(word.into());
            used = length;
        } else {
            line.push(' ');
            line.push_str(word);
            used += 1 + length;
        }
    }
    lines
}

/// A label and a text that is wrapped beside it: lines of at most [`WIDTH`] characters, each with its line break. All
/// lines but the first begin with `indent` spaces.
pub fn hang(label: &str, indent: usize, text: &str) -> String {
    let lines = wrap(text, WIDTH.saturating_sub(indent.max(label.chars().count())));
    let mut hung = String::new();
    for (index, line) in lines.iter().enumerate() {
        let begin = if index == 0 { label.to_owned() } else { " ".repeat(indent) };
        hung += (begin + line).trim_end();
        hung.push('\n');
    }
    hung
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_in_characters() {
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("größe und\n länge", 9), ["größe und", "länge"]);
        assert_eq!(wrap("a longest-of-all b", 5), ["a", "longest-of-all", "b"]);
    }

    #[test]
    fn all_lines_but_the_first_are_indented() {
        let text = "word ".repeat(20);
        let hung = hang("label: ", 4, &text);
        assert!(hung.starts_with("label: word") && hung.ends_with("word\n"), "{hung}");
        assert!(hung.lines().skip(1).all(|line| line.starts_with("    word")), "{hung}");
        assert!(hung.lines().all(|line| line.len() <= WIDTH), "{hung}");
        assert_eq!(hang("label: ", 4, ""), "label:\n");
    }
}
