//! Computes Tables 7.1 to 7.4 by the model: the times of small programs and of the first kernel, by the number of QPUs.

use lockstep_qpu::compiler::Code;
use lockstep_qpu::launch::Launch;
use lockstep_qpu::sim::timing::CLOCKS_PER_INSTRUCTION;

use super::kernels::Named;
use super::model::CLOCK_HZ;
use super::programs::{Access, Multiplication, clocks_of_turn, multiplication, products, sums};
use super::{Error, paper};

/// Milliseconds for each column of a table, with 1 to 12 QPUs.
pub type Times<const COLUMNS: usize> = [[f64; COLUMNS]; 12];

/// Milliseconds in which `qpus` QPUs process `vectors` vectors, if each QPU takes `clocks` clocks for a vector.
pub(super) fn milliseconds(clocks: f64, vectors: u32, qpus: u32) -> f64 {
    clocks * f64::from(vectors) / f64::from(qpus) / CLOCK_HZ * 1e3
}

fn times<const COLUMNS: usize>(programs: [Code; COLUMNS], vectors: u32) -> Result<Times<COLUMNS>, Error> {
    let mut times = [[0.0; COLUMNS]; 12];
    for (row, qpus) in times.iter_mut().zip(1..) {
        for (time, program) in row.iter_mut().zip(&programs) {
            *time = milliseconds(clocks_of_turn(program, qpus)?, vectors, qpus);
        }
    }
    Ok(times)
}

/// Table 7.1 by the model: sums of two arrays.
pub(super) fn table_7_1() -> Result<Times<2>, Error> {
    times([Access::Blocking, Access::Ahead].map(sums), paper::TRANSFER_VECTORS)
}

/// Table 7.2 by the model: products in the field of AES.
pub(super) fn table_7_2() -> Result<Times<2>, Error> {
    times([Access::Blocking, Access::Ahead].map(products), paper::TRANSFER_VECTORS)
}

/// Table 7.3 by the model: products by three programs.
pub(super) fn table_7_3() -> Result<Times<3>, Error> {
    use Multiplication::{Any, Exchanged, Small};
    times([Any, Exchanged, Small].map(multiplication), paper::VECTORS)
}

/// A row of Table 7.4 by the model. Each figure is first computed from the instructions alone, and then with the waits for the texture
/// units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstKernel {
    /// Milliseconds without and with the waits.
    pub milliseconds: [f64; 2],
    /// The clocks in which a QPU encrypts a block: first without the waits, then with them.
    pub clocks: [f64; 2],
}

/// Table 7.4 by the model: the first kernel, by 1 to 12 QPUs.
pub(super) fn table_7_4() -> Result<Vec<FirstKernel>, Error> {
    let named = Named::of(Launch::Naive { decrypts: false });
    let [short, long] = named.turns;
    let of = |qpus: u8| {
        let run = |turns: usize| named.simulate(128, qpus, turns * usize::from(qpus) * named.unit);
        let (less, more) = (run(short)?, run(long)?);
        let turns = (long - short) as f64;
        let instructions = (more.instructions - less.instructions) as f64 / turns / f64::from(qpus);
        let clocks =
            [CLOCKS_PER_INSTRUCTION as f64 * instructions, (more.clocks - less.clocks) as f64 / turns];
        let milliseconds = clocks.map(|clocks| milliseconds(clocks, paper::VECTORS, qpus.into()));
        Ok(FirstKernel { milliseconds, clocks })
    };
    (1..=12).map(of).collect()
}
