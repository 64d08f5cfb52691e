//! Copies a few bytes between the host and data in any memory. The modes use these functions for partial blocks and stolen
//! ciphertext, which they process on the host.

use lockstep_core::Result;
use lockstep_core::data::Data;

use crate::executor::Executor;

/// Copies the input at offset `at` to `bytes`, which is in host memory.
///
/// # Errors
/// Errors of [`Executor::memory`] and of the device.
pub fn fetch_input(executor: &dyn Executor, data: &Data<'_>, at: usize, bytes: &mut [u8]) -> Result<()> {
    let range = at..at + bytes.len();
    match data {
        Data::Host(data) => bytes.copy_from_slice(&data.input()[range]),
        Data::Pinned { from, .. } => bytes.copy_from_slice(&from.buffer().lock()[from.range()][range]),
        Data::Device { from, .. } => {
            let stream = executor.stream(from.device());
            executor.memory(from.device())?.download(&from.slice(range), bytes, stream)?;
        }
    }
    Ok(())
}

/// Copies `bytes`, which is in host memory, to the output at offset `at`.
///
/// # Errors
/// The errors of [`fetch_input`].
pub fn store_output(executor: &dyn Executor, data: &mut Data<'_>, at: usize, bytes: &[u8]) -> Result<()> {
    let range = at..at + bytes.len();
    match data {
        Data::Host(data) => data.output()[range].copy_from_slice(bytes),
        Data::Pinned { to, .. } => to.buffer().lock()[to.range()][range].copy_from_slice(bytes),
        Data::Device { to, .. } => {
            let stream = executor.stream(to.device());
            executor.memory(to.device())?.upload(bytes, &to.slice(range), stream)?;
        }
    }
    Ok(())
}

/// Zeroes the output.
///
/// # Errors
/// The errors of [`fetch_input`].
pub fn zero_output(executor: &dyn Executor, data: &mut Data<'_>) -> Result<()> {
    match data {
        Data::Host(data) => data.output().fill(0),
        Data::Pinned { to, .. } => to.buffer().lock()[to.range()].fill(0),
        Data::Device { to, .. } if to.is_empty() => {}
        Data::Device { to, .. } => executor.memory(to.device())?.zero(to, executor.stream(to.device()))?,
    }
    Ok(())
}
