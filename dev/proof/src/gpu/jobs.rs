//! The list of proofs.

use std::fmt;

use super::cases::{self, Case, Message, Pass};
use super::ghash::{self, Hash};
use super::{Kernel, Kernels, Limits, Run};

/// A proof: one launch, or one warp of it.
pub(super) enum Job {
    Expand(usize),
    Pass(Case),
    /// True for POLYVAL, and the number of levels.
    Powers(bool, usize),
    /// A tile of a message.
    Tile(Hash, usize),
}

impl Job {
    pub(super) fn function(&self) -> String {
        match self {
            Job::Expand(bits) => format!("bitslice_expand_{bits}"),
            Job::Pass(case) => case.function(),
            Job::Powers(..) => "ghash_powers".into(),
            Job::Tile(..) => "ghash_tiles".into(),
        }
    }

    pub(super) fn kernel<'a>(&self, kernels: &'a Kernels) -> Result<&'a Kernel, String> {
        kernels.get(&self.function()).ok_or_else(|| format!("no entry point {}", self.function()))
    }

    /// Runs the proof. Also returns what it has executed.
    pub(super) fn run(&self, kernel: &Kernel, limits: Limits) -> (Result<(), String>, Run) {
        let mut run = Run::new(kernel, limits);
        let result = match self {
            Job::Expand(bits) => cases::expand(kernel, &mut run, *bits),
            Job::Pass(case) => case.run(kernel, &mut run),
            Job::Powers(is_polyval, levels) => ghash::powers(kernel, &mut run, *is_polyval, *levels),
            Job::Tile(hash, tile) => hash.run(kernel, &mut run, *tile),
        };
        (result, run)
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Job::Expand(_) => write!(f, "{} of 32 keys", self.function()),
            Job::Pass(case) => write!(f, "{case}"),
            Job::Powers(is_polyval, levels) => {
                write!(f, "ghash_powers {}, {levels} levels", if *is_polyval { "POLYVAL" } else { "GHASH" })
            }
            Job::Tile(hash, tile) => write!(f, "{hash}, tile {tile}"),
        }
    }
}

/// In the first counter, only the last two bytes change. The second wraps in all bytes in the first tile.
const COUNTERS: [u128; 2] = [0x0123_4567_89ab_cdef_0011_2233_4455_1240, u128::MAX - 500];

fn message(bytes: usize, offset: u64, in_place: bool, key: usize, counter: u128) -> Message {
    Message { bytes, offset, in_place, key, counter }
}

/// The launches of a pass.
fn launches(pass: Pass, key_bits: usize, is_short: bool) -> Vec<Job> {
    let is_counting = matches!(pass, Pass::Ctr | Pass::Ctr32);
    let [near, wraps] = COUNTERS;
    // CTR has partial blocks, ECB has not.
    let part = |bytes: usize| if is_counting { bytes } else { bytes / 16 * 16 };
    let mut jobs = Vec::new();
    let mut add = |is_lane, title, messages| {
        jobs.push(Job::Pass(Case { pass, key_bits, is_lane, messages, title }));
    };
    add(false, "an aligned tile", vec![message(16384, 0, false, 0, near)]);
    if is_counting {
        add(false, "an aligned tile, wrapping counters", vec![message(16384, 0, false, 0, wraps)]);
    }
    // Five bytes behind an aligned address: single bytes. Four bytes behind it: words. In the fourth row, some lanes have no block.
    add(false, "bytes", vec![message(part(1563), 5, true, 0, near)]);
    if key_bits != 192 {
        let lanes =
            (0..33).map(|i| message(part(512 - 7 * (i % 2)), 0, i % 3 == 0, i % 2, near + 99 * i as u128));
        add(true, "33 messages with two keys", lanes.collect());
        let few =
            |counter| vec![message(part(301), 5, false, 0, counter), message(part(270), 4, true, 1, counter)];
        add(true, "bytes and words", few(near));
        if is_counting {
            add(true, "bytes and words, wrapping counters", few(u128::MAX - 5));
            // The code for rows 4n to 4n + 3 of a tile is separate, as is that for each byte of a partial block.
            // No two blocks have the same counter.
            let tails = (0..64).filter(|bytes| bytes % 16 != 0);
            let tails = tails.map(|bytes| message(bytes, 5, false, 0, near + 64 * bytes as u128));
            add(true, "all partial blocks", tails.collect());
        }
    }
    if !is_short {
        let messages = vec![
            message(part(16384 + 91), 0, true, 0, near),
            message(part(1000), 4, false, 1, wraps),
            message(part(17), 8, false, 2, near),
        ];
        add(false, "three messages with three keys", messages);
    }
    jobs
}

/// All proofs; `is_short`: fewer launches, with keys of 128 bits only.
pub(super) fn all(is_short: bool) -> Vec<Job> {
    let sizes: &[usize] = if is_short { &[128] } else { &[128, 192, 256] };
    // The powers of the next level start from a result of the last loop.
    let mut jobs = vec![Job::Powers(false, if is_short { 2 } else { 3 })];
    if !is_short {
        jobs.push(Job::Powers(true, 2));
    }
    for bits in sizes {
        jobs.push(Job::Expand(*bits));
        for pass in [Pass::Ctr, Pass::Ctr32, Pass::EcbEncrypt, Pass::EcbDecrypt] {
            jobs.extend(launches(pass, *bits, is_short));
        }
    }
    let hash = |bytes, aad, offset, level, is_polyval| Hash { bytes, aad, offset, level, is_polyval };
    let mut hashes = vec![
        hash(16 * 70, None, 0, 0, false),
        hash(16 * 40 + 5, Some(20), 1, 0, false),
        hash(16 * 35, None, 4, 0, true),
        hash(16 * 600, Some(0), 0, 0, false),
        hash(16 * 512 * 40, None, 0, 1, false),
    ];
    if !is_short {
        hashes.push(hash(1, None, 0, 0, false));
        hashes.push(hash(16 * 512, None, 0, 0, false));
        hashes.push(hash(16 * 1100, None, 0, 0, true));
        hashes.push(hash(16 * 512 * 512 * 3, None, 0, 2, false));
        hashes.push(hash(16 * 512 * 40, Some(3), 0, 1, true));
    }
    for hash in hashes {
        let tiles = if hash.level == 0 { 0..hash.tiles() } else { 0..1 };
        jobs.extend(tiles.map(|tile| Job::Tile(hash, tile)));
    }
    jobs
}
