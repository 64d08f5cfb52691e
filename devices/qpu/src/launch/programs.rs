//! The programs of the kernels, each compiled on first use.

use std::sync::LazyLock;

use crate::compiler::scheduled::{self, Hints};
use crate::compiler::{Code, sequential};
use crate::kernels::bitslice::{Blocks, PROGRAMS};
use crate::kernels::{naive, packed, packed_tuned};
use crate::sim::Program;

static BITSLICE: [LazyLock<Program>; PROGRAMS.len()] = [
    LazyLock::new(|| Program::new(&PROGRAMS[0].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[1].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[2].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[3].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[4].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[5].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[6].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[7].compile())),
];

/// The bitsliced program for blocks, or for CTR.
pub(super) fn bitslice(blocks: Option<Blocks>) -> &'static Program {
    let index = PROGRAMS.iter().position(|program| program.blocks == blocks);
    &BITSLICE[index.expect("there is a program for each")]
}

/// The thesis's second kernel: encryption, then decryption. The programs are compiled with the method of the thesis's compiler.
pub(super) static PACKED: [LazyLock<Program>; 2] = [
    LazyLock::new(|| as_published(&packed::encrypt_as_published())),
    LazyLock::new(|| as_published(&packed::decrypt_as_published())),
];

/// A decryption that the thesis does not contain. As [`PACKED`], it is compiled with the method of the thesis's compiler.
pub(super) static PACKED_FAST_DECRYPTION: LazyLock<Program> =
    LazyLock::new(|| as_published(&packed::decrypt_fast()));

/// The thesis's first kernel: encryption, then decryption.
pub(super) static NAIVE: [LazyLock<Program>; 2] = [
    LazyLock::new(|| as_published(&naive::encrypt_as_published())),
    LazyLock::new(|| as_published(&naive::decrypt())),
];

/// The tuned kernels for 10, 12 and 14 rounds, for encryption and for decryption.
pub(super) static PACKED_TUNED: LazyLock<[[Program; 2]; 3]> = LazyLock::new(|| {
    [10, 12, 14].map(|rounds| {
        [false, true].map(|decrypts| {
            let code = packed_tuned::blocks(rounds, decrypts);
            Program::new(&scheduled::compile(&code, &Hints::default()).expect(FITS))
        })
    })
});

const FITS: &str = "a kernel that fits into the registers";

fn as_published(code: &Code) -> Program {
    Program::new(&sequential::compile(code).expect(FITS))
}
