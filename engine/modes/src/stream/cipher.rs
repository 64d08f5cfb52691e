//! The incremental modes without authentication.

use std::sync::Arc;

use lockstep_core::data::{Data, Span};
use lockstep_core::work::Pass;
use lockstep_core::{Block, Error, Result};
use zeroize::Zeroizing;

use super::aead::check_order;
use crate::executor::Executor;
use crate::incremental::{BlockBuffer, Hold, Planned, SliceIo, StreamState};
use crate::{Cipher, CipherKey, Direction, Message, check_block, xts};

/// Treatment of a partial last block in ECB, CBC and PCBC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// PKCS#7 (RFC 5652, 6.3): adds 1 to 16 bytes.
    Pkcs7,
    /// None: the data must be whole blocks.
    None,
}

/// Encrypts or decrypts a message in pieces of any length. All outputs together equal the output of a single call for the whole
/// message.
///
/// The streams of ECB, CBC, PCBC and XTS output whole blocks and hold back a partial block. XTS also holds back the last
/// whole block, because it may be the end of the message. Decryption with padding holds back the last whole block if there
/// is no partial block.
pub struct CipherStream {
    executor: Arc<dyn Executor>,
    cipher: Cipher,
    direction: Direction,
    padding: Padding,
    key: CipherKey,
    state: State,
    /// For XTS, the number of blocks of the data unit that have been processed.
    position: u64,
    finished: bool,
}

enum State {
    Stream(StreamState),
    /// ECB, CBC, PCBC, XTS.
    Blocks(BlockBuffer),
}

impl CipherStream {
    /// Starts a message. `padding` applies to ECB, CBC and PCBC only. ECB ignores the IV. For XTS, the message is one data
    /// unit, and the IV is its tweak.
    ///
    /// # Errors
    /// [`Error::ModeKey`] if the key does not match the cipher.
    pub fn new(
        executor: impl Into<Arc<dyn Executor>>,
        cipher: Cipher,
        direction: Direction,
        padding: Padding,
        key: CipherKey,
        iv: &Block,
    ) -> Result<Self> {
        cipher.check_key(&key)?;
        let padding = if cipher.takes_padding() { padding } else { Padding::None };
        let state = State::new(cipher, direction, iv);
        let executor = executor.into();
        Ok(CipherStream { executor, cipher, direction, padding, key, state, position: 0, finished: false })
    }

    /// Starts another message with the same key.
    pub fn reset(&mut self, iv: &Block) {
        self.state = State::new(self.cipher, self.direction, iv);
        self.position = 0;
        self.finished = false;
    }

    /// Returns the maximum number of output bytes of the next [`CipherStream::update`] with `input` bytes.
    pub fn output_len(&self, input: usize) -> usize {
        match &self.state {
            State::Blocks(buffer) => input + buffer.pending().len(),
            State::Stream(_) => input,
        }
    }

    /// Processes the next bytes; returns the number of bytes written to `output`.
    ///
    /// # Errors
    /// [`Error::OutputLength`] if the output space is too small; [`Error::TooLong`] if a data unit of XTS would exceed its
    /// maximum length. In these two cases nothing is changed. [`Error::Order`] after the end, and errors of devices.
    pub fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize> {
        self.check_open()?;
        let hold = Hold::of(self.cipher, self.padding == Padding::Pkcs7, self.direction);
        let needed = match &self.state {
            State::Blocks(buffer) => {
                if self.cipher == Cipher::Xts {
                    let before = self.position.saturating_mul(16);
                    let before = before.saturating_add(buffer.pending().len() as u64);
                    xts::check_unit(before.saturating_add(input.len() as u64))?;
                }
                buffer.output_len(input.len(), hold)
            }
            State::Stream(_) => input.len(),
        };
        if output.len() < needed {
            return Err(Error::OutputLength { needed, got: output.len() });
        }
        let output = &mut output[..needed];
        let tweak = self.key.tweak().map(|key| (key, &mut self.position));
        let mut executor = Planned { executor: &*self.executor, key: self.key.data(), tweak };
        // A failure of the following step ends the message, because the step may have been made partly.
        self.finished = true;
        match &mut self.state {
            State::Stream(state) => state.apply(&mut executor, Span::copy(input, output))?,
            State::Blocks(buffer) => {
                let mut io = SliceIo { input: Some(input), output };
                buffer.update(&mut executor, self.direction, hold, &mut io)?;
            }
        }
        self.finished = false;
        Ok(needed)
    }

    /// Processes the next bytes in place, for the modes whose output has the length of the input (CFB, OFB, CTR).
    ///
    /// # Errors
    /// [`Error::Order`] for modes other than these and after the end of the message, and errors of devices.
    pub fn update_in_place(&mut self, data: &mut [u8]) -> Result<()> {
        self.check_open()?;
        let State::Stream(state) = &mut self.state else {
            return Err(Error::Order {
                what: "this mode holds back bytes, so it cannot process pieces in place",
            });
        };
        self.finished = true;
        let mut executor = Planned::new(&*self.executor, self.key.data());
        state.apply(&mut executor, Span::in_place(data))?;
        self.finished = false;
        Ok(())
    }

    /// Ends the message; returns the number of bytes (up to 32) written to `output`.
    ///
    /// # Errors
    /// After [`Error::OutputLength`], this function can be called again with more space. After [`Error::NotWholeBlocks`],
    /// [`Error::DataLength`], [`Error::Padding`] and errors of devices, the message is lost.
    pub fn finish(&mut self, output: &mut [u8]) -> Result<usize> {
        self.check_open()?;
        self.finished = true;
        let State::Blocks(buffer) = &mut self.state else { return Ok(0) };
        let before = buffer.clone();
        let mut last = Zeroizing::new([0; 32]);
        let len = if self.cipher == Cipher::Xts {
            // The buffer contains the last 16 to 31 bytes of the data unit.
            let len = buffer.pending().len();
            check_block("XTS", len)?;
            last[..len].copy_from_slice(buffer.pending());
            let data = Data::in_place(&mut last[..len]);
            let message = Message { key: &self.key, iv: buffer.state_mut(), data };
            xts::run(&*self.executor, self.direction, self.position, &mut [message])?;
            len
        } else {
            let mut executor = Planned::new(&*self.executor, self.key.data());
            let pads = self.padding == Padding::Pkcs7;
            let (block, len) = buffer.finish(&mut executor, self.direction, pads)?;
            last[..16].copy_from_slice(&*block);
            len
        };
        let Some(place) = output.get_mut(..len) else {
            // Restores the state, so that the caller can repeat this call with more space.
            self.state = State::Blocks(before);
            self.finished = false;
            return Err(Error::OutputLength { needed: len, got: output.len() });
        };
        place.copy_from_slice(&last[..len]);
        Ok(len)
    }

    /// Moves to byte `position` of the message that started with `iv`. CTR supports any position. XTS supports block
    /// boundaries, and at least one more block must follow.
    ///
    /// # Errors
    /// [`Error::Order`] for modes other than these, and for a position of XTS inside a block; [`Error::TooLong`] for a position
    /// of XTS beyond the maximum data unit; errors of devices.
    pub fn seek(&mut self, iv: &Block, position: u64) -> Result<()> {
        match self.cipher {
            Cipher::Ctr => {
                let counter = u128::from_be_bytes(*iv).wrapping_add(u128::from(position.div_ceil(16)));
                let mut state = StreamState::new(Pass::Ctr, counter.to_be_bytes());
                let mut executor = Planned::new(&*self.executor, self.key.data());
                state.resume(&mut executor, (position % 16) as usize)?;
                self.state = State::Stream(state);
            }
            Cipher::Xts if position.is_multiple_of(16) => {
                xts::check_unit(position)?;
                self.reset(iv);
                self.position = position / 16;
            }
            Cipher::Xts => return Err(Error::Order { what: "XTS can only seek to the start of a block" }),
            _ => return Err(Error::Order { what: "only CTR and XTS can seek" }),
        }
        self.finished = false;
        Ok(())
    }

    fn check_open(&self) -> Result<()> {
        check_order(!self.finished, "the message has ended or failed: start another one")
    }
}

impl State {
    fn new(cipher: Cipher, direction: Direction, iv: &Block) -> State {
        match cipher.is_stream() {
            true => State::Stream(StreamState::new(cipher.pass(direction), *iv)),
            false => State::Blocks(BlockBuffer::new(cipher, *iv)),
        }
    }
}
