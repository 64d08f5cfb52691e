//! XTS. Each data unit has its own tweak. The host multiplies the tweaks by powers of x, and the QPUs do all other work.

use lockstep_core::key::Key;
use lockstep_core::work::Segment;
use lockstep_core::xts::{power_of_x, times, times_power_of_x};
use lockstep_core::{Block, Error};
use zeroize::Zeroizing;

use super::Call;
use super::kernels::blocks;
use crate::kernels::bitslice::{Combination, UNIT};
use crate::launch::{Job, Launch, MAX_RUN_BYTES};

/// A part of a segment that is processed in one run.
struct Part {
    segment: usize,
    /// The first byte of the part in the segment, and the length of the part in bytes.
    start: usize,
    len: usize,
}

/// Executes a pass. Successive segments with the same keys are processed together.
pub(super) fn run(call: &mut Call<'_>, launch: Launch, segments: &mut [Segment<'_>]) -> Result<(), Error> {
    let tweak_key = |segment: &Segment<'_>| segment.tweak.map(|tweak| std::ptr::from_ref(tweak.key));
    let is_same =
        |a: &Segment<'_>, b: &Segment<'_>| std::ptr::eq(a.key, b.key) && tweak_key(a) == tweak_key(b);
    for group in segments.chunk_by_mut(is_same) {
        let key = group[0].tweak.expect("segments of XTS have a tweak").key;
        let tweaks = encrypted_tweaks(call, key, group)?;
        for parts in runs(group) {
            run_parts(call, launch, group, &tweaks, &parts)?;
        }
    }
    Ok(())
}

/// The tweaks of the first blocks of segments.
fn encrypted_tweaks(
    call: &mut Call<'_>,
    key: &Key,
    segments: &[Segment<'_>],
) -> Result<Zeroizing<Vec<u128>>, Error> {
    let mut tweaks = Zeroizing::new(Vec::with_capacity(segments.len()));
    for segments in segments.chunks(MAX_RUN_BYTES / 16) {
        let input: Vec<u8> = segments.iter().flat_map(|segment| *segment.state).collect();
        let job = Job { keys: key.round_keys(), counter: [0; 16], input: &input, other: &[] };
        let output = call.run(blocks(false, Combination::None), &job, call.qpus)?;
        for (segment, tweak) in segments.iter().zip(output.as_chunks::<16>().0) {
            let position = segment.tweak.map_or(0, |tweak| tweak.position);
            tweaks.push(times(u128::from_le_bytes(*tweak), power_of_x(position)));
        }
    }
    Ok(tweaks)
}

/// Distributes segments among runs. A long segment is divided, and short segments share a run.
fn runs(segments: &[Segment<'_>]) -> Vec<Vec<Part>> {
    let mut runs = vec![Vec::new()];
    let mut free = MAX_RUN_BYTES;
    for (segment, all) in segments.iter().enumerate() {
        let mut start = 0;
        while start < all.data.len() {
            if free == 0 {
                runs.push(Vec::new());
                free = MAX_RUN_BYTES;
            }
            let len = free.min(all.data.len() - start);
            runs.last_mut().expect("there is one").push(Part { segment, start, len });
            start += len;
            free -= len;
        }
    }
    runs
}

/// Encrypts or decrypts the parts of one run.
fn run_parts(
    call: &mut Call<'_>,
    launch: Launch,
    segments: &mut [Segment<'_>],
    tweaks: &[u128],
    parts: &[Part],
) -> Result<(), Error> {
    let bytes = parts.iter().map(|part| part.len).sum();
    if bytes == 0 {
        return Ok(());
    }
    let mut input = Zeroizing::new(Vec::with_capacity(bytes));
    let mut planes = TweakPlanes::new(bytes / 16);
    for part in parts {
        let host = segments[part.segment].data.reborrow().into_host(call.device)?;
        input.extend_from_slice(&host.input()[part.start..part.start + part.len]);
        let mut tweak = times(tweaks[part.segment], power_of_x(part.start as u64 / 16));
        for _ in 0..part.len / 16 {
            planes.push(&tweak.to_le_bytes());
            tweak = times_power_of_x(tweak, 1);
        }
    }
    let other = planes.bytes();
    let keys = segments[0].key.round_keys();
    let output =
        call.run(launch, &Job { keys, counter: [0; 16], input: &input, other: &other }, call.qpus)?;
    let mut at = 0;
    for part in parts {
        let mut host = segments[part.segment].data.reborrow().into_host(call.device)?;
        host.output()[part.start..part.start + part.len].copy_from_slice(&output[at..at + part.len]);
        at += part.len;
    }
    call.done.bytes += bytes as u64;
    Ok(())
}

/// Tweaks as bit planes. In a unit, word i of vector b contains bit b of byte i of 32 tweaks.
struct TweakPlanes {
    words: Zeroizing<Vec<u32>>,
    count: usize,
}

impl TweakPlanes {
    /// Allocates space for a number of tweaks.
    fn new(blocks: usize) -> TweakPlanes {
        TweakPlanes { words: Zeroizing::new(vec![0; blocks.div_ceil(32) * UNIT / 4]), count: 0 }
    }

    fn push(&mut self, tweak: &Block) {
        let unit = &mut self.words[self.count / 32 * (UNIT / 4)..][..UNIT / 4];
        let number = self.count % 32;
        for (bit, vector) in unit.chunks_exact_mut(16).enumerate() {
            for (word, byte) in vector.iter_mut().zip(tweak) {
                *word |= u32::from(byte >> bit & 1) << number;
            }
        }
        self.count += 1;
    }

    fn bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; 4 * self.words.len()]);
        for (place, word) in bytes.chunks_exact_mut(4).zip(self.words.iter()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}
