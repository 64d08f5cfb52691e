//! Serial modes side by side: which messages go on together, and for how many blocks.

use crate::kernel::Lane;

/// A message under way.
pub(crate) struct Slot {
    /// Its index among the lanes.
    pub(crate) lane: usize,
    /// Its next block.
    pub(crate) next: usize,
    blocks: usize,
}

/// Takes all lanes that are `wanted` to their end, at most `width` at a time.
///
/// `run` must do that many blocks of each message and move `next` on by as many. A message that ends makes room for
/// another one.
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
