//! A common view of the segments of a pass and the messages of a fused AEAD, for devices that process both in the same way.

use zeroize::Zeroizing;

use crate::data::Data;
use crate::gcm::counter_block;
use crate::key::{Block, Key};
use crate::work::{AeadMessage, Task, Tweak};

impl<'d> Task<'_, 'd> {
    /// A shorter-lived handle on the same messages.
    pub fn reborrow(&mut self) -> Task<'_, 'd> {
        match self {
            Task::Pass(pass, segments) => Task::Pass(*pass, segments),
            Task::Fused(fused, messages) => Task::Fused(*fused, messages),
        }
    }

    /// The number of segments or messages.
    pub fn len(&self) -> usize {
        match self {
            Task::Pass(_, segments) => segments.len(),
            Task::Fused(_, messages) => messages.len(),
        }
    }

    /// True if the call has no segments or messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data of a segment or message.
    pub fn data(&self, index: usize) -> &Data<'d> {
        match self {
            Task::Pass(_, segments) => &segments[index].data,
            Task::Fused(_, messages) => &messages[index].data,
        }
    }

    /// The data of a segment or message, for writing results.
    pub fn data_mut(&mut self, index: usize) -> &mut Data<'d> {
        match self {
            Task::Pass(_, segments) => &mut segments[index].data,
            Task::Fused(_, messages) => &mut messages[index].data,
        }
    }

    /// The key of a segment or message.
    pub fn key(&self, index: usize) -> &'d Key {
        match self {
            Task::Pass(_, segments) => segments[index].key,
            Task::Fused(_, messages) => messages[index].key,
        }
    }

    /// The tweak of a segment, for XTS.
    pub fn tweak(&self, index: usize) -> Option<Tweak<'d>> {
        match self {
            Task::Pass(_, segments) => segments[index].tweak,
            Task::Fused(..) => None,
        }
    }

    /// The chaining state at the start of the data. For a message of a fused AEAD, it is the first counter of GCM if the
    /// nonce has 12 bytes, otherwise zeros.
    pub fn state(&self, index: usize) -> Block {
        match self {
            Task::Pass(_, segments) => *segments[index].state,
            // SP 800-38D, 7.1: J0 masks the tag, and the data come after it.
            Task::Fused(_, messages) if messages[index].nonce.len() == 12 => {
                counter_block(messages[index].nonce, 2)
            }
            Task::Fused(..) => [0; 16],
        }
    }

    /// The chaining states at the start of the data of all segments or messages.
    pub fn states(&self) -> Zeroizing<Vec<Block>> {
        Zeroizing::new((0..self.len()).map(|index| self.state(index)).collect())
    }

    /// Sets the chaining state after a segment. Has no effect on messages of a fused AEAD.
    pub fn set_chaining_state(&mut self, index: usize, state: Block) {
        if let Task::Pass(_, segments) = self {
            *segments[index].state = state;
        }
    }

    /// The message of a fused AEAD; `None` for a segment of a pass.
    pub fn aead(&self, index: usize) -> Option<&AeadMessage<'d>> {
        match self {
            Task::Pass(..) => None,
            Task::Fused(_, messages) => Some(&messages[index]),
        }
    }

    /// Checks the lengths of all messages of a fused AEAD.
    ///
    /// # Errors
    /// The errors of [`FusedAead::check_lengths`](crate::work::FusedAead::check_lengths).
    pub fn check_lengths(&self) -> crate::Result<()> {
        match self {
            Task::Pass(..) => Ok(()),
            Task::Fused(fused, messages) => {
                messages.iter().try_for_each(|message| fused.check_lengths(message))
            }
        }
    }

    /// Zeroes the output in ordinary host memory.
    pub fn zero_host_output(&mut self) {
        for index in 0..self.len() {
            if let Data::Host(data) = self.data_mut(index) {
                data.output().fill(0);
            }
        }
    }

    /// Calls [`AeadMessage::invalidate`] for all messages. Has no effect on segments.
    pub fn invalidate(&mut self, delivered: bool) {
        if let Task::Fused(_, messages) = self {
            messages.iter_mut().for_each(|message| message.invalidate(delivered));
        }
    }
}
