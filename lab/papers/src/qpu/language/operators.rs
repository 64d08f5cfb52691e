//! Operators, and the functions of the language that return a value.

use lockstep_qpu::compiler::Special;
use lockstep_qpu::lang::{Boolean, Expression, Float, Int, Kernel, element, rotate};

use super::Mistake;
use super::lexer::Position;
use super::tree::{Element, Name};
use super::value::Value;

/// The functions of the language, each with the number of its arguments.
pub(super) const FUNCTIONS: [(&str, usize); 23] = [
    ("index", 0),
    ("me", 0),
    ("numQPUs", 0),
    ("rotate", 2),
    ("shr", 2),
    ("ror", 2),
    ("min", 2),
    ("max", 2),
    ("toFloat", 1),
    ("toInt", 1),
    ("asInt", 1),
    ("asFloat", 1),
    ("asChar", 1),
    ("byte", 2),
    ("half", 2),
    ("recip", 1),
    ("recipsqrt", 1),
    ("exp", 1),
    ("log", 1),
    ("any", 1),
    ("all", 1),
    // These functions return no value, so their calls are statements.
    ("gather", 1),
    ("store", 2),
];

/// The result of a binary operator.
pub(super) fn binary(
    operator: &str,
    [left, right]: [Value; 2],
    [at, of_left, of_right]: [Position; 3],
) -> Result<Value, Mistake> {
    let what = format!("`{operator}`");
    match operator {
        "||" | "&&" => {
            let (left, right) = (left.condition(of_left, &what)?, right.condition(of_right, &what)?);
            return Ok(Value::Condition(if operator == "||" { left | right } else { left & right }));
        }
        "==" | "!=" | "<" | ">" | "<=" | ">=" => {
            return comparison(operator, left, right, [at, of_left, of_right]).map(Value::Condition);
        }
        _ => {}
    }
    Ok(match (left, right) {
        (Value::Pointer(element, pointer), right) => {
            let index = match right {
                // The number of bytes is known before the run. It is taken modulo 2^32, like the value of a variable.
                Value::Number(number) => ((number * 4) as u32).into(),
                right => right.int(of_right, &what)? << 2,
            };
            match operator {
                "+" => Value::Pointer(element, pointer + index),
                "-" => Value::Pointer(element, pointer - index),
                _ => return Err(at.mistake(format!("there is no {what} of pointers: use asInt()"))),
            }
        }
        (_, Value::Pointer(..)) => {
            return Err(of_right.mistake(format!("{what}: write the pointer on the left, as in `p + i`")));
        }
        (Value::Float(left), right) => float(operator, left, right.float(of_right, &what)?, at)?,
        (left, Value::Float(right)) => float(operator, left.float(of_left, &what)?, right, at)?,
        (left, right) if matches!(left, Value::Char(_)) || matches!(right, Value::Char(_)) => {
            let (left, right) = (left.char(of_left, &what)?, right.char(of_right, &what)?);
            Value::Char(match operator {
                "+" => left.adds(right),
                "-" => left.subs(right),
                "*" => left.muld(right),
                "&" => left & right,
                "|" => left | right,
                "^" => left ^ right,
                _ => return Err(at.mistake(format!("there is no {what} of Char: use asInt()"))),
            })
        }
        (left, right) => {
            let (left, right) = (left.int(of_left, &what)?, right.int(of_right, &what)?);
            Value::Int(match operator {
                "+" => left + right,
                "-" => left - right,
                "*" => left.mul24(right),
                "&" => left & right,
                "|" => left | right,
                "^" => left ^ right,
                "<<" => left << right,
                _ => left >> right,
            })
        }
    })
}

fn float(
    operator: &str,
    left: Expression<Float>,
    right: Expression<Float>,
    at: Position,
) -> Result<Value, Mistake> {
    Ok(Value::Float(match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        _ => return Err(at.mistake(format!("there is no `{operator}` of Float: use toInt() or asInt()"))),
    }))
}

fn comparison(
    operator: &str,
    left: Value,
    right: Value,
    [at, of_left, of_right]: [Position; 3],
) -> Result<Boolean, Mistake> {
    let what = format!("`{operator}`");
    macro_rules! compare {
        ($left:expr, $right:expr) => {
            match operator {
                "==" => $left.is($right),
                "!=" => $left.is_not($right),
                "<" => $left.is_less($right),
                ">" => $left.is_greater($right),
                ">=" => $left.is_at_least($right),
                _ => $right.is_at_least($left),
            }
        };
    }
    Ok(match (left, right) {
        (Value::Pointer(one, left), Value::Pointer(other, right)) if one == other => compare!(left, right),
        (Value::Char(_), _) | (_, Value::Char(_)) => {
            return Err(at.mistake(format!("there is no {what} of Char: use byte() or asInt()")));
        }
        (Value::Float(left), right) => compare!(left, right.float(of_right, &what)?),
        (left, Value::Float(right)) => compare!(left.float(of_left, &what)?, right),
        (left, right) => compare!(left.int(of_left, &what)?, right.int(of_right, &what)?),
    })
}

/// The result of `-`, `~`, `!` or `*` before an expression.
pub(super) fn unary(k: &mut Kernel, operator: &str, value: Value, at: Position) -> Result<Value, Mistake> {
    let what = format!("`{operator}`");
    Ok(match (operator, value) {
        ("-", Value::Float(value)) => Value::Float(Expression::<Float>::from(0.0) - value),
        ("-", value) => Value::Int(Expression::<Int>::from(0) - value.int(at, &what)?),
        // The operand becomes a variable, because the operation uses it twice.
        ("~", Value::Char(value)) => Value::Char(!Expression::from(k.var(value))),
        ("~", value) => {
            let value = value.int(at, &what)?;
            Value::Int(!Expression::from(k.var(value)))
        }
        ("!", value) => Value::Condition(!value.condition(at, &what)?),
        (_, value) => {
            let (element, address) = value.pointer(at, &what)?;
            match element {
                Element::Int => Value::Int(k.load::<Int>(address).into()),
                Element::Float => Value::Float(k.load::<Float>(address).into()),
                Element::Char => Value::Char(k.load(address).into()),
            }
        }
    })
}

/// The result of a function of the language. The caller has checked the number of arguments.
pub(super) fn call(k: &mut Kernel, name: &Name, arguments: Vec<(Value, Position)>) -> Result<Value, Mistake> {
    let what = format!("`{}`", name.text);
    let mut arguments = arguments.into_iter();
    let mut next = || arguments.next().expect("the number of arguments is checked");
    Ok(match &*name.text {
        "index" => Value::Int(element()),
        "me" => Value::Int(k.me().into()),
        "numQPUs" => Value::Int(k.qpus().into()),
        "rotate" => {
            let (value, at) = next();
            let by = constant(next(), 15, &what)?;
            match value {
                // A rotation by zero elements returns its operand.
                value if by == 0 => value,
                Value::Float(value) => Value::Float(rotate(value, by)),
                Value::Char(value) => Value::Char(rotate(value, by)),
                value => Value::Int(rotate(value.int(at, &what)?, by)),
            }
        }
        "shr" | "ror" => {
            let ((value, at), (by, of_by)) = (next(), next());
            let (value, by) = (value.int(at, &what)?, by.int(of_by, &what)?);
            Value::Int(if name.text == "shr" { value.shr_logical(by) } else { value.ror(by) })
        }
        "min" | "max" => minimum(&what, name.text == "min", next(), next())?,
        "toFloat" => {
            let (value, at) = next();
            let value = value.int(at, &what)?;
            Value::Float(Expression::from(k.var(value)).to_float())
        }
        "toInt" => {
            let (value, at) = next();
            let value = value.float(at, &what)?;
            Value::Int(Expression::from(k.var(value)).to_int())
        }
        "asInt" => match next() {
            (Value::Float(value), _) => Value::Int(value.to_int_bits()),
            (Value::Char(value), _) => Value::Int(value.to_int()),
            (Value::Pointer(_, value), _) => Value::Int(value),
            (value, at) => Value::Int(value.int(at, &what)?),
        },
        "asFloat" => {
            let (value, at) = next();
            Value::Float(value.int(at, &what)?.to_float_bits())
        }
        "asChar" => {
            let (value, at) = next();
            Value::Char(value.int(at, &what)?.to_char())
        }
        "byte" | "half" => {
            let value = match next() {
                (Value::Char(value), _) => value.to_int(),
                (value, at) => value.int(at, &what)?,
            };
            let variable = k.var(value);
            let part = match &*name.text {
                "byte" => variable.byte(constant(next(), 3, &what)?),
                _ => variable.half(constant(next(), 1, &what)?),
            };
            // The part is copied to a variable, because not every operation accepts a part of a variable as its operand.
            Value::Int(k.var(part).into())
        }
        "any" | "all" => {
            let (condition, at) = next();
            let condition = condition.condition(at, &what)?;
            Value::Test(if name.text == "any" { condition.any() } else { condition.all() })
        }
        special => {
            let function = match special {
                "recip" => Special::Reciprocal,
                "recipsqrt" => Special::ReciprocalSquareRoot,
                "exp" => Special::Exponent,
                _ => Special::Logarithm,
            };
            let (value, at) = next();
            let value = value.float(at, &what)?;
            Value::Float(k.special(function, value).into())
        }
    })
}

fn minimum(
    what: &str,
    is_min: bool,
    (left, of_left): (Value, Position),
    (right, of_right): (Value, Position),
) -> Result<Value, Mistake> {
    macro_rules! choose {
        ($left:expr, $right:expr) => {
            if is_min { $left.min($right) } else { $left.max($right) }
        };
    }
    Ok(match (left, right) {
        (Value::Float(left), right) => Value::Float(choose!(left, right.float(of_right, what)?)),
        (left, Value::Float(right)) => Value::Float(choose!(left.float(of_left, what)?, right)),
        (left, right) if matches!(left, Value::Char(_)) || matches!(right, Value::Char(_)) => {
            Value::Char(choose!(left.char(of_left, what)?, right.char(of_right, what)?))
        }
        (left, right) => Value::Int(choose!(left.int(of_left, what)?, right.int(of_right, what)?)),
    })
}

/// An argument that must be a constant from 0 to `last`.
fn constant((value, at): (Value, Position), last: u8, what: &str) -> Result<u8, Mistake> {
    match value {
        Value::Number(number) => match u8::try_from(number) {
            Ok(number) if number <= last => Ok(number),
            _ => {
                Err(at
                    .mistake(format!("{what}: {number} is out of range, expected a number from 0 to {last}")))
            }
        },
        _ => Err(at.mistake(format!("{what} needs a number from 0 to {last} here, and no variable"))),
    }
}
