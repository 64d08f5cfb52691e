//! What a call works on: segments of a pass, or messages of GCM.

use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, Segment, Status, Tag, Tweak};
use lockstep_core::{Block, Key};

/// The pieces of work of a call, by index.
pub(crate) enum Messages<'w, 'd> {
    Segments(&'w mut [Segment<'d>]),
    Aead(&'w mut [AeadMessage<'d>]),
}

impl<'d> Messages<'_, 'd> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Messages::Segments(segments) => segments.len(),
            Messages::Aead(messages) => messages.len(),
        }
    }

    pub(crate) fn data(&self, index: usize) -> &Data<'d> {
        match self {
            Messages::Segments(segments) => &segments[index].data,
            Messages::Aead(messages) => &messages[index].data,
        }
    }

    pub(crate) fn data_mut(&mut self, index: usize) -> &mut Data<'d> {
        match self {
            Messages::Segments(segments) => &mut segments[index].data,
            Messages::Aead(messages) => &mut messages[index].data,
        }
    }

    pub(crate) fn key(&self, index: usize) -> &'d Key {
        match self {
            Messages::Segments(segments) => segments[index].key,
            Messages::Aead(messages) => messages[index].key,
        }
    }

    pub(crate) fn tweak(&self, index: usize) -> Option<Tweak<'d>> {
        match self {
            Messages::Segments(segments) => segments[index].tweak,
            Messages::Aead(_) => None,
        }
    }

    /// The register that the data begin with.
    pub(crate) fn register(&self, index: usize) -> Block {
        match self {
            Messages::Segments(segments) => *segments[index].register,
            // SP 800-38D, 7.1: J0 masks the tag, and the data come after it.
            Messages::Aead(messages) => counter(messages[index].nonce, 2),
        }
    }

    /// Leaves the register as the next segment must find it. Messages have none.
    pub(crate) fn leave(&mut self, index: usize, register: Block) {
        if let Messages::Segments(segments) = self {
            *segments[index].register = register;
        }
    }

    /// The message, if it is one of GCM.
    pub(crate) fn aead(&self, index: usize) -> Option<&AeadMessage<'d>> {
        match self {
            Messages::Segments(_) => None,
            Messages::Aead(messages) => Some(&messages[index]),
        }
    }

    /// What the device says of a message: its status as [`Status`] has it, and its tag.
    pub(crate) fn conclude(&mut self, index: usize, status: u8, tag: &[u8]) {
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
    pub(crate) fn disown(&mut self, delivered: bool) {
        let Messages::Aead(messages) = self else { return };
        for message in messages.iter_mut() {
            message.status = Status::Pending;
            if let (Tag::Write(tag), true) = (&mut message.tag, delivered) {
                tag.fill(0);
            }
        }
    }
}

/// A counter block of GCM: the nonce of 12 bytes, and a number.
pub(crate) fn counter(nonce: &[u8], number: u32) -> Block {
    let mut block = Block::default();
    block[..12].copy_from_slice(nonce);
    block[12..].copy_from_slice(&number.to_be_bytes());
    block
}
