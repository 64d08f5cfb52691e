//! The modes without authentication, piece by piece.

use std::sync::Arc;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::parts::Keystream;
use crate::executor::Executor;
use crate::{Cipher, CipherKey, Direction, padding, xts};
use lockstep_core::data::{Data, HostData};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, Key};
use lockstep_core::work::{Pass, Segment, Tweak};

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
    /// CFB8 and CFB1: the chaining state is all there is.
    Register(Block),
    /// ECB, CBC, PCBC, XTS.
    Blocks(Blocks),
}

/// CFB128 within a block.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Feedback {
    /// The last ciphertext block, of which the first `used` bytes are already of the current one.
    state: Block,
    keystream: Block,
    used: usize,
}

/// Modes that work on whole blocks.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Blocks {
    state: Block,
    /// XTS: blocks of the data unit before what comes next.
    position: u64,
    pending: [u8; 32],
    len: usize,
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
            State::Blocks(blocks) => input + blocks.len,
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
            State::Blocks(blocks) => {
                if self.cipher == Cipher::Xts {
                    let before = (blocks.position.saturating_mul(16)).saturating_add(blocks.len as u64);
                    xts::check_unit(before.saturating_add(input.len() as u64))?;
                }
                blocks.ready(input.len(), self.hold())
            }
            _ => input.len(),
        };
        if output.len() < needed {
            return Err(Error::OutputLength { needed, got: output.len() });
        }
        let output = &mut output[..needed];
        self.attempt(|stream| match stream.state {
            State::Blocks(_) => stream.update_blocks(input, output),
            _ => stream.update_bytes(HostData::copy(input, output)?),
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
        self.attempt(|stream| stream.update_bytes(HostData::InPlace(data)))
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
        let State::Blocks(blocks) = &mut self.state else {
            self.finished = true;
            return Ok(0);
        };
        let len = blocks.len;
        let mut last = blocks.pending;
        let before = (blocks.state, blocks.position);
        let result = match (self.cipher, self.padding, self.direction) {
            (Cipher::Xts, ..) => self.finish_unit(&mut last, len),
            (_, Padding::None, _) if len == 0 => Ok(0),
            (_, Padding::None, _) => Err(Error::NotWholeBlocks { mode: self.cipher.name(), extra: len }),
            (_, Padding::Pkcs7, Direction::Encrypt) => {
                let padded = padding::pad(&last[..len]);
                last[..16].copy_from_slice(&padded);
                self.run_blocks(Data::in_place(&mut last[..16])).map(|()| 16)
            }
            (_, Padding::Pkcs7, Direction::Decrypt) if len == 16 => self
                .run_blocks(Data::in_place(&mut last[..16]))
                .and_then(|()| padding::unpad(&last[..16].try_into().expect("16 bytes"))),
            (_, Padding::Pkcs7, Direction::Decrypt) => {
                Err(Error::NotWholeBlocks { mode: self.cipher.name(), extra: len })
            }
        };
        self.finished = true;
        let result = result.and_then(|len| match output.get_mut(..len) {
            Some(place) => {
                place.copy_from_slice(&last[..len]);
                Ok(len)
            }
            None => Err(Error::OutputLength { needed: len, got: output.len() }),
        });
        last.zeroize();
        if let (Err(Error::OutputLength { .. }), State::Blocks(blocks)) = (&result, &mut self.state) {
            // As if it had not been asked: the same call with more room succeeds.
            (blocks.state, blocks.position) = before;
            self.finished = false;
        }
        result
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
                keystream.skip(&*self.executor, self.key.data(), (position % 16) as usize)?;
                self.state = State::Keystream(keystream);
            }
            Cipher::Xts if position.is_multiple_of(16) => {
                xts::check_unit(position)?;
                self.reset(iv);
                if let State::Blocks(blocks) = &mut self.state {
                    blocks.position = position / 16;
                }
            }
            Cipher::Xts => return Err(Error::Order { what: "XTS can only go to the beginning of a block" }),
            _ => return Err(Error::Order { what: "only CTR and XTS can go to a position" }),
        }
        self.finished = false;
        Ok(())
    }

    /// The chaining state (IV as it has moved on), and how many bytes of the current block are used.
    pub fn state(&self) -> (Block, usize) {
        match &self.state {
            State::Keystream(keystream) => keystream.state(),
            State::Feedback(feedback) => (feedback.state, feedback.used % 16),
            State::Register(state) => (*state, 0),
            State::Blocks(blocks) => (blocks.state, 0),
        }
    }

    fn check_open(&self) -> Result<()> {
        if self.finished {
            Err(Error::Order { what: "the message has ended or failed: begin another one" })
        } else {
            Ok(())
        }
    }

    /// What must be kept back beyond partial blocks.
    fn hold(&self) -> Hold {
        match (self.cipher, self.padding, self.direction) {
            (Cipher::Xts, ..) => Hold::BlockAndPart,
            (_, Padding::Pkcs7, Direction::Decrypt) => Hold::Block,
            _ => Hold::Part,
        }
    }

    fn update_bytes(&mut self, data: HostData<'_>) -> Result<()> {
        let key = self.key.data();
        match &mut self.state {
            State::Keystream(keystream) => keystream.apply(&*self.executor, key, Data::Host(data)),
            State::Feedback(feedback) => feedback.apply(&*self.executor, key, self.direction, data),
            State::Register(state) => {
                let pass = self.cipher.pass(self.direction);
                let data = Data::Host(data);
                self.executor.run_pass(pass, &mut [Segment { key, tweak: None, state, data }])
            }
            State::Blocks(_) => unreachable!("modes of whole blocks go another way"),
        }
    }

    fn update_blocks(&mut self, mut input: &[u8], mut output: &mut [u8]) -> Result<()> {
        let State::Blocks(blocks) = &mut self.state else { unreachable!("stream modes go another way") };
        if blocks.len > 0 && !output.is_empty() {
            // What was kept back comes first, filled up to whole blocks.
            let old = blocks.len;
            let first = old.next_multiple_of(16).min(output.len());
            if first >= old {
                blocks.pending[old..first].copy_from_slice(&input[..first - old]);
                input = &input[first - old..];
                blocks.len = 0;
            } else {
                // XTS: a block goes out, a partial one stays; it is completed below.
                blocks.len = old - first;
            }
            let mut head = blocks.pending;
            if blocks.len > 0 {
                blocks.pending.copy_within(first..old, 0);
            }
            let (now, later) = std::mem::take(&mut output).split_at_mut(first);
            let result = self.run_blocks(Data::copy(&head[..first], now)?);
            head.zeroize();
            result?;
            return self.update_blocks(input, later);
        }
        let (now, later) = input.split_at(output.len());
        self.run_blocks(Data::copy(now, output)?)?;
        let State::Blocks(blocks) = &mut self.state else { unreachable!("checked above") };
        let end = blocks.len + later.len();
        blocks.pending[blocks.len..end].copy_from_slice(later);
        blocks.len = end;
        Ok(())
    }

    fn run_blocks(&mut self, data: Data<'_>) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let State::Blocks(blocks) = &mut self.state else { unreachable!("stream modes go another way") };
        let count = data.len() as u64 / 16;
        let tweak = self.key.tweak().map(|key| Tweak { key, position: blocks.position });
        let segment = Segment { key: self.key.data(), tweak, state: &mut blocks.state, data };
        self.executor.run_pass(self.cipher.pass(self.direction), &mut [segment])?;
        blocks.position += count;
        Ok(())
    }

    /// The last 16 to 31 bytes of an XTS data unit.
    fn finish_unit(&mut self, last: &mut [u8; 32], len: usize) -> Result<usize> {
        let State::Blocks(blocks) = &mut self.state else { unreachable!("XTS works on blocks") };
        if len < 16 {
            return Err(Error::XtsTooShort { got: len });
        }
        let position = blocks.position;
        let data = Data::in_place(&mut last[..len]);
        let message = crate::Message { key: &self.key, iv: &mut blocks.state, data };
        xts::run(&*self.executor, self.direction, position, &mut [message])?;
        Ok(len)
    }
}

impl State {
    fn new(cipher: Cipher, iv: &Block) -> State {
        match cipher {
            Cipher::Ctr => State::Keystream(Keystream::new(Pass::Ctr, *iv)),
            Cipher::Ofb => State::Keystream(Keystream::new(Pass::Ofb, *iv)),
            Cipher::Cfb128 => State::Feedback(Feedback { state: *iv, keystream: [0; 16], used: 16 }),
            Cipher::Cfb8 | Cipher::Cfb1 => State::Register(*iv),
            Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc | Cipher::Xts => {
                State::Blocks(Blocks { state: *iv, position: 0, pending: [0; 32], len: 0 })
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Hold {
    /// Partial blocks only.
    Part,
    /// The last whole block, or a partial one.
    Block,
    /// The last whole block and a partial one after it.
    BlockAndPart,
}

impl Blocks {
    /// How many bytes can go out if so many come in.
    fn ready(&self, input: usize, hold: Hold) -> usize {
        let total = self.len + input;
        match hold {
            Hold::Part => total & !15,
            Hold::Block => total.saturating_sub(1) & !15,
            Hold::BlockAndPart => (total & !15).saturating_sub(16),
        }
    }
}

impl Feedback {
    fn apply(
        &mut self,
        executor: &dyn Executor,
        key: &Key,
        direction: Direction,
        data: HostData<'_>,
    ) -> Result<()> {
        let left = data.len().min(16 - self.used);
        let (head, rest) = data.split_at(left);
        self.feed(direction, head);
        if rest.is_empty() {
            return Ok(());
        }
        let whole = rest.len() & !15;
        let (blocks, tail) = rest.split_at(whole);
        if whole > 0 {
            let pass = Cipher::Cfb128.pass(direction);
            let data = Data::Host(blocks);
            executor.run_pass(pass, &mut [Segment { key, tweak: None, state: &mut self.state, data }])?;
        }
        if !tail.is_empty() {
            self.keystream = self.state;
            let mut unused = [0; 16];
            let data = Data::in_place(&mut self.keystream);
            executor
                .run_pass(Pass::EcbEncrypt, &mut [Segment { key, tweak: None, state: &mut unused, data }])?;
            self.used = 0;
            self.feed(direction, tail);
        }
        Ok(())
    }

    /// Bytes within the current block.
    fn feed(&mut self, direction: Direction, mut data: HostData<'_>) {
        for i in 0..data.len() {
            let byte = data.input()[i];
            let result = byte ^ self.keystream[self.used];
            self.state[self.used] = if direction == Direction::Encrypt { result } else { byte };
            data.output()[i] = result;
            self.used += 1;
        }
    }
}
