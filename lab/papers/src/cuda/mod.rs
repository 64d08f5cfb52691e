//! The paper *Design of a Parallel AES for Graphics Hardware using the CUDA framework* (Di Biagio, Barenghi, Agosta and
//! Pelosi, 2009), reproduced on a current GPU. Its four kernels have fine or coarse grain, and T-tables in shared or in
//! constant memory. Its experiments also vary the number of threads per block.

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
    /// An output is wrong, so its time is not reported.
    #[error("{kernel} encrypts {bytes} bytes WRONGLY: nothing was measured")]
    Wrong {
        /// The name of the kernel.
        kernel: &'static str,
        /// The length of the plaintext in bytes.
        bytes: usize,
    },
}
