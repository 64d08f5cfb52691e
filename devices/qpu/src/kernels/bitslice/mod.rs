//! Bitsliced kernels. They process 32 blocks at once with operations on bits. Element i of register b contains bit b of byte i
//! of 32 blocks. No address and no branch depends on keys or data. These kernels are the default.

mod blocks;
mod ctr;
pub mod gates;
mod ops;
mod rounds;
mod state;
mod transpose;

pub use blocks::{Blocks, Combination, blocks};
pub use ctr::ctr;
pub use state::{KEY_STRIDE, UNIT};

use crate::compiler::scheduled::Hints;
use crate::compiler::{Code, scheduled};
use crate::isa::Instruction;

/// A program, with hints for the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitsliceProgram {
    /// The name of the program. The file with its hints has the same name.
    pub name: &'static str,
    /// The processing of blocks; `None` for CTR.
    pub blocks: Option<Blocks>,
    hints: &'static str,
}

/// All programs. The example `qpu_search` finds their hints.
pub const PROGRAMS: [BitsliceProgram; 8] = [
    BitsliceProgram { name: "ctr", blocks: None, hints: include_str!("hints/ctr.txt") },
    BitsliceProgram {
        name: "encrypt",
        blocks: Some(Blocks { decrypts: false, combination: Combination::None }),
        hints: include_str!("hints/encrypt.txt"),
    },
    BitsliceProgram {
        name: "decrypt",
        blocks: Some(Blocks { decrypts: true, combination: Combination::None }),
        hints: include_str!("hints/decrypt.txt"),
    },
    BitsliceProgram {
        name: "cfb_decrypt",
        blocks: Some(Blocks { decrypts: false, combination: Combination::Data }),
        hints: include_str!("hints/cfb_decrypt.txt"),
    },
    BitsliceProgram {
        name: "cbc_decrypt",
        blocks: Some(Blocks { decrypts: true, combination: Combination::Data }),
        hints: include_str!("hints/cbc_decrypt.txt"),
    },
    BitsliceProgram {
        name: "xts_encrypt",
        blocks: Some(Blocks { decrypts: false, combination: Combination::Tweak }),
        hints: include_str!("hints/xts_encrypt.txt"),
    },
    BitsliceProgram {
        name: "xts_decrypt",
        blocks: Some(Blocks { decrypts: true, combination: Combination::Tweak }),
        hints: include_str!("hints/xts_decrypt.txt"),
    },
    BitsliceProgram {
        name: "chain_encrypt",
        blocks: Some(Blocks { decrypts: false, combination: Combination::Chain }),
        hints: include_str!("hints/chain_encrypt.txt"),
    },
];

impl BitsliceProgram {
    /// Returns the operations of the program, before registers are allocated.
    pub fn code(&self) -> Code {
        self.blocks.map_or_else(ctr, blocks)
    }

    /// The hints that were found for the program.
    pub fn hints(&self) -> Hints {
        Hints::parse(self.hints)
    }

    /// Compiles the program with its hints.
    ///
    /// # Panics
    /// Panics if the program does not fit into the registers. This does not happen, because a test compiles all programs.
    pub fn compile(&self) -> Vec<Instruction> {
        scheduled::compile(&self.code(), &self.hints()).expect("a kernel that fits into the registers")
    }
}
