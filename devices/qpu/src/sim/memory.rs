//! Memory of the host.

use super::FaultKind;

/// Memory that the chip can access, starting at a bus address.
pub(super) struct Memory<'m> {
    bytes: &'m mut [u8],
    base: u32,
}

impl<'m> Memory<'m> {
    pub(super) fn new(bytes: &'m mut [u8], base: u32) -> Memory<'m> {
        Memory { bytes, base }
    }

    fn word(&self, address: u32) -> Option<std::ops::Range<usize>> {
        // For addresses below the start of the memory, the difference wraps around to a number that is larger than any valid
        // index.
        let start = address.wrapping_sub(self.base) as usize;
        // The addition is checked, because the end of the last word of the address space does not fit into 32 bits.
        let end = start.checked_add(4)?;
        (address.is_multiple_of(4) && end <= self.bytes.len()).then_some(start..end)
    }

    /// The word at an address.
    pub(super) fn load(&self, address: u32) -> Result<u32, FaultKind> {
        let place = self.word(address).ok_or(FaultKind::Memory(address))?;
        Ok(u32::from_le_bytes(self.bytes[place].try_into().expect("four bytes")))
    }

    /// Sets the word at an address.
    pub(super) fn store(&mut self, address: u32, value: u32) -> Result<(), FaultKind> {
        let place = self.word(address).ok_or(FaultKind::Memory(address))?;
        self.bytes[place].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }
}
