//! Clock counts of Lockstep's kernels in the simulator.

use lockstep_core::work::Pass;
use lockstep_spu::kernels::measure::{Clocks, clocks, summary};
use lockstep_spu::kernels::{KERNELS, Loop, MAX_RUN_BYTES, Named};
use lockstep_spu::schedule::Effort;
use lockstep_spu::sim::{Chip, Summary};

use super::Error;

/// The measurement of a loop of a kernel.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The kernel.
    pub kernel: &'static Named,
    /// The pass.
    pub pass: Pass,
    /// The loop.
    pub of: Loop,
    /// Number of blocks in flight: the blocks of an iteration, times the number of iterations that overlap.
    pub in_flight: u64,
    /// Clocks per block.
    pub clocks: Clocks,
    /// Totals of a call with a 128-bit key.
    pub summary: Summary,
    /// Number of bytes that are loaded before the first call with a 128-bit key: first of code, constants and keys, then of tables.
    pub loaded: [usize; 2],
}

/// Number of blocks of [`Measured::summary`].
pub const BLOCKS: u64 = MAX_RUN_BYTES as u64 / 16;

impl Measured {
    fn of(kernel: &'static Named, pass: Pass, of: Loop) -> Result<Measured, Error> {
        let compiled = of.compiled(10, Effort::Full).map_err(Error::Kernel)?;
        Ok(Measured {
            kernel,
            pass,
            of,
            // In a serial loop only the loads and stores of different iterations overlap, so one block is in flight.
            in_flight: if pass.is_serial() || pass == Pass::Ghash {
                1
            } else {
                compiled.program.stages * u64::from(of.blocks)
            },
            clocks: clocks(of, Effort::Full).map_err(Error::Kernel)?,
            summary: summary(of, 10).map_err(Error::Kernel)?,
            loaded: compiled.loaded_bytes(),
        })
    }

    /// Returns the clocks of a call that do not belong to a block: those of the start and the end of the call.
    pub fn once_a_call(&self) -> f64 {
        self.summary.cycles() as f64 - self.clocks.block[0] * BLOCKS as f64
    }

    /// Returns the clocks until the program and its data are loaded.
    pub fn load_clocks(&self) -> f64 {
        Chip::CELL.latency + self.loaded.iter().sum::<usize>() as f64 / Chip::CELL.port
    }

    /// Returns the clocks per block that were lost to this cause.
    pub fn lost(&self, cause: &str) -> f64 {
        self.summary.stalls.get(cause).copied().unwrap_or_default() as f64 / BLOCKS as f64
    }
}

/// The loops of each kernel, without repetitions within a kernel. Several kernels may have the same loop.
pub(super) fn loops() -> Vec<(&'static Named, Pass, Loop)> {
    let mut all: Vec<(&'static Named, Pass, Loop)> = Vec::new();
    for kernel in KERNELS {
        let first = all.len();
        for &(pass, of) in kernel.loops {
            if all[first..].iter().all(|&(_, _, other)| other != of) {
                all.push((kernel, pass, of));
            }
        }
    }
    all
}

/// Measures a loop. If another kernel with the same loop has already been measured, copies that measurement.
///
/// # Errors
/// [`Error::Kernel`] if the kernel does not run, which is a bug.
pub(super) fn measure(
    (kernel, pass, of): (&'static Named, Pass, Loop),
    known: &[Measured],
) -> Result<Measured, Error> {
    match known.iter().find(|other| other.of == of) {
        Some(same) => Ok(Measured { kernel, pass, ..same.clone() }),
        None => Measured::of(kernel, pass, of),
    }
}

/// The usual name of a pass.
pub fn name(pass: Pass) -> &'static str {
    match pass {
        Pass::EcbEncrypt => "ECB encryption",
        Pass::EcbDecrypt => "ECB decryption",
        Pass::Ctr | Pass::Ctr32 => "CTR",
        Pass::CbcEncrypt => "CBC encryption",
        Pass::CbcDecrypt => "CBC decryption",
        Pass::Cfb128Encrypt => "CFB encryption",
        Pass::Cfb128Decrypt => "CFB decryption",
        Pass::Ofb => "OFB",
        Pass::CbcMac => "CBC-MAC",
        Pass::Ghash => "GHASH",
        _ => "another pass",
    }
}
