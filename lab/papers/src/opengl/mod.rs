//! *AES Encryption and Decryption on the GPU* (Yamanouchi, GPU Gems 3, chapter 36, 2007), reproduced on a current device: AES
//! in a vertex program with transform feedback and in a fragment program, compared by batch size, and the pictures of the
//! modes ECB and CBC.

mod measure;
pub mod paper;
mod picture;
mod report;

pub use measure::{Conditions, MODES, Measured, Point, measure};
pub use picture::{EDGE, Pictures, pictures};
pub use report::Report;

/// An error of the experiments.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device has failed.
    #[error("{0}")]
    Device(#[from] lockstep_core::Error),
    /// An output is wrong, so its time is not reported.
    #[error("{kernel} processes batches of {batch} bytes WRONGLY: nothing was measured")]
    Wrong {
        /// The name of the kernel.
        kernel: String,
        /// The length of a batch in bytes.
        batch: usize,
    },
    /// The device decrypts a picture wrongly.
    #[error("{kernel} decrypts a picture WRONGLY")]
    WrongPicture {
        /// The name of the kernel.
        kernel: String,
    },
}
