//! The interface to the operating system that a board requires: the mailbox of the firmware, and the memory of the GPU.

use std::io;

/// The firmware of a board.
pub trait Firmware: Send {
    /// Waits until no other process of this library uses the QPUs, and makes other processes wait.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn acquire(&mut self) -> io::Result<()>;

    /// The number of this process. It is needed because a child process after a fork must not access the memory that a call of
    /// its parent uses.
    fn process(&self) -> u32 {
        std::process::id()
    }

    /// Ends the exclusive use that [`Firmware::acquire`] began.
    fn give_back(&mut self);

    /// Sends a property message. The response replaces the message.
    ///
    /// # Errors
    /// Errors of the operating system. An error of the firmware is part of the response.
    fn property(&mut self, message: &mut [u32; 16]) -> io::Result<()>;

    /// Maps the memory at a physical address, a multiple of 4096.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn map(&mut self, address: u32, bytes: usize) -> io::Result<Box<dyn SharedMemory>>;
}

/// Memory that the GPU and this program share. Offsets and lengths are multiples of four, because memory that is not cached is
/// accessed in words of four bytes.
pub trait SharedMemory: Send {
    /// Copies bytes to an offset.
    ///
    /// # Panics
    /// Panics if the bytes are not within the memory.
    fn write(&mut self, offset: usize, bytes: &[u8]);

    /// Copies bytes from an offset.
    ///
    /// # Panics
    /// Panics if the bytes are not within the memory.
    fn read(&self, offset: usize, bytes: &mut [u8]);

    /// Sets bytes from an offset to zero.
    ///
    /// # Panics
    /// Panics if the bytes are not within the memory.
    fn wipe(&mut self, offset: usize, len: usize);
}
