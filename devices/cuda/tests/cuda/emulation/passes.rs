//! Runs the kernels of passes, and compares their results with the oracle. The segments have the layout of the ABI.

use lockstep_reference::{Aes, cbc, cfb, ctr, ecb, xts};

use super::{constant, launch};

/// Segment of kernels/common/work.cuh.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
pub(crate) struct Segment {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) bytes: u64,
    pub(crate) position: u64,
    pub(crate) key: u32,
    pub(crate) tweak_key: u32,
    pub(crate) refused_bytes: u64,
    pub(crate) state: [u8; 16],
    pub(crate) next: [u8; 16],
}

#[repr(C)]
pub(crate) struct Launch {
    pub(crate) segments: *mut Segment,
    pub(crate) first_tile: *const u64,
    pub(crate) schedules: *const u8,
    pub(crate) scratch: *mut u8,
    pub(crate) tiles: u64,
    pub(crate) count: u32,
    pub(crate) option: u32,
}

/// A family of kernels, and the parameters with which its kernels are launched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) threads: usize,
    pub(crate) tile_bytes: usize,
    tiles_per_block: usize,
    shared: usize,
    option: u32,
}

/// True if the names of a family's functions have no key size, because each function is for all key sizes.
pub(crate) fn is_for_any_size(family: &str) -> bool {
    family.starts_with("bitslice") || family.starts_with("gems")
}

/// The entry point of a pass, and `Launch::option`. The option of a function for all key sizes is the number of rounds.
pub(crate) fn entry(family: &str, pass: &str, bits: usize, option: u32) -> (String, u32) {
    match is_for_any_size(family) {
        true => (format!("{family}_{pass}"), bits as u32 / 32 + 6),
        false => (format!("{family}_{pass}_{bits}"), option),
    }
}

impl Family {
    /// The family whose key schedules this family uses.
    fn keys(&self) -> &'static str {
        if self.name.starts_with("bitslice") { "bitslice" } else { "table" }
    }

    pub(crate) fn table(name: &'static str) -> Family {
        let threads = constant(&format!("{name}_threads"));
        let tile_bytes = constant(&format!("{name}_tile_bytes"));
        let shared = constant(&format!("{name}_shared_bytes"));
        Family { name, threads, tile_bytes, tiles_per_block: threads / 32, shared, option: 0 }
    }

    pub(crate) fn bitslice(name: &'static str) -> Family {
        let tiles_per_block = constant(&format!("{name}_block_tiles"));
        let threads = constant(&format!("{name}_tile_threads")) * tiles_per_block;
        let tile_bytes = constant(&format!("{name}_tile_bytes"));
        Family { name, threads, tile_bytes, tiles_per_block, shared: 0, option: 0 }
    }

    pub(crate) fn of_the_paper(name: &'static str, threads: usize) -> Family {
        let grain = &name[..name.find('_').unwrap()];
        let boxes = if name.ends_with("shared") { constant("tbox_bytes") } else { 0 };
        let shared = boxes + threads * constant(&format!("{grain}_state_bytes"));
        let tile_bytes = threads * constant(&format!("{grain}_thread_bytes"));
        Family { name, threads, tile_bytes, tiles_per_block: 1, shared, option: 0 }
    }

    pub(crate) fn of_the_chapter(threads: usize) -> Family {
        Family { name: "gems", threads, tile_bytes: threads * 16, tiles_per_block: 1, shared: 0, option: 0 }
    }

    pub(crate) fn of_the_thesis(threads: usize, option: u32) -> Family {
        let tile_bytes = threads * option as usize * 16;
        Family { name: "global_sbox", threads, tile_bytes, tiles_per_block: 1, shared: 0, option }
    }
}

/// A piece of a message, and its layout in memory.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) key: usize,
    pub(crate) len: usize,
    pub(crate) misaligned: usize,
    pub(crate) state: [u8; 16],
    pub(crate) position: u64,
    pub(crate) extra_tiles: u64,
}

/// Pseudo-random bytes.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

pub(crate) fn block(seed: u64) -> [u8; 16] {
    noise(16, seed).try_into().unwrap()
}

pub(crate) const KEYS: usize = 3;

pub(crate) fn key(bits: usize, index: usize) -> Vec<u8> {
    noise(bits / 8, 1000 + bits as u64 + index as u64)
}

/// The oracle's result for a piece.
fn expected(pass: &str, aes: &Aes, piece: &Piece, data: &[u8]) -> Vec<u8> {
    match pass {
        "ecb_encrypt" => ecb::encrypt(aes, data),
        "ecb_decrypt" => ecb::decrypt(aes, data),
        "ctr" => ctr::apply(aes, &piece.state, data),
        "ctr32" => ctr::apply32(aes, &piece.state, data),
        "ctr_little32" => gcm_siv_ctr(aes, piece.state, data),
        "cbc_decrypt" => cbc::decrypt(aes, &piece.state, data),
        "cfb_decrypt" => cfb::decrypt128(aes, &piece.state, data),
        "xts_encrypt" | "xts_decrypt" => {
            let mut tweak = piece.state;
            for _ in 0..piece.position {
                tweak = xts::mul_alpha(tweak);
            }
            let mut out = Vec::new();
            for block in data.as_chunks::<16>().0 {
                let input: [u8; 16] = std::array::from_fn(|i| block[i] ^ tweak[i]);
                let result = if pass == "xts_encrypt" { aes.encrypt(input) } else { aes.decrypt(input) };
                out.extend(result.iter().zip(tweak).map(|(r, t)| r ^ t));
                tweak = xts::mul_alpha(tweak);
            }
            out
        }
        _ => unreachable!(),
    }
}

/// CTR of GCM-SIV (RFC 8452, section 4).
fn gcm_siv_ctr(aes: &Aes, mut counter: [u8; 16], data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for block in data.chunks(16) {
        out.extend(block.iter().zip(aes.encrypt(counter)).map(|(byte, key)| byte ^ key));
        let number = u32::from_le_bytes(counter[..4].try_into().unwrap()).wrapping_add(1);
        counter[..4].copy_from_slice(&number.to_le_bytes());
    }
    out
}

/// Memory that begins at a multiple of 16.
pub(crate) struct Memory(Vec<u128>);

impl Memory {
    pub(crate) fn new(len: usize) -> Memory {
        Memory(vec![0; len.div_ceil(16)])
    }
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the slice covers exactly the memory of the vector.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), 16 * self.0.len()) }
    }
}

/// The key schedules that the kernel of a family computes from `keys`, with `grid` thread blocks.
pub(crate) fn expanded(family: &str, bits: usize, keys: &[u8], grid: usize) -> Memory {
    let count = keys.len() / (bits / 8);
    let mut schedules = Memory::new(count * constant(&format!("{family}_schedule_bytes_{bits}")));
    #[repr(C)]
    struct Expand(*const u8, *mut u8, u32);
    let expand = Expand(keys.as_ptr(), schedules.bytes().as_mut_ptr(), count as u32);
    launch(&format!("{family}_expand_{bits}"), grid, 32, 0, &expand).unwrap();
    schedules
}

/// Processes all pieces in one launch, out of place or in place, and compares the results with the oracle. The kernel
/// must write nothing else.
pub(crate) fn check(
    family: Family,
    pass: &str,
    bits: usize,
    pieces: &[Piece],
    in_place: bool,
    grid: Option<usize>,
) {
    let (name, option) = entry(family.name, pass, bits, family.option);
    let keys: Vec<u8> = (0..KEYS).flat_map(|index| key(bits, index)).collect();
    let mut schedules = expanded(family.keys(), bits, &keys, 1);

    let places: Vec<usize> = pieces
        .iter()
        .scan(32, |at, piece| {
            let place = *at + piece.misaligned;
            *at = (place + piece.len + 32).next_multiple_of(16);
            Some(place)
        })
        .collect();
    let total = places.last().unwrap() + pieces.last().unwrap().len + 64;
    let (mut from, mut to) = (Memory::new(total), Memory::new(total));
    from.bytes()[..total].copy_from_slice(&noise(total, 7));
    to.bytes().fill(0xEE);
    let mut result = if in_place { from.bytes().to_vec() } else { to.bytes().to_vec() };
    let (from_at, to_at) = (from.bytes().as_mut_ptr() as u64, to.bytes().as_mut_ptr() as u64);

    let mut segments = Vec::new();
    let mut first_tile = vec![0u64];
    for (piece, &place) in pieces.iter().zip(&places) {
        let aes = Aes::new(&key(bits, piece.key));
        let data = &from.bytes()[place..place + piece.len];
        result[place..place + piece.len].copy_from_slice(&expected(pass, &aes, piece, data));
        segments.push(Segment {
            from: from_at + place as u64,
            to: if in_place { from_at } else { to_at } + place as u64,
            bytes: piece.len as u64,
            position: piece.position,
            key: piece.key as u32,
            tweak_key: 0,
            refused_bytes: 0,
            state: piece.state,
            next: [0; 16],
        });
        let tiles = piece.len.div_ceil(family.tile_bytes) as u64 + piece.extra_tiles;
        first_tile.push(first_tile.last().unwrap() + tiles);
    }
    let tiles = *first_tile.last().unwrap();
    let mut scratch = Memory::new(16 * tiles as usize);
    let mut parameters = Launch {
        segments: segments.as_mut_ptr(),
        first_tile: first_tile.as_ptr(),
        schedules: schedules.bytes().as_ptr(),
        scratch: scratch.bytes().as_mut_ptr(),
        tiles,
        count: pieces.len() as u32,
        option,
    };
    if pass == "cbc_decrypt" || pass == "cfb_decrypt" {
        parameters.option = family.tile_bytes as u32;
        let last: Vec<[u8; 16]> = pieces
            .iter()
            .zip(&places)
            .map(|(piece, &place)| match piece.len / 16 {
                0 => piece.state,
                n => from.bytes()[place + 16 * n - 16..place + 16 * n].try_into().unwrap(),
            })
            .collect();
        launch("edges", (tiles as usize).div_ceil(64), 64, 0, &parameters).unwrap();
        for ((segment, last), piece) in segments.iter().zip(last).zip(pieces) {
            assert!(piece.len == 0 || segment.next == last, "{name}: next state");
        }
        parameters.option = option;
    }
    let grid = grid.unwrap_or((tiles as usize).div_ceil(family.tiles_per_block)).max(1);
    launch(&name, grid, family.threads, family.shared, &parameters).unwrap();
    let found = if in_place { from.bytes() } else { to.bytes() };
    if found != result {
        let at = found.iter().zip(&result).position(|(f, r)| f != r).unwrap();
        let piece = places.iter().rposition(|&place| place <= at);
        panic!(
            "{name} {family:?}, in place: {in_place}: byte {at} is wrong, in piece {piece:?} {:?}",
            piece.map(|i| (at - places[i], pieces[i].len, pieces[i].misaligned))
        );
    }
}

/// Pieces with several keys, aligned and unaligned. Their lengths are near multiples of blocks, warps and tiles.
pub(crate) fn pieces(pass: &str, tile: usize) -> Vec<Piece> {
    let any_length = matches!(pass, "ctr" | "ctr32" | "ctr_little32" | "cfb_decrypt");
    let mut lengths = vec![0, 16, 32, 48, 496, 512, 528, 1024, tile - 16, tile, tile + 16, 2 * tile + 160];
    if any_length {
        lengths.extend([1, 2, 15, 17, 31, 33, 511, 513, tile - 1, tile + 1, 3 * tile + 5]);
    }
    lengths
        .into_iter()
        .enumerate()
        .map(|(i, len)| Piece {
            key: i % KEYS,
            len,
            misaligned: [0, 0, 1, 0, 8, 15, 4][i % 7],
            state: block(i as u64),
            position: [0, 3, 0, 31, 200, 511, 513, 40000][i % 8],
            extra_tiles: (i % 5 == 2) as u64,
        })
        .collect()
}

/// Counters that wrap inside a piece, at each position where a kernel may assume that the high bytes do not change.
pub(crate) fn wrapping(tile: usize) -> Vec<Piece> {
    let starts: [u128; 9] = [
        0xFFFF_FFFE,
        0xFFFF_FFFF_FFFF_FFF0,
        u128::MAX - 40,
        u128::MAX,
        0xFFFF_FFFF_FFFF_FFFF_FFFF_FFF0,
        0xFF,
        0xFFF9,
        0x1234_FFFF_FFE1,
        0xFF_FFFF,
    ];
    starts
        .into_iter()
        .enumerate()
        .map(|(i, start)| Piece {
            key: i % KEYS,
            len: 2 * tile + 777 * i,
            misaligned: 0,
            state: start.to_be_bytes(),
            position: 0,
            extra_tiles: 0,
        })
        .collect()
}
