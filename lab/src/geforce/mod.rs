//! Design of a Parallel AES for Graphics Hardware using the CUDA framework (Di Biagio, Barenghi, Agosta and Pelosi, 2009):
//! its four kernels and its questions, on a GPU of today. Fine grain or coarse, T-tables in shared or in constant memory,
//! and how many threads in a block?

mod measure;
pub mod paper;
mod report;

pub use measure::{Measured, Point, measure};
pub use report::{Report, Worth};

/// What keeps the experiments from being made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device does not do what it is asked to.
    #[error("{0}")]
    Device(lockstep_core::Error),
    /// There is no memory to ask for.
    #[error("the device has no memory of its own")]
    NoMemory,
    /// An output is wrong, and so no time of it counts.
    #[error("{kernel} encrypts {bytes} bytes WRONGLY: nothing was measured")]
    Wrong {
        /// The kernel.
        kernel: &'static str,
        /// How many bytes it was given.
        bytes: usize,
    },
}
