//! The scheduler, which converts dataflow to code. It determines the cycle and the pipe of each instruction, and the
//! register of each value.
//!
//! A kernel is a [`Flow`]: the body of a loop over groups of blocks as dataflow. The instructions are in any readable
//! order and use values instead of registers. [`compile`] converts the flow to a program:
//!
//! 1. `choose`: if a result can be computed by even- or odd-pipe instructions (`Flow::either`), chooses the alternative
//!    that balances the pipes.
//! 2. `place`: modulo scheduling. Each instruction gets a cycle such that one iteration starts every `interval` cycles
//!    and no two instructions use the same pipe in the same cycle modulo `interval`. Iterations thus overlap.
//! 3. `registers`: values that are live at the same time, modulo the interval, get different registers.
//! 4. `emit`: writes the program. It consists of pairs of even and odd instructions at multiples of 8 bytes, with `nop`
//!    and `lnop` for idle pipes; the prologue and epilogue of the overlapping iterations; the branch and its hint.

mod choose;
mod emit;
mod flow;
mod place;
mod registers;

use crate::asm::Image;
use crate::isa::{Op, Reg};
pub use flow::{Carried, Flow, Value};
use place::Placement;

/// The kind of schedule, from the slowest program to the fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Instructions in the order of the flow, one after the other. This is the baseline for the scheduler.
    Off,
    /// The instructions are scheduled, but iterations do not overlap.
    Straight,
    /// The instructions are scheduled, and iterations overlap.
    Full,
}

/// A compiled kernel, with the addresses of its parameters.
#[derive(Debug, Clone)]
pub struct Program {
    /// The code, the constants and the parameters.
    pub image: Image,
    /// The address of each parameter of the flow, in the order of creation.
    pub parameters: Vec<u32>,
    /// The register of each carried value at the end of the program, in the order of creation.
    pub carried: Vec<Reg>,
    /// The address of the loop count. The loop count is a word in the preferred slot, and states how often the loop is executed.
    pub iterations_at: u32,
    /// Number of iterations that overlap. A run needs at least this number of iterations. Because of the prologue and
    /// the epilogue, the loop is executed `stages - 1` times less often than the number of iterations.
    pub stages: u64,
    /// The number of cycles in the schedule from the start of an iteration to the start of the next one.
    pub interval: u64,
    /// Number of even and odd instructions of an iteration.
    pub counts: [usize; 2],
    /// Maximum number of registers in use.
    pub registers: usize,
}

/// An instruction of the body, with values instead of registers.
#[derive(Debug, Clone, Copy)]
struct Node {
    op: Op,
    /// The value that the instruction computes.
    out: Option<Value>,
    /// The source registers RA, RB and RC; for stores, RA, RB and the stored value.
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

/// Maximum number of overlapping iterations.
const MAX_STAGES: usize = 4;

/// Compiles a flow to a program at an address.
///
/// # Errors
/// A message, if the flow needs more registers than are available.
pub fn compile(flow: &Flow, effort: Effort, origin: u32) -> Result<Program, String> {
    let body = choose::balanced(flow);
    let mut reason = String::from("the body is empty");
    let placements: Box<dyn Iterator<Item = Placement>> = match effort {
        Effort::Off => Box::new(std::iter::once(place::in_order(&body))),
        Effort::Straight => Box::new(place::candidates(&body, 1)),
        Effort::Full => Box::new(place::candidates(&body, MAX_STAGES)),
    };
    for placement in placements {
        match registers::allocate(&body, &placement) {
            Ok(registers) => return emit::program(&body, &placement, &registers, effort, origin),
            Err(why) => reason = why,
        }
    }
    Err(reason)
}
