//! What QPUs share with each other and with the host.

use super::FaultKind;

/// The largest value of a semaphore, which has four bits.
const MOST: u8 = 15;

/// What QPUs share.
pub(super) struct Shared<'m> {
    /// Memory of the host, from address 0.
    pub(super) memory: &'m mut [u8],
    semaphores: [u8; 16],
    /// The number of interrupts of the host.
    pub(super) interrupts: u64,
}

impl<'m> Shared<'m> {
    pub(super) fn new(memory: &'m mut [u8]) -> Shared<'m> {
        Shared { memory, semaphores: [0; 16], interrupts: 0 }
    }

    /// The word at an address.
    pub(super) fn load(&self, address: u32) -> Result<u32, FaultKind> {
        let at = address as usize;
        let bytes = self.memory.get(at..at + 4).filter(|_| address.is_multiple_of(4));
        let bytes = bytes.ok_or(FaultKind::Memory(address))?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    /// Decrements or increments a semaphore. False if it must be waited for.
    pub(super) fn change_semaphore(&mut self, number: u8, decrements: bool) -> bool {
        let semaphore = &mut self.semaphores[usize::from(number)];
        let next = if decrements {
            semaphore.checked_sub(1)
        } else {
            Some(*semaphore + 1).filter(|next| *next <= MOST)
        };
        *semaphore = next.unwrap_or(*semaphore);
        next.is_some()
    }
}
