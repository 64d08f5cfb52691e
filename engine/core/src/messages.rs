//! A common view of the segments of a pass and the messages of a fused AEAD, for devices that process both in the same way.

use crate::data::Data;
use crate::gcm::counter_block;
use crate::key::{Block, Key};
use crate::work::{AeadMessage, Segment, Status, Tag, Tweak};

/// The segments or messages of a call, by index.
pub enum Messages<'w, 'd> {
    /// Segments of a pass.
    Segments(&'w mut [Segment<'d>]),
    /// Messages of a fused AEAD.
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

    /// The number of segments or messages.
    pub fn len(&self) -> usize {
        match self {
            Messages::Segments(segments) => segments.len(),
            Messages::Aead(messages) => messages.len(),
        }
    }

    /// True if the call has no segments or messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data of a segment or message.
    pub fn data(&self, index: usize) -> &Data<'d> {
        match self {
            Messages::Segments(segments) => &segments[index].data,
            Messages::Aead(messages) => &messages[index].data,
        }
    }

    /// The data of a segment or message, for writing results.
    pub fn data_mut(&mut self, index: usize) -> &mut Data<'d> {
        match self {
            Messages::Segments(segments) => &mut segments[index].data,
            Messages::Aead(messages) => &mut messages[index].data,
        }
    }

    /// The key of a segment or message.
    pub fn key(&self, index: usize) -> &'d Key {
        match self {
            Messages::Segments(segments) => segments[index].key,
            Messages::Aead(messages) => messages[index].key,
        }
    }

    /// The tweak of a segment, for XTS.
    pub fn tweak(&self, index: usize) -> Option<Tweak<'d>> {
        match self {
            Messages::Segments(segments) => segments[index].tweak,
            Messages::Aead(_) => None,
        }
    }

    /// The chaining state at the start of the data. For a message of a fused AEAD, it is the first counter of GCM if the
    /// nonce has 12 bytes, otherwise zeros.
    pub fn state(&self, index: usize) -> Block {
        match self {
            Messages::Segments(segments) => *segments[index].state,
            // SP 800-38D, 7.1: J0 masks the tag, and the data come after it.
            Messages::Aead(messages) if messages[index].nonce.len() == 12 => {
                counter_block(messages[index].nonce, 2)
            }
            Messages::Aead(_) => [0; 16],
        }
    }

    /// Sets the chaining state after a segment. Has no effect on messages of a fused AEAD.
    pub fn set_chaining_state(&mut self, index: usize, state: Block) {
        if let Messages::Segments(segments) = self {
            *segments[index].state = state;
        }
    }

    /// The message of a fused AEAD; `None` for a segment of a pass.
    pub fn aead(&self, index: usize) -> Option<&AeadMessage<'d>> {
        match self {
            Messages::Segments(_) => None,
            Messages::Aead(messages) => Some(&messages[index]),
        }
    }

    /// After an error, marks all messages as not processed. Also zeroes the tags if `delivered` is true, because some may
    /// have been written. Has no effect on segments.
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
