//! Processes messages whose descriptions are arrays in device memory. Every array is read from and written to the device's memory.

use super::*;
use lockstep_core::data::DeviceSlice;
use lockstep_core::work::Table;

pub(super) fn run(memory: &Memory, operation: Operation, table: &Table) -> Result<()> {
    let keys_each = match operation {
        Operation::Pass(pass) if pass.is_xts() => 2,
        _ => 1,
    };
    let key_bytes = keys_each * table.key_size.bytes();
    for message in 0..table.messages {
        let shared = table.keys.len() == key_bytes;
        let key = memory.read(&part(&table.keys, if shared { 0 } else { message }, key_bytes))?;
        let (key, tweak_key) = key.split_at(table.key_size.bytes());
        let place = part(&table.states, message, 16);
        let mut state: Block = memory.read(&place)?.try_into().expect("16 bytes");
        let offset = integer(memory, &table.offsets, message)?;
        let len = integer(memory, &table.lengths, message)?;
        if len > table.longest {
            return Err(failed("a message is longer than the longest"));
        }
        let input = memory.read(&table.from.slice(offset..offset + len))?;
        let to = table.to.slice(offset..offset + len);
        let status = match operation {
            Operation::Pass(pass) => {
                let tweak = pass.is_xts().then_some((tweak_key, 0));
                let output = oracle::pass(pass, key, tweak, &mut state, &input);
                if !pass.is_read_only() {
                    memory.write(&to, &output)?;
                }
                memory.write(&place, &state)?;
                Status::Done
            }
            Operation::Fused(fused) => {
                let tags = table.tags.as_ref().ok_or_else(|| failed("a fused without tags"))?;
                let place = part(tags, message, 16);
                let tag = memory.read(&place)?;
                let (output, tag, status) = oracle::fused(fused, key, &state[..12], &[], &tag, &input);
                memory.write(&to, &output)?;
                if fused == FusedAead::GcmSeal {
                    memory.write(&place, &tag)?;
                }
                status
            }
        };
        memory.write(&part(&table.status, message, 1), &[status as u8])?;
    }
    Ok(())
}

/// Element `index` of an array of elements of `size` bytes.
fn part(array: &DeviceSlice, index: usize, size: usize) -> DeviceSlice {
    array.slice(index * size..(index + 1) * size)
}

fn integer(memory: &Memory, array: &DeviceSlice, index: usize) -> Result<usize> {
    let bytes = memory.read(&part(array, index, 8))?;
    let value = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    usize::try_from(value).map_err(|_| failed("a length beyond the address space"))
}
