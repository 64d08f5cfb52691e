//! The values of expressions of the text: expressions of the embedded language with their types.

use lockstep_qpu::lang::{Boolean, Char, Expression, Float, Int, Kernel, Test, Var};

use super::Mistake;
use super::lexer::{Position, out_of_range};
use super::tree::{Element, Type};

/// The value of an expression of the text.
pub(super) enum Value {
    /// A number without a decimal point. The context determines its type: an Int, or a Char in which all four bytes are this number.
    Number(i64),
    Int(Expression<Int>),
    Float(Expression<Float>),
    Char(Expression<Char>),
    Pointer(Element, Expression<Int>),
    Condition(Boolean),
    Test(Test),
}

/// A variable with its type.
#[derive(Clone, Copy)]
pub(super) enum Slot {
    Int(Var<Int>),
    Float(Var<Float>),
    Char(Var<Char>),
    Pointer(Element, Var<Int>),
}

impl Value {
    /// The name of the type, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Value::Number(_) | Value::Int(_) => Type::INT.to_string(),
            Value::Float(_) => Type::FLOAT.to_string(),
            Value::Char(_) => Type::Vector(Element::Char).to_string(),
            Value::Pointer(element, _) => Type::Pointer(*element).to_string(),
            Value::Condition(_) => "a condition".into(),
            Value::Test(_) => "the result of `any` or `all`".into(),
        }
    }

    /// The value as an Int. For messages, `what` is the operation that requires an Int.
    pub(super) fn int(self, at: Position, what: &str) -> Result<Expression<Int>, Mistake> {
        match self {
            Value::Int(value) => Ok(value),
            Value::Number(number) => {
                match u32::try_from(number).or(i32::try_from(number).map(|n| n as u32)) {
                    Ok(number) => Ok(number.into()),
                    Err(_) => Err(at.mistake(out_of_range(&number.to_string()))),
                }
            }
            other => Err(other.wrong(at, what, "Int")),
        }
    }

    pub(super) fn float(self, at: Position, what: &str) -> Result<Expression<Float>, Mistake> {
        match self {
            Value::Float(value) => Ok(value),
            other => Err(other.wrong(at, what, "Float")),
        }
    }

    pub(super) fn char(self, at: Position, what: &str) -> Result<Expression<Char>, Mistake> {
        match self {
            Value::Char(value) => Ok(value),
            Value::Number(number) => match u8::try_from(number) {
                Ok(number) => Ok(number.into()),
                Err(_) => {
                    Err(at.mistake(format!("{number} is out of range: a Char has bytes from 0 to 255")))
                }
            },
            other => Err(other.wrong(at, what, "Char")),
        }
    }

    pub(super) fn pointer(self, at: Position, what: &str) -> Result<(Element, Expression<Int>), Mistake> {
        match self {
            Value::Pointer(element, value) => Ok((element, value)),
            other => Err(other.wrong(at, what, "a pointer, such as Ptr<Int>,")),
        }
    }

    pub(super) fn condition(self, at: Position, what: &str) -> Result<Boolean, Mistake> {
        match self {
            Value::Condition(condition) => Ok(condition),
            other => Err(other.wrong(at, what, "a condition, such as `x > 0`,")),
        }
    }

    /// The value, converted to this type.
    pub(super) fn converted(self, kind: Type, at: Position, what: &str) -> Result<Value, Mistake> {
        Ok(match kind {
            Type::Vector(Element::Int) => Value::Int(self.int(at, what)?),
            Type::Vector(Element::Float) => Value::Float(self.float(at, what)?),
            Type::Vector(Element::Char) => Value::Char(self.char(at, what)?),
            Type::Pointer(element) => Value::Pointer(element, same_pointer(element, self, at, what)?),
        })
    }

    fn wrong(&self, at: Position, what: &str, needed: &str) -> Mistake {
        let remedy = match (self, needed) {
            (Value::Number(number), "Float") => format!(": write {number}.0"),
            (Value::Int(_), "Float") => ": use toFloat(), or asFloat() for the same bits".into(),
            (Value::Float(_), "Int") => ": use toInt(), or asInt() for the same bits".into(),
            (Value::Int(_), "Char") => ": use asChar()".into(),
            (Value::Char(_) | Value::Pointer(..), "Int") => ": use asInt()".into(),
            (Value::Test(_), _) => ": write the condition without `any` or `all`".into(),
            _ => String::new(),
        };
        at.mistake(format!("{what} needs {needed} but has {}{remedy}", self.name()))
    }
}

impl Slot {
    /// A new variable without a value.
    pub(super) fn unset(k: &mut Kernel, kind: Type) -> Slot {
        match kind {
            Type::Vector(Element::Int) => Slot::Int(k.unset()),
            Type::Vector(Element::Float) => Slot::Float(k.unset()),
            Type::Vector(Element::Char) => Slot::Char(k.unset()),
            Type::Pointer(element) => Slot::Pointer(element, k.unset()),
        }
    }

    /// A new variable with a value. All elements get the value, also within `Where`.
    pub(super) fn new(
        k: &mut Kernel,
        kind: Type,
        value: Value,
        at: Position,
        what: &str,
    ) -> Result<Slot, Mistake> {
        Ok(match kind {
            Type::Vector(Element::Int) => Slot::Int(k.var(value.int(at, what)?)),
            Type::Vector(Element::Float) => Slot::Float(k.var(value.float(at, what)?)),
            Type::Vector(Element::Char) => Slot::Char(k.var(value.char(at, what)?)),
            Type::Pointer(element) => Slot::Pointer(element, k.var(same_pointer(element, value, at, what)?)),
        })
    }

    /// Assigns a value to the variable. Within `Where`, only the selected elements change.
    pub(super) fn set(self, k: &mut Kernel, value: Value, at: Position, what: &str) -> Result<(), Mistake> {
        match self {
            Slot::Int(variable) => k.set(variable, value.int(at, what)?),
            Slot::Float(variable) => k.set(variable, value.float(at, what)?),
            Slot::Char(variable) => k.set(variable, value.char(at, what)?),
            Slot::Pointer(element, variable) => k.set(variable, same_pointer(element, value, at, what)?),
        }
        Ok(())
    }

    /// Assigns the result of the oldest request of `gather` to the variable.
    pub(super) fn receive(self, k: &mut Kernel) {
        match self {
            Slot::Int(variable) | Slot::Pointer(_, variable) => k.receive_into(variable),
            Slot::Float(variable) => k.receive_into(variable),
            Slot::Char(variable) => k.receive_into(variable),
        }
    }

    pub(super) fn value(self) -> Value {
        match self {
            Slot::Int(variable) => Value::Int(variable.into()),
            Slot::Float(variable) => Value::Float(variable.into()),
            Slot::Char(variable) => Value::Char(variable.into()),
            Slot::Pointer(element, variable) => Value::Pointer(element, variable.into()),
        }
    }
}

fn same_pointer(
    element: Element,
    value: Value,
    at: Position,
    what: &str,
) -> Result<Expression<Int>, Mistake> {
    match value {
        Value::Pointer(found, value) if found == element => Ok(value),
        other => Err(other.wrong(at, what, &Type::Pointer(element).to_string())),
    }
}
