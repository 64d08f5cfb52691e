//! Compilers that convert operations on variables to instructions: [`sequential`] generates code like a simple compiler, and
//! [`scheduled`] generates fast code.

mod flow;
mod ir;
pub mod scheduled;
pub mod sequential;
mod word;

pub use ir::{Action, Code, Input, Item, Label, Op, Output, Read, Rotation, Special, Variable, Write};

use std::fmt;

/// The reason why a program cannot be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileError {
    /// At some point of the program, more variables are needed than there are registers.
    Registers,
    /// A variable is read, or overwritten in part, before it has been written.
    Unwritten,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Registers => {
                f.write_str("the program needs more variables at once than there are registers")
            }
            CompileError::Unwritten => {
                f.write_str("the program reads a variable, or writes a part of one, before it is written")
            }
        }
    }
}

impl std::error::Error for CompileError {}
