//! The reasons why a program stops before its end.

use std::fmt;

use super::Hazard;

/// A fault of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The number of the QPU.
    pub qpu: u8,
    /// The address of the instruction in the program, in bytes.
    pub address: u32,
    /// The rule that the program has broken, or the reason why it cannot continue.
    pub kind: FaultKind,
}

/// The rules that a program can break, and the reasons why it cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The program ran or branched outside its instructions.
    OutsideProgram,
    /// An instruction breaks a rule.
    Hazard(Hazard),
    /// An operation has an input from a register that the instruction does not read.
    NoInput,
    /// The operation, or an input or output register, does not support this mode of packing or unpacking.
    Pack(u8),
    /// There is no memory at this address, or the address is not a multiple of four.
    Memory(u32),
    /// The program is still running after this number of clocks, probably in an endless loop.
    Budget(u64),
    /// A QPU waits for a semaphore or the mutex, and no QPU can change its state any more.
    Deadlock,
    /// A setup of the VPM or of a DMA engine that is invalid or not simulated.
    Setup(u32),
    /// The VPM is accessed or a DMA transfer is started without a setup, or more vectors are read than the setup specifies.
    NoSetup,
    /// A word of the VPM is used while a DMA transfer reads or writes it.
    VpmBusy {
        /// The row of the word.
        row: u8,
    },
    /// A DMA transfer uses words outside the 64 rows and 16 columns that QPUs can access.
    OutsideVpm {
        /// The row of the first such word.
        row: u32,
        /// The column of the first such word.
        column: u32,
    },
    /// A DMA transfer is set up or started before the last transfer of the QPU has ended.
    DmaBusy,
    /// A result of a texture unit is loaded without a request.
    NoRequest,
    /// A QPU has more than four requests to a texture unit.
    TooManyRequests,
    /// A QPU locks the mutex twice, or unlocks the mutex without having locked it.
    Mutex,
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
            FaultKind::Deadlock => {
                f.write_str("it waits for a semaphore or the mutex, which nothing changes")
            }
            FaultKind::Setup(word) => {
                write!(f, "{word:#010x} is not a setup of the VPM or of a DMA engine that is simulated")
            }
            FaultKind::NoSetup => f.write_str("it uses the VPM or a DMA engine without a setup"),
            FaultKind::VpmBusy { row } => {
                write!(f, "it uses row {row} of the VPM while a DMA transfer is using it")
            }
            FaultKind::OutsideVpm { row, column } => {
                write!(
                    f,
                    "a DMA transfer uses row {row}, column {column} of the VPM, which has 64 rows of 16 words"
                )
            }
            FaultKind::DmaBusy => f.write_str("it uses a DMA engine before its last transfer has ended"),
            FaultKind::NoRequest => f.write_str("it loads the result of a texture unit without a request"),
            FaultKind::TooManyRequests => f.write_str("it has more than four requests to a texture unit"),
            FaultKind::Mutex => {
                f.write_str("it locks the mutex twice, or unlocks it without having locked it")
            }
            FaultKind::NotSimulated(what) => write!(f, "{what} is not simulated"),
        }
    }
}

impl std::error::Error for Fault {}
