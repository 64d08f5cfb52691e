//! Figures of the paper: A. Di Biagio, A. Barenghi, G. Agosta and G. Pelosi, *Design of a Parallel AES for Graphics Hardware
//! using the CUDA framework* (2009).

/// A processor of the paper's Table 1.
pub struct Processor {
    /// The name in the paper's table.
    pub name: &'static str,
    /// Mbit/s at each of [`SIZES`].
    pub rates: [u32; 4],
    /// The price of the processor in dollars.
    pub dollars: u32,
}

/// Bytes of the plaintexts of Table 1.
pub const SIZES: [usize; 4] = [32 << 10, 128 << 10, 32 << 20, 128 << 20];

/// Table 1: the best of the paper's four kernels on two GPUs, and OpenSSL on four CPUs.
pub const TABLE_1: [Processor; 6] = [
    Processor { name: "NVIDIA 8800 GT", rates: [2917, 6591, 12_075, 12_412], dollars: 170 },
    Processor { name: "NVIDIA 8400 GS", rates: [771, 855, 908, 909], dollars: 30 },
    Processor { name: "Intel Core 2 Quad", rates: [862, 868, 857, 856], dollars: 180 },
    Processor { name: "AMD Athlon 64x2", rates: [207, 207, 172, 170], dollars: 45 },
    Processor { name: "Intel Xeon E5335", rates: [721, 724, 709, 708], dollars: 900 },
    Processor { name: "Intel Pentium D 540", rates: [531, 534, 498, 493], dollars: 40 },
];

/// The size at which coarse grain reaches the speed of fine grain, in bytes: on the 8400 GS, and on the 8800 GT
/// (section 4.2).
pub const BREAK_EVEN: [usize; 2] = [512 << 10, 2 << 20];

/// The four kernels of the paper.
pub const KERNELS: [&str; 4] =
    ["cuda/fine-shared", "cuda/coarse-shared", "cuda/fine-constant", "cuda/coarse-constant"];

/// Threads per block in the paper's Figure 7.
pub const THREADS: [u32; 7] = [8, 16, 32, 64, 128, 256, 512];

/// Lengths in bytes of the plaintexts in the paper's Figure 7.
pub const FIGURE_7: [usize; 2] = [32 << 10, 128 << 10];
