//! Large work over several threads: segments are cut where the pass allows it and shared out evenly.
//!
//! Threads are made for each large piece of work and end with it: that costs some 30 microseconds against the
//! milliseconds that such work takes, and leaves nothing behind that a fork or an unloaded library could trip over.

use std::sync::{Mutex, PoisonError};

use lockstep_core::data::HostData;
use lockstep_core::key::Block;
use lockstep_core::work::{AeadMessage, Pass, Segment, Tweak};

use crate::passes::host;

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
    if shares < 2 || (segments.len() < 2 && !can_cut(pass)) {
        return run(pass, segments);
    }
    let share = bytes.div_ceil(shares).next_multiple_of(4096);
    let mut registers = Vec::new();
    let mut pieces = Vec::new();
    for segment in &mut *segments {
        cut(pass, segment, share, &mut registers, &mut pieces);
    }
    let mut work: Vec<_> = pieces
        .into_iter()
        .zip(&mut registers)
        .map(|(piece, (_, register))| Segment {
            key: piece.key,
            tweak: piece.tweak,
            register,
            data: lockstep_core::data::Data::Host(piece.data),
        })
        .collect();
    in_shares(&mut work, share, |segment| segment.data.len(), |segments| run(pass, segments));
    drop(work);
    // The last piece of each segment ends where the segment ends.
    let mut last = registers.iter().filter(|(is_last, _)| *is_last);
    for segment in segments {
        *segment.register = last.next().expect("each segment has a last piece").1;
    }
}

/// Runs `run` over all messages of a recipe, on several threads if there is enough to do.
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
    in_shares(messages, bytes.div_ceil(shares), weight, run);
}

/// Shares out consecutive items of about `share` bytes a thread. This thread works, too, and does what is left if the
/// system refuses others.
fn in_shares<T: Send>(
    items: &mut [T],
    share: usize,
    weight: impl Fn(&T) -> usize,
    run: impl Fn(&mut [T]) + Sync,
) {
    let mut shares = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let mut sum = 0;
        let count = rest.iter().take_while(|item| {
            let fits = sum < share;
            sum += weight(item);
            fits
        });
        let (now, later) = rest.split_at_mut(count.count());
        shares.push(now);
        rest = later;
    }
    let helpers = shares.len().saturating_sub(1);
    let queue = Mutex::new(shares);
    let work = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match next {
                Some(share) => run(share),
                None => break,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

/// True if a segment can be cut in two that know nothing of each other.
fn can_cut(pass: Pass) -> bool {
    !pass.is_serial() && pass != Pass::Ghash
}

struct Piece<'s> {
    key: &'s lockstep_core::Key,
    tweak: Option<Tweak<'s>>,
    data: HostData<'s>,
}

/// Cuts a segment into pieces of at most `share` bytes, each with its register, and marks the last.
fn cut<'s>(
    pass: Pass,
    segment: &'s mut Segment<'_>,
    share: usize,
    registers: &mut Vec<(bool, Block)>,
    pieces: &mut Vec<Piece<'s>>,
) {
    let key = segment.key;
    let mut tweak = segment.tweak;
    let mut register = *segment.register;
    let mut rest = host(&mut segment.data);
    while can_cut(pass) && rest.len() > share {
        let (data, later) = rest.split_at(share);
        registers.push((false, register));
        let blocks = share as u64 / 16;
        match pass {
            Pass::Ctr => {
                register = u128::from_be_bytes(register).wrapping_add(u128::from(blocks)).to_be_bytes();
            }
            Pass::Ctr32 => {
                let low = u32::from_be_bytes(register[12..].try_into().expect("four bytes"));
                register[12..].copy_from_slice(&low.wrapping_add(blocks as u32).to_be_bytes());
            }
            // The ciphertext before the cut, taken before it is decrypted in place.
            Pass::CbcDecrypt | Pass::Cfb128Decrypt => {
                register = data.input()[share - 16..].try_into().expect("16 bytes");
            }
            _ => {}
        }
        pieces.push(Piece { key, tweak, data });
        if let Some(tweak) = &mut tweak {
            tweak.position += blocks;
        }
        rest = later;
    }
    registers.push((true, register));
    pieces.push(Piece { key, tweak, data: rest });
}
