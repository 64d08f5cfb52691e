//! From dataflow to code: which instruction issues in which cycle on which pipe, and in which registers its values
//! live.
//!
//! A kernel is a [`Flow`]: the body of a loop over groups of blocks as plain dataflow, in any order that is natural to read,
//! with values instead of registers. [`compile`] makes a program of it:
//!
//! 1. `choose`: where a result can be had by even- or odd-pipe instructions (`Flow::either`), takes what balances
//!    the pipes.
//! 2. `place`: modulo scheduling. Each instruction gets a cycle so that one iteration starts every `interval` cycles
//!    and no two instructions want the same pipe in the same cycle modulo `interval`. Iterations so overlap.
//! 3. `registers`: values that live at the same time (on the circle of the interval) get different registers.
//! 4. `emit`: pairs of even and odd instructions at multiples of 8 bytes, with `nop` and `lnop` where a pipe has nothing;
//!    the iterations under way at the start and the end of the loop; the branch and its hint.

mod choose;
mod emit;
mod flow;
mod place;
mod registers;

use crate::asm::Image;
use crate::isa::{Op, Reg};
pub use flow::{Carried, Flow, Value};
use place::Placement;

/// How to compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// In the order in which the flow was written, one instruction after the other: what the scheduler is compared with.
    Off,
    /// Scheduled, but each iteration ends before the next one starts.
    Straight,
    /// Scheduled, and iterations overlap.
    Full,
}

/// A compiled kernel.
#[derive(Debug, Clone)]
pub struct Program {
    /// Code and constants.
    pub image: Image,
    /// Where each parameter of the flow lies, in the order in which they were made.
    pub parameters: Vec<u32>,
    /// Where each carried value is when the program has ended, in the order in which they were made.
    pub carried: Vec<Reg>,
    /// Where the number of turns of the loop is to be written, as a word in the preferred slot.
    pub turns_at: u32,
    /// Iterations that overlap: the loop must be entered with at least so many to do, and turns once for each but
    /// `stages - 1`.
    pub stages: u64,
    /// Cycles from the start of an iteration to that of the next, as scheduled.
    pub interval: u64,
    /// Even and odd instructions of an iteration.
    pub counts: [usize; 2],
    /// The most registers in use.
    pub registers: usize,
}

/// An instruction of the body with values for registers.
#[derive(Debug, Clone, Copy)]
struct Node {
    op: Op,
    /// The value it makes.
    out: Option<Value>,
    /// RA, RB, RC or, of stores, RA, RB and the stored value.
    sources: [Option<Value>; 3],
    imm: i32,
    lane: u32,
}

impl Node {
    fn pipe(&self) -> usize {
        usize::from(self.op.pipe() == crate::isa::Pipe::Odd)
    }

    fn sources(&self) -> impl Iterator<Item = Value> {
        self.sources.into_iter().flatten()
    }
}

/// No more iterations than this overlap.
const MOST_STAGES: usize = 4;

/// Compiles a flow to a program at an address.
///
/// # Errors
/// If it needs more registers than there are, in words.
pub fn compile(flow: &Flow, effort: Effort, origin: u32) -> Result<Program, String> {
    let body = choose::balanced(flow);
    let mut reason = String::from("the body is empty");
    let placements: Box<dyn Iterator<Item = Placement>> = match effort {
        Effort::Off => Box::new(std::iter::once(place::in_order(&body))),
        Effort::Straight => Box::new(place::candidates(&body, 1)),
        Effort::Full => Box::new(place::candidates(&body, MOST_STAGES)),
    };
    for placement in placements {
        match registers::allocate(&body, &placement) {
            Ok(registers) => return emit::program(&body, &placement, &registers, effort, origin),
            Err(why) => reason = why,
        }
    }
    Err(reason)
}
