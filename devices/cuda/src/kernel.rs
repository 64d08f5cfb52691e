//! The kernels: their passes, the shapes of their launches, and their names in the machine code.

use lockstep_core::KeySize;
use lockstep_core::launch::LaunchOption;
use lockstep_core::work::{FusedAead, Pass};
use lockstep_gpu_host::{Kind, Tiles};

use crate::machine::{Entry, Limits, Shape};

pub(crate) mod helper;

/// A function that a family of kernels has for each key size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    EcbEncrypt,
    EcbDecrypt,
    Ctr,
    Ctr32,
    CtrLittle32,
    CbcDecrypt,
    CfbDecrypt,
    XtsEncrypt,
    XtsDecrypt,
    OcbEncrypt,
    OcbDecrypt,
}

impl Part {
    /// The function that every tiling of a family must have, so that the family offers work of this kind.
    pub(crate) fn needed_by(kind: Kind) -> Part {
        match kind {
            Kind::Tiles(tiles) => Part::of(tiles),
            Kind::Gcm { .. } => Part::Ctr32,
            Kind::Ocb { opens: false } => Part::OcbEncrypt,
            Kind::Ocb { opens: true } => Part::OcbDecrypt,
            // Serial modes, GHASH and POLYVAL use kernels that all families share. Requiring `EcbEncrypt` excludes no family,
            // because every family has it.
            Kind::Chain(_) | Kind::Ghash | Kind::Polyval => Part::EcbEncrypt,
        }
    }

    /// The function of a pass in tiles.
    pub(crate) fn of(tiles: Tiles) -> Part {
        match tiles {
            Tiles::EcbEncrypt => Part::EcbEncrypt,
            Tiles::EcbDecrypt => Part::EcbDecrypt,
            Tiles::Ctr => Part::Ctr,
            Tiles::Ctr32 => Part::Ctr32,
            Tiles::CtrLittle32 => Part::CtrLittle32,
            Tiles::CbcDecrypt => Part::CbcDecrypt,
            Tiles::Cfb128Decrypt => Part::CfbDecrypt,
            Tiles::XtsEncrypt => Part::XtsEncrypt,
            Tiles::XtsDecrypt => Part::XtsDecrypt,
        }
    }
}

/// Entry points, by [`Part`] and key size.
type Entries = [[Entry; 3]; 11];

/// The entry points of a module that has one for each part and key size.
macro_rules! entries {
    ($module:literal, $family:literal) => {
        entries!(by_size, $module, $family)
    };
    // The row of each part is made by the macro `$row`.
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

/// A function for each key size.
macro_rules! by_size {
    ($module:literal, $family:literal, $part:literal) => {
        [
            Entry { module: $module, name: concat!($family, $part, "_128") },
            Entry { module: $module, name: concat!($family, $part, "_192") },
            Entry { module: $module, name: concat!($family, $part, "_256") },
        ]
    };
}

/// One function for all key sizes, and a module for each part.
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

/// How kernels are launched, for measurements and tests. The defaults are the best known values. Kernels with a fixed
/// launch shape ignore the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchOptions {
    /// Threads of a thread block, 8 to 512.
    pub threads: Option<u32>,
    /// The largest number of thread blocks of a launch; each block then loops over its share of the work.
    pub blocks: Option<u32>,
    /// For `cuda/global-sbox`: AES blocks per thread, 1 to 1024.
    pub blocks_per_thread: Option<u32>,
    /// If true, `cuda/bitslice` does not use its kernels for short messages.
    pub always_wide: bool,
    /// How GHASH and POLYVAL multiply.
    pub products: Products,
}

const WITH_THREADS: &[&str] = &[
    "cuda/fine-shared",
    "cuda/coarse-shared",
    "cuda/fine-constant",
    "cuda/coarse-constant",
    "cuda/global-sbox",
];

/// The launch options for users.
pub(crate) const LAUNCH_OPTIONS: &[LaunchOption] = &[
    LaunchOption {
        name: "threads",
        meaning: "the threads of a thread block",
        range: 8..=512,
        multiple: 4,
        kernels: WITH_THREADS,
    },
    LaunchOption {
        name: "blocks",
        meaning: "the largest number of thread blocks of a launch",
        range: 1..=65535,
        multiple: 1,
        kernels: WITH_THREADS,
    },
    LaunchOption {
        name: "rounds",
        meaning: "the AES blocks that a thread processes one after the other",
        range: 1..=1024,
        multiple: 1,
        kernels: &["cuda/global-sbox"],
    },
];

/// Ways to multiply in GHASH and POLYVAL. A device uses the last of these ways that it supports and that is not after
/// the way in the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Products {
    /// Integer multiplication.
    Integers,
    /// Tensor units, for tiles of long messages.
    TensorUnits,
    /// The carry-less multiply-add.
    #[default]
    CarryLess,
}

/// A tiling: how the kernels of a source file divide work into tiles, and how their threads are grouped. A tile is
/// the part of a segment that a group of threads processes at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiling {
    entries: &'static Entries,
    /// Bytes of a tile.
    pub(crate) tile: usize,
    /// Threads of a group.
    tile_threads: u32,
    /// Groups of a thread block.
    block_tiles: u32,
    /// Dynamic shared memory of a thread block.
    shared: u32,
    /// The limit of thread blocks, for kernels whose blocks loop over tiles.
    most: BlockLimit,
    /// True if the tiling is for short segments. In a tiling with larger tiles, short segments leave most of a tile
    /// empty.
    narrow: bool,
    option: KernelOption,
}

/// `Launch::option`.
#[derive(Debug, Clone, Copy)]
enum KernelOption {
    Number(u32),
    /// The number of rounds of the key size.
    Rounds,
}

/// The limit of thread blocks of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockLimit {
    /// No limit.
    Any,
    /// At most this number of thread blocks for each multiprocessor.
    Resident(u32),
    /// At most this number of thread blocks.
    Blocks(u32),
}

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

/// All passes: those of the table kernels, and those of GCM-SIV.
const BITSLICE_PASSES: &[Pass] = &Pass::ALL;

const PAPER: &[Pass] = &[Pass::EcbEncrypt, Pass::EcbDecrypt, Pass::Ctr];

const THESIS: &[Pass] = &[Pass::EcbEncrypt, Pass::Ctr];

/// All families, the default one first.
pub(crate) static FAMILIES: [Family; 7] = [
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
        tilings: |options| paper(entries!("cuda_ctr", "coarse_shared"), 16, 16, TBOXES, options),
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
        tilings: |options| paper(entries!("cuda_ctr", "coarse_constant"), 16, 16, 0, options),
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
];

const BITSLICE: Tiling = Tiling {
    entries: entries!(by_part, "bitslice", "bitslice"),
    tile: 16 * 1024,
    tile_threads: 32,
    block_tiles: 1,
    shared: 0,
    most: BlockLimit::Any,
    narrow: false,
    option: KernelOption::Rounds,
};

/// One thread for each tile.
const BITSLICE_LANE: Tiling = Tiling {
    entries: entries!(by_part, "bitslice", "bitslice_lane"),
    tile: 512,
    tile_threads: 1,
    block_tiles: 32,
    narrow: true,
    ..BITSLICE
};

/// 16 warps fill a multiprocessor. Each thread block loops over tiles, because each thread block must first fill its
/// tables.
const TABLE: Tiling = Tiling {
    entries: entries!("table", "table"),
    tile: 8 * 1024,
    tile_threads: 32,
    block_tiles: 16,
    shared: 128 * 1024,
    most: BlockLimit::Resident(1),
    narrow: false,
    option: KernelOption::Number(0),
};

const TABLE_SMALL: Tiling =
    Tiling { entries: entries!("table_small", "table_small"), shared: 32 * 1024, ..TABLE };

/// Bytes of four T-tables.
const TBOXES: u32 = 4096;

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

/// The tiling of a kernel from a paper. The number of threads of a thread block determines the tile and the size of the
/// state in shared memory. The state comes after the tables, which have `tables` bytes.
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
        narrow: false,
        option: KernelOption::Number(0),
    };
    [Some(tiling), None]
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

    /// All tilings.
    pub(crate) fn tilings(&self) -> impl Iterator<Item = Tiling> {
        (self.tilings)(&LaunchOptions::default()).into_iter().flatten()
    }

    /// The tiling for this number of segments and bytes.
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
        match fitting.find(|tiling| tiling.narrow) {
            Some(narrow) if bytes / segments.max(1) < first.tile / 2 => *narrow,
            _ => first,
        }
    }
}

impl Tiling {
    /// The function for a key size.
    pub(crate) fn entry(&self, part: Part, size: KeySize) -> Entry {
        self.entries[part as usize][size as usize]
    }

    /// `Launch::option` of this key size.
    pub(crate) fn option(&self, size: KeySize) -> u32 {
        match self.option {
            KernelOption::Number(number) => number,
            KernelOption::Rounds => size.rounds() as u32,
        }
    }

    /// The number of tiles of a segment with this number of bytes.
    pub(crate) fn tiles(&self, bytes: usize) -> u64 {
        bytes.div_ceil(self.tile) as u64
    }

    /// The shape of a launch for this number of tiles. `None` if there are too many tiles for one launch.
    pub(crate) fn shape(&self, limits: &Limits, tiles: u64) -> Option<Shape> {
        let (tiles_of_block, most) = match self.most {
            BlockLimit::Any => (self.block_tiles, u32::MAX),
            // In these kernels, each thread block gets one tile before any thread block gets a second tile. So even a
            // small amount of work uses all multiprocessors.
            BlockLimit::Resident(blocks) => (1, blocks * limits.multiprocessors.max(1)),
            BlockLimit::Blocks(blocks) => (self.block_tiles, blocks.max(1)),
        };
        let grid = i32::try_from(tiles.div_ceil(tiles_of_block.into())).ok()? as u32;
        let threads = self.tile_threads * self.block_tiles;
        Some(Shape { grid: grid.min(most), threads, shared: self.shared })
    }
}

/// The launch of a kernel with one thread for each of `count` items.
pub(crate) fn one_each(count: u64) -> Option<Shape> {
    const THREADS: u32 = 128;
    let grid = i32::try_from(count.div_ceil(THREADS.into())).ok()?;
    Some(Shape { grid: grid as u32, threads: THREADS, shared: 0 })
}

/// Messages per thread of `kernels/chain`.
pub(crate) const CHAIN_MESSAGES: usize = 32;
/// Threads per thread block of `kernels/chain`.
pub(crate) const CHAIN_LANES: usize = 32;

/// Blocks of 16 bytes per tile of GHASH.
pub(crate) const GHASH_TILE_BLOCKS: u64 = 512;
/// Tiles per thread block of GHASH, one for each warp.
pub(crate) const GHASH_WARPS: u32 = 4;
/// Maximum number of levels of GHASH. Four levels cover 512^4 blocks, which are 2^40 bytes.
pub(crate) const GHASH_LEVELS: usize = 4;
/// Bytes of the powers of a hash key: 33 blocks for each level.
pub(crate) const GHASH_ROWS: usize = GHASH_LEVELS * 33 * 16;
/// Bytes of the matrices of a hash key: 16 matrices of 128 x 128 bits.
pub(crate) const GHASH_MATRICES_BYTES: usize = 16 * 128 * 128 / 8;
/// Threads that make the matrices of a hash key: one for each input bit of each matrix.
pub(crate) const GHASH_MATRICES_THREADS: u64 = 16 * 128;

/// Bytes of the masks of a key of OCB3: L_*, L_$ and 48 masks L_i (RFC 7253).
pub(crate) const OCB_MASKS: usize = 50 * 16;

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use lockstep_core::work::Operation;

    use super::*;
    use crate::machine::emulator::{constant, kernels};

    const ALL: Limits = Limits { multiprocessors: 1, shared: 1 << 20, tensor_bits: true };

    /// Every function that is named here exists in the kernels.
    #[test]
    fn functions_exist() {
        let there = kernels();
        for family in &FAMILIES {
            for size in KeySize::ALL {
                assert!(there.contains(family.expand(size).name), "{}", family.expand(size).name);
                for tiling in family.tilings() {
                    let fused = FusedAead::ALL.into_iter().filter(|&fused| family.does_fused(fused));
                    let passes = Pass::ALL.into_iter().filter(|&pass| family.does(pass));
                    for operation in passes.map(Operation::Pass).chain(fused.map(Operation::Fused)) {
                        let part = Part::needed_by(Kind::of(operation).unwrap());
                        let name = tiling.entry(part, size).name;
                        assert!(there.contains(name), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn helpers_exist() {
        use helper::*;
        let there = kernels();
        for entry in [
            CHAIN_KEYS,
            CHAIN_ENCRYPT,
            CHAIN_DECRYPT,
            GHASH_POWERS,
            GHASH_TILES,
            GHASH_EACH,
            GHASH_MATRICES,
            GHASH_TENSOR_TILES,
            CARRY_LESS_POWERS,
            CARRY_LESS_TILES,
            CARRY_LESS_EACH,
            CARRY_LESS_PRODUCTS,
            GCM_TAGS,
            OCB_KEYS,
            OCB_BEGIN,
            OCB_SUM,
            OCB_TAGS,
            ZERO_REFUSED,
            GCM_MESSAGES,
            UNIFORM_TILES,
            EDGES,
            SET_STATES,
            TABLE_SEGMENTS,
            TABLE_RESULTS,
            GATHER,
        ] {
            assert!(there.contains(entry.name), "{}", entry.name);
        }
    }

    /// The constants that the kernels export equal those of this module.
    #[test]
    fn constants_agree() {
        let exported = |name: &str| constant(name).unwrap_or_else(|| panic!("nothing exports {name}"));
        for size in KeySize::ALL {
            for family in ["bitslice", "table"] {
                let name = format!("{family}_schedule_bytes_{}", size.bits());
                assert_eq!(exported(&name), FAMILIES[0].schedule(size) as u64, "{name}");
            }
        }
        assert_eq!(exported("chain_messages"), CHAIN_MESSAGES as u64);
        assert_eq!(exported("chain_lanes"), CHAIN_LANES as u64);
        assert_eq!(exported("ghash_tile_blocks"), GHASH_TILE_BLOCKS);
        assert_eq!(exported("ghash_block_tiles"), u64::from(GHASH_WARPS));
        assert_eq!(exported("ghash_levels"), GHASH_LEVELS as u64);
        assert_eq!(exported("ghash_rows_bytes"), GHASH_ROWS as u64);
        assert_eq!(exported("ghash_matrices_bytes"), GHASH_MATRICES_BYTES as u64);
        assert_eq!(exported("ghash_matrices_threads"), GHASH_MATRICES_THREADS);
        assert_eq!(exported("ocb_masks_bytes"), OCB_MASKS as u64);
        for (name, tiling) in [("bitslice", BITSLICE), ("bitslice_lane", BITSLICE_LANE)] {
            assert_eq!(exported(&format!("{name}_tile_bytes")), tiling.tile as u64);
            assert_eq!(exported(&format!("{name}_tile_threads")), u64::from(tiling.tile_threads));
            assert_eq!(exported(&format!("{name}_block_tiles")), u64::from(tiling.block_tiles));
        }
        for (name, tiling) in [("table", TABLE), ("table_small", TABLE_SMALL)] {
            assert_eq!(exported(&format!("{name}_tile_bytes")), tiling.tile as u64);
            assert_eq!(
                exported(&format!("{name}_threads")),
                u64::from(tiling.tile_threads * tiling.block_tiles)
            );
            assert_eq!(exported(&format!("{name}_shared_bytes")), u64::from(tiling.shared));
        }
        assert_eq!(exported("tbox_bytes"), u64::from(TBOXES));
        for (grain, family) in [("fine", &FAMILIES[2]), ("coarse", &FAMILIES[3])] {
            let options = LaunchOptions { threads: Some(64), ..LaunchOptions::default() };
            let tiling = family.tiling(&ALL, &options, 1, 1 << 20);
            assert_eq!(exported(&format!("{grain}_thread_bytes")) * 64, tiling.tile as u64);
            assert_eq!(exported(&format!("{grain}_state_bytes")) * 64, u64::from(tiling.shared - TBOXES));
        }
    }

    #[test]
    fn small_shared_memory_selects_the_small_table() {
        let limits = Limits { multiprocessors: 46, shared: 99 * 1024, tensor_bits: true };
        let tiling = FAMILIES[1].tiling(&limits, &LaunchOptions::default(), 1, 1 << 20);
        assert_eq!(tiling.entry(Part::Ctr, KeySize::Aes128).name, "table_small_ctr_128");
        assert_eq!(tiling.shape(&limits, 1 << 20).unwrap().grid, 46);
        assert_eq!(tiling.shape(&limits, 17).unwrap().grid, 17);
        assert!(BITSLICE.shape(&limits, 1 << 31).is_none());
    }
}
