//! Why a program stops before its end.

use std::fmt;

use super::Hazard;

/// A fault of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The number of the QPU.
    pub qpu: u8,
    /// The address of the instruction in the program, in bytes.
    pub address: u32,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// The kinds of faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The program ran or branched outside of its instructions.
    OutsideProgram,
    /// An instruction breaks a rule.
    Hazard(Hazard),
    /// An operation has an input from a register that the instruction does not read.
    NoInput,
    /// A mode of packing that the operation does not have, or that an input or output register does not have.
    Pack(u8),
    /// No memory is at this address, or the address is no multiple of four.
    Memory(u32),
    /// The program is still running after this number of clocks: probably a loop without an end.
    Budget(u64),
    /// A semaphore is decremented that nothing can increment any more.
    Deadlock,
    /// A function of the chip that is not simulated.
    NotSimulated(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QPU {} at {:#06x}: ", self.qpu, self.address)?;
        match &self.kind {
            FaultKind::OutsideProgram => {
                f.write_str("the program ran or branched outside of its instructions")
            }
            FaultKind::Hazard(hazard) => write!(f, "the instruction has an undefined result: {hazard}"),
            FaultKind::NoInput => {
                f.write_str("an operation has an input from a file that the instruction does not read")
            }
            FaultKind::Pack(mode) => write!(f, "the operation does not have the mode {mode} of packing"),
            FaultKind::Memory(address) => {
                write!(f, "no memory is at {address:#x}, or it is no multiple of four")
            }
            FaultKind::Budget(clocks) => {
                write!(f, "still running after {clocks} clocks: a loop without an end?")
            }
            FaultKind::Deadlock => f.write_str("it waits for a semaphore that nothing increments"),
            FaultKind::NotSimulated(what) => write!(f, "{what} is not simulated"),
        }
    }
}

impl std::error::Error for Fault {}
