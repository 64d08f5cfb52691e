//! Launch options of programs, and the table of the options that users can give.

use lockstep_core::launch::LaunchOption;

/// Options for launches of kernels, for measurements and tests. The defaults are the best known values. Kernels with a fixed
/// launch shape ignore the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchOptions {
    /// Threads of a thread block, 8 to 512.
    pub threads: Option<u32>,
    /// The maximum number of thread blocks of a launch. If there is more work, each thread block loops over several parts of
    /// it.
    pub blocks: Option<u32>,
    /// For `cuda/global-sbox`: AES blocks per thread, 1 to 1024.
    pub blocks_per_thread: Option<u32>,
    /// For coarse grain: launches with fewer KiB of data than this number use fine grain. The CUDA paper proposes this choice.
    pub fine_below: Option<u32>,
    /// If true, `cuda/bitslice` does not use its kernels for short messages.
    pub always_wide: bool,
    /// The method of the multiplications in GHASH and POLYVAL.
    pub products: Products,
}

impl LaunchOptions {
    /// Replaces the choice of the grain by the size of a launch (`fine_below`) by the two grains: returns the options for coarse grain
    /// only, and the options for fine grain only. Empty if `fine_below` is not set.
    pub(crate) fn of_each_grain(self) -> Vec<LaunchOptions> {
        // The size is 1 GiB. Launches of self-tests are smaller.
        const ALL_FINE: u32 = 1 << 20;
        let grains = self.fine_below.map(|_| [None, Some(ALL_FINE)]);
        grains.into_iter().flatten().map(|fine_below| LaunchOptions { fine_below, ..self }).collect()
    }
}

/// The methods of multiplication in GHASH and POLYVAL, in ascending order of preference. A device uses the best method that it
/// supports and that is not better than the method in the options.
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

const WITH_THREADS: &[&str] = &[
    "cuda/fine-shared",
    "cuda/coarse-shared",
    "cuda/fine-constant",
    "cuda/coarse-constant",
    "cuda/global-sbox",
    "cuda/gems",
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
    LaunchOption {
        name: "fine",
        meaning: "the KiB of a launch below which four threads share an AES block",
        // 4 GiB. Larger launches always have coarse grain.
        range: 1..=1 << 22,
        multiple: 1,
        kernels: &["cuda/coarse-shared", "cuda/coarse-constant"],
    },
];
