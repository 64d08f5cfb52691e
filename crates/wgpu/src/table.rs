//! Messages that are described by arrays on the device. Keys are expanded by the host, so the arrays come there, and data stay.

use lockstep_core::backend::DeviceMemory;
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::gcm::MAX_DATA;
use lockstep_core::messages::Messages;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Segment, Status, Stream, Table, Tag, Tweak};
use lockstep_core::{Block, Error, Key, Result};
use zeroize::Zeroizing;

use crate::device::WgpuDevice;
use crate::kernel::Family;
use crate::passes::{fused, plan};

/// Does it all, and waits.
pub(crate) fn run(
    device: &WgpuDevice,
    family: &'static Family,
    operation: Operation,
    table: &Table,
) -> Result<()> {
    let (count, size) = (table.messages, table.key_size.bytes());
    let tweaks = matches!(operation, Operation::Pass(pass) if pass.is_xts());
    let key_bytes = if tweaks { 2 * size } else { size };
    let tags = match (&table.tags, operation) {
        (_, Operation::Pass(_)) => None,
        (Some(tags), Operation::Fused(_)) => Some(tags),
        (None, Operation::Fused(_)) => return Err(Error::Order { what: "GCM needs a place for tags" }),
    };
    let shared = table.keys.len() == key_bytes;
    let read = |slice: &DeviceSlice, each: usize, count: usize| -> Result<Zeroizing<Vec<u8>>> {
        let needed = each.saturating_mul(count);
        if slice.len() < needed {
            return Err(Error::OutputLength { needed, got: slice.len() });
        }
        let mut bytes = Zeroizing::new(vec![0; needed]);
        device.download(&slice.slice(0..needed), &mut bytes, Stream::default())?;
        Ok(bytes)
    };
    if table.status.len() < count {
        return Err(Error::OutputLength { needed: count, got: table.status.len() });
    }
    // Whatever fails, no message counts as done by what stood there before.
    let mut statuses = vec![Status::Pending as u8; count];
    device.upload(&statuses, &table.status.slice(0..count), Stream::default())?;
    let keys = read(&table.keys, key_bytes, if shared { 1 } else { count })?;
    let mut states = read(&table.states, 16, count)?;
    let integers = |bytes: &[u8]| -> Vec<u64> {
        bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
    };
    let offsets = integers(&read(&table.offsets, 8, count)?);
    let lengths = integers(&read(&table.lengths, 8, count)?);
    let mut tag_bytes = tags.map_or(Ok(Zeroizing::default()), |tags| read(tags, 16, count))?;
    // One length, of one device, and the same or disjoint.
    Data::on_device(table.from.clone(), table.to.clone())?;

    let parts = keys.chunks_exact(size).map(Key::new).collect::<Result<Vec<_>>>()?;
    let key = |index: usize, part: usize| &parts[part + if shared { 0 } else { index * key_bytes / size }];
    let unit = match operation {
        Operation::Pass(pass) => pass.unit(),
        Operation::Fused(_) => 1,
    };
    // Messages that are not within the data, or not as long as they may be, stay pending.
    let most = table.longest.min(table.from.len());
    let place = |index: usize| -> Option<Data<'static>> {
        let offset = usize::try_from(offsets[index]).ok()?;
        let len =
            usize::try_from(lengths[index]).ok().filter(|&len| len <= most && len.is_multiple_of(unit))?;
        let range = offset..offset.checked_add(len).filter(|&end| end <= table.from.len())?;
        Data::on_device(table.from.slice(range.clone()), table.to.slice(range)).ok()
    };
    match operation {
        Operation::Pass(pass) => {
            let mut segments = Vec::new();
            for (index, state) in states.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let Some(data) = place(index) else { continue };
                let tweak = tweaks.then(|| Tweak { key: key(index, 1), position: 0 });
                segments.push(Segment { key: key(index, 0), tweak, state, data });
                statuses[index] = Status::Done as u8;
            }
            device.start(Some(family), plan(pass), Messages::Segments(&mut segments))?.wait()?;
            device.upload(&states, &table.states.slice(0..16 * count), Stream::default())?;
        }
        Operation::Fused(which) => {
            if most as u64 > MAX_DATA {
                return Err(Error::TooLong { mode: "GCM", what: "data", limit: MAX_DATA });
            }
            let (mut messages, mut numbers) = (Vec::new(), Vec::new());
            let nonces = states.as_chunks::<16>().0;
            for (index, tag) in tag_bytes.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let Some(data) = place(index) else { continue };
                let tag: &mut Block = tag;
                messages.push(AeadMessage {
                    key: key(index, 0),
                    nonce: &nonces[index][..12],
                    aad: &[],
                    data,
                    tag: if which == FusedAead::GcmSeal { Tag::Write(tag) } else { Tag::Expect(tag) },
                    status: Status::Pending,
                });
                numbers.push(index);
            }
            device.start(Some(family), fused(which), Messages::Aead(&mut messages))?.wait()?;
            for (message, number) in messages.iter().zip(numbers) {
                statuses[number] = message.status as u8;
            }
            if let (FusedAead::GcmSeal, Some(tags)) = (which, tags) {
                device.upload(&tag_bytes, &tags.slice(0..16 * count), Stream::default())?;
            }
        }
    }
    device.upload(&statuses, &table.status.slice(0..count), Stream::default())
}
