//! Exports the programs for hosts other than this crate, such as a browser.

use crate::kernel::{
    CHAIN_MESSAGES, CHAIN_STEPS, FAMILIES, GHASH_LEVELS, GHASH_RUN, Part, Program, ROWS, WIDE,
};
use crate::{lookup, shader};

/// A program with one entry point, `main`. All programs have the same four bindings in group 0: see `shaders/common.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedProgram {
    /// The name in counters and errors, such as `bitslice_ctr`.
    pub name: &'static str,
    /// The source in WGSL.
    pub wgsl: String,
    /// Number of invocations in a workgroup.
    pub workgroup: usize,
}

/// All programs of the backend, as [`crate::WgpuDevice`] compiles them.
pub fn exported_programs() -> Vec<ExportedProgram> {
    let exported = |program: Program| ExportedProgram {
        name: program.name(),
        wgsl: shader::source(program),
        workgroup: program.workgroup(),
    };
    programs().into_iter().map(exported).collect()
}

/// The constants that a host needs to launch the programs, by name.
pub fn exported_constants() -> [(&'static str, usize); 6] {
    [
        ("rows", ROWS),
        ("wide", WIDE),
        ("ghashRun", GHASH_RUN),
        ("ghashLevels", GHASH_LEVELS),
        ("chainMessages", CHAIN_MESSAGES),
        ("chainSteps", CHAIN_STEPS as usize),
    ]
}

/// The T-table of `wgpu/table` for encryption or decryption, as little-endian words.
pub fn exported_table(decrypts: bool) -> Vec<u8> {
    lookup::bytes(decrypts)
}

fn programs() -> Vec<Program> {
    let parts = [
        Part::EcbEncrypt,
        Part::EcbDecrypt,
        Part::Ctr,
        Part::CtrLittle32,
        Part::CbcDecrypt,
        Part::CfbDecrypt,
        Part::XtsEncrypt,
        Part::XtsDecrypt,
    ];
    let mut programs = Vec::new();
    for wide in [true, false] {
        programs
            .extend(parts.iter().flat_map(|&part| FAMILIES.iter().map(move |one| (one.program)(part, wide))));
        programs.extend([Part::OcbEncrypt, Part::OcbDecrypt].map(|part| Program::Bitslice { part, wide }));
    }
    programs.extend([
        Program::Blocks,
        Program::GhashPowers,
        Program::GhashRuns,
        Program::GcmPads,
        Program::GcmTags,
        Program::OcbKeys,
        Program::OcbBegin,
        Program::OcbHash,
        Program::OcbSums,
        Program::OcbEnd,
        Program::OcbZero,
        Program::Tails,
    ]);
    for decrypts in [false, true] {
        programs.extend([Program::ChainKeys { decrypts }, Program::ChainSteps { decrypts }]);
    }
    programs
}
