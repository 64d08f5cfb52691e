//! Figures of the chapter: T. Yamanouchi, *AES Encryption and Decryption on the GPU*, GPU Gems 3, chapter 36 (2007). The GPU is
//! a GeForce 8800 GTS.

/// MB/s of the vertex program, with batches of [`BATCH`] bytes.
pub const VERTEX: f64 = 53.0;
/// MB/s of the fragment program, with batches of [`BATCH`] bytes.
pub const FRAGMENT: f64 = 95.0;
/// MB/s of `openssl speed` on the CPU of the same machine.
pub const OPENSSL: f64 = 55.0;

/// Number of bytes of a batch in the chapter's measurements.
pub const BATCH: usize = 1 << 20;

/// Bytes of the plaintext of random numbers: 128 MB.
pub const TOTAL: usize = 128 << 20;

/// Number of runs whose mean is reported.
pub const RUNS: usize = 10;

/// The chapter's programs, with tables in texture buffers, and in uniform arrays as in section 36.1.2.
pub const KERNELS: [&str; 4] = [
    "opengl/gems-vertex",
    "opengl/gems-fragment",
    "opengl/gems-vertex-uniform",
    "opengl/gems-fragment-uniform",
];

/// Kernels with both directions in one program, as in the chapter's listings.
pub const BY_MODE: [&str; 2] = ["opengl/gems-vertex-mode", "opengl/gems-fragment-mode"];

/// The chapter's algorithm in CUDA, which its section 36.6 names as future work.
pub const IN_CUDA: &str = "cuda/gems";
