//! A language for programs of QPUs, embedded in Rust: variables of 16 elements, expressions, conditions and loops.
//!
//! A [`Kernel`] collects the operations. Rust's operators build expressions of the types [`Int`], [`Float`] and [`Char`]. An
//! assignment appends the operations of an expression.
//!
//! ```ignore
//! let mut k = Kernel::new();
//! let pointer = k.int(uniform());
//! k.gather(pointer + (element() << 2));
//! let value = k.receive();
//! k.store(value + 1, pointer);
//! let code = k.finish();
//! ```

mod condition;
mod expression;
mod kernel;

pub use condition::{Boolean, Test};
pub use expression::{Char, Expression, Float, Int, Var, element, qpu, rotate, rotate_in_quads, uniform};
pub use kernel::Kernel;
