//! A recursive descent parser.

use super::Mistake;
use super::lexer::{Placed, Position, Token, out_of_range, tokens};
use super::tree::{Element, Expression, ExpressionKind, Function, Name, Statement, StatementKind, Type};

/// Maximum nesting depth of blocks and of expressions.
const MAX_DEPTH: usize = 50;

/// Binary operators by precedence, lowest first. Operators of the same row associate to the left.
const OPERATORS: [&[&str]; 9] = [
    &["||"],
    &["&&"],
    &["==", "!=", "<=", ">=", "<", ">"],
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*"],
];

/// Words of the language, which cannot be names of variables and functions.
const WORDS: [&str; 13] =
    ["void", "return", "If", "Else", "Where", "While", "For", "Print", "Int", "Float", "Char", "Ptr", "End"];

struct Parser {
    tokens: Vec<Placed>,
    next: usize,
    /// The number of blocks and expressions that contain the next token.
    depth: usize,
}

/// The functions of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Function>, Mistake> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let mut functions = Vec::new();
    while *parser.token() != Token::End {
        functions.push(parser.function()?);
    }
    Ok(functions)
}

impl Parser {
    fn token(&self) -> &Token {
        &self.tokens[self.next].token
    }

    fn at(&self) -> Position {
        self.tokens[self.next].start
    }

    /// Moves to the next token. The last token, which is the end of the text, stays the current one.
    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token(), Token::Symbol(found) if *found == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Token::Name(name) if name == word)
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let takes = self.is(symbol);
        if takes {
            self.advance();
        }
        takes
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let takes = self.is_word(word);
        if takes {
            self.advance();
        }
        takes
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T, Mistake> {
        Err(self.at().mistake(format!("expected {expected}, found {}", self.token())))
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Mistake> {
        match self.takes(symbol) {
            true => Ok(()),
            false => self.unexpected(&format!("`{symbol}`")),
        }
    }

    /// Takes a semicolon. If it is missing, the mistake is at the end of the statement, which may be on an earlier line than the next
    /// token.
    fn semicolon(&mut self) -> Result<(), Mistake> {
        let end = self.tokens[self.next.saturating_sub(1)].end;
        match self.takes(";") {
            true => Ok(()),
            false => Err(end.mistake(format!("expected `;` after the statement, found {}", self.token()))),
        }
    }

    /// Calls `part`, which parses a block or an expression, one nesting level deeper. Refuses text that is nested too deeply.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Parser) -> Result<T, Mistake>) -> Result<T, Mistake> {
        if self.depth == MAX_DEPTH {
            return Err(too_deep(self.at()));
        }
        self.depth += 1;
        let parsed = part(self);
        self.depth -= 1;
        parsed
    }

    fn name(&mut self, of: &str) -> Result<Name, Mistake> {
        let at = self.at();
        match self.token().clone() {
            Token::Name(text) if WORDS.contains(&&*text) => {
                Err(at.mistake(format!("`{text}` has a meaning of its own: choose another name for {of}")))
            }
            Token::Name(text) => {
                self.advance();
                Ok(Name { text, at })
            }
            _ => self.unexpected(&format!("the name of {of}")),
        }
    }

    fn takes_element(&mut self) -> Option<Element> {
        let all = [Element::Int, Element::Float, Element::Char];
        all.into_iter().find(|element| self.takes_word(&element.to_string()))
    }

    /// Takes a type, if the next token starts one.
    fn takes_type(&mut self) -> Result<Option<Type>, Mistake> {
        if let Some(element) = self.takes_element() {
            return Ok(Some(Type::Vector(element)));
        }
        if !self.takes_word("Ptr") {
            return Ok(None);
        }
        self.expect("<")?;
        let Some(element) = self.takes_element() else { return self.unexpected("Int, Float or Char") };
        self.expect(">")?;
        Ok(Some(Type::Pointer(element)))
    }

    fn function(&mut self) -> Result<Function, Mistake> {
        let result = self.takes_type()?;
        if result.is_none() && !self.takes_word("void") {
            return self.unexpected("a function, which starts with `void` or with the type of its result");
        }
        let name = self.name("the function")?;
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.takes(")") {
            if !parameters.is_empty() {
                self.expect(",")?;
            }
            let Some(kind) = self.takes_type()? else {
                return self.unexpected("the type of a parameter (Int, Float, Char or Ptr<Int>)");
            };
            parameters.push((kind, self.name("the parameter")?));
        }
        Ok(Function { name, result, parameters, body: self.block()? })
    }

    fn block(&mut self) -> Result<Vec<Statement>, Mistake> {
        let start = self.at();
        self.expect("{")?;
        self.nested(|parser| {
            let mut statements = Vec::new();
            while !parser.takes("}") {
                if *parser.token() == Token::End {
                    let Position { line, column } = start;
                    let open =
                        format!("expected `}}`: the `{{` of line {line}, column {column} is not closed");
                    return Err(parser.at().mistake(open));
                }
                statements.push(parser.statement()?);
            }
            Ok(statements)
        })
    }

    fn statement(&mut self) -> Result<Statement, Mistake> {
        let at = self.at();
        let kind = match self.token() {
            Token::Name(word) if word == "If" => self.if_else()?,
            Token::Name(word) if word == "Where" => {
                self.advance();
                let condition = self.condition()?;
                let then = self.block()?;
                let otherwise = if self.takes_word("Else") { self.block()? } else { Vec::new() };
                StatementKind::Where(condition, then, otherwise)
            }
            Token::Name(word) if word == "While" => {
                self.advance();
                StatementKind::While(self.condition()?, self.block()?)
            }
            Token::Name(word) if word == "For" => self.for_loop()?,
            Token::Name(word) if word == "Else" => {
                return Err(
                    at.mistake("`Else` without `If` or `Where`: write it after the `}` of their block")
                );
            }
            _ => {
                let kind = self.simple()?;
                self.semicolon()?;
                kind
            }
        };
        Ok(Statement { at, kind })
    }

    fn condition(&mut self) -> Result<Expression, Mistake> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    fn if_else(&mut self) -> Result<StatementKind, Mistake> {
        self.advance();
        let test = self.condition()?;
        let then = self.block()?;
        let otherwise = match self.takes_word("Else") {
            true if self.is_word("If") => vec![self.nested(Parser::statement)?],
            true => self.block()?,
            false => Vec::new(),
        };
        Ok(StatementKind::If(test, then, otherwise))
    }

    fn for_loop(&mut self) -> Result<StatementKind, Mistake> {
        self.advance();
        self.expect("(")?;
        let start = Statement { at: self.at(), kind: self.simple()? };
        self.semicolon()?;
        let test = self.expression()?;
        self.semicolon()?;
        let step = Statement { at: self.at(), kind: self.simple()? };
        self.expect(")")?;
        Ok(StatementKind::For(Box::new(start), test, Box::new(step), self.block()?))
    }

    /// A statement without a block: a declaration, an assignment, a call, `Print` or `return`.
    fn simple(&mut self) -> Result<StatementKind, Mistake> {
        if let Some(kind) = self.takes_type()? {
            let name = self.name("the variable")?;
            let value = if self.takes("=") { Some(self.expression()?) } else { None };
            return Ok(StatementKind::Declare(kind, name, value));
        }
        if self.takes_word("return") {
            let value = if self.is(";") { None } else { Some(self.expression()?) };
            return Ok(StatementKind::Return(value));
        }
        if self.takes_word("Print") {
            return self.print();
        }
        if self.takes("*") {
            let address = self.unary()?;
            self.expect("=")?;
            return Ok(StatementKind::StoreAt(address, self.expression()?));
        }
        if !matches!(self.token(), Token::Name(_)) {
            return self.unexpected("a statement");
        }
        let name = self.name("a variable")?;
        if self.is("(") {
            return Ok(StatementKind::Call(name, self.arguments()?));
        }
        if matches!(self.token(), Token::Name(_)) {
            let message = format!("unknown type `{}`: expected Int, Float, Char or Ptr<...>", name.text);
            return Err(name.at.mistake(message));
        }
        if !self.is("=") {
            return self.unexpected(&format!("`=` or `(` after `{}`", name.text));
        }
        self.advance();
        Ok(StatementKind::Assign(name, self.expression()?))
    }

    fn print(&mut self) -> Result<StatementKind, Mistake> {
        self.expect("(")?;
        let mut text = None;
        if let Token::Text(found) = self.token().clone() {
            self.advance();
            self.expect(",")?;
            text = Some(found);
        }
        let value = self.expression()?;
        self.expect(")")?;
        Ok(StatementKind::Print(text, value))
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, Mistake> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.takes(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.expression()?);
        }
        Ok(arguments)
    }

    fn expression(&mut self) -> Result<Expression, Mistake> {
        self.nested(|parser| parser.binary(0))
    }

    /// Parses an expression with operators of this row of [`OPERATORS`] or of later rows.
    fn binary(&mut self, row: usize) -> Result<Expression, Mistake> {
        let Some(operators) = OPERATORS.get(row) else { return self.unary() };
        let mut left = self.binary(row + 1)?;
        while let Some(operator) = operators.iter().copied().find(|operator| self.is(operator)) {
            let at = self.at();
            self.advance();
            let right = self.binary(row + 1)?;
            let depth = left.depth.max(right.depth);
            left = node(at, ExpressionKind::Binary(operator, Box::new([left, right])), depth)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, Mistake> {
        let at = self.at();
        let Some(operator) = ["-", "~", "!", "*"].into_iter().find(|operator| self.is(operator)) else {
            return self.primary();
        };
        self.advance();
        let operand = self.nested(Parser::unary)?;
        let depth = operand.depth;
        let kind = match operand.kind {
            ExpressionKind::Integer(value) if operator == "-" => {
                if value > 1 << 31 {
                    return Err(at.mistake(out_of_range(&format!("-{value}"))));
                }
                ExpressionKind::Integer(-value)
            }
            _ => ExpressionKind::Unary(operator, Box::new(operand)),
        };
        node(at, kind, depth)
    }

    fn primary(&mut self) -> Result<Expression, Mistake> {
        let at = self.at();
        let kind = match self.token().clone() {
            Token::Integer(value) => ExpressionKind::Integer(value.into()),
            Token::Float(value) => ExpressionKind::Float(value),
            Token::Text(_) => return Err(at.mistake("a text may only be the first argument of `Print`")),
            Token::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Name(_) => {
                let name = self.name("a variable or a function")?;
                if !self.is("(") {
                    return node(at, ExpressionKind::Variable(name.text), 0);
                }
                let arguments = self.arguments()?;
                let depth = arguments.iter().map(|argument| argument.depth).max().unwrap_or(0);
                return node(at, ExpressionKind::Call(name, arguments), depth);
            }
            _ => return self.unexpected("an expression"),
        };
        self.advance();
        node(at, kind, 0)
    }
}

fn node(at: Position, kind: ExpressionKind, depth: usize) -> Result<Expression, Mistake> {
    match depth < MAX_DEPTH {
        true => Ok(Expression { at, kind, depth: depth + 1 }),
        false => Err(too_deep(at)),
    }
}

fn too_deep(at: Position) -> Mistake {
    at.mistake(format!(
        "this is nested too deeply: at most {MAX_DEPTH} levels. Use a variable for a part of an expression, or a function for a block"
    ))
}
