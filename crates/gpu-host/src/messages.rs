//! Where the results of a call go, and how its data in host memory are accessed.

use lockstep_core::Block;
use lockstep_core::data::Data;
pub use lockstep_core::messages::Messages;
use lockstep_core::work::{Status, Tag};

use crate::cut::Piece;

/// Where the results of a call go. Chaining states reach the caller when all of the call has succeeded.
pub struct Results<'r, 'w, 'd> {
    pub(crate) messages: &'r mut Messages<'w, 'd>,
    pub(crate) states: &'r mut [Block],
}

impl Results<'_, '_, '_> {
    /// Copies the result of a piece to host or pinned memory; without effect on data that are only read.
    ///
    /// # Panics
    /// If there are fewer bytes than the piece has.
    pub fn set_output(&mut self, piece: &Piece, bytes: &[u8]) {
        with_output(self.messages.data_mut(piece.segment), |output| {
            if let Some(output) = output.get_mut(piece.range.clone()) {
                output.copy_from_slice(&bytes[..output.len()]);
            }
        });
    }

    /// Sets the chaining state behind a segment, or behind the part of it that has been worked on.
    pub fn set_chaining_state(&mut self, segment: usize, state: Block) {
        self.states[segment] = state;
    }

    /// Sets the status of a message, which has the values of [`Status`], and its tag.
    ///
    /// # Panics
    /// If the tag has fewer bytes than the message asks for.
    pub fn set_status(&mut self, index: usize, status: u8, tag: &[u8]) {
        let Messages::Aead(messages) = self.messages else { return };
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

/// Shows the input of data in host or pinned memory.
pub fn with_input(data: &Data<'_>, show: impl FnOnce(&[u8])) {
    match data {
        Data::Host(data) => show(data.input()),
        Data::Pinned { from, .. } => show(&from.buffer().lock()[from.range()]),
        Data::Device { .. } => {}
    }
}

/// Shows the output of data in host or pinned memory; it is empty if they are only read.
pub fn with_output(data: &mut Data<'_>, show: impl FnOnce(&mut [u8])) {
    match data {
        Data::Host(data) => show(data.output()),
        Data::Pinned { to, .. } => show(&mut to.buffer().lock()[to.range()]),
        Data::Device { .. } => {}
    }
}
