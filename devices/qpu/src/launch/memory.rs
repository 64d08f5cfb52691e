//! The memory of a run, whose parts are allocated at increasing addresses.

use lockstep_core::Block;
use zeroize::Zeroizing;

/// The alignment of parts in bytes, which is the length of a cache line.
const ALIGNMENT: usize = 64;

/// The content of memory that starts at an address. It is wiped on drop.
pub(super) struct Memory {
    bytes: Zeroizing<Vec<u8>>,
    /// The address of the first byte.
    base: u32,
}

impl Memory {
    /// Creates memory of a fixed size. It never grows, so no copy of its content is left in other memory.
    pub(super) fn new(base: u32, bytes: usize) -> Memory {
        Memory { bytes: Zeroizing::new(Vec::with_capacity(bytes)), base }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The index of an address in [`Memory::bytes`].
    pub(super) fn place(&self, address: u32) -> usize {
        (address - self.base) as usize
    }

    /// The bytes from the given address to the end of the memory.
    pub(super) fn from(&mut self, address: u32) -> &mut [u8] {
        let place = self.place(address);
        &mut self.bytes[place..]
    }

    pub(super) fn put_words(&mut self, words: &[u32]) -> u32 {
        let address = self.room(4 * words.len());
        for (place, word) in self.from(address).chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        address
    }

    /// Writes bytes to newly reserved memory of `room` bytes. All bytes after them are zero. Returns the address.
    pub(super) fn put(&mut self, bytes: &[u8], room: usize) -> u32 {
        let address = self.room(room);
        self.from(address)[..bytes.len()].copy_from_slice(bytes);
        address
    }

    /// Writes bytes to newly reserved memory of `room` words, with each byte in a word of its own. Returns the address.
    pub(super) fn put_bytes_as_words(&mut self, bytes: &[u8], room: usize) -> u32 {
        let address = self.room(4 * room);
        for (place, byte) in self.from(address).chunks_exact_mut(4).zip(bytes) {
            place[0] = *byte;
        }
        address
    }

    /// Writes round keys to newly reserved memory, as blocks. Returns the address.
    pub(super) fn put_keys(&mut self, keys: &[Block]) -> u32 {
        self.put(keys.as_flattened(), 16 * keys.len())
    }

    /// Reserves a number of bytes, which are zero. Returns the address.
    pub(super) fn room(&mut self, bytes: usize) -> u32 {
        self.aligned_room(ALIGNMENT, bytes)
    }

    /// Reserves a number of bytes, which are zero, at a multiple of `alignment`. Returns the address.
    pub(super) fn aligned_room(&mut self, alignment: usize, bytes: usize) -> u32 {
        let start = (self.base as usize + self.bytes.len()).next_multiple_of(alignment) - self.base as usize;
        debug_assert!(start + bytes <= self.bytes.capacity(), "the memory is not moved");
        self.bytes.resize(start + bytes, 0);
        self.base + start as u32
    }
}
