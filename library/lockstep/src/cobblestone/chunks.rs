//! The type of pieces. A piece is a sequence of chunks that are read together, sealed or opened in one call, and written together.

use std::io::{IoSlice, IoSliceMut};

use zeroize::Zeroizing;

use super::format::{CHUNK, ENCRYPTED_CHUNK, TAG};
use super::header::MessageKey;
use crate::aead::{self, Aead, Data, Direction, Message, Status, Tag};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Consecutive chunks in one buffer, each followed by space for its tag, so that chunks are sealed and opened in place.
/// Wiped on drop.
pub(super) struct Piece {
    buffer: Zeroizing<Vec<u8>>,
    /// The number of the first chunk.
    pub(super) first: u64,
    /// Bytes in the piece, with the tags. Only the last chunk of a message is shorter than a full chunk.
    len: usize,
}

impl Piece {
    /// Allocates space for `chunks` full chunks.
    pub(super) fn new(chunks: usize) -> Piece {
        Piece { buffer: Zeroizing::new(vec![0; chunks * ENCRYPTED_CHUNK]), first: 0, len: 0 }
    }

    /// Maximum number of plaintext bytes in the piece.
    pub(super) fn room(&self) -> usize {
        self.buffer.len() / ENCRYPTED_CHUNK * CHUNK
    }

    /// The slots for the first `len` bytes of plaintext, one slot for each chunk.
    pub(super) fn plain_slots(&mut self, len: usize) -> Vec<IoSliceMut<'_>> {
        let mut left = len;
        let slots = self.buffer.chunks_exact_mut(ENCRYPTED_CHUNK).map_while(|chunk| {
            let take = left.min(CHUNK);
            left -= take;
            (take > 0).then(|| IoSliceMut::new(&mut chunk[..take]))
        });
        slots.collect()
    }

    /// The slot for ciphertext.
    pub(super) fn encrypted_slot(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Copies plaintext to the piece, at the plaintext offset `at`, up to the end of the chunk that contains this offset, and
    /// returns the number of copied bytes. The piece must have room at `at`.
    pub(super) fn copy_plain(&mut self, at: usize, bytes: &[u8]) -> usize {
        let (chunk, inside) = (at / CHUNK, at % CHUNK);
        let len = bytes.len().min(CHUNK - inside);
        self.buffer[chunk * ENCRYPTED_CHUNK + inside..][..len].copy_from_slice(&bytes[..len]);
        len
    }

    /// Moves the `len` bytes that follow the first `behind` chunks to the start of the buffer.
    pub(super) fn move_to_front(&mut self, behind: usize, len: usize) {
        let start = behind * ENCRYPTED_CHUNK;
        self.buffer.copy_within(start..start + len, 0);
    }

    /// Sets the number of plaintext bytes in the slots. `ends` is true if the message ends with these bytes.
    pub(super) fn set_plain(&mut self, len: usize, ends: bool) {
        debug_assert!(ends || len.is_multiple_of(CHUNK));
        self.len = len + (len / CHUNK + usize::from(ends)) * TAG;
    }

    /// Sets the number of encrypted bytes in the slot. `ends` is true if the message ends with these bytes. Returns false if `ends`
    /// is true but a message cannot end after this number of bytes; the piece then contains only the full chunks.
    #[must_use]
    pub(super) fn set_encrypted(&mut self, len: usize, ends: bool) -> bool {
        let rest = len % ENCRYPTED_CHUNK;
        debug_assert!(ends || rest == 0);
        let can_end = rest >= TAG;
        self.len = if can_end { len } else { len - rest };
        can_end || !ends
    }

    /// Plaintext bytes in the piece.
    pub(super) fn plain_len(&self) -> usize {
        self.len - self.len.div_ceil(ENCRYPTED_CHUNK) * TAG
    }

    /// The encrypted bytes, which are valid after [`seal`](Piece::seal).
    pub(super) fn ciphertext(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Returns `len` bytes of plaintext that begin after the first `skip` bytes of the first chunk. Valid after
    /// [`open`](Piece::open).
    pub(super) fn plaintext(&self, mut skip: usize, mut len: usize) -> Vec<IoSlice<'_>> {
        let slices = self.ciphertext().chunks(ENCRYPTED_CHUNK).map(|chunk| {
            let rest = &chunk[std::mem::take(&mut skip)..chunk.len() - TAG];
            let slice = &rest[..rest.len().min(len)];
            len -= slice.len();
            IoSlice::new(slice)
        });
        slices.filter(|slice| !slice.is_empty()).collect()
    }

    /// Seals all chunks in place.
    pub(super) fn seal(&mut self, engine: &Engine, key: &MessageKey) -> Result<()> {
        Ok(self.run(engine, key, Direction::Encrypt).0?)
    }

    /// Seals or opens all chunks in place. Returns the index of the first chunk that has no result.
    fn run(
        &mut self,
        engine: &Engine,
        key: &MessageKey,
        direction: Direction,
    ) -> (aead::Result<()>, Option<usize>) {
        let chunks = self.buffer[..self.len].chunks_mut(ENCRYPTED_CHUNK);
        let nonces: Vec<_> = (self.first..).take(chunks.len()).map(|chunk| key.nonce(chunk)).collect();
        let messages = chunks.zip(&nonces).map(|(chunk, nonce)| {
            let (data, tag) = Aead::Gcm.split_mut(chunk, TAG).expect("a chunk ends with a tag");
            let tag = if direction == Direction::Encrypt { Tag::Write(tag) } else { Tag::Expect(tag) };
            let (data, status) = (Data::in_place(data), Status::Pending);
            Message { key: &key.key, nonce, aad: &[], data, tag, status }
        });
        let mut messages: Vec<_> = messages.collect();
        let outcome = aead::run(engine, direction, &mut messages);
        (outcome, messages.iter().position(|message| message.status != Status::Done))
    }

    /// Opens all chunks in place. On failure, only the chunks before the first chunk that is not authentic remain in the piece, and
    /// all other chunks are zeroed.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the number of the first chunk that is not authentic.
    pub(super) fn open(&mut self, engine: &Engine, key: &MessageKey) -> Result<()> {
        let (verified, failed) = match self.run(engine, key, Direction::Decrypt) {
            (Ok(()), None) => return Ok(()),
            (Ok(()) | Err(aead::Error::AuthenticationFailed), bad) => {
                let bad = bad.unwrap_or(0);
                (bad, Error::Damaged { chunk: self.first + bad as u64 })
            }
            (Err(error), _) => (0, error.into()),
        };
        let verified = verified * ENCRYPTED_CHUNK;
        self.buffer[verified..self.len].fill(0);
        self.len = verified;
        Err(failed)
    }
}
