//! The modes without authentication. Each mode is one pass. XTS additionally uses ciphertext stealing.

use lockstep_core::data::Data;
use lockstep_core::work::{Segment, Tweak};
use lockstep_core::{Block, Error, KeySize, Result};

use crate::executor::Executor;
use crate::message::{Cipher, CipherKey, Direction, Message};
use crate::{check_block, xts};

impl Cipher {
    /// Processes one message without allocating memory. The IV is updated as documented for
    /// [`Pass`](lockstep_core::work::Pass). If this call ends at a block boundary, the next call with the updated IV continues
    /// the message.
    ///
    /// # Errors
    /// The errors of [`Cipher::run`].
    #[inline]
    pub fn one(
        self,
        executor: &dyn Executor,
        direction: Direction,
        key: &CipherKey,
        iv: &mut Block,
        data: Data<'_>,
    ) -> Result<()> {
        self.check(key, &data)?;
        if self == Cipher::Xts && !data.len().is_multiple_of(16) {
            return xts::run(executor, direction, 0, &mut [Message { key, iv, data }]);
        }
        let tweak = key.tweak().map(|key| Tweak { key, position: 0 });
        // This function is inlined, so that the caller writes the fields of the data directly to the segment. If the fields
        // were copied as vectors, the copy would have to wait for the stores of the fields, which wait for the output of the
        // previous call.
        executor.run_pass(self.pass(direction), &mut [Segment { key: key.data(), tweak, state: iv, data }])
    }

    /// Processes a batch of messages, with one call of the device for each key size.
    ///
    /// # Errors
    /// [`Error::NotWholeBlocks`], [`Error::DataLength`], [`Error::TooLong`] or [`Error::ModeKey`], with all messages
    /// unchanged; errors of devices.
    pub fn run(
        self,
        executor: &dyn Executor,
        direction: Direction,
        messages: &mut [Message<'_>],
    ) -> Result<()> {
        for message in &*messages {
            self.check(message.key, &message.data)?;
        }
        if self == Cipher::Xts {
            return xts::run(executor, direction, 0, messages);
        }
        for size in KeySize::ALL {
            // There is one call for each key size, because kernels depend on the key size. Batches rarely mix key sizes.
            let of_size = |message: &&mut Message<'_>| message.key.data().size() == size;
            let mut segments: Vec<_> =
                messages.iter_mut().filter(of_size).map(|message| message.segment(0)).collect();
            executor.run_pass(self.pass(direction), &mut segments)?;
        }
        Ok(())
    }

    pub(crate) fn check_key(self, key: &CipherKey) -> Result<()> {
        let is_xts = self == Cipher::Xts;
        if is_xts == key.tweak().is_some() {
            return Ok(());
        }
        let (expected, keys) = if is_xts { ("two keys", 1) } else { ("one key", 2) };
        Err(Error::ModeKey { mode: self.name(), expected, got: keys * key.data().bytes().len() })
    }

    fn check(self, key: &CipherKey, data: &Data<'_>) -> Result<()> {
        self.check_key(key)?;
        match self {
            Cipher::Xts => {
                check_block("XTS", data.len())?;
                xts::check_unit(data.len() as u64)
            }
            Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc if !data.len().is_multiple_of(16) => {
                Err(Error::NotWholeBlocks { mode: self.name(), extra: data.len() % 16 })
            }
            _ => Ok(()),
        }
    }
}
