//! The syntax tree.

use std::fmt;

use super::lexer::Position;

/// The type of the words at a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Integers.
    Int,
    /// Floats.
    Float,
    /// Four bytes in each word.
    Char,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A vector of 16 elements.
    Vector(Element),
    /// A vector of 16 addresses of words.
    Pointer(Element),
}

impl Type {
    pub(super) const INT: Type = Type::Vector(Element::Int);
    pub(super) const FLOAT: Type = Type::Vector(Element::Float);
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::Int => "Int",
            Element::Float => "Float",
            Element::Char => "Char",
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Vector(element) => write!(f, "{element}"),
            Type::Pointer(element) => write!(f, "Ptr<{element}>"),
        }
    }
}

/// A name and its position.
#[derive(Debug, Clone)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) at: Position,
}

#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: Name,
    /// `None` for `void`.
    pub(super) result: Option<Type>,
    pub(super) parameters: Vec<(Type, Name)>,
    pub(super) body: Vec<Statement>,
}

#[derive(Debug)]
pub(super) struct Statement {
    pub(super) at: Position,
    pub(super) kind: StatementKind,
}

#[derive(Debug)]
pub(super) enum StatementKind {
    Declare(Type, Name, Option<Expression>),
    Assign(Name, Expression),
    /// `*address = value;`
    StoreAt(Expression, Expression),
    Call(Name, Vec<Expression>),
    Print(Option<String>, Expression),
    If(Expression, Vec<Statement>, Vec<Statement>),
    Where(Expression, Vec<Statement>, Vec<Statement>),
    While(Expression, Vec<Statement>),
    /// The statement before the loop, the condition, the statement after each iteration, and the body.
    For(Box<Statement>, Expression, Box<Statement>, Vec<Statement>),
    Return(Option<Expression>),
}

impl StatementKind {
    /// The name of the statement in messages.
    pub(super) fn word(&self) -> &str {
        match self {
            StatementKind::Declare(..) => "a declaration",
            StatementKind::Assign(..) => "an assignment",
            StatementKind::StoreAt(..) => "`*p = value`",
            StatementKind::Call(name, _) => &name.text,
            StatementKind::Print(..) => "`Print`",
            StatementKind::If(..) => "`If`",
            StatementKind::Where(..) => "`Where`",
            StatementKind::While(..) => "`While`",
            StatementKind::For(..) => "`For`",
            StatementKind::Return(_) => "`return`",
        }
    }
}

#[derive(Debug)]
pub(super) struct Expression {
    pub(super) at: Position,
    pub(super) kind: ExpressionKind,
    /// The length of the longest path from this node to a leaf. It is limited, because the functions that process the tree are recursive.
    pub(super) depth: usize,
}

#[derive(Debug)]
pub(super) enum ExpressionKind {
    Integer(i64),
    Float(f32),
    Variable(String),
    Unary(&'static str, Box<Expression>),
    Binary(&'static str, Box<[Expression; 2]>),
    Call(Name, Vec<Expression>),
}
