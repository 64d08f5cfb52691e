//! Keys, messages, readers and writers that several tests use.

use std::io::{self, Read, Write};
use std::sync::OnceLock;

use lockstep::{Engine, FileKey, Suite};
use lockstep_reference::cobblestone::{self as oracle, Aead};

pub(crate) const SUITES: [Suite; 2] = [Suite::Cobblestone128, Suite::Cobblestone256];

/// Lengths around every boundary: of a chunk, and of pieces of 32 chunks.
pub(crate) const LENGTHS: [usize; 14] = [
    0,
    1,
    15,
    16,
    16383,
    16384,
    16385,
    3 * 16384,
    32 * 16384 - 1,
    32 * 16384,
    32 * 16384 + 1,
    (1 << 20) - 1,
    (1 << 20) + 1,
    (5 << 20) + 12345,
];

/// An engine with this number of threads; created once, since tests use it in loops.
pub(crate) fn engine(threads: usize) -> &'static Engine {
    static ENGINES: [OnceLock<Engine>; 9] = [const { OnceLock::new() }; 9];
    ENGINES[threads].get_or_init(|| Engine::builder().threads(threads).build().unwrap())
}

pub(crate) fn key(suite: Suite) -> FileKey {
    FileKey::from_bytes(&(0..suite.key_len() as u8).map(|i| i * 7 + 1).collect::<Vec<_>>()).unwrap()
}

pub(crate) fn plaintext(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 15) as u8).collect()
}

pub(crate) fn aead(suite: Suite) -> Aead {
    match suite {
        Suite::Cobblestone128 => Aead::Cobblestone128,
        Suite::Cobblestone256 => Aead::Cobblestone256,
    }
}

/// Encrypts a message by the reference implementation with the key of [`key`]. The salt does not look like text,
/// because a truncated message that looks like text would get another error.
pub(crate) fn oracle_seal(suite: Suite, context: &[u8], plaintext: &[u8]) -> Vec<u8> {
    oracle::seal(aead(suite), key(suite).as_bytes(), &[0xda; 24], context, plaintext)
}

pub(crate) fn oracle_open(suite: Suite, context: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    oracle::open(aead(suite), key(suite).as_bytes(), context, message)
}

/// A reader that returns at most `step` bytes a call, is interrupted every other call, and fails at the end if
/// requested.
pub(crate) struct Hesitant<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) step: usize,
    pub(crate) interrupts: bool,
    pub(crate) fails: bool,
    turn: bool,
}

impl<'a> Hesitant<'a> {
    pub(crate) fn new(data: &'a [u8], step: usize) -> Self {
        Hesitant { data, step, interrupts: false, fails: false, turn: false }
    }
}

impl Read for Hesitant<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn = !self.turn;
        if self.interrupts && self.turn {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.data.is_empty() && self.fails {
            return Err(io::Error::other("the disk is on fire"));
        }
        let n = self.data.len().min(self.step).min(buffer.len());
        let (now, later) = self.data.split_at(n);
        buffer[..n].copy_from_slice(now);
        self.data = later;
        Ok(n)
    }
}

/// A writer that accepts at most `step` bytes a call, is interrupted every other call, and has space for `room` bytes.
pub(crate) struct Narrow {
    pub(crate) got: Vec<u8>,
    pub(crate) step: usize,
    pub(crate) interrupts: bool,
    pub(crate) room: usize,
    pub(crate) full: io::ErrorKind,
    turn: bool,
}

impl Narrow {
    pub(crate) fn new(step: usize, room: usize) -> Self {
        let full = io::ErrorKind::StorageFull;
        Narrow { got: Vec::new(), step, interrupts: false, room, full, turn: false }
    }
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.turn = !self.turn;
        if self.interrupts && self.turn {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = bytes.len().min(self.step).min(self.room - self.got.len());
        if n == 0 && !bytes.is_empty() {
            return Err(self.full.into());
        }
        self.got.extend(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
