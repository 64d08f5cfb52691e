//! ECB, CBC, PCBC and XTS: whole blocks of bytes that come in any split, and padding at the end.

use lockstep_core::data::Span;
use lockstep_core::{Block, Error};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::KeyedExecutor;
use crate::message::{Cipher, Direction};
use crate::padding;

/// Input and output of one update. Whether they are apart, the same memory or overlapping is the implementor's affair.
pub trait BlockIo {
    /// Bytes of input.
    fn len(&self) -> usize;

    /// True if there is no input.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the output has room for.
    fn room(&self) -> usize;

    /// Copies input from byte `at` on.
    fn read(&self, at: usize, into: &mut [u8]);

    /// `len` bytes of input from byte `from` on, whose output begins at byte `to`. Input elsewhere has been read before, since
    /// the output may overlap it.
    fn part(&mut self, from: usize, to: usize, len: usize) -> Span<'_>;

    /// Writes output from byte `at` on.
    fn write(&mut self, at: usize, bytes: &[u8]);
}

/// Input and output that are apart.
pub struct SliceIo<'d> {
    /// What is read.
    pub input: &'d [u8],
    /// Where output goes; may be longer.
    pub output: &'d mut [u8],
}

impl BlockIo for SliceIo<'_> {
    fn len(&self) -> usize {
        self.input.len()
    }

    fn room(&self) -> usize {
        self.output.len()
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.input[at..at + into.len()]);
    }

    fn part(&mut self, from: usize, to: usize, len: usize) -> Span<'_> {
        Span::copy(&self.input[from..from + len], &mut self.output[to..to + len])
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.output[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// What is kept back beyond the whole blocks that can be output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A partial block.
    Part,
    /// The last whole block, or a partial one: it may be the padded one.
    Block,
    /// The last whole block and a partial one after it: they may share bytes (ciphertext stealing).
    BlockAndPart,
}

impl Hold {
    /// What a cipher keeps back.
    pub fn of(cipher: Cipher, padding: bool, direction: Direction) -> Hold {
        match (cipher, padding, direction) {
            (Cipher::Xts, ..) => Hold::BlockAndPart,
            (_, true, Direction::Decrypt) => Hold::Block,
            _ => Hold::Part,
        }
    }
}

/// The chaining state of a mode of whole blocks, and the bytes that are kept back.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct BlockBuffer {
    #[zeroize(skip)]
    cipher: Cipher,
    state: Block,
    /// A partial block, a whole one, or for XTS a whole one and a partial one.
    pending: [u8; 32],
    len: usize,
}

impl BlockBuffer {
    /// The beginning of a message of ECB, CBC, PCBC or XTS.
    pub fn new(cipher: Cipher, iv: Block) -> BlockBuffer {
        BlockBuffer { cipher, state: iv, pending: [0; 32], len: 0 }
    }

    /// The chaining state.
    pub fn state(&self) -> &Block {
        &self.state
    }

    /// The chaining state, for what is run beside the buffer.
    pub fn state_mut(&mut self) -> &mut Block {
        &mut self.state
    }

    /// The bytes that are kept back.
    pub fn pending(&self) -> &[u8] {
        &self.pending[..self.len]
    }

    /// Begins another message.
    pub fn restart(&mut self, iv: Block) {
        self.state = iv;
        self.discard();
    }

    /// Forgets the bytes that are kept back.
    pub fn discard(&mut self) {
        self.pending.zeroize();
        self.len = 0;
    }

    /// How many bytes an update with so much input gives out.
    pub fn output_len(&self, input: usize, hold: Hold) -> usize {
        let total = self.len + input;
        match hold {
            Hold::Part => total & !15,
            Hold::Block => total.saturating_sub(1) & !15,
            Hold::BlockAndPart => (total & !15).saturating_sub(16),
        }
    }

    /// Encrypts or decrypts the next bytes; returns how many were given out.
    ///
    /// # Errors
    /// [`Error::OutputLength`] if there is less room, and nothing has happened; those of the executor.
    #[inline(always)]
    pub fn update<E: KeyedExecutor>(
        &mut self,
        executor: &mut E,
        direction: Direction,
        hold: Hold,
        io: &mut impl BlockIo,
    ) -> Result<usize, E::Error> {
        let len = io.len();
        if self.len == 0 && hold == Hold::Part && len.is_multiple_of(16) && io.room() >= len {
            executor.run(self.cipher.pass(direction), &mut self.state, io.part(0, 0, len))?;
            return Ok(len);
        }
        self.update_pending(executor, direction, hold, io)
    }

    /// An update that leaves or finds pending bytes. All input that an output could overwrite is read before: the output may
    /// lie on any of the input.
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
        // The pending bytes, filled up to whole blocks if that much is given out, are the first output.
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

    /// Ends the message: the last block, of which the returned number of bytes are output. Of XTS the caller ends the data unit,
    /// with the [`pending`](BlockBuffer::pending) bytes.
    ///
    /// # Errors
    /// [`Error::NotWholeBlocks`], and the pending bytes stay; [`Error::Padding`]; those of the executor.
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
            // Without padding a whole block is only kept back if padding was switched off after it came.
            _ if len == 16 => last.copy_from_slice(&self.pending[..16]),
            _ => return Err(Error::NotWholeBlocks { mode: self.cipher.name(), extra: len }.into()),
        }
        executor.run(self.cipher.pass(direction), &mut self.state, Span::in_place(&mut *last))?;
        self.discard();
        let len = if padding && direction == Direction::Decrypt { padding::unpad(&last)? } else { 16 };
        Ok((last, len))
    }
}
