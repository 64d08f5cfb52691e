//! Copies of a few bytes between the host and data in any memory. The modes use them for partial blocks and stolen
//! ciphertext, which they process on the host.

use lockstep_core::Result;
use lockstep_core::data::Data;

use crate::executor::Executor;

/// Copies bytes of the input, from offset `at`, to the host.
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

/// Copies bytes from the host to the output, at offset `at`.
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
    if let Data::Host(data) = data {
        data.output().fill(0);
        return Ok(());
    }
    // Not on the stack: where this function is inlined, each call of a mode would touch all pages of the buffer.
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    let len = data.len();
    for at in (0..len).step_by(ZEROS.len()) {
        store_output(executor, data, at, &ZEROS[..ZEROS.len().min(len - at)])?;
    }
    Ok(())
}
