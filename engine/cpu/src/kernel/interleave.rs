//! Scheduling of serial modes over several messages: which messages run together, and for how many blocks.

use super::Lane;

/// A message in progress.
pub(crate) struct Slot {
    /// The index of the message's lane.
    pub(crate) lane: usize,
    /// The next block.
    pub(crate) next: usize,
    blocks: usize,
}

/// Processes all lanes for which `wanted` is true, at most `width` at a time.
///
/// `run` must process the given number of blocks of each message and add that number to `next`. When a message ends, another
/// one takes its slot.
pub(crate) fn interleave<S>(
    lanes: &mut [Lane<'_, S>],
    width: usize,
    wanted: impl Fn(&S) -> bool,
    mut run: impl FnMut(&mut [Lane<'_, S>], &mut [Slot], usize),
) {
    let mut slots = Vec::with_capacity(width);
    let mut waiting = 0;
    loop {
        slots.retain(|slot: &Slot| slot.next < slot.blocks);
        while slots.len() < width && waiting < lanes.len() {
            let blocks = lanes[waiting].data.len() / 16;
            if blocks > 0 && wanted(lanes[waiting].schedule) {
                slots.push(Slot { lane: waiting, next: 0, blocks });
            }
            waiting += 1;
        }
        let Some(blocks) = slots.iter().map(|slot| slot.blocks - slot.next).min() else { return };
        run(lanes, &mut slots, blocks);
    }
}
