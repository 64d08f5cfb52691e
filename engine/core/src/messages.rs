//! A common view of the segments of a pass and the messages of a fused AEAD, for devices that process both in the same way.

use zeroize::Zeroizing;

use crate::data::Data;
use crate::gcm::counter_block;
use crate::key::{Block, Key};
use crate::work::{AeadMessage, Operation, Segment, Status, Table, Tag, Task, Tweak};

/// The segments or messages of a call, by index.
pub enum Messages<'w, 'd> {
    /// Segments of a pass.
    Segments(&'w mut [Segment<'d>]),
    /// Messages of a fused AEAD.
    Aead(&'w mut [AeadMessage<'d>]),
}

impl<'w, 'd> Messages<'w, 'd> {
    /// The messages of a task. The error is the table of a task whose messages arrays in device memory describe.
    ///
    /// # Errors
    /// The table.
    pub fn of(task: Task<'w, 'd>) -> Result<Messages<'w, 'd>, Box<Table>> {
        match task {
            Task::Pass(_, segments) => Ok(Messages::Segments(segments)),
            Task::Fused(_, messages) => Ok(Messages::Aead(messages)),
            Task::Table(_, table) => Err(table),
        }
    }

    /// The task that does the operation on these messages.
    ///
    /// # Panics
    /// If the operation is a pass and the messages are those of an AEAD, or the reverse.
    pub fn into_task(self, operation: Operation) -> Task<'w, 'd> {
        match (operation, self) {
            (Operation::Pass(pass), Messages::Segments(segments)) => Task::Pass(pass, segments),
            (Operation::Fused(fused), Messages::Aead(messages)) => Task::Fused(fused, messages),
            _ => panic!("passes have segments, and fused AEADs have messages"),
        }
    }
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

    /// The chaining states at the start of the data of all segments or messages.
    pub fn states(&self) -> Zeroizing<Vec<Block>> {
        Zeroizing::new((0..self.len()).map(|index| self.state(index)).collect())
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

    /// Checks the lengths of all messages of a fused AEAD.
    ///
    /// # Errors
    /// The errors of [`FusedAead::check_lengths`](crate::work::FusedAead::check_lengths).
    pub fn check_lengths(&self, operation: Operation) -> crate::Result<()> {
        match (operation, self) {
            (Operation::Fused(fused), Messages::Aead(messages)) => {
                messages.iter().try_for_each(|message| fused.check_lengths(message))
            }
            _ => Ok(()),
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
