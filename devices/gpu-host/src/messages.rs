//! The destinations of the results of a call, and access to the call's data in host memory.

use std::ops::Range;

use lockstep_core::Block;
use lockstep_core::data::Data;
/// The messages of a call. Crates of devices have types of their own that are called `Task`.
pub use lockstep_core::work::Task as Messages;
use lockstep_core::work::{Status, Tag};
use zeroize::Zeroize;

/// A part of a segment, or a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Index of the segment or message in the call.
    pub segment: usize,
    /// The bytes of the segment or message that belong to this piece. The start is a multiple of 16.
    pub range: Range<usize>,
    /// The chaining state at the start of the piece. Only the first piece has a defined state if the state is the last
    /// ciphertext block of data in device memory, because the host does not read that memory.
    pub state: Block,
    /// For XTS: blocks of the data unit before the piece.
    pub position: u64,
}

impl Drop for Piece {
    /// The state is wiped, because the chaining state of OFB and PCBC reveals plaintext.
    fn drop(&mut self) {
        self.state.zeroize();
    }
}

/// The destinations of the results of a call. The caller receives chaining states after the whole call has succeeded.
pub struct Results<'r, 'w, 'd> {
    pub(crate) messages: &'r mut Messages<'w, 'd>,
    pub(crate) states: &'r mut [Block],
}

impl Results<'_, '_, '_> {
    /// Copies the result of a piece to host or pinned memory. Has no effect on read-only data.
    ///
    /// # Panics
    /// If `bytes` is shorter than the piece.
    pub fn set_output(&mut self, piece: &Piece, bytes: &[u8]) {
        self.write_output(piece, |output| output.copy_from_slice(&bytes[..output.len()]));
    }

    /// Calls `write` with the output of a piece in host or pinned memory. Has no effect on read-only data.
    pub fn write_output(&mut self, piece: &Piece, write: impl FnOnce(&mut [u8])) {
        with_output(self.messages.data_mut(piece.segment), |output| {
            if let Some(output) = output.get_mut(piece.range.clone()) {
                write(output);
            }
        });
    }

    /// Sets the chaining state after a segment, or after the part of it that has been processed.
    pub fn set_chaining_state(&mut self, segment: usize, state: Block) {
        self.states[segment] = state;
    }

    /// Sets the status and the tag of a message. `status` has the values of [`Status`].
    ///
    /// # Panics
    /// If `tag` is shorter than the tag of the message.
    pub fn set_status(&mut self, index: usize, status: u8, tag: &[u8]) {
        let Messages::Fused(_, messages) = self.messages else { return };
        let message = &mut messages[index];
        message.status = match status {
            1 => Status::Done,
            2 => Status::AuthenticationFailed,
            _ => Status::Pending,
        };
        if let Tag::Write(place) = &mut message.tag {
            place.copy_from_slice(&tag[..place.len()]);
        }
    }

    /// Length of a segment or message in bytes.
    pub fn len_of(&self, index: usize) -> usize {
        self.messages.data(index).len()
    }
}

/// Calls `show` with the input of data in host or pinned memory. Has no effect on data in device memory.
pub fn with_input(data: &Data<'_>, show: impl FnOnce(&[u8])) {
    match data {
        Data::Host(data) => show(data.input()),
        Data::Pinned { from, .. } => show(&from.buffer().lock()[from.range()]),
        Data::Device { .. } => {}
    }
}

/// Calls `show` with the output of data in host or pinned memory. The output of read-only data is empty. Has no effect on data
/// in device memory.
pub fn with_output(data: &mut Data<'_>, show: impl FnOnce(&mut [u8])) {
    match data {
        Data::Host(data) => show(data.output()),
        Data::Pinned { to, .. } => show(&mut to.buffer().lock()[to.range()]),
        Data::Device { .. } => {}
    }
}
