//! The firmware on Linux. The mailbox is `/dev/vcio`, and the memory of the GPU is mapped through `/dev/mem`.

use std::ffi::{c_char, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::{self, NonNull};

use lockstep_core::backend::Missing;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::retry_on_intr;
use rustix::ioctl::{Updater, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{Firmware, SharedMemory};

/// The open files `/dev/vcio`, the mailbox, and `/dev/mem`, which contains all memory.
pub(super) struct Vcio {
    mailbox: File,
    memory: File,
    /// The process that opened the files.
    process: u32,
}

impl Vcio {
    /// Opens both files.
    ///
    /// # Errors
    /// [`Missing`] if this process has no access.
    pub(super) fn open() -> Result<Vcio, Missing> {
        let open = |path: &str| {
            // This flag makes mappings of the memory uncached.
            let options =
                OpenOptions::new().read(true).write(true).custom_flags(OFlags::SYNC.bits() as i32).open(path);
            options.map_err(|error| Missing {
                reason: format!("cannot open {path}: {error}"),
                remedy: "run the program as root, or use another device".into(),
            })
        };
        Ok(Vcio { mailbox: open("/dev/vcio")?, memory: open("/dev/mem")?, process: std::process::id() })
    }
}

/// The request number of the mailbox's driver: number 0 of type 100. The argument of the request is the address of a message.
const PROPERTY: rustix::ioctl::Opcode = opcode::read_write::<*mut c_char>(100, 0);

impl Firmware for Vcio {
    fn acquire(&mut self) -> io::Result<()> {
        if self.process != self.process() {
            // A lock belongs to the open file. After a fork, parent and child share the open file, so the child opens the files
            // again.
            *self = Vcio::open().map_err(io::Error::other)?;
        }
        // A signal ends the wait with an error.
        Ok(retry_on_intr(|| flock(&self.mailbox, FlockOperation::LockExclusive))?)
    }

    fn give_back(&mut self) {
        // Closing the file also releases the lock, so an error here has no consequence.
        let _ = flock(&self.mailbox, FlockOperation::Unlock);
    }

    #[allow(unsafe_code, reason = "a request of the mailbox's driver")]
    fn property(&mut self, message: &mut [u32; 16]) -> io::Result<()> {
        // SAFETY: the driver reads and writes the number of bytes that the first word of the message states. These bytes are
        // within the message.
        let request = unsafe { Updater::<PROPERTY, [u32; 16]>::new(message) };
        // SAFETY: the driver supports this request.
        unsafe { ioctl(&self.mailbox, request) }?;
        Ok(())
    }

    #[allow(unsafe_code, reason = "memory of a device")]
    fn map(&mut self, address: u32, bytes: usize) -> io::Result<Box<dyn SharedMemory>> {
        let (read_write, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: this is a new mapping at an address that the kernel chooses. The firmware has allocated the memory, and
        // nothing else uses it.
        let start = unsafe { mmap(ptr::null_mut(), bytes, read_write, flags, &self.memory, address.into()) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Box::new(Mapping { start, bytes }))
    }
}

/// Mapped memory of the GPU.
struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
}

#[allow(unsafe_code, reason = "the mapping belongs to this value")]
// SAFETY: no other thread has the address of the mapping.
unsafe impl Send for Mapping {}

#[allow(unsafe_code, reason = "the mapping belongs to this value")]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `mmap` with this length, and nothing refers to it any more. An error is ignored,
        // because nothing can be done about it.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

impl Mapping {
    /// Returns the address of each word of a range.
    fn words(&self, offset: usize, len: usize) -> impl Iterator<Item = *mut u32> {
        assert!(offset.is_multiple_of(4) && len.is_multiple_of(4), "bytes {offset} and {len}");
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.bytes), "{offset} and {len}");
        let start: *mut u32 = self.start.as_ptr().cast();
        (offset / 4..(offset + len) / 4).map(move |index| start.wrapping_add(index))
    }
}

#[allow(unsafe_code, reason = "accesses by words, since the memory may be that of a device")]
impl SharedMemory for Mapping {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        for (address, word) in self.words(offset, bytes.len()).zip(bytes.as_chunks().0) {
            // SAFETY: the address is within the mapping, which starts at a page.
            unsafe { address.write_volatile(u32::from_ne_bytes(*word)) };
        }
    }

    fn read(&self, offset: usize, bytes: &mut [u8]) {
        for (address, word) in self.words(offset, bytes.len()).zip(bytes.as_chunks_mut().0) {
            // SAFETY: as above.
            *word = unsafe { address.read_volatile() }.to_ne_bytes();
        }
    }

    fn wipe(&mut self, offset: usize, len: usize) {
        for address in self.words(offset, len) {
            // SAFETY: as above.
            unsafe { address.write_volatile(0) };
        }
    }
}
