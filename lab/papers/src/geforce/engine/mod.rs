//! The thesis's measurements on devices of this machine: its files, encrypted by the kernels of the GeForce 6800 in OpenGL and
//! of the GeForce 8800 in CUDA, and its finding that a hot card returned wrong results.
//!
//! The thesis measures the program `openssl`, which reads and writes a file on a hard disk. Here only the calls of the
//! engine are timed, one for each buffer and one for the padding, so that the results do not include the time of a disk.

mod hot_card;
mod measure;
mod report;

pub use hot_card::{Outcome, hot_card};
pub use measure::{
    Conditions, EDGES, Geforce6800, Geforce8800, LAUNCHES, Launch, Measured, Overhead, Padding, Time, measure,
};
pub(super) use measure::{buffer, encrypt_by, key, processor, scaled};
pub use report::Report;

/// An error of the measurements.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device has failed.
    #[error("{0}")]
    Device(#[from] lockstep_core::Error),
    /// An output is wrong, so its time is not reported.
    #[error("{kernel} encrypts file {file} WRONGLY: nothing was measured")]
    Wrong {
        /// The name of the kernel.
        kernel: &'static str,
        /// The number of the file, from 1 to 8.
        file: u32,
    },
    /// There is not enough memory for a buffer.
    #[error("there is not enough memory for buffers of {bytes} bytes")]
    Memory {
        /// The size of the buffer in bytes.
        bytes: usize,
    },
}
