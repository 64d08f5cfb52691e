//! Large work over several threads, shared out evenly.

use lockstep_core::share;
use lockstep_core::work::{AeadMessage, Pass, Segment};

/// A thread gets at least so many bytes: at 20 GB/s they take 50 microseconds, more than making the thread.
const LEAST_SHARE: usize = 1 << 20;

/// Serial passes take some 15 times as long a byte.
const LEAST_SERIAL_SHARE: usize = 1 << 16;

/// Runs `run` over all segments, on several threads if there is enough to do.
pub(crate) fn spread(
    pass: Pass,
    segments: &mut [Segment<'_>],
    threads: usize,
    run: &(dyn Fn(Pass, &mut [Segment<'_>]) + Sync),
) {
    let bytes: usize = segments.iter().map(|segment| segment.data.len()).sum();
    let least = if pass.is_serial() { LEAST_SERIAL_SHARE } else { LEAST_SHARE };
    let shares = threads.min(bytes / least);
    if shares < 2 || (segments.len() < 2 && !share::can_cut(pass)) {
        return run(pass, segments);
    }
    let targets = vec![bytes.div_ceil(shares).next_multiple_of(4096); shares];
    let done = share::segments(pass, segments, &targets, |mut lists| {
        // A thread for nothing is a thread too many.
        lists.retain(|list| !list.is_empty());
        share::at_once(lists, |segments| run(pass, segments));
        Ok(())
    });
    done.expect("kernels do not fail");
}

/// Runs `run` over all messages of a fused AEAD, on several threads if there is enough to do.
pub(crate) fn spread_messages(
    messages: &mut [AeadMessage<'_>],
    threads: usize,
    run: &(dyn Fn(&mut [AeadMessage<'_>]) + Sync),
) {
    // A short message costs about as much as 1 KiB does, for its key and its tag.
    let weight = |message: &AeadMessage<'_>| message.data.len() + 1024;
    let bytes: usize = messages.iter().map(weight).sum();
    let shares = threads.min(bytes / LEAST_SHARE).min(messages.len());
    if shares < 2 {
        return run(messages);
    }
    let targets = vec![bytes.div_ceil(shares); shares];
    let mut lists = share::items(messages, &targets, weight);
    lists.retain(|list| !list.is_empty());
    share::at_once(lists, run);
}
