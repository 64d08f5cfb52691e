//! Figures of the paper: D. Canright, G. Dinolt, S. Garfinkel, J. Herzog, B. Allen, Implementing AES on the CellBE,
//! Naval Postgraduate School, 2009. IBM's figures are from T. Chen and others, IBM Journal of Research and Development
//! 51(5), 2007.

use lockstep_core::work::Pass;
use lockstep_spu::sim::CLOCK_HZ;

/// A row of one of the paper's tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The name in the paper.
    pub name: &'static str,
    /// Gigabits per second of one SPE, for keys of 128, 192 and 256 bits.
    pub gigabits: [f64; 3],
    /// The number of parallel blocks, by the paper's model.
    pub blocks: u32,
    /// Clocks per round of a block, by the paper's model.
    pub round: f64,
    /// Additional clocks per block, by the paper's model.
    pub last: f64,
    /// The name of Lockstep's kernel with which the row is compared.
    pub kernel: &'static str,
    /// The pass of Lockstep's kernel.
    pub pass: Pass,
}

impl Row {
    /// Returns the clocks per block that the model gives for 10, 12 and 14 rounds.
    pub fn clocks(&self) -> [f64; 3] {
        [10.0, 12.0, 14.0].map(|rounds| rounds * self.round + self.last)
    }

    /// Returns the largest relative difference between the model and the paper's rates.
    pub fn error(&self) -> f64 {
        self.error_at(CLOCK_HZ)
    }

    fn error_at(&self, hz: f64) -> f64 {
        let off = |(clocks, rate): (f64, f64)| (128.0 * hz / 1e9 / clocks / rate - 1.0).abs();
        self.clocks().into_iter().zip(self.gigabits).map(off).fold(0.0, f64::max)
    }
}

const fn row(
    name: &'static str,
    gigabits: [f64; 3],
    (blocks, round, last): (u32, f64, f64),
    kernel: &'static str,
    pass: Pass,
) -> Row {
    Row { name, gigabits, blocks, round, last, kernel, pass }
}

/// Table 1: IBM's published figures.
pub const TABLE_1: &[Row] = &[
    row("ECB encryption", [2.059, 1.710, 1.462], (4, 20.25, -4.0), "spu/vperm", Pass::EcbEncrypt),
    row("CBC encryption", [0.795, 0.664, 0.570], (1, 51.0, 3.0), "spu/vperm", Pass::CbcEncrypt),
    row("ECB decryption", [1.499, 1.252, 1.068], (2, 27.5, -3.0), "spu/vperm", Pass::EcbDecrypt),
    row("CBC decryption", [1.507, 1.249, 1.066], (4, 28.0, -8.75), "spu/vperm", Pass::CbcDecrypt),
];

/// Table 2: the paper's own kernels.
pub const TABLE_2: &[Row] = &[
    row("CTR0", [0.496, 0.411, 0.351], (1, 85.0, -26.0), "spu/ctr0", Pass::Ctr),
    row("CTR1", [0.867, 0.731, 0.631], (1, 44.0, 31.0), "spu/ctr1", Pass::Ctr),
    row("CTR2", [1.431, 1.196, 1.028], (2, 28.0, 5.5), "spu/ctr2", Pass::Ctr),
    row("CTR4a", [1.872, 1.555, 1.330], (4, 22.25, -4.25), "spu/ctr4a", Pass::Ctr),
    row("CTR4", [2.071, 1.722, 1.474], (4, 20.0, -2.75), "spu/ctr4", Pass::Ctr),
    row("Tab1", [0.827, 0.692, 0.596], (1, 48.0, 14.0), "spu/tab1", Pass::Ctr),
    row("Tab2", [1.084, 0.914, 0.790], (1, 35.0, 27.0), "spu/tab2", Pass::Ctr),
    row("CBC1", [0.898, 0.752, 0.647], (1, 44.0, 15.0), "spu/cbc1", Pass::CbcEncrypt),
    row("CBC2", [1.191, 0.989, 0.846], (1, 35.0, -7.0), "spu/cbc2", Pass::CbcEncrypt),
    row("ECB1", [1.058, 0.884, 0.759], (1, 38.0, 6.0), "spu/ecb1", Pass::EcbEncrypt),
    row("ECB4a", [1.976, 1.639, 1.400], (4, 21.25, -5.75), "spu/ecb4a", Pass::EcbEncrypt),
    row("ECB4", [2.092, 1.737, 1.484], (4, 20.0, -4.75), "spu/ecb4", Pass::EcbEncrypt),
];

/// Table 3: two of the paper's kernels, and two of IBM's.
pub const TABLE_3: &[Row] = &[
    Row { name: "ECB encryption, the paper's", ..TABLE_2[11] },
    Row { name: "ECB encryption, IBM's", kernel: "spu/ecb4", ..TABLE_1[0] },
    Row { name: "CBC encryption, the paper's", ..TABLE_2[8] },
    Row { name: "CBC encryption, IBM's", kernel: "spu/cbc2", ..TABLE_1[1] },
];

#[cfg(test)]
mod tests;
