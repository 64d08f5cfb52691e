//! Messages that arrays in device memory describe. This module checks the arrays. It also processes the messages for devices
//! whose kernels do not read such arrays: the host reads the arrays, and the data stay on the device.

use lockstep_core::backend::DeviceMemory;
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::{AeadMessage, Operation, Segment, Status, Stream, Table, Tag, Tweak};
use lockstep_core::{Block, Error, Key, Result};
use zeroize::Zeroizing;

use crate::messages::Messages;

/// The properties of the arrays of a table, after their lengths have been checked.
#[derive(Debug, Clone, Copy)]
pub struct Arrays<'t> {
    /// Number of keys of a message: two for XTS, otherwise one.
    pub keys_each: usize,
    /// True if all messages have the same keys.
    pub shared: bool,
    /// Maximum length of a message in bytes; longer ones are refused.
    pub longest: usize,
    /// Lengths must be multiples of this many bytes.
    pub unit: usize,
    /// The place of the tags of a fused AEAD; `None` for a pass.
    pub tags: Option<&'t DeviceSlice>,
}

impl<'t> Arrays<'t> {
    /// Checks that each array has an element for each message, and that input and output are the same range or disjoint.
    ///
    /// # Errors
    /// [`Error::OutputLength`], [`Error::OutOfReach`]; [`Error::Order`] if a fused AEAD lacks tags; [`Error::TooLong`].
    pub fn of(operation: Operation, table: &'t Table) -> Result<Arrays<'t>> {
        let (is_xts, unit, tags) = match operation {
            Operation::Pass(pass) => (pass.is_xts(), pass.unit(), None),
            Operation::Fused(_) if table.tags.is_some() => (false, 1, table.tags.as_ref()),
            Operation::Fused(_) => return Err(Error::Order { what: "a fused AEAD needs a place for tags" }),
        };
        let keys_each = if is_xts { 2 } else { 1 };
        let key_bytes = keys_each * table.key_size.bytes();
        let shared = table.keys.len() == key_bytes;
        let count = table.messages;
        let arrays = [
            (&table.keys, key_bytes, if shared { 1 } else { count }),
            (&table.states, 16, count),
            (&table.offsets, 8, count),
            (&table.lengths, 8, count),
            (&table.status, 1, count),
        ];
        for (slice, size, count) in arrays.into_iter().chain(tags.map(|tags| (tags, 16, count))) {
            let needed = size.saturating_mul(count);
            if slice.len() < needed {
                return Err(Error::OutputLength { needed, got: slice.len() });
            }
        }
        Data::on_device(table.from.clone(), table.to.clone())?;
        let longest = table.longest.min(table.from.len());
        if let Operation::Fused(fused) = operation {
            fused.check_data_len(longest)?;
        }
        Ok(Arrays { keys_each, shared, longest, unit, tags })
    }

    /// The data of a message. `None` if they are not within the data of the table, or if their length is not allowed.
    fn data(&self, table: &Table, offset: u64, len: u64) -> Option<Data<'static>> {
        let (offset, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
        if len > self.longest || !len.is_multiple_of(self.unit) {
            return None;
        }
        let range = offset..offset.checked_add(len).filter(|&end| end <= table.from.len())?;
        Data::on_device(table.from.slice(range.clone()), table.to.slice(range)).ok()
    }
}

/// Processes all messages of a table. `run` performs the operation on messages whose data are in device memory, and waits until it has
/// ended. The arrays are read and written on `stream`, the stream of the caller: work that was queued there earlier may produce them.
/// Messages that are not within the data of the table keep the status [`Status::Pending`].
///
/// # Errors
/// Errors of [`Arrays::of`], of the memory and of `run`.
pub fn run_on_host(
    memory: &dyn DeviceMemory,
    operation: Operation,
    table: &Table,
    stream: Stream,
    run: impl FnOnce(Messages<'_, '_>) -> Result<()>,
) -> Result<()> {
    let (count, arrays) = (table.messages, Arrays::of(operation, table)?);
    let write = |bytes: &[u8], to: &DeviceSlice| memory.upload(bytes, &to.slice(0..bytes.len()), stream);
    let read = |slice: &DeviceSlice, len: usize| -> Result<Zeroizing<Vec<u8>>> {
        let mut bytes = Zeroizing::new(vec![0; len]);
        memory.download(&slice.slice(0..len), &mut bytes, stream)?;
        Ok(bytes)
    };
    // All statuses are first set to pending, because earlier contents of the array must not be taken for results if anything fails.
    let mut statuses = vec![Status::Pending as u8; count];
    write(&statuses, &table.status)?;
    let size = table.key_size.bytes();
    let keys = read(&table.keys, size * arrays.keys_each * if arrays.shared { 1 } else { count })?;
    let keys = keys.chunks_exact(size).map(Key::new).collect::<Result<Vec<_>>>()?;
    let key = |index, part| &keys[part + if arrays.shared { 0 } else { index * arrays.keys_each }];
    let mut states = read(&table.states, 16 * count)?;
    let (offsets, lengths) = (read(&table.offsets, 8 * count)?, read(&table.lengths, 8 * count)?);
    let number = |integers: &[u8], index: usize| u64::from_le_bytes(integers.as_chunks().0[index]);
    let data = |index| arrays.data(table, number(&offsets, index), number(&lengths, index));
    match operation {
        Operation::Pass(pass) => {
            let mut segments = Vec::new();
            for (index, state) in states.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let Some(data) = data(index) else { continue };
                let tweak = (arrays.keys_each == 2).then(|| Tweak { key: key(index, 1), position: 0 });
                segments.push(Segment { key: key(index, 0), tweak, state, data });
                statuses[index] = Status::Done as u8;
            }
            run(Messages::Pass(pass, &mut segments))?;
            write(&states, &table.states)?;
        }
        Operation::Fused(fused) => {
            let seals = !fused.opens();
            let mut tags = arrays.tags.map_or(Ok(Zeroizing::default()), |tags| read(tags, 16 * count))?;
            let (mut messages, mut numbers) = (Vec::new(), Vec::new());
            for (index, tag) in tags.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let Some(data) = data(index) else { continue };
                let tag: &mut Block = tag;
                messages.push(AeadMessage {
                    key: key(index, 0),
                    nonce: &states[16 * index..16 * index + 12],
                    aad: &[],
                    data,
                    tag: if seals { Tag::Write(tag) } else { Tag::Expect(tag) },
                    status: Status::Pending,
                });
                numbers.push(index);
            }
            run(Messages::Fused(fused, &mut messages))?;
            for (message, number) in messages.iter().zip(numbers) {
                statuses[number] = message.status as u8;
            }
            if let (true, Some(place)) = (seals, arrays.tags) {
                write(&tags, place)?;
            }
        }
    }
    write(&statuses, &table.status)
}
