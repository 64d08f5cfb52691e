//! Expressions.

use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Not, Shl, Shr, Sub};

use super::condition::{Boolean, Comparison};
use crate::compiler::{Read, Variable};
use crate::isa::{AddOp, MulOp};

/// Elements that are integers of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Int;

/// Elements that are floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Float;

/// Elements that consist of four unsigned bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Char;

/// An expression whose elements have the type `T`.
#[derive(Debug, Clone)]
pub struct Expression<T> {
    pub(super) tree: Tree,
    kind: PhantomData<T>,
}

/// A variable with 16 elements of type `T`.
#[derive(Debug)]
pub struct Var<T> {
    pub(super) variable: Variable,
    kind: PhantomData<T>,
}

impl<T> Clone for Var<T> {
    fn clone(&self) -> Var<T> {
        *self
    }
}

impl<T> Copy for Var<T> {}

impl<T> Var<T> {
    pub(super) fn of(variable: Variable) -> Var<T> {
        Var { variable, kind: PhantomData }
    }

    /// The variable of the compiler.
    pub fn variable(self) -> Variable {
        self.variable
    }
}

/// The operation of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Add(AddOp),
    Mul(MulOp),
}

/// An expression without the type of its elements.
#[derive(Debug, Clone)]
pub(super) enum Tree {
    Variable(Variable),
    Constant(u32),
    Read(Read),
    Apply(Node, Box<[Tree; 2]>),
    /// Element i moves to i + n.
    Rotate(Box<Tree>, u8),
    /// Element i of each quad moves to i + n.
    RotateInQuads(Box<Tree>, u8),
    /// A part of a variable: see [`crate::sim::unpack`].
    Unpack(Variable, u8),
}

impl<T> Expression<T> {
    pub(super) fn of(tree: Tree) -> Expression<T> {
        Expression { tree, kind: PhantomData }
    }

    fn apply(node: Node, left: Tree, right: Tree) -> Expression<T> {
        Expression::of(Tree::Apply(node, Box::new([left, right])))
    }
}

impl<T> From<Var<T>> for Expression<T> {
    fn from(variable: Var<T>) -> Expression<T> {
        Expression::of(Tree::Variable(variable.variable))
    }
}

impl From<u32> for Expression<Int> {
    fn from(value: u32) -> Expression<Int> {
        Expression::of(Tree::Constant(value))
    }
}

impl From<i32> for Expression<Int> {
    fn from(value: i32) -> Expression<Int> {
        Expression::of(Tree::Constant(value as u32))
    }
}

impl From<f32> for Expression<Float> {
    fn from(value: f32) -> Expression<Float> {
        Expression::of(Tree::Constant(value.to_bits()))
    }
}

/// Each element has four equal bytes.
impl From<u8> for Expression<Char> {
    fn from(value: u8) -> Expression<Char> {
        Expression::of(Tree::Constant(u32::from(value) * 0x0101_0101))
    }
}

/// An expression that reads the next uniform of this QPU.
pub fn uniform() -> Expression<Int> {
    Expression::of(Tree::Read(Read::Uniform))
}

/// The number of each element, from 0 to 15.
pub fn element() -> Expression<Int> {
    Expression::of(Tree::Read(Read::Element))
}

/// The number of the QPU on the chip.
pub fn qpu() -> Expression<Int> {
    Expression::of(Tree::Read(Read::Qpu))
}

/// Rotates by a number of elements from 0 to 15: element i moves to (i + n) mod 16.
pub fn rotate<T>(value: impl Into<Expression<T>>, by: u8) -> Expression<T> {
    Expression::of(Tree::Rotate(Box::new(value.into().tree), by & 15))
}

/// Rotates within each quad: element i moves to (i + n) mod 4. The value may be a byte of a variable.
pub fn rotate_in_quads<T>(value: impl Into<Expression<T>>, by: u8) -> Expression<T> {
    Expression::of(Tree::RotateInQuads(Box::new(value.into().tree), by & 3))
}

macro_rules! operators {
    ($kind:ident, $literal:ty: $($trait:ident $method:ident $op:expr;)*) => { $(
        impl<R: Into<Expression<$kind>>> $trait<R> for Expression<$kind> {
            type Output = Expression<$kind>;

            fn $method(self, right: R) -> Expression<$kind> {
                Expression::apply($op, self.tree, right.into().tree)
            }
        }

        impl<R: Into<Expression<$kind>>> $trait<R> for Var<$kind> {
            type Output = Expression<$kind>;

            fn $method(self, right: R) -> Expression<$kind> {
                Expression::apply($op, Expression::from(self).tree, right.into().tree)
            }
        }
    )* };
}

operators! { Int, i32:
    Add add Node::Add(AddOp::Add);
    Sub sub Node::Add(AddOp::Sub);
    BitAnd bitand Node::Add(AddOp::And);
    BitOr bitor Node::Add(AddOp::Or);
    BitXor bitxor Node::Add(AddOp::Xor);
    Shl shl Node::Add(AddOp::Shl);
    Shr shr Node::Add(AddOp::Asr);
}

operators! { Float, f32:
    Add add Node::Add(AddOp::Fadd);
    Sub sub Node::Add(AddOp::Fsub);
    Mul mul Node::Mul(MulOp::Fmul);
}

operators! { Char, u8:
    BitAnd bitand Node::Add(AddOp::And);
    BitOr bitor Node::Add(AddOp::Or);
    BitXor bitxor Node::Add(AddOp::Xor);
}

impl<T> Not for Expression<T> {
    type Output = Expression<T>;

    fn not(self) -> Expression<T> {
        Expression::apply(Node::Add(AddOp::Not), self.tree.clone(), self.tree)
    }
}

macro_rules! methods {
    ($kind:ident: $($(#[$doc:meta])* $name:ident $op:expr;)*) => {
        impl Expression<$kind> { $(
            $(#[$doc])*
            pub fn $name(self, right: impl Into<Expression<$kind>>) -> Expression<$kind> {
                Expression::apply($op, self.tree, right.into().tree)
            }
        )* }

        impl Var<$kind> { $(
            $(#[$doc])*
            pub fn $name(self, right: impl Into<Expression<$kind>>) -> Expression<$kind> {
                Expression::from(self).$name(right)
            }
        )* }
    };
}

methods! { Int:
    /// Logical shift right by the number of bits in `right`.
    shr_logical Node::Add(AddOp::Shr);
    /// Rotation of the bits right.
    ror Node::Add(AddOp::Ror);
    /// The smaller of two signed integers.
    min Node::Add(AddOp::Min);
    /// The larger of two signed integers.
    max Node::Add(AddOp::Max);
    /// Product of the lower 24 bits of two integers.
    mul24 Node::Mul(MulOp::Mul24);
}

methods! { Float:
    /// The smaller of two floats.
    min Node::Add(AddOp::Fmin);
    /// The larger of two floats.
    max Node::Add(AddOp::Fmax);
}

methods! { Char:
    /// Sums of bytes. A sum is at most 255.
    adds Node::Mul(MulOp::V8adds);
    /// Differences of bytes. A difference is at least 0.
    subs Node::Mul(MulOp::V8subs);
    /// The smaller byte of each pair of unsigned bytes.
    min Node::Mul(MulOp::V8min);
    /// The larger byte of each pair of unsigned bytes.
    max Node::Mul(MulOp::V8max);
    /// Products of bytes, interpreted as fractions of 255.
    muld Node::Mul(MulOp::V8muld);
}

macro_rules! conversions {
    ($($(#[$doc:meta])* $from:ident $name:ident $to:ident;)*) => { $(
        impl Expression<$from> {
            $(#[$doc])*
            pub fn $name(self) -> Expression<$to> {
                Expression::of(self.tree)
            }
        }

        impl Var<$from> {
            $(#[$doc])*
            pub fn $name(self) -> Expression<$to> {
                Expression::from(self).$name()
            }
        }
    )* };
}

conversions! {
    /// Interprets the bits as four bytes.
    Int to_char Char;
    /// Interprets the bits as an integer.
    Char to_int Int;
    /// Interprets the bits as a float.
    Int to_float_bits Float;
    /// Interprets the bits as an integer.
    Float to_int_bits Int;
}

impl Expression<Int> {
    /// The float that is nearest to the integer.
    pub fn to_float(self) -> Expression<Float> {
        Expression::apply(Node::Add(AddOp::Itof), self.tree.clone(), self.tree)
    }
}

impl Expression<Float> {
    /// The integer part, rounded towards zero.
    pub fn to_int(self) -> Expression<Int> {
        Expression::apply(Node::Add(AddOp::Ftoi), self.tree.clone(), self.tree)
    }
}

impl Var<Int> {
    /// Returns byte 0 to 3 of each element. Byte 0 is the lowest byte. Extracting a byte requires no operation.
    pub fn byte(self, number: u8) -> Expression<Int> {
        Expression::of(Tree::Unpack(self.variable, 4 + (number & 3)))
    }

    /// Returns half 0 or 1 of each element, as a signed integer of 16 bits. Half 0 is the lower half. Extracting a half
    /// requires no operation.
    pub fn half(self, number: u8) -> Expression<Int> {
        Expression::of(Tree::Unpack(self.variable, 1 + (number & 1)))
    }
}

macro_rules! comparisons {
    ($kind:ident $subtraction:ident: $($(#[$doc:meta])* $name:ident $comparison:ident;)*) => {
        impl Expression<$kind> {
            $(
                $(#[$doc])*
                pub fn $name(self, right: impl Into<Expression<$kind>>) -> Boolean {
                    let right = right.into().tree;
                    Boolean::of(Comparison::$comparison, AddOp::$subtraction, self.tree, right)
                }
            )*

            /// True for the elements in which this expression is greater. The difference must not overflow.
            pub fn is_greater(self, right: impl Into<Expression<$kind>>) -> Boolean {
                right.into().is_less(self)
            }
        }

        impl Var<$kind> {
            $(
                $(#[$doc])*
                pub fn $name(self, right: impl Into<Expression<$kind>>) -> Boolean {
                    Expression::from(self).$name(right)
                }
            )*

            /// True for the elements in which this expression is greater. The difference must not overflow.
            pub fn is_greater(self, right: impl Into<Expression<$kind>>) -> Boolean {
                Expression::from(self).is_greater(right)
            }
        }
    };
}

// Values are compared by comparing their difference with zero, so the difference must not overflow.
comparisons! { Int Sub:
    /// True for the elements in which both are equal.
    is Equal;
    /// True for the elements in which both differ.
    is_not NotEqual;
    /// True for the elements in which this expression is less. The difference must not overflow.
    is_less Less;
    /// True for the elements in which this expression is not less. The difference must not overflow.
    is_at_least AtLeast;
}

comparisons! { Float Fsub:
    /// True for the elements in which both are equal.
    is Equal;
    /// True for the elements in which both differ.
    is_not NotEqual;
    /// True for the elements in which this expression is less.
    is_less Less;
    /// True for the elements in which this expression is not less.
    is_at_least AtLeast;
}
