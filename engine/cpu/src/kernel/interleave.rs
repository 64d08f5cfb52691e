//! Scheduling of serial modes over several messages: which messages run together, and for how many steps.

/// A message in progress.
pub(crate) struct Slot {
    /// The index of the message.
    pub(crate) message: usize,
    /// The next step.
    pub(crate) next: usize,
    steps: usize,
}

/// Processes all messages, at most `width` at a time. `steps` is the number of steps of a message; messages without steps are
/// left out.
///
/// `run` must process the given number of steps of each message and add that number to `next`. When a message ends, another
/// one takes its slot.
pub(crate) fn interleave<T>(
    messages: &mut [T],
    width: usize,
    steps: impl Fn(&T) -> usize,
    mut run: impl FnMut(&mut [T], &mut [Slot], usize),
) {
    let mut slots = Vec::with_capacity(width);
    let mut waiting = 0;
    loop {
        slots.retain(|slot: &Slot| slot.next < slot.steps);
        while slots.len() < width && waiting < messages.len() {
            let steps = steps(&messages[waiting]);
            if steps > 0 {
                slots.push(Slot { message: waiting, next: 0, steps });
            }
            waiting += 1;
        }
        let Some(steps) = slots.iter().map(|slot| slot.steps - slot.next).min() else { return };
        run(messages, &mut slots, steps);
    }
}
