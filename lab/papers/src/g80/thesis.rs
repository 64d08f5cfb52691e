//! The kernel of the thesis on its 8800 GTS: Tables A1 to A4. No constant of this part of the model is fitted.

use lockstep_core::Error;
use lockstep_core::work::Pass;

use super::boards::GTS;
use super::rows::{LIMIT, Status};
use super::rules::{HALF_WARP, TRANSACTION, global_bytes};
use super::trace::{BLOCKS_PER_THREAD, trace};
use crate::geforce::files::File;
use crate::geforce::paper::{A1_8800, A2_8800, A3_8800, A4_8800, A7_COPIES_8800, Runs, runs};

/// A configuration of the thesis: a table of Appendix A.
#[derive(Debug, Clone, Copy)]
pub struct Configuration {
    /// The name of the table.
    pub table: &'static str,
    /// Number of bytes that all threads together encrypt in a call.
    pub buffer: u64,
    /// The runs on files 1 to 4, and on other files if the table has them.
    pub runs: &'static [Runs],
}

/// The four configurations.
pub const CONFIGURATIONS: [Configuration; 4] = [
    Configuration { table: "A1", buffer: 29_491_200, runs: &A1_8800 },
    Configuration { table: "A2", buffer: 58_982_400, runs: &A2_8800 },
    Configuration { table: "A3", buffer: 9_830_400, runs: &A3_8800 },
    Configuration { table: "A4", buffer: 58_982_400, runs: &A4_8800 },
];

/// Returns the seconds of the program for each of files 1 to 4 without the kernel (Table A7).
pub fn copies() -> f64 {
    runs(&A7_COPIES_8800, 1).mean()
}

/// Rates of the memory as fractions of the nominal rate. The first is the full rate. The second is from NVIDIA's CUDA tutorial of 2008: on
/// an 8800 GTX, which has 86.4 GB/s, accesses that do not coalesce reached 58 GB/s, if each moves 32 bytes.
pub const MEMORY_RATES: [f64; 2] = [1.0, 0.67];

/// Number of words of round keys that a thread reads for an AES block.
const KEY_WORDS: u64 = 44;

/// Number of memory partitions of the 8800 GTS: its 320 bits are 5 times 64 bits.
const PARTITIONS: f64 = 5.0;

/// Seconds of the kernel in the thesis and by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The name of the thesis's table.
    pub table: &'static str,
    /// The rate of the memory in the model, as a fraction of the nominal rate.
    pub memory: f64,
    /// Seconds of the kernel in the thesis: the mean of the runs on files 1 to 4, less the copies of Table A7.
    pub thesis: f64,
    /// Seconds of the kernel in the thesis, from the shortest and from the longest run, less the copies.
    pub range: (f64, f64),
    /// Seconds of the kernel by the model: without round keys in global memory, and with them.
    pub model: (f64, f64),
    /// [`Status::Refuted`] if the mean of the thesis is more than [`LIMIT`] percent outside the range of the model.
    pub status: Status,
}

/// The accesses of the thesis's kernel to global memory for an AES block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Number of accesses of a thread: lookups, loads and stores.
    pub accesses: u64,
    /// Number of bytes that the memory moves for these accesses.
    pub bytes: u64,
}

impl Traffic {
    /// The traffic in the trace of `cuda/global-sbox`, which was written from the thesis's description.
    ///
    /// # Errors
    /// The emulator's error.
    pub fn traced() -> Result<Traffic, Error> {
        Traffic::of("cuda/global-sbox", BLOCKS_PER_THREAD)
    }

    /// The traffic in the trace of `cuda/gems`: the algorithm of GPU Gems 3, chapter 36.
    ///
    /// # Errors
    /// The emulator's error.
    pub fn of_gems() -> Result<Traffic, Error> {
        Traffic::of("cuda/gems", 1)
    }

    /// Returns the traffic of a kernel whose threads encrypt this number of AES blocks.
    fn of(kernel: &str, blocks: u32) -> Result<Traffic, Error> {
        const THREADS: u32 = 64;
        let tile = (THREADS * blocks * 16) as usize;
        let half_warps = trace(kernel, THREADS, Pass::EcbEncrypt, 2 * tile)?;
        let one = &half_warps[0];
        let bytes =
            one.iter().map(|access| global_bytes(&access.addresses, u64::from(access.bytes))).sum::<u64>();
        Ok(Traffic { accesses: one.len() as u64, bytes: bytes / HALF_WARP as u64 })
    }

    /// The largest rates that the memory of the 8800 GTS allows, in bytes per second: without round keys in global memory, and with them.
    pub fn largest_rates(&self) -> (f64, f64) {
        let of = |bytes: u64| 16.0 * GTS.memory / bytes as f64;
        (of(self.bytes), of(self.bytes_with_keys()))
    }

    /// Returns the number of bytes that the memory moves if the round keys are in global memory and each read is a separate transaction.
    pub fn bytes_with_keys(&self) -> u64 {
        self.bytes + KEY_WORDS * TRANSACTION
    }

    /// Returns the seconds of the kernel for files 1 to 4 if the memory has this fraction of its nominal rate: without round keys in global
    /// memory, and with them.
    fn seconds(&self, buffer: u64, memory: f64) -> (f64, f64) {
        // The last call encrypts the padding of 16 bytes. It takes as long as a whole buffer.
        let calls = File::of(1).bytes.div_ceil(buffer) + 1;
        let blocks = (calls * buffer / 16) as f64;
        let of = |bytes: u64| blocks * bytes as f64 / (memory * GTS.memory);
        (of(self.bytes), of(self.bytes_with_keys()))
    }

    /// Returns the seconds of Table A1 by the model if each lookup is a separate transaction and the S-box, which has 256 bytes, is in one
    /// memory partition.
    pub fn seconds_in_one_partition(&self) -> f64 {
        let calls = File::of(1).bytes.div_ceil(CONFIGURATIONS[0].buffer) + 1;
        let lookups = (calls * CONFIGURATIONS[0].buffer / 16 * 160 * TRANSACTION) as f64;
        lookups / (GTS.memory / PARTITIONS)
    }

    /// The rows of the table.
    pub fn rows(&self) -> Vec<Row> {
        let copies = copies();
        let row = |of: &Configuration, memory: f64| {
            let seconds: Vec<f64> =
                (1..=4).flat_map(|file| runs(of.runs, file).seconds).map(|run| run - copies).collect();
            let range =
                seconds.iter().fold((f64::MAX, f64::MIN), |(low, high), &at| (low.min(at), high.max(at)));
            let model = self.seconds(of.buffer, memory);
            let thesis = seconds.iter().sum::<f64>() / seconds.len() as f64;
            let limits = (model.0 * (1.0 - LIMIT / 100.0), model.1 * (1.0 + LIMIT / 100.0));
            let is_inside = (limits.0..=limits.1).contains(&thesis);
            Row {
                table: of.table,
                memory,
                thesis,
                range,
                model,
                status: if is_inside { Status::Predicted } else { Status::Refuted },
            }
        };
        MEMORY_RATES.iter().flat_map(|&memory| CONFIGURATIONS.iter().map(move |of| row(of, memory))).collect()
    }
}
