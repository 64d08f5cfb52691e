//! Design of a Parallel AES for Graphics Hardware using the CUDA framework (Di Biagio, Barenghi, Agosta and Pelosi,
//! 2009): its four kernels and its experiments, on a current GPU: fine or coarse grain, T-tables in shared or in
//! constant memory, and the number of threads per block.

mod measure;
pub mod paper;
mod report;

pub use measure::{Measured, Point, measure};
pub use report::{Report, Worth};

/// An error of the experiments.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device has failed.
    #[error("{0}")]
    Device(lockstep_core::Error),
    /// The device has no memory of its own.
    #[error("the device has no memory of its own")]
    NoMemory,
    /// An output is wrong, so that its time does not count.
    #[error("{kernel} encrypts {bytes} bytes WRONGLY: nothing was measured")]
    Wrong {
        /// The kernel.
        kernel: &'static str,
        /// The length of the plaintext in bytes.
        bytes: usize,
    },
}
