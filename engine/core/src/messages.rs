//! A common view of the segments of a pass and the messages of a fused AEAD, for devices that process both in the same way.

use zeroize::Zeroizing;

use crate::data::Data;
use crate::gcm::counter_block;
use crate::key::{Block, Key};
use crate::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Table, Task, Tweak};

/// The segments of a pass or the messages of a fused AEAD, by index.
pub enum Messages<'w, 'd> {
    /// Segments of a pass.
    Pass(Pass, &'w mut [Segment<'d>]),
    /// Messages of a fused AEAD.
    Fused(FusedAead, &'w mut [AeadMessage<'d>]),
}

impl<'w, 'd> Messages<'w, 'd> {
    /// The messages of a task, if they are listed on the host.
    ///
    /// # Errors
    /// The table of a [`Task::Table`], which describes its messages by arrays in device memory.
    pub fn of(task: Task<'w, 'd>) -> Result<Messages<'w, 'd>, Box<Table>> {
        match task {
            Task::Pass(pass, segments) => Ok(Messages::Pass(pass, segments)),
            Task::Fused(fused, messages) => Ok(Messages::Fused(fused, messages)),
            Task::Table(_, table) => Err(table),
        }
    }
}

impl<'w, 'd> From<Messages<'w, 'd>> for Task<'w, 'd> {
    fn from(messages: Messages<'w, 'd>) -> Self {
        match messages {
            Messages::Pass(pass, segments) => Task::Pass(pass, segments),
            Messages::Fused(fused, messages) => Task::Fused(fused, messages),
        }
    }
}

impl<'d> Messages<'_, 'd> {
    /// A shorter-lived handle on the same messages.
    pub fn reborrow(&mut self) -> Messages<'_, 'd> {
        match self {
            Messages::Pass(pass, segments) => Messages::Pass(*pass, segments),
            Messages::Fused(fused, messages) => Messages::Fused(*fused, messages),
        }
    }

    /// The operation of the call.
    pub fn operation(&self) -> Operation {
        match self {
            Messages::Pass(pass, _) => Operation::Pass(*pass),
            Messages::Fused(fused, _) => Operation::Fused(*fused),
        }
    }

    /// The number of segments or messages.
    pub fn len(&self) -> usize {
        match self {
            Messages::Pass(_, segments) => segments.len(),
            Messages::Fused(_, messages) => messages.len(),
        }
    }

    /// True if the call has no segments or messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data of a segment or message.
    pub fn data(&self, index: usize) -> &Data<'d> {
        match self {
            Messages::Pass(_, segments) => &segments[index].data,
            Messages::Fused(_, messages) => &messages[index].data,
        }
    }

    /// The data of a segment or message, for writing results.
    pub fn data_mut(&mut self, index: usize) -> &mut Data<'d> {
        match self {
            Messages::Pass(_, segments) => &mut segments[index].data,
            Messages::Fused(_, messages) => &mut messages[index].data,
        }
    }

    /// The key of a segment or message.
    pub fn key(&self, index: usize) -> &'d Key {
        match self {
            Messages::Pass(_, segments) => segments[index].key,
            Messages::Fused(_, messages) => messages[index].key,
        }
    }

    /// The tweak of a segment, for XTS.
    pub fn tweak(&self, index: usize) -> Option<Tweak<'d>> {
        match self {
            Messages::Pass(_, segments) => segments[index].tweak,
            Messages::Fused(..) => None,
        }
    }

    /// The chaining state at the start of the data. For a message of a fused AEAD, it is the first counter of GCM if the
    /// nonce has 12 bytes, otherwise zeros.
    pub fn state(&self, index: usize) -> Block {
        match self {
            Messages::Pass(_, segments) => *segments[index].state,
            // SP 800-38D, 7.1: J0 masks the tag, and the data come after it.
            Messages::Fused(_, messages) if messages[index].nonce.len() == 12 => {
                counter_block(messages[index].nonce, 2)
            }
            Messages::Fused(..) => [0; 16],
        }
    }

    /// The chaining states at the start of the data of all segments or messages.
    pub fn states(&self) -> Zeroizing<Vec<Block>> {
        Zeroizing::new((0..self.len()).map(|index| self.state(index)).collect())
    }

    /// Sets the chaining state after a segment. Has no effect on messages of a fused AEAD.
    pub fn set_chaining_state(&mut self, index: usize, state: Block) {
        if let Messages::Pass(_, segments) = self {
            *segments[index].state = state;
        }
    }

    /// The message of a fused AEAD; `None` for a segment of a pass.
    pub fn aead(&self, index: usize) -> Option<&AeadMessage<'d>> {
        match self {
            Messages::Pass(..) => None,
            Messages::Fused(_, messages) => Some(&messages[index]),
        }
    }

    /// Checks the lengths of all messages of a fused AEAD.
    ///
    /// # Errors
    /// The errors of [`FusedAead::check_lengths`](crate::work::FusedAead::check_lengths).
    pub fn check_lengths(&self) -> crate::Result<()> {
        match self {
            Messages::Pass(..) => Ok(()),
            Messages::Fused(fused, messages) => {
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
        if let Messages::Fused(_, messages) = self {
            messages.iter_mut().for_each(|message| message.invalidate(delivered));
        }
    }
}
