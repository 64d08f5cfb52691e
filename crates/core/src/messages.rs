//! What a call works on, as devices see it that do both alike: segments of a pass, or messages of GCM.

use crate::data::Data;
use crate::gcm::counter_block;
use crate::key::{Block, Key};
use crate::work::{AeadMessage, Segment, Status, Tag, Tweak};

/// The pieces of work of a call, by index.
pub enum Messages<'w, 'd> {
    /// Of a pass.
    Segments(&'w mut [Segment<'d>]),
    /// Of GCM.
    Aead(&'w mut [AeadMessage<'d>]),
}

impl<'d> Messages<'_, 'd> {
    /// A shorter-lived handle on the same messages.
    pub fn reborrow(&mut self) -> Messages<'_, 'd> {
        match self {
            Messages::Segments(segments) => Messages::Segments(segments),
            Messages::Aead(messages) => Messages::Aead(messages),
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Messages::Segments(segments) => segments.len(),
            Messages::Aead(messages) => messages.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data of one.
    pub fn data(&self, index: usize) -> &Data<'d> {
        match self {
            Messages::Segments(segments) => &segments[index].data,
            Messages::Aead(messages) => &messages[index].data,
        }
    }

    /// The data of one, for results.
    pub fn data_mut(&mut self, index: usize) -> &mut Data<'d> {
        match self {
            Messages::Segments(segments) => &mut segments[index].data,
            Messages::Aead(messages) => &mut messages[index].data,
        }
    }

    /// The key of one.
    pub fn key(&self, index: usize) -> &'d Key {
        match self {
            Messages::Segments(segments) => segments[index].key,
            Messages::Aead(messages) => messages[index].key,
        }
    }

    /// For XTS.
    pub fn tweak(&self, index: usize) -> Option<Tweak<'d>> {
        match self {
            Messages::Segments(segments) => segments[index].tweak,
            Messages::Aead(_) => None,
        }
    }

    /// The chaining state that the data begin with.
    pub fn state(&self, index: usize) -> Block {
        match self {
            Messages::Segments(segments) => *segments[index].state,
            // SP 800-38D, 7.1: J0 masks the tag, and the data come after it.
            Messages::Aead(messages) => counter_block(messages[index].nonce, 2),
        }
    }

    /// Leaves the chaining state as the next segment must find it. Messages have none.
    pub fn set_chaining_state(&mut self, index: usize, state: Block) {
        if let Messages::Segments(segments) = self {
            *segments[index].state = state;
        }
    }

    /// The message, if it is one of GCM.
    pub fn aead(&self, index: usize) -> Option<&AeadMessage<'d>> {
        match self {
            Messages::Segments(_) => None,
            Messages::Aead(messages) => Some(&messages[index]),
        }
    }

    /// What the device says of a message: its status as [`Status`] has it, and its tag.
    pub fn set_result(&mut self, index: usize, status: u8, tag: &[u8]) {
        let Messages::Aead(messages) = self else { return };
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

    /// Nothing of the call counts; tags may have been delivered.
    pub fn invalidate(&mut self, delivered: bool) {
        let Messages::Aead(messages) = self else { return };
        for message in messages.iter_mut() {
            message.status = Status::Pending;
            if let (Tag::Write(tag), true) = (&mut message.tag, delivered) {
                tag.fill(0);
            }
        }
    }
}
