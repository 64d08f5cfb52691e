//! Distribution of large work over threads.

use lockstep_core::share;
use lockstep_core::work::{AeadMessage, Pass, Segment};

/// Smallest number of bytes for a thread. At 20 GB/s they take 50 microseconds, which is longer than starting the thread
/// takes.
const LEAST_SHARE: usize = 1 << 20;

/// Smallest number of bytes for a thread in serial passes, which take about 15 times as long for a byte.
const LEAST_SERIAL_SHARE: usize = 1 << 16;

/// Runs the calls that it gets inside an [`Entry`](crate::kernel::entry::Entry), for a thread that has none.
pub(crate) type Enter<'a> = &'a (dyn Fn(&mut dyn FnMut()) + Sync);

/// Runs `run` over all segments, on several threads if there is enough to do.
pub(crate) fn spread(
    pass: Pass,
    segments: &mut [Segment<'_>],
    threads: usize,
    run: &(dyn Fn(Pass, &mut [Segment<'_>]) + Sync),
    enter: Enter<'_>,
) {
    let bytes: usize = segments.iter().map(|segment| segment.data.len()).sum();
    let least = if pass.is_serial() { LEAST_SERIAL_SHARE } else { LEAST_SHARE };
    let shares = threads.min(bytes / least);
    if shares < 2 || (segments.len() < 2 && !share::can_cut(pass)) {
        return run(pass, segments);
    }
    let targets = vec![bytes.div_ceil(shares).next_multiple_of(4096); shares];
    let done = share::segments(pass, segments, &targets, |mut lists| {
        // An empty list needs no thread.
        lists.retain(|list| !list.is_empty());
        share::at_once(lists, |segments| enter(&mut || run(pass, segments)));
        Ok(())
    });
    done.expect("kernels do not fail");
}

/// Runs `run` over all messages of a fused AEAD, on several threads if there is enough to do.
pub(crate) fn spread_messages(
    messages: &mut [AeadMessage<'_>],
    threads: usize,
    run: &(dyn Fn(&mut [AeadMessage<'_>]) + Sync),
    enter: Enter<'_>,
) {
    // The key and the tag of a message cost about as much as 1 KiB of data.
    let weight = |message: &AeadMessage<'_>| message.data.len() + 1024;
    let bytes: usize = messages.iter().map(weight).sum();
    let shares = threads.min(bytes / LEAST_SHARE).min(messages.len());
    if shares < 2 {
        return run(messages);
    }
    let targets = vec![bytes.div_ceil(shares); shares];
    let mut lists = share::items(messages, &targets, weight);
    lists.retain(|list| !list.is_empty());
    share::at_once(lists, |messages| enter(&mut || run(messages)));
}
