//! The kernels and their programs.

use lockstep_gpu_host::Tiles;

/// The functions that each family of kernels has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    EcbEncrypt,
    EcbDecrypt,
    Ctr,
    CtrLittle32,
    CbcDecrypt,
    CfbDecrypt,
    XtsEncrypt,
    XtsDecrypt,
    /// Processes the whole blocks of OCB3, and computes the checksums of their plaintext.
    OcbEncrypt,
    OcbDecrypt,
}

impl Part {
    /// The function that performs a pass in tiles.
    pub(crate) fn of(tiles: Tiles) -> Part {
        match tiles {
            Tiles::EcbEncrypt => Part::EcbEncrypt,
            Tiles::EcbDecrypt => Part::EcbDecrypt,
            Tiles::Ctr | Tiles::Ctr32 => Part::Ctr,
            Tiles::CtrLittle32 => Part::CtrLittle32,
            Tiles::CbcDecrypt => Part::CbcDecrypt,
            Tiles::Cfb128Decrypt => Part::CfbDecrypt,
            Tiles::XtsEncrypt => Part::XtsEncrypt,
            Tiles::XtsDecrypt => Part::XtsDecrypt,
        }
    }

    /// True if the function uses the inverse cipher.
    pub(crate) fn decrypts(self) -> bool {
        matches!(self, Part::EcbDecrypt | Part::CbcDecrypt | Part::XtsDecrypt | Part::OcbDecrypt)
    }

    pub(crate) fn counts(self) -> bool {
        self == Part::Ctr
    }

    pub(crate) fn tweaks(self) -> bool {
        matches!(self, Part::XtsEncrypt | Part::XtsDecrypt)
    }

    /// True for the functions of OCB3, which also compute a checksum.
    pub(crate) fn sums(self) -> bool {
        matches!(self, Part::OcbEncrypt | Part::OcbDecrypt)
    }

    /// True if the output must not overwrite the input, because another invocation still reads the input.
    pub(crate) fn looks_back(self) -> bool {
        matches!(self, Part::CbcDecrypt | Part::CfbDecrypt)
    }
}

/// A shader with one entry point, for all key sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Program {
    /// A bitsliced program. If `wide` is true, 32 neighbouring invocations share a tile.
    Bitslice {
        part: Part,
        wide: bool,
    },
    Table {
        part: Part,
        wide: bool,
    },
    Blocks,
    GhashPowers,
    GhashRuns,
    GcmPads,
    /// The program that compares or writes the tags of GCM and of OCB3.
    GcmTags,
    OcbKeys,
    OcbBegin,
    OcbHash,
    OcbSums,
    OcbEnd,
    OcbZero,
    Tails,
    ChainKeys {
        decrypts: bool,
    },
    ChainSteps {
        decrypts: bool,
    },
}

/// Number of blocks that an invocation processes.
pub(crate) const ROWS: usize = 32;
/// Number of invocations that share a wide tile.
pub(crate) const WIDE: usize = 32;
/// Blocks of a run of GHASH.
pub(crate) const GHASH_RUN: usize = 64;
/// Number of levels of GHASH. With runs of 64 blocks, four levels are enough for 64^4 blocks, which are 2^28 bytes.
pub(crate) const GHASH_LEVELS: usize = 4;
/// Maximum number of blocks that an invocation of `Program::OcbSums` adds.
pub(crate) const SUM_RUN: usize = 64;
/// Number of messages that an invocation of a serial mode processes. Also the number of blocks that an invocation of
/// `Program::Blocks` encrypts.
pub(crate) const CHAIN_MESSAGES: usize = 8;
/// Maximum number of steps of one launch of a serial mode. A step runs the cipher once for each message. A longer launch
/// could reach the driver's time limit. In addition, llvmpipe ends an invocation after 65535 iterations of its loops, and a
/// step takes up to 31 iterations.
pub(crate) const CHAIN_STEPS: u32 = 1024;

impl Program {
    /// Number of invocations in a workgroup of the program.
    pub(crate) fn workgroup(self) -> usize {
        match self {
            Program::Blocks | Program::ChainKeys { .. } | Program::ChainSteps { .. } => 32,
            _ => 64,
        }
    }

    /// The name of the program in counters and errors.
    pub(crate) fn name(self) -> &'static str {
        macro_rules! part {
            ($family:literal, $part:expr) => {
                match $part {
                    Part::EcbEncrypt => concat!($family, "_ecb_encrypt"),
                    Part::EcbDecrypt => concat!($family, "_ecb_decrypt"),
                    Part::Ctr => concat!($family, "_ctr"),
                    Part::CtrLittle32 => concat!($family, "_ctr_little32"),
                    Part::CbcDecrypt => concat!($family, "_cbc_decrypt"),
                    Part::CfbDecrypt => concat!($family, "_cfb_decrypt"),
                    Part::XtsEncrypt => concat!($family, "_xts_encrypt"),
                    Part::XtsDecrypt => concat!($family, "_xts_decrypt"),
                    Part::OcbEncrypt => concat!($family, "_ocb_encrypt"),
                    Part::OcbDecrypt => concat!($family, "_ocb_decrypt"),
                }
            };
        }
        match self {
            Program::Bitslice { part, wide: true } => part!("bitslice", part),
            Program::Bitslice { part, wide: false } => part!("bitslice_lane", part),
            Program::Table { part, wide: true } => part!("table", part),
            Program::Table { part, wide: false } => part!("table_lane", part),
            Program::Blocks => "blocks_encrypt",
            Program::GhashPowers => "ghash_powers",
            Program::GhashRuns => "ghash_runs",
            Program::GcmPads => "gcm_pads",
            Program::GcmTags => "gcm_tags",
            Program::OcbKeys => "ocb_keys",
            Program::OcbBegin => "ocb_begin",
            Program::OcbHash => "ocb_hash",
            Program::OcbSums => "ocb_sums",
            Program::OcbEnd => "ocb_end",
            Program::OcbZero => "ocb_zero",
            Program::Tails => "tails",
            Program::ChainKeys { decrypts: false } => "chain_keys_encrypt",
            Program::ChainKeys { decrypts: true } => "chain_keys_decrypt",
            Program::ChainSteps { decrypts: false } => "chain_encrypt",
            Program::ChainSteps { decrypts: true } => "chain_decrypt",
        }
    }
}

/// A family of programs that share one implementation of AES. All families use the same programs for serial modes and GHASH;
/// these programs are constant-time.
pub(crate) struct Family {
    /// The name in `--kernel`, `LOCKSTEP_KERNEL` and reports.
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) constant_time: bool,
    pub(crate) program: fn(Part, bool) -> Program,
}

/// All families, starting with the default family.
pub(crate) static FAMILIES: [Family; 2] = [
    Family {
        name: "wgpu/bitslice",
        description: "bitsliced, 32 blocks an invocation",
        constant_time: true,
        program: |part, wide| Program::Bitslice { part, wide },
    },
    Family {
        name: "wgpu/table",
        description: "a T-table in workgroup memory, eight copies",
        constant_time: false,
        program: |part, wide| Program::Table { part, wide },
    },
];

/// Options for the submission of work to a device, for measurements and tests. The defaults are the best known
/// values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchOptions {
    /// `Some(true)` uses 32 invocations for every tile, which is best for long messages on a GPU. `Some(false)` uses one invocation for
    /// every tile.
    pub wide: Option<bool>,
    /// The size of a chunk in bytes.
    pub chunk: Option<usize>,
    /// The limit for the size of a buffer in bytes. The driver refuses to open the device if it supports less.
    pub buffer: Option<u64>,
}
