//! The memory of a launch: buffers with bounds, and the shared memory of a thread block.

use super::expressions::Bit;
use super::word::Word;

/// The value of a byte.
pub(super) type Byte = [Bit; 8];

/// A byte without symbols.
pub(super) fn known(value: u8) -> Byte {
    std::array::from_fn(|bit| Bit::known(value >> bit & 1 == 1))
}

/// What a kernel may do with a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// An input, which may not be written.
    Read,
    /// An output. The kernel must write every byte.
    Write,
    /// Data that are processed in place: an input. The kernel must write every byte.
    InPlace,
    /// An input. The kernel may write any byte.
    Update,
}

/// A buffer in global memory.
pub(super) struct Buffer {
    pub(super) name: &'static str,
    pub(super) start: u64,
    pub(super) access: Access,
    pub(super) bytes: Vec<Byte>,
    pub(super) is_written: Vec<bool>,
}

/// The buffers of a launch.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) buffers: Vec<Buffer>,
}

impl Memory {
    /// Adds a buffer at an address whose remainder modulo 4096 is `offset`, and returns the address. There are unused addresses between
    /// buffers.
    pub(super) fn add(&mut self, name: &'static str, access: Access, bytes: Vec<Byte>, offset: u64) -> u64 {
        let start = (self.buffers.len() as u64 + 1) << 32 | offset;
        let is_written = vec![false; bytes.len()];
        self.buffers.push(Buffer { name, start, access, bytes, is_written });
        start
    }

    fn find(&mut self, address: u64, len: usize) -> Result<(&mut Buffer, usize), String> {
        let found = self.buffers.iter_mut().find_map(|buffer| {
            let start = usize::try_from(address.checked_sub(buffer.start)?).ok()?;
            (start.checked_add(len)? <= buffer.bytes.len()).then_some((buffer, start))
        });
        found.ok_or_else(|| format!("out of bounds: {len} bytes at {address:#x}"))
    }

    pub(super) fn load(&mut self, address: u64, len: usize) -> Result<Vec<Byte>, String> {
        let (buffer, start) = self.find(address, len)?;
        if buffer.access == Access::Write && buffer.is_written[start..start + len].contains(&false) {
            return Err(format!("a read of bytes of `{}` that are not written", buffer.name));
        }
        Ok(buffer.bytes[start..start + len].to_vec())
    }

    pub(super) fn store(&mut self, address: u64, bytes: &[Byte]) -> Result<(), String> {
        let (buffer, start) = self.find(address, bytes.len())?;
        if buffer.access == Access::Read {
            return Err(format!("a write to the input `{}`", buffer.name));
        }
        buffer.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        buffer.is_written[start..start + bytes.len()].fill(true);
        Ok(())
    }

    /// The outputs that are not written completely.
    pub(super) fn unwritten(&self) -> Result<(), String> {
        for buffer in self.buffers.iter().filter(|b| matches!(b.access, Access::Write | Access::InPlace)) {
            if let Some(place) = buffer.is_written.iter().position(|is_written| !is_written) {
                return Err(format!("byte {place} of `{}` is not written", buffer.name));
            }
        }
        Ok(())
    }

    pub(super) fn buffer(&self, name: &str) -> &Buffer {
        self.buffers.iter().find(|buffer| buffer.name == name).expect("a buffer of the launch")
    }
}

/// A byte of shared memory, with the last lane that wrote it and the last lane that read it since the last barrier.
#[derive(Clone, Default)]
struct SharedByte {
    value: Option<Byte>,
    writer: Option<usize>,
    reader: Option<usize>,
    has_readers: bool,
}

/// The first bytes of shared memory belong to the system.
const SYSTEM_BYTES: usize = 1024;

/// The shared memory of a thread block that consists of one warp.
pub(super) struct Shared(Vec<SharedByte>);

impl Shared {
    pub(super) fn new(size: usize) -> Shared {
        Shared(vec![SharedByte::default(); size])
    }

    fn bytes(&mut self, address: u64, len: usize) -> Result<&mut [SharedByte], String> {
        let start = usize::try_from(address).ok().filter(|start| *start >= SYSTEM_BYTES);
        let bytes = start.and_then(|start| self.0.get_mut(start..start.checked_add(len)?));
        bytes.ok_or_else(|| format!("out of bounds: {len} bytes of shared memory at {address:#x}"))
    }

    /// Loads bytes. It is an error if another lane wrote them after the last barrier.
    pub(super) fn load(&mut self, address: u64, len: usize, lane: usize) -> Result<Vec<Byte>, String> {
        let mut result = Vec::with_capacity(len);
        for byte in self.bytes(address, len)? {
            if byte.writer.is_some_and(|writer| writer != lane) {
                return Err(format!("no barrier before a read of shared memory at {address:#x}"));
            }
            byte.has_readers |= byte.reader.is_some_and(|reader| reader != lane);
            byte.reader = Some(lane);
            result.push(byte.value.ok_or("a read of shared memory that is not written")?);
        }
        Ok(result)
    }

    /// Stores bytes. It is an error if another lane read or wrote them after the last barrier.
    pub(super) fn store(&mut self, address: u64, bytes: &[Byte], lane: usize) -> Result<(), String> {
        for (byte, value) in self.bytes(address, bytes.len())?.iter_mut().zip(bytes) {
            let is_other = |other: Option<usize>| other.is_some_and(|other| other != lane);
            if is_other(byte.writer) || is_other(byte.reader) || byte.has_readers {
                return Err(format!("no barrier before a write of shared memory at {address:#x}"));
            }
            (byte.value, byte.writer) = (Some(*value), Some(lane));
        }
        Ok(())
    }

    /// A barrier of all lanes.
    pub(super) fn synchronize(&mut self) {
        for byte in &mut self.0 {
            (byte.writer, byte.reader, byte.has_readers) = (None, None, false);
        }
    }

    /// The first byte that depends on keys or data.
    pub(super) fn first_secret(&self) -> Option<usize> {
        let is_secret = |byte: &Byte| byte.iter().any(|bit| bit.value().is_none());
        self.0.iter().position(|byte| byte.value.as_ref().is_some_and(is_secret))
    }
}

/// Words of little-endian bytes. A load of one or two bytes is extended by zeros.
pub(super) fn words_of(bytes: &[Byte]) -> Vec<Word> {
    bytes.chunks(4).map(|chunk| Word::from_bits(chunk.as_flattened())).collect()
}

/// The bytes of words.
pub(super) fn bytes_of(words: &[Word]) -> Vec<Byte> {
    words.iter().flat_map(|word| *word.bits().as_chunks().0.first_chunk::<4>().expect("four bytes")).collect()
}
