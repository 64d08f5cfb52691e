//! Incremental ECB, CBC, PCBC and XTS. Input in pieces of any length is collected to whole blocks, and the end of the message
//! is padded.

use lockstep_core::data::Span;
use lockstep_core::wiping::wipe;
use lockstep_core::{Block, Error};
use zeroize::Zeroizing;

use super::KeyedExecutor;
use crate::message::{Cipher, Direction};
use crate::padding;

/// The input and the output of one update. They may be separate, the same memory or overlapping, depending on the
/// implementation of this trait.
pub trait BlockIo {
    /// Bytes of input.
    fn len(&self) -> usize;

    /// True if the input is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of output space.
    fn room(&self) -> usize;

    /// Copies the input at offset `at` to `into`.
    fn read(&self, at: usize, into: &mut [u8]);

    /// Returns `len` bytes of input at offset `from`, with their output at offset `to`. The output may overlap other parts of
    /// the input, so the caller must have read these parts before.
    fn part(&mut self, from: usize, to: usize, len: usize) -> Span<'_>;

    /// Writes `bytes` to the output at offset `at`.
    fn write(&mut self, at: usize, bytes: &[u8]);
}

/// Input and output in slices.
pub struct SliceIo<'d> {
    /// The input; `None` if the input is in the memory of the output.
    pub input: Option<&'d [u8]>,
    /// The output space, which may be longer than the output.
    pub output: &'d mut [u8],
}

impl SliceIo<'_> {
    fn input(&self) -> &[u8] {
        self.input.unwrap_or(self.output)
    }
}

impl BlockIo for SliceIo<'_> {
    fn len(&self) -> usize {
        self.input().len()
    }

    fn room(&self) -> usize {
        self.output.len()
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.input()[at..at + into.len()]);
    }

    fn part(&mut self, from: usize, to: usize, len: usize) -> Span<'_> {
        let input = from..from + len;
        if let Some(all) = self.input {
            return Span::copy(&all[input], &mut self.output[to..to + len]);
        }
        self.output.copy_within(input, to);
        Span::in_place(&mut self.output[to..to + len])
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.output[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The bytes that an update holds back until the next update or the end of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A partial block.
    Part,
    /// The last whole or partial block, because it may contain padding.
    Block,
    /// The last whole block and a partial block after it, because ciphertext stealing may combine them.
    BlockAndPart,
}

impl Hold {
    /// Returns the bytes that a cipher holds back.
    #[inline]
    pub fn of(cipher: Cipher, padding: bool, direction: Direction) -> Hold {
        match (cipher, padding, direction) {
            (Cipher::Xts, ..) => Hold::BlockAndPart,
            (_, true, Direction::Decrypt) => Hold::Block,
            _ => Hold::Part,
        }
    }
}

/// The chaining state of a mode of whole blocks, and the bytes that are held back; wiped on drop.
#[derive(Clone)]
pub struct BlockBuffer {
    cipher: Cipher,
    state: Block,
    /// The bytes that are held back: a partial block, a whole block, or for XTS a whole block and a partial block.
    pending: [u8; 32],
    len: usize,
}

impl BlockBuffer {
    /// Starts a message of ECB, CBC, PCBC or XTS.
    pub fn new(cipher: Cipher, iv: Block) -> BlockBuffer {
        BlockBuffer { cipher, state: iv, pending: [0; 32], len: 0 }
    }

    /// The chaining state.
    pub fn state(&self) -> &Block {
        &self.state
    }

    /// The chaining state, for passes that run without this buffer.
    pub fn state_mut(&mut self) -> &mut Block {
        &mut self.state
    }

    /// The bytes that are held back.
    #[inline]
    pub fn pending(&self) -> &[u8] {
        &self.pending[..self.len]
    }

    /// Discards the bytes that are held back.
    pub fn discard(&mut self) {
        wipe(&mut self.pending);
        self.len = 0;
    }

    /// Returns the number of output bytes of an update with `input` bytes of input.
    pub fn output_len(&self, input: usize, hold: Hold) -> usize {
        let total = self.len + input;
        match hold {
            Hold::Part => total & !15,
            Hold::Block => total.saturating_sub(1) & !15,
            Hold::BlockAndPart => (total & !15).saturating_sub(16),
        }
    }

    /// True if an update with `input` bytes of input is a single pass over this input: no bytes are held back before or after it.
    #[inline(always)]
    pub fn is_single_pass(&self, input: usize, hold: Hold) -> bool {
        self.len == 0 && hold == Hold::Part && input.is_multiple_of(16)
    }

    /// Encrypts or decrypts the next bytes; returns the number of bytes of output.
    ///
    /// # Errors
    /// [`Error::OutputLength`] if the output space is too small. In this case nothing is changed. Errors of the executor.
    #[inline(always)]
    pub fn update<E: KeyedExecutor>(
        &mut self,
        executor: &mut E,
        direction: Direction,
        hold: Hold,
        io: &mut impl BlockIo,
    ) -> Result<usize, E::Error> {
        let len = io.len();
        if self.is_single_pass(len, hold) && io.room() >= len {
            executor.run(self.cipher.pass(direction), &mut self.state, io.part(0, 0, len))?;
            return Ok(len);
        }
        self.update_pending(executor, direction, hold, io)
    }

    /// Makes an update that starts or ends with bytes that are held back. The output may overlap the input in any way, so input
    /// that could be overwritten is read first.
    fn update_pending<E: KeyedExecutor>(
        &mut self,
        executor: &mut E,
        direction: Direction,
        hold: Hold,
        io: &mut impl BlockIo,
    ) -> Result<usize, E::Error> {
        let (old, len) = (self.len, io.len());
        let out = self.output_len(len, hold);
        if io.room() < out {
            return Err(Error::OutputLength { needed: out, got: io.room() }.into());
        }
        if out == 0 {
            io.read(0, &mut self.pending[old..old + len]);
            self.len = old + len;
            return Ok(0);
        }
        // The first output blocks consist of the bytes that were held back, completed to whole blocks by new input.
        let first_len = old.next_multiple_of(16).min(out);
        let filled = first_len.saturating_sub(old);
        let mut first = Zeroizing::new(self.pending);
        io.read(0, &mut first[old..old + filled]);
        let mut next = Zeroizing::new([0; 32]);
        let kept = old.saturating_sub(first_len);
        next[..kept].copy_from_slice(&self.pending[old - kept..old]);
        let keep = old + len - out;
        io.read(len - (keep - kept), &mut next[kept..keep]);

        let pass = self.cipher.pass(direction);
        if first_len > 0 {
            executor.run(pass, &mut self.state, Span::in_place(&mut first[..first_len]))?;
        }
        if out > first_len {
            executor.run(pass, &mut self.state, io.part(filled, first_len, out - first_len))?;
        }
        io.write(0, &first[..first_len]);
        self.pending = *next;
        self.len = keep;
        Ok(out)
    }

    /// Ends the message. Returns a block, and the number of its first bytes that are the last output. This function must not be
    /// used for XTS: to end a data unit of XTS, the caller processes the [`pending`](BlockBuffer::pending) bytes.
    ///
    /// # Errors
    /// [`Error::NotWholeBlocks`], with the pending bytes unchanged; [`Error::Padding`]; errors of the executor.
    pub fn finish<E: KeyedExecutor>(
        &mut self,
        executor: &mut E,
        direction: Direction,
        padding: bool,
    ) -> Result<(Zeroizing<Block>, usize), E::Error> {
        let len = self.len;
        let mut last = Zeroizing::new(Block::default());
        match (padding, direction) {
            (false, _) if len == 0 => return Ok((last, 0)),
            (true, Direction::Encrypt) => *last = padding::pad(&self.pending[..len]),
            // Without padding, a whole block is held back only if padding was switched off after the block had arrived.
            _ if len == 16 => last.copy_from_slice(&self.pending[..16]),
            _ => return Err(Error::NotWholeBlocks { mode: self.cipher.name(), extra: len }.into()),
        }
        executor.run(self.cipher.pass(direction), &mut self.state, Span::in_place(&mut *last))?;
        self.discard();
        let len = if padding && direction == Direction::Decrypt { padding::unpad(&last)? } else { 16 };
        Ok((last, len))
    }
}

impl Drop for BlockBuffer {
    #[inline(always)]
    fn drop(&mut self) {
        wipe(&mut self.state);
        wipe(&mut self.pending);
    }
}
