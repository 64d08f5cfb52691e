//! The families of kernels: their passes, their entry points and their tilings.

use lockstep_core::KeySize;
use lockstep_core::work::{FusedAead, Pass};

use super::options::LaunchOptions;
use super::part::Entries;
use super::tiling::{BlockLimit, Instead, KernelOption, Tiling};
use crate::machine::{Entry, Limits};

/// The entry points of a module with one entry point for each part and key size.
macro_rules! entries {
    ($module:literal, $family:literal) => {
        entries!(by_size, $module, $family)
    };
    // The macro `$row` makes the row of each part.
    ($row:ident, $module:literal, $family:literal) => {
        &[
            $row!($module, $family, "_ecb_encrypt"),
            $row!($module, $family, "_ecb_decrypt"),
            $row!($module, $family, "_ctr"),
            $row!($module, $family, "_ctr32"),
            $row!($module, $family, "_ctr_little32"),
            $row!($module, $family, "_cbc_decrypt"),
            $row!($module, $family, "_cfb_decrypt"),
            $row!($module, $family, "_xts_encrypt"),
            $row!($module, $family, "_xts_decrypt"),
            $row!($module, $family, "_ocb_encrypt"),
            $row!($module, $family, "_ocb_decrypt"),
        ]
    };
}

/// Makes the entry points of a part with one function for each key size.
macro_rules! by_size {
    ($module:literal, $family:literal, $part:literal) => {
        [
            Entry { module: $module, name: concat!($family, $part, "_128") },
            Entry { module: $module, name: concat!($family, $part, "_192") },
            Entry { module: $module, name: concat!($family, $part, "_256") },
        ]
    };
}

/// Makes the entry points of a part with one function for all key sizes.
macro_rules! any_size {
    ($module:literal, $family:literal, $part:literal) => {
        [Entry { module: $module, name: concat!($family, $part) }; 3]
    };
}

/// Makes the entry points of a part with one function for all key sizes. Each part is in a separate module.
macro_rules! by_part {
    ($module:literal, $family:literal, $part:literal) => {
        [Entry { module: concat!($module, $part), name: concat!($family, $part) }; 3]
    };
}

/// A family of kernels with the same design: an implementation of AES for all key sizes, with the passes that it
/// offers.
pub(crate) struct Family {
    /// The name in `--kernel`, `LOCKSTEP_KERNEL` and reports.
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) constant_time: bool,
    passes: &'static [Pass],
    /// True if the family has kernels for the whole blocks of OCB3.
    has_ocb: bool,
    /// Key expansion for both directions, by key size.
    expand: [Entry; 3],
    /// The tilings of the work (see [`Tiling`]), the best one first. The last tiling runs on every GPU.
    tilings: fn(&LaunchOptions) -> Tilings,
    /// GB/s on an H100, for the planner. This is an estimate: no rate of a GPU has been measured. For the kernels with tables and
    /// for `cuda/bitslice`, it is below the bounds of CTR that docs/kernels.md computes from the machine code.
    pub(crate) gb_per_s: f64,
}

/// A preferred tiling, and an alternative for short segments or for GPUs with less shared memory.
type Tilings = [Option<Tiling>; 2];

const TABLE_PASSES: &[Pass] = &[
    Pass::EcbEncrypt,
    Pass::EcbDecrypt,
    Pass::Ctr,
    Pass::Ctr32,
    Pass::CbcDecrypt,
    Pass::Cfb128Decrypt,
    Pass::XtsEncrypt,
    Pass::XtsDecrypt,
    // The kernels of `kernels/chain` and `kernels/ghash` execute the passes below. They are constant time and read the
    // key schedules of any family.
    Pass::CbcEncrypt,
    Pass::Cfb128Encrypt,
    Pass::Cfb8Encrypt,
    Pass::Cfb8Decrypt,
    Pass::Cfb1Encrypt,
    Pass::Cfb1Decrypt,
    Pass::Ofb,
    Pass::PcbcEncrypt,
    Pass::PcbcDecrypt,
    Pass::CbcMac,
    Pass::Ghash,
];

/// All passes: those of `TABLE_PASSES`, and the passes that only GCM-SIV uses.
const BITSLICE_PASSES: &[Pass] = &Pass::ALL;

const PAPER: &[Pass] = &[Pass::EcbEncrypt, Pass::EcbDecrypt, Pass::Ctr];

const THESIS: &[Pass] = &[Pass::EcbEncrypt, Pass::Ctr];

/// All families, the default one first.
pub(crate) static FAMILIES: [Family; 8] = [
    Family {
        name: "cuda/bitslice",
        description: "bitsliced, 32 blocks a thread, state in registers",
        constant_time: true,
        passes: BITSLICE_PASSES,
        has_ocb: true,
        expand: by_size!("bitslice_expand", "bitslice", "_expand"),
        tilings: |options| [Some(BITSLICE), (!options.always_wide).then_some(BITSLICE_LANE)],
        gb_per_s: 350.0,
    },
    Family {
        name: "cuda/table",
        description: "T-tables, a private copy for each bank of shared memory",
        constant_time: false,
        passes: TABLE_PASSES,
        has_ocb: false,
        expand: by_size!("expand", "table", "_expand"),
        tilings: |_| [Some(TABLE), Some(TABLE_SMALL)],
        gb_per_s: 400.0,
    },
    Family {
        tilings: |options| paper(entries!("cuda_ctr", "fine_shared"), 4, 8, TBOXES, options),
        ..of_a_paper("cuda/fine-shared", "T-tables in shared memory, four threads a block (GeForce 8, 2008)")
    },
    Family {
        tilings: |options| {
            let [fine, _] = paper(entries!("cuda_ctr", "fine_shared"), 4, 8, TBOXES, options);
            coarse(entries!("cuda_ctr", "coarse_shared"), fine, TBOXES, options)
        },
        ..of_a_paper("cuda/coarse-shared", "T-tables in shared memory, a thread a block (GeForce 8, 2008)")
    },
    Family {
        tilings: |options| paper(entries!("cuda_ctr", "fine_constant"), 4, 8, 0, options),
        ..of_a_paper(
            "cuda/fine-constant",
            "T-tables in constant memory, four threads a block (GeForce 8, 2008)",
        )
    },
    Family {
        tilings: |options| {
            let [fine, _] = paper(entries!("cuda_ctr", "fine_constant"), 4, 8, 0, options);
            coarse(entries!("cuda_ctr", "coarse_constant"), fine, 0, options)
        },
        ..of_a_paper(
            "cuda/coarse-constant",
            "T-tables in constant memory, a thread a block (GeForce 8, 2008)",
        )
    },
    Family {
        passes: THESIS,
        tilings: |options| {
            let blocks = options.blocks_per_thread.unwrap_or(10).clamp(1, 1024);
            let entries = entries!("global_sbox", "global_sbox");
            let [tiling, _] = paper(entries, 16 * blocks as usize, 0, 0, options);
            [tiling.map(|tiling| Tiling { option: KernelOption::Number(blocks), ..tiling }), None]
        },
        ..of_a_paper("cuda/global-sbox", "S-box in global memory, computed MixColumns (GeForce 8800, 2008)")
    },
    Family {
        tilings: |options| {
            let [tiling, _] = paper(entries!(any_size, "gems", "gems"), 16, 0, 0, options);
            [tiling.map(|tiling| Tiling { option: KernelOption::Rounds, ..tiling }), None]
        },
        ..of_a_paper("cuda/gems", "S-box and MixColumns as tables in global memory (GPU Gems 3, chapter 36)")
    },
];

pub(super) const BITSLICE: Tiling = Tiling {
    entries: entries!(by_part, "bitslice", "bitslice"),
    tile: 16 * 1024,
    tile_threads: 32,
    block_tiles: 1,
    shared: 0,
    most: BlockLimit::Any,
    instead: Instead::Never,
    option: KernelOption::Rounds,
};

/// The tiling in which each thread processes one tile.
pub(super) const BITSLICE_LANE: Tiling = Tiling {
    entries: entries!(by_part, "bitslice", "bitslice_lane"),
    tile: 512,
    tile_threads: 1,
    block_tiles: 32,
    // A message shorter than this would leave more than half of a tile of `BITSLICE` empty.
    instead: Instead::ShortMessages(BITSLICE.tile / 2),
    ..BITSLICE
};

/// The 16 warps of a thread block fill a multiprocessor. Each thread block loops over tiles, because it must fill its tables before its
/// first tile.
pub(super) const TABLE: Tiling = Tiling {
    entries: entries!("table", "table"),
    tile: 8 * 1024,
    tile_threads: 32,
    block_tiles: 16,
    shared: 128 * 1024,
    most: BlockLimit::Resident(1),
    instead: Instead::Never,
    option: KernelOption::Number(0),
};

pub(super) const TABLE_SMALL: Tiling =
    Tiling { entries: entries!("table_small", "table_small"), shared: 32 * 1024, ..TABLE };

/// Bytes of four T-tables.
pub(super) const TBOXES: u32 = 4096;

const fn of_a_paper(name: &'static str, description: &'static str) -> Family {
    Family {
        name,
        description,
        constant_time: false,
        passes: PAPER,
        has_ocb: false,
        expand: by_size!("expand", "table", "_expand"),
        tilings: |_| [None, None],
        gb_per_s: 50.0,
    }
}

/// The tiling of a kernel from a paper. The number of threads of a thread block determines the tile and the size of the state
/// in shared memory. In shared memory, the state follows the tables, which have `tables` bytes.
fn paper(
    entries: &'static Entries,
    thread_bytes: usize,
    thread_state: u32,
    tables: u32,
    options: &LaunchOptions,
) -> Tilings {
    // The number of threads is a multiple of four, because up to four threads share a block of 16 bytes.
    let threads = options.threads.unwrap_or(256).clamp(8, 512) / 4 * 4;
    let tiling = Tiling {
        entries,
        tile: thread_bytes * threads as usize,
        tile_threads: threads,
        block_tiles: 1,
        shared: tables + thread_state * threads,
        most: options.blocks.map_or(BlockLimit::Any, BlockLimit::Blocks),
        instead: Instead::Never,
        option: KernelOption::Number(0),
    };
    [Some(tiling), None]
}

/// The tiling of coarse grain. If the launch options request fine grain for small launches, also the tiling of fine grain.
fn coarse(entries: &'static Entries, fine: Option<Tiling>, tables: u32, options: &LaunchOptions) -> Tilings {
    let [coarse, _] = paper(entries, 16, 16, tables, options);
    let instead = options.fine_below.map(|kib| Instead::SmallLaunches(1024 * kib as usize));
    [coarse, fine.zip(instead).map(|(fine, instead)| Tiling { instead, ..fine })]
}

impl Family {
    /// True if the family offers the pass.
    pub(crate) fn does(&self, pass: Pass) -> bool {
        self.passes.contains(&pass)
    }

    /// True if the family offers the fused AEAD.
    pub(crate) fn does_fused(&self, fused: FusedAead) -> bool {
        match fused {
            FusedAead::GcmSeal | FusedAead::GcmOpen => self.does(Pass::Ctr32) && self.does(Pass::Ghash),
            FusedAead::OcbSeal | FusedAead::OcbOpen => self.has_ocb,
            FusedAead::GcmSivSeal | FusedAead::GcmSivOpen => false,
        }
    }

    /// The entry point of key expansion.
    pub(crate) fn expand(&self, size: KeySize) -> Entry {
        self.expand[size as usize]
    }

    /// Bytes of an expanded key: the round keys for encryption, followed by the round keys for decryption.
    pub(crate) fn schedule(&self, size: KeySize) -> usize {
        2 * 16 * (size.rounds() + 1)
    }

    /// The tilings with the default launch options, the best one first.
    pub(crate) fn tilings(&self) -> impl Iterator<Item = Tiling> {
        (self.tilings)(&LaunchOptions::default()).into_iter().flatten()
    }

    /// Returns the tiling for a launch with this number of segments and bytes.
    pub(crate) fn tiling(
        &self,
        limits: &Limits,
        options: &LaunchOptions,
        segments: usize,
        bytes: usize,
    ) -> Tiling {
        let tilings = (self.tilings)(options);
        let mut fitting = tilings.iter().flatten().filter(|tiling| tiling.shared <= limits.shared);
        let first = *fitting.next().or(tilings.iter().flatten().last()).unwrap_or(&BITSLICE);
        fitting.find(|tiling| tiling.instead.is_chosen(segments, bytes)).copied().unwrap_or(first)
    }
}
