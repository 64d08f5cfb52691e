//! Divides a text into tokens.

use std::fmt;

use super::Mistake;

/// A position in the text: line and column, counted from 1. The column is counted in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Position {
    pub(super) fn mistake(self, message: impl Into<String>) -> Mistake {
        Mistake { line: self.line, column: self.column, message: message.into() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Integer(u32),
    Float(f32),
    /// The text between double quotes.
    Text(String),
    Symbol(&'static str),
    /// The end of the text.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => write!(f, "`{name}`"),
            Token::Integer(value) => write!(f, "`{value}`"),
            Token::Float(value) => write!(f, "`{value:?}`"),
            Token::Text(text) => write!(f, "\"{text}\""),
            Token::Symbol(symbol) => write!(f, "`{symbol}`"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// A token, the position of its first character, and the position after its last character.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) start: Position,
    pub(super) end: Position,
}

/// The symbols of the language. A symbol that starts with a shorter symbol comes before it.
const SYMBOLS: [&str; 28] = [
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "(", ")", "{", "}", "<", ">", ";", ",", "=", "+", "-",
    "*", "&", "|", "^", "~", "!", "[", "]", ".",
];

/// The part of the text that has not been divided into tokens, and the position of this part.
struct Lexer<'t> {
    rest: &'t str,
    at: Position,
}

/// The tokens of a text. The last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, Mistake> {
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lexer = Lexer { rest: text, at: Position { line: 1, column: 1 } };
    let mut all = Vec::new();
    loop {
        lexer.skip_space()?;
        let start = lexer.at;
        let token = lexer.next()?;
        let is_end = token == Token::End;
        all.push(Placed { token, start, end: lexer.at });
        if is_end {
            return Ok(all);
        }
    }
}

impl<'t> Lexer<'t> {
    /// Removes this number of bytes from the start of the undivided text, and returns them.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        for letter in taken.chars() {
            match letter {
                '\n' => self.at = Position { line: self.at.line + 1, column: 1 },
                _ => self.at.column += 1,
            }
        }
        self.rest = rest;
        taken
    }

    /// Removes the characters for which `belongs` is true, up to the first other character, and returns them.
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        self.take(self.rest.find(|letter| !belongs(letter)).unwrap_or(self.rest.len()))
    }

    fn skip_space(&mut self) -> Result<(), Mistake> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("//") {
                self.take_while(|letter| letter != '\n');
            } else if self.rest.starts_with("/*") {
                let open = "this comment is not closed: write `*/` at its end";
                let end = self.rest[2..].find("*/").ok_or_else(|| self.at.mistake(open))?;
                self.take(2 + end + 2);
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Token, Mistake> {
        let start = self.at;
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        if first.is_ascii_digit() {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let name = self.take_while(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            return Ok(Token::Name(name.into()));
        }
        if first == '"' {
            self.take(1);
            let text = self.take_while(|letter| letter != '"' && letter != '\n');
            if !self.rest.starts_with('"') {
                return Err(start.mistake("this text is not closed: write `\"` at the end of the text"));
            }
            self.take(1);
            return Ok(Token::Text(text.into()));
        }
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| self.rest.starts_with(symbol)) {
            self.take(symbol.len());
            return Ok(Token::Symbol(symbol));
        }
        Err(start.mistake(match first {
            '/' | '%' => {
                format!("there is no `{first}`: QPUs do not divide. Use shifts, or `recip` for Float")
            }
            _ => format!("`{}` has no meaning here: remove it", first.escape_default()),
        }))
    }

    fn number(&mut self) -> Result<Token, Mistake> {
        let start = self.at;
        let mut text = self.take_while(|letter| letter.is_ascii_alphanumeric() || letter == '.').to_owned();
        // An exponent may have a sign, as in 1.5e-3.
        if text.contains('.') && text.ends_with(['e', 'E']) && self.rest.starts_with(['-', '+']) {
            text += self.take(1);
            text += self.take_while(|letter| letter.is_ascii_digit());
        }
        if text.contains('.') {
            let value = text.parse::<f32>().ok().filter(|value| value.is_finite());
            return value.map(Token::Float).ok_or_else(|| start.mistake(format!("`{text}` is no Float")));
        }
        let (digits, radix) = text.strip_prefix("0x").map_or((&*text, 10), |digits| (digits, 16));
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            return Err(start.mistake(format!("`{text}` is no number")));
        }
        let value = u32::from_str_radix(digits, radix);
        value.map(Token::Integer).map_err(|_| start.mistake(out_of_range(&text)))
    }
}

/// The message for an integer outside of the range of Int.
pub(super) fn out_of_range(text: &str) -> String {
    format!("{text} is out of range: an Int is from -2147483648 to 4294967295 (0xffffffff)")
}
