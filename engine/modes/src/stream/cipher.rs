//! The incremental modes without authentication.

use std::sync::Arc;

use lockstep_core::data::{Data, Span};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::Block;
use lockstep_core::work::Pass;
use zeroize::Zeroizing;

use crate::executor::Executor;
use crate::incremental::{BlockBuffer, Hold, Keystream, Planned, SliceIo, StreamState};
use crate::{Cipher, CipherKey, Direction, xts};

/// Treatment of a partial last block in ECB, CBC and PCBC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// PKCS#7 (RFC 5652, 6.3): adds 1 to 16 bytes.
    Pkcs7,
    /// None: the data must be whole blocks.
    None,
}

/// A cipher for a message in pieces of any length. The total output equals that of a single call.
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
    finished: bool,
}

enum State {
    Stream(StreamState),
    /// ECB, CBC, PCBC, XTS.
    Blocks {
        buffer: BlockBuffer,
        /// XTS: number of blocks of the data unit that were processed.
        position: u64,
    },
}

impl CipherStream {
    /// Starts a message. `padding` applies to ECB, CBC and PCBC only. ECB ignores the IV. For XTS, the message is one data
    /// unit, and the IV is its tweak.
    ///
    /// # Errors
    /// [`Error::ModeKey`] if the key does not match the cipher.
    pub fn new(
        executor: Arc<dyn Executor>,
        cipher: Cipher,
        direction: Direction,
        padding: Padding,
        key: CipherKey,
        iv: &Block,
    ) -> Result<Self> {
        cipher.check_key(&key)?;
        let padding = if cipher.takes_padding() { padding } else { Padding::None };
        let state = State::new(cipher, iv);
        Ok(CipherStream { executor, cipher, direction, padding, key, state, finished: false })
    }

    /// Starts another message with the same key.
    pub fn reset(&mut self, iv: &Block) {
        self.state = State::new(self.cipher, iv);
        self.finished = false;
    }

    /// Maximum bytes of output of the next [`CipherStream::update`] with `input` bytes.
    pub fn output_len(&self, input: usize) -> usize {
        match &self.state {
            State::Blocks { buffer, .. } => input + buffer.pending().len(),
            _ => input,
        }
    }

    /// Processes the next bytes; returns the number of bytes written to `output`.
    ///
    /// # Errors
    /// [`Error::OutputLength`] if the output space is too small; [`Error::TooLong`] if a data unit of XTS would exceed its
    /// maximum length. In these two cases nothing is changed. [`Error::Order`] after the end, and errors of devices.
    pub fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize> {
        self.check_open()?;
        let needed = match &self.state {
            State::Blocks { buffer, position } => {
                if self.cipher == Cipher::Xts {
                    let before = position.saturating_mul(16).saturating_add(buffer.pending().len() as u64);
                    xts::check_unit(before.saturating_add(input.len() as u64))?;
                }
                buffer.output_len(input.len(), self.hold())
            }
            _ => input.len(),
        };
        if output.len() < needed {
            return Err(Error::OutputLength { needed, got: output.len() });
        }
        let output = &mut output[..needed];
        self.attempt(|stream| match stream.state {
            State::Blocks { .. } => stream.update_blocks(input, output),
            _ => stream.update_bytes(Span::copy(input, output)),
        })?;
        Ok(needed)
    }

    /// Processes the next bytes in place, for the modes whose output has the length of the input (CFB, OFB, CTR).
    ///
    /// # Errors
    /// [`Error::Order`] for the other modes and after the end, and errors of devices.
    pub fn update_in_place(&mut self, data: &mut [u8]) -> Result<()> {
        self.check_open()?;
        if !self.cipher.is_stream() {
            return Err(Error::Order {
                what: "this mode holds back bytes, so it cannot process pieces in place",
            });
        }
        self.attempt(|stream| stream.update_bytes(Span::in_place(data)))
    }

    /// Runs a step. A failure ends the message, because the step may be partly done.
    fn attempt(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.finished = true;
        step(self)?;
        self.finished = false;
        Ok(())
    }

    /// Ends the message; returns the number of bytes (up to 32) written to `output`.
    ///
    /// # Errors
    /// After [`Error::OutputLength`], this function can be called again with more space. After [`Error::NotWholeBlocks`],
    /// [`Error::XtsTooShort`], [`Error::Padding`] and errors of devices, the message is lost.
    pub fn finish(&mut self, output: &mut [u8]) -> Result<usize> {
        self.check_open()?;
        let State::Blocks { buffer, position } = &self.state else {
            self.finished = true;
            return Ok(0);
        };
        let before = (buffer.clone(), *position);
        let result = if self.cipher == Cipher::Xts { self.finish_unit() } else { self.finish_blocks() };
        self.finished = true;
        let result = result.and_then(|(last, len)| match output.get_mut(..len) {
            Some(place) => {
                place.copy_from_slice(&last[..len]);
                Ok(len)
            }
            None => Err(Error::OutputLength { needed: len, got: output.len() }),
        });
        if let Err(Error::OutputLength { .. }) = &result {
            // Restores the state, so that the same call with more space succeeds.
            let (buffer, position) = before;
            self.state = State::Blocks { buffer, position };
            self.finished = false;
        }
        result
    }

    /// The last block of ECB, CBC and PCBC.
    fn finish_blocks(&mut self) -> Result<(Zeroizing<[u8; 32]>, usize)> {
        let State::Blocks { buffer, .. } = &mut self.state else {
            unreachable!("stream modes have no last block")
        };
        let mut executor = Planned::new(&*self.executor, self.key.data());
        let (block, len) = buffer.finish(&mut executor, self.direction, self.padding == Padding::Pkcs7)?;
        let mut last = Zeroizing::new([0; 32]);
        last[..16].copy_from_slice(&*block);
        Ok((last, len))
    }

    /// The last 16 to 31 bytes of an XTS data unit.
    fn finish_unit(&mut self) -> Result<(Zeroizing<[u8; 32]>, usize)> {
        let State::Blocks { buffer, position } = &mut self.state else {
            unreachable!("XTS has a block buffer")
        };
        let len = buffer.pending().len();
        if len < 16 {
            return Err(Error::XtsTooShort { got: len });
        }
        let mut last = Zeroizing::new([0; 32]);
        last[..len].copy_from_slice(buffer.pending());
        let data = Data::in_place(&mut last[..len]);
        let message = crate::Message { key: &self.key, iv: buffer.state_mut(), data };
        xts::run(&*self.executor, self.direction, *position, &mut [message])?;
        Ok((last, len))
    }

    /// Moves to byte `position` of the message that started with `iv`. CTR supports any position. XTS supports block
    /// boundaries, and at least one more block must follow.
    ///
    /// # Errors
    /// [`Error::Order`] for other modes, and for XTS inside a block; [`Error::TooLong`] for XTS beyond the maximum data
    /// unit; errors of devices.
    pub fn seek(&mut self, iv: &Block, position: u64) -> Result<()> {
        match self.cipher {
            Cipher::Ctr => {
                let counter = u128::from_be_bytes(*iv).wrapping_add(u128::from(position / 16));
                let mut keystream = Keystream::new(Pass::Ctr, counter.to_be_bytes());
                let mut executor = Planned::new(&*self.executor, self.key.data());
                keystream.skip(&mut executor, (position % 16) as usize)?;
                self.state = State::Stream(StreamState::Keystream(keystream));
            }
            Cipher::Xts if position.is_multiple_of(16) => {
                xts::check_unit(position)?;
                self.reset(iv);
                if let State::Blocks { position: blocks, .. } = &mut self.state {
                    *blocks = position / 16;
                }
            }
            Cipher::Xts => return Err(Error::Order { what: "XTS can only seek to the start of a block" }),
            _ => return Err(Error::Order { what: "only CTR and XTS can seek" }),
        }
        self.finished = false;
        Ok(())
    }

    fn check_open(&self) -> Result<()> {
        if self.finished {
            Err(Error::Order { what: "the message has ended or failed: start another one" })
        } else {
            Ok(())
        }
    }

    fn hold(&self) -> Hold {
        Hold::of(self.cipher, self.padding == Padding::Pkcs7, self.direction)
    }

    fn update_bytes(&mut self, data: Span<'_>) -> Result<()> {
        let mut executor = Planned::new(&*self.executor, self.key.data());
        match &mut self.state {
            State::Stream(state) => state.apply(&mut executor, self.direction, data),
            State::Blocks { .. } => unreachable!("modes of whole blocks have their own function"),
        }
    }

    fn update_blocks(&mut self, input: &[u8], output: &mut [u8]) -> Result<()> {
        let hold = self.hold();
        let State::Blocks { buffer, position } = &mut self.state else {
            unreachable!("stream modes have their own function")
        };
        let tweak = self.key.tweak().map(|key| (key, position));
        let mut executor = Planned { executor: &*self.executor, key: self.key.data(), tweak };
        buffer.update(&mut executor, self.direction, hold, &mut SliceIo { input, output })?;
        Ok(())
    }
}

impl State {
    fn new(cipher: Cipher, iv: &Block) -> State {
        match StreamState::new(cipher, *iv) {
            Some(state) => State::Stream(state),
            None => State::Blocks { buffer: BlockBuffer::new(cipher, *iv), position: 0 },
        }
    }
}
