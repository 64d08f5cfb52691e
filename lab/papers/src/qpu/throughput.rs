//! Tables 5.1 and 5.2 by the model: rates of calls by length.

use lockstep_qpu::kernels::bitslice::{Blocks, Combination};
use lockstep_qpu::launch::Launch;
use serde_json::{Value, json};

use super::Error;
use super::kernels::Named;
use super::model::{CLOCK_HZ, Lengths, call_seconds, kernel_seconds, rate};
use super::paper::{self, Decryption, Encryption};

/// Rates of the model for a length of Table 5.1 or 5.2, in kB/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The rate of the thesis's kernel with one QPU and the copies by the host.
    pub one: f64,
    /// The rate of the thesis's kernel with 12 QPUs and the copies by the host.
    pub twelve: f64,
    /// The rate of the thesis's kernel with 12 QPUs, without the copies.
    pub kernel: f64,
    /// The rate of `qpu/bitslice` with 12 QPUs, without the copies.
    pub bitslice: f64,
}

impl Rates {
    pub(super) fn json(&self) -> Value {
        json!({
            "one_qpu": self.one,
            "twelve_qpus": self.twelve,
            "twelve_qpus_without_copies": self.kernel,
            "bitslice_without_copies": self.bitslice,
        })
    }
}

/// The number of QPUs of the chip.
pub(super) const ALL: u8 = lockstep_qpu::sim::QPUS;

/// The runs of a table.
struct Runs {
    one: Lengths,
    twelve: Lengths,
    bitslice: Lengths,
}

impl Runs {
    fn of(decrypts: bool) -> Runs {
        let published = Named::of(Launch::Packed { decrypts });
        let bitslice = Named::of(Launch::Blocks(Blocks { decrypts, combination: Combination::None }));
        Runs {
            one: Lengths::of(published, 1),
            twelve: Lengths::of(published, ALL),
            bitslice: Lengths::of(bitslice, ALL),
        }
    }

    fn rates(&mut self, bytes: u64) -> Result<Rates, Error> {
        let (one, twelve) = (self.one.clocks(bytes)?, self.twelve.clocks(bytes)?);
        let bitslice = self.bitslice.clocks(bytes)?;
        Ok(Rates {
            one: rate(bytes, call_seconds(one, bytes, CLOCK_HZ)),
            twelve: rate(bytes, call_seconds(twelve, bytes, CLOCK_HZ)),
            kernel: rate(bytes, kernel_seconds(twelve, CLOCK_HZ)),
            bitslice: rate(bytes, kernel_seconds(bitslice, CLOCK_HZ)),
        })
    }
}

/// Table 5.1 with the rates of the model.
pub(super) fn encryption() -> Result<Vec<(Encryption, Rates)>, Error> {
    let mut runs = Runs::of(false);
    paper::TABLE_5_1.into_iter().map(|row| Ok((row, runs.rates(row.bytes)?))).collect()
}

/// Table 5.2 with the rates of the model.
pub(super) fn decryption() -> Result<Vec<(Decryption, Rates)>, Error> {
    let mut runs = Runs::of(true);
    paper::TABLE_5_2.into_iter().map(|row| Ok((row, runs.rates(row.bytes)?))).collect()
}

/// Rates at 500 MHz, with the copies by the host and without them, for encryption and decryption.
pub(super) fn overclocked() -> Result<[[f64; 2]; 2], Error> {
    let bytes = paper::FAST_BYTES;
    let of = |decrypts| -> Result<[f64; 2], Error> {
        let clocks = Lengths::of(Named::of(Launch::Packed { decrypts }), ALL).clocks(bytes)?;
        let clock = paper::FAST_CLOCK_HZ;
        Ok([call_seconds(clocks, bytes, clock), kernel_seconds(clocks, clock)]
            .map(|seconds| rate(bytes, seconds)))
    };
    Ok([of(false)?, of(true)?])
}

/// A call with one block, in seconds, with one QPU and with 12.
pub(super) fn one_block(decrypts: bool) -> Result<[f64; 2], Error> {
    let named = Named::of(Launch::Packed { decrypts });
    let of = |qpus| Lengths::of(named, qpus).clocks(16).map(|clocks| kernel_seconds(clocks, CLOCK_HZ));
    Ok([of(1)?, of(ALL)?])
}
