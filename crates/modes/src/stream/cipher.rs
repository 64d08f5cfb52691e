//! The modes without authentication, piece by piece.

use std::sync::Arc;

use lockstep_core::data::{Data, Span};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::Block;
use lockstep_core::work::Pass;
use zeroize::Zeroizing;

use crate::executor::Executor;
use crate::incremental::{BlockBuffer, Feedback, Hold, KeyedExecutor, Keystream, Planned, SliceIo};
use crate::{Cipher, CipherKey, Direction, xts};

/// What becomes of a last partial block in ECB, CBC and PCBC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// PKCS#7 (RFC 5652, 6.3): always 1 to 16 bytes more.
    Pkcs7,
    /// None: the data must be whole blocks.
    None,
}

/// A cipher that is fed a message in pieces of any length. What comes out of them is what one call would give.
///
/// ECB, CBC and PCBC give out whole blocks and keep the rest; decrypting with padding, and XTS, they also keep the
/// last whole block, since it may be the end.
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
    /// CTR and OFB.
    Keystream(Keystream),
    /// CFB128.
    Feedback(Feedback),
    /// CFB8 and CFB1, whose passes take any number of bytes: the chaining state is all there is.
    Bytes(Zeroizing<Block>),
    /// ECB, CBC, PCBC, XTS.
    Blocks {
        buffer: BlockBuffer,
        /// XTS: blocks of the data unit before what comes next.
        position: u64,
    },
}

impl CipherStream {
    /// Begins a message. `padding` counts for ECB, CBC and PCBC only; ECB ignores the IV; the IV of XTS is the tweak
    /// of the data unit, which the message is.
    ///
    /// # Errors
    /// [`Error::ModeKey`] if the key is not of this cipher.
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

    /// Begins another message under the same key.
    pub fn reset(&mut self, iv: &Block) {
        self.state = State::new(self.cipher, iv);
        self.finished = false;
    }

    /// Most bytes that the next [`CipherStream::update`] with so much input may give out.
    pub fn output_len(&self, input: usize) -> usize {
        match &self.state {
            State::Blocks { buffer, .. } => input + buffer.pending().len(),
            _ => input,
        }
    }

    /// The next bytes; returns how many were put to the beginning of `output`.
    ///
    /// # Errors
    /// [`Error::OutputLength`] if the output is smaller than what comes out (nothing has happened then),
    /// [`Error::TooLong`] beyond the data unit of XTS (likewise), [`Error::Order`] after the end, and those of devices.
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

    /// The next bytes in place, for the modes that give out as much as they take (CFB, OFB, CTR).
    ///
    /// # Errors
    /// [`Error::Order`] for the other modes and after the end, and those of devices.
    pub fn update_in_place(&mut self, data: &mut [u8]) -> Result<()> {
        self.check_open()?;
        if !self.cipher.is_stream() {
            return Err(Error::Order {
                what: "this mode keeps bytes back, so it cannot work in place by pieces",
            });
        }
        self.attempt(|stream| stream.update_bytes(Span::in_place(data)))
    }

    /// Does a step after which, if it fails, there is no going on: some of it may have been done.
    fn attempt(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.finished = true;
        step(self)?;
        self.finished = false;
        Ok(())
    }

    /// Ends the message; returns how many bytes (up to 32) were put to the beginning of `output`.
    ///
    /// # Errors
    /// [`Error::OutputLength`], after which it can be called again with more room; [`Error::NotWholeBlocks`],
    /// [`Error::XtsTooShort`], [`Error::Padding`], and those of devices, after which the message is lost.
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
            // As if it had not been asked: the same call with more room succeeds.
            let (buffer, position) = before;
            self.state = State::Blocks { buffer, position };
            self.finished = false;
        }
        result
    }

    /// The last block of ECB, CBC and PCBC.
    fn finish_blocks(&mut self) -> Result<(Zeroizing<[u8; 32]>, usize)> {
        let State::Blocks { buffer, .. } = &mut self.state else { unreachable!("stream modes end at once") };
        let mut executor = Planned::new(&*self.executor, self.key.data());
        let (block, len) = buffer.finish(&mut executor, self.direction, self.padding == Padding::Pkcs7)?;
        let mut last = Zeroizing::new([0; 32]);
        last[..16].copy_from_slice(&*block);
        Ok((last, len))
    }

    /// The last 16 to 31 bytes of an XTS data unit.
    fn finish_unit(&mut self) -> Result<(Zeroizing<[u8; 32]>, usize)> {
        let State::Blocks { buffer, position } = &mut self.state else { unreachable!("XTS works on blocks") };
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

    /// Goes to byte `position` of the message that began with `iv`. CTR goes anywhere; XTS to whole blocks, as long
    /// as what follows is at least a block.
    ///
    /// # Errors
    /// [`Error::Order`] for other modes, and for XTS inside a block; those of devices.
    pub fn seek(&mut self, iv: &Block, position: u64) -> Result<()> {
        match self.cipher {
            Cipher::Ctr => {
                let counter = u128::from_be_bytes(*iv).wrapping_add(u128::from(position / 16));
                let mut keystream = Keystream::new(Pass::Ctr, counter.to_be_bytes());
                let mut executor = Planned::new(&*self.executor, self.key.data());
                keystream.skip(&mut executor, (position % 16) as usize)?;
                self.state = State::Keystream(keystream);
            }
            Cipher::Xts if position.is_multiple_of(16) => {
                xts::check_unit(position)?;
                self.reset(iv);
                if let State::Blocks { position: blocks, .. } = &mut self.state {
                    *blocks = position / 16;
                }
            }
            Cipher::Xts => return Err(Error::Order { what: "XTS can only go to the beginning of a block" }),
            _ => return Err(Error::Order { what: "only CTR and XTS can go to a position" }),
        }
        self.finished = false;
        Ok(())
    }

    fn check_open(&self) -> Result<()> {
        if self.finished {
            Err(Error::Order { what: "the message has ended or failed: begin another one" })
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
            State::Keystream(keystream) => keystream.apply(&mut executor, data),
            State::Feedback(feedback) => feedback.apply(&mut executor, self.direction, data),
            State::Bytes(state) => executor.run(self.cipher.pass(self.direction), state, data),
            State::Blocks { .. } => unreachable!("modes of whole blocks go another way"),
        }
    }

    fn update_blocks(&mut self, input: &[u8], output: &mut [u8]) -> Result<()> {
        let hold = self.hold();
        let State::Blocks { buffer, position } = &mut self.state else {
            unreachable!("stream modes go another way")
        };
        let tweak = self.key.tweak().map(|key| (key, position));
        let mut executor = Planned { executor: &*self.executor, key: self.key.data(), tweak };
        buffer.update(&mut executor, self.direction, hold, &mut SliceIo { input, output })?;
        Ok(())
    }
}

impl State {
    fn new(cipher: Cipher, iv: &Block) -> State {
        match cipher {
            Cipher::Ctr => State::Keystream(Keystream::new(Pass::Ctr, *iv)),
            Cipher::Ofb => State::Keystream(Keystream::new(Pass::Ofb, *iv)),
            Cipher::Cfb128 => State::Feedback(Feedback::new(*iv)),
            Cipher::Cfb8 | Cipher::Cfb1 => State::Bytes(Zeroizing::new(*iv)),
            Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc | Cipher::Xts => {
                State::Blocks { buffer: BlockBuffer::new(cipher, *iv), position: 0 }
            }
        }
    }
}
