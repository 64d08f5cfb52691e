//! Random numbers: AES-256-CTR with a key and a position, and numbers that are computed from its keystream.
//!
//! Block `n` of the keystream is the encryption of `n` as a 128-bit big-endian number (SP 800-38A, 6.5). Every call starts with a whole
//! block and uses whole blocks, so results depend on the key, the position and the arguments only, not on the device.

mod bits;
mod device;
mod words;

pub(crate) use bits::NumpyBits;

use std::sync::Mutex;

use lockstep::Engine;
use lockstep::hazmat::data::{Data, Span};
use lockstep::hazmat::inline::{InlineKernel, InlineKey};
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::share::{in_parallel, lock};
use lockstep::hazmat::work::{Pass, Segment};
use lockstep::hazmat::{Block, Key, Result as CoreResult, stack};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::buffer::{Input, new_bytes, slice_mut};
use crate::engine;
use crate::error::{ensure, from_core};
use crate::forks::{Origin, detached};
use crate::tensor::{Imported, Place};
use words::Bounded;

/// The number of bytes of a block.
const BLOCK: usize = 16;
/// The number of bytes that are encrypted at once on the calling thread. This many bytes fit into the nearest caches.
const PIECE: usize = 32 << 10;
/// Conversions are divided among threads that have at least this many bytes each.
const THREAD_BYTES: usize = 1 << 20;
/// Zeros. Their encryption in CTR mode is the keystream.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The number of blocks that this many bytes need.
fn blocks(bytes: usize) -> u128 {
    bytes.div_ceil(BLOCK) as u128
}

/// A key of AES-256 and its expanded form.
#[derive(Clone)]
struct StreamKey {
    key: Key,
    inline: InlineKey,
}

impl StreamKey {
    fn new(bytes: &[u8]) -> PyResult<StreamKey> {
        ensure(bytes.len() == 32, || format!("the key must have 32 bytes, not {}", bytes.len()))?;
        let inline = InlineKey::for_directions(InlineKernel::best(), bytes, false);
        let inline = inline.ok_or_else(|| PyMemoryError::new_err("no memory for the expanded key"))?;
        Ok(StreamKey { key: Key::new(bytes).map_err(from_core)?, inline })
    }

    /// Writes the keystream from a block on, on the calling thread.
    fn write_inline(&self, block: u128, to: &mut [u8]) {
        let mut counter: Block = block.to_be_bytes();
        to.fill(0);
        self.inline.ctr(&mut counter, Span::in_place(to));
    }

    /// Writes the keystream from a block on. The planner does this if there are more than [`PIECE`] bytes or if the user has named a
    /// device or a kernel.
    fn write(&self, engine: &Engine, block: u128, to: &mut [u8]) -> CoreResult<()> {
        if to.len() <= PIECE && engine::inline_kernel().is_some() {
            self.write_inline(block, to);
            // The stack is wiped, because the kernel's loops with many vectors leave the first and the last round key on it.
            stack::wipe::<2>();
            return Ok(());
        }
        let starts = (0..to.len().div_ceil(ZEROS.len())).map(|index| index as u128 * blocks(ZEROS.len()));
        let mut states: Vec<Block> = starts.map(|start| block.wrapping_add(start).to_be_bytes()).collect();
        let pieces = to.chunks_mut(ZEROS.len()).zip(&mut states);
        let mut segments = pieces
            .map(|(piece, state)| {
                let data = Data::copy(&ZEROS[..piece.len()], piece)?;
                Ok(Segment { key: &self.key, tweak: None, state, data })
            })
            .collect::<CoreResult<Vec<_>>>()?;
        engine.planner().run_pass(Pass::Ctr, &mut segments)
    }

    /// Writes floating-point numbers that are computed from the keystream from a block on. `convert` replaces the bytes in a buffer by
    /// numbers. The length of `to` is a multiple of the size of a number.
    fn write_floats(
        &self,
        engine: &Engine,
        block: u128,
        convert: fn(&mut [u8]),
        to: &mut [u8],
    ) -> CoreResult<()> {
        let threads = (to.len() / THREAD_BYTES).clamp(1, engine.threads());
        let share = to.len().div_ceil(threads).next_multiple_of(BLOCK).max(BLOCK);
        let write = |block: u128, part: &mut [u8]| -> CoreResult<()> {
            for (index, piece) in part.chunks_mut(PIECE).enumerate() {
                self.write(engine, block.wrapping_add(index as u128 * blocks(PIECE)), piece)?;
                convert(piece);
            }
            Ok(())
        };
        if threads == 1 {
            return write(block, to);
        }
        let parts = to.chunks_mut(share).enumerate();
        let parts = parts.map(|(index, part)| (block.wrapping_add(index as u128 * blocks(share)), part));
        in_parallel(threads, parts.collect(), |(start, part)| write(start, part)).into_iter().collect()
    }

    /// Writes integers that are computed from the keystream from a block on; returns the number of blocks that were used.
    fn write_integers(
        &self,
        engine: &Engine,
        block: u128,
        bounded: Bounded,
        to: &mut [u8],
    ) -> CoreResult<u128> {
        let mut words =
            Zeroizing::new(vec![0; PIECE.min(to.len().next_multiple_of(BLOCK) * 8 / bounded.result)]);
        let (mut used, mut written) = (0, 0);
        while written < to.len() {
            self.write(engine, block.wrapping_add(used), &mut words)?;
            let (read, new) = bounded.convert(&words, &mut to[written..]);
            written += new;
            used += blocks(read);
        }
        Ok(used)
    }
}

/// A keystream with a position, from which arrays are filled.
#[pyclass(frozen, module = "lockstep.random")]
pub(crate) struct Keystream {
    key: StreamKey,
    /// The number of the next block. Only attached threads take the lock, and they do not detach while they hold it. So no thread
    /// can fork while another thread holds the lock.
    position: Mutex<u128>,
    origin: Origin,
}

impl Keystream {
    /// Advances the position by a number of blocks; returns the earlier position.
    fn take(&self, count: u128) -> u128 {
        let mut position = lock(&self.position);
        let start = *position;
        *position = start.wrapping_add(count);
        start
    }

    /// Advances the position by `used` blocks, and calls a function with the key and the earlier position, detached from the interpreter.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        used: u128,
        work: impl FnOnce(&StreamKey, &Engine, u128) -> CoreResult<T> + Send,
    ) -> PyResult<T> {
        let engine = engine::current(py)?;
        let start = self.take(used);
        // In a child process, the key's expanded forms for the planner may be incomplete if another thread was in a call during the
        // fork. In this case a copy of the key is used, which has no such forms yet.
        let copy = (!self.origin.is_usable()).then(|| self.key.clone());
        let key = copy.as_ref().unwrap_or(&self.key);
        detached(py, || work(key, &engine, start)).map_err(from_core)
    }
}

/// The memory of an array on the host.
///
/// # Safety
/// The array was imported for writing, and no other slice of its memory is in use.
#[expect(clippy::mut_from_ref)] // The memory is not part of the value.
unsafe fn host(array: &Imported) -> PyResult<&mut [u8]> {
    let Place::Host(memory) = array.place else {
        return Err(PyValueError::new_err(
            "numbers other than bytes are written to memory of the host: use the arrays of lockstep.random for a device",
        ));
    };
    // SAFETY: the memory is valid while the array is imported; the caller guarantees that no other slice of it is in use.
    Ok(unsafe { slice_mut(memory) })
}

#[pymethods]
impl Keystream {
    #[new]
    fn new(key: Input<'_>, position: u128) -> PyResult<Keystream> {
        let key = StreamKey::new(&key)?;
        Ok(Keystream { key, position: Mutex::new(position), origin: Origin::new() })
    }

    #[getter]
    fn position(&self) -> u128 {
        *lock(&self.position)
    }

    #[setter]
    fn set_position(&self, position: u128) {
        *lock(&self.position) = position;
    }

    /// A keystream with the same key at another position.
    fn at(&self, position: u128) -> Keystream {
        Keystream { key: self.key.clone(), position: Mutex::new(position), origin: Origin::new() }
    }

    /// `size` bytes of the keystream as bytes.
    fn bytes<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        new_bytes(py, size, |to| {
            self.run(py, blocks(size), |key, engine, start| key.write(engine, start, to))
        })
    }

    /// Fills an array of any type, on the host or on a device, with random bytes. For an array on a device, the call returns when
    /// the work is queued.
    #[pyo3(signature = (array, stream=None))]
    fn fill(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let array = Imported::write(array, stream)?;
        let used = blocks(array.len());
        if let Place::Device(to) = array.place.clone() {
            return device::random_bytes(py, self.key.key.clone(), self.take(used), to, array);
        }
        // SAFETY: the array was imported for writing by this function.
        let to = unsafe { host(&array)? };
        self.run(py, used, |key, engine, start| key.write(engine, start, to))
    }

    /// Fills an array on the host with random numbers of the distribution `kind`: "uniform" or "normal". The elements of the array
    /// have 4 or 8 bytes.
    fn floats(&self, py: Python<'_>, array: &Bound<'_, PyAny>, kind: &str) -> PyResult<()> {
        let array = Imported::write(array, None)?;
        let convert = match (kind, array.item) {
            ("uniform", 4) => words::uniform32,
            ("uniform", 8) => words::uniform64,
            ("normal", 4) => words::normal32,
            ("normal", 8) => words::normal64,
            _ => return Err(PyValueError::new_err("the elements must be floats of 32 or 64 bits")),
        };
        // SAFETY: the array was imported for writing by this function.
        let to = unsafe { host(&array)? };
        let whole = to.len() - to.len() % array.item;
        self.run(py, blocks(to.len()), |key, engine, start| {
            key.write_floats(engine, start, convert, &mut to[..whole])
        })
    }

    /// Fills an array on the host with integers from `low` to `low + last`, modulo two to the number of bits of an element.
    fn integers(&self, py: Python<'_>, array: &Bound<'_, PyAny>, low: i64, last: u64) -> PyResult<()> {
        let array = Imported::write(array, None)?;
        let is_integer = matches!(array.item, 1 | 2 | 4 | 8);
        ensure(is_integer, || "the elements must be integers of 8, 16, 32 or 64 bits")?;
        let has_room = array.item == 8 || last >> (8 * array.item) == 0;
        ensure(has_room, || "the range has more integers than the elements can represent")?;
        let bounded = Bounded { last, low, result: array.item };
        // SAFETY: the array was imported for writing by this function.
        let to = unsafe { host(&array)? };
        // The number of used blocks depends on the numbers, so the position is set at the end. `lockstep.random.Generator` holds its
        // lock during the call, so that no other call uses the same blocks.
        let end = self.run(py, 0, |key, engine, start| {
            Ok(start.wrapping_add(key.write_integers(engine, start, bounded, to)?))
        });
        *lock(&self.position) = end?;
        Ok(())
    }
}

/// The coefficients of normal numbers: see `tools/normal_table.py`.
#[pyfunction]
pub(crate) fn normal_table() -> Vec<u8> {
    words::NORMAL.as_flattened().iter().flat_map(|value| value.to_le_bytes()).collect()
}
