//! Runs the kernels of kernels/chain and kernels/ghash on the emulator, and compares their results with the oracle.
#![cfg(feature = "emulator")]

use crate::emulation;

use emulation::passes::{KEYS, Launch, Memory, Segment, block, expanded, key, noise};
use emulation::{constant, launch};
use lockstep_reference::{Aes, cbc, cbc_mac, cfb, gcm, ghash, ofb, pcbc, polyval};

fn keys(bits: usize) -> Vec<u8> {
    (0..KEYS).flat_map(|index| key(bits, index)).collect()
}

/// The modes, in the order of the kernel's enum.
const CHAINS: [&str; 10] = [
    "cbc_encrypt",
    "cfb_encrypt",
    "cfb8_encrypt",
    "cfb8_decrypt",
    "cfb1_encrypt",
    "cfb1_decrypt",
    "ofb",
    "pcbc_encrypt",
    "pcbc_decrypt",
    "cbc_mac",
];

/// The output and the next chaining state, computed by the oracle.
fn expected(chain: &str, aes: &Aes, reg: &[u8; 16], data: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let xor = |a: &[u8], b: &[u8]| -> Vec<u8> { a.iter().zip(b).map(|(a, b)| a ^ b).collect() };
    let whole = data.len() & !15;
    let out = match chain {
        "cbc_encrypt" => cbc::encrypt(aes, reg, data),
        "cfb_encrypt" => cfb::encrypt128(aes, reg, data),
        "cfb8_encrypt" => cfb::encrypt8(aes, reg, data),
        "cfb8_decrypt" => cfb::decrypt8(aes, reg, data),
        "cfb1_encrypt" => cfb::encrypt1(aes, reg, data, 8 * data.len()),
        "cfb1_decrypt" => cfb::decrypt1(aes, reg, data, 8 * data.len()),
        "ofb" => ofb::apply(aes, reg, data),
        "pcbc_encrypt" => pcbc::encrypt(aes, reg, data),
        "pcbc_decrypt" => pcbc::decrypt(aes, reg, data),
        _ => return (data.to_vec(), cbc_mac::update(aes, *reg, data)),
    };
    let carried = match chain {
        "cbc_encrypt" | "cfb_encrypt" => out[..whole].to_vec(),
        "cfb8_encrypt" | "cfb1_encrypt" => out.clone(),
        "cfb8_decrypt" | "cfb1_decrypt" => data.to_vec(),
        "ofb" => xor(&out, data)[..whole].to_vec(),
        _ => xor(&out, data),
    };
    let all = [&reg[..], &carried].concat();
    (out, all[all.len() - 16..].try_into().unwrap())
}

fn check_chain(number: usize, bits: usize, count: usize, in_place: bool) {
    let chain = CHAINS[number];
    let mut schedules = expanded("bitslice", bits, &keys(bits), 1);
    let any = matches!(
        chain,
        "cfb_encrypt" | "cfb8_encrypt" | "cfb8_decrypt" | "cfb1_encrypt" | "cfb1_decrypt" | "ofb"
    );
    let lengths: Vec<usize> = (0..count)
        .map(|i| if any { [0, 5, 16, 33, 47, 1][i % 6] } else { 16 * [0, 1, 3, 2, 7][i % 5] })
        .collect();
    let places: Vec<usize> = (0..count).map(|i| 64 * i + 192 * (i / 3) + i % 2).collect();
    let total = places.last().unwrap() + 256;
    let (mut from, mut to) = (Memory::new(total), Memory::new(total));
    from.bytes()[..total].copy_from_slice(&noise(total, 3));
    to.bytes().fill(0xEE);
    let mut result = if in_place { from.bytes().to_vec() } else { to.bytes().to_vec() };
    let (from_at, to_at) = (from.bytes().as_mut_ptr() as u64, to.bytes().as_mut_ptr() as u64);
    let mut next = Vec::new();
    let mut segments: Vec<Segment> = Vec::new();
    for (i, (&place, &len)) in places.iter().zip(&lengths).enumerate() {
        let (aes, reg) = (Aes::new(&key(bits, i % KEYS)), block(i as u64));
        let (out, state) = expected(chain, &aes, &reg, &from.bytes()[place..place + len]);
        if chain != "cbc_mac" {
            result[place..place + len].copy_from_slice(&out);
        }
        next.push(state);
        let to = if in_place { from_at } else { to_at } + place as u64;
        let from = from_at + place as u64;
        segments.push(Segment {
            from,
            to,
            bytes: len as u64,
            key: (i % KEYS) as u32,
            state: reg,
            ..Default::default()
        });
    }
    let rounds = bits / 32 + 6;
    let threads = count.div_ceil(constant("chain_messages"));
    let warps = threads.div_ceil(constant("chain_lanes"));
    let mut scratch = Memory::new(warps * (rounds + 1) * 128 * 4 * constant("chain_lanes"));
    let parameters = Launch {
        segments: segments.as_mut_ptr(),
        first_tile: std::ptr::null(),
        schedules: schedules.bytes().as_ptr(),
        scratch: scratch.bytes().as_mut_ptr(),
        tiles: 0,
        count: count as u32,
        option: (number | rounds << 8) as u32,
    };
    #[repr(C)]
    struct Keys(Launch, u32);
    let parameters = Keys(parameters, constant(&format!("bitslice_schedule_bytes_{bits}")) as u32);
    launch("chain_keys", warps, 32, 0, &parameters).unwrap();
    let kernel = if chain == "pcbc_decrypt" { "chain_decrypt" } else { "chain_encrypt" };
    launch(kernel, warps, 32, 0, &parameters.0).unwrap();
    let found = if in_place { from.bytes() } else { to.bytes() };
    assert!(found == result, "{chain} {bits}, {count} messages, in place: {in_place}");
    for (i, (segment, next)) in segments.iter().zip(next).enumerate() {
        assert_eq!(segment.next, next, "{chain} {bits}: state of message {i}");
    }
}

#[test]
fn chains_equal_the_oracle() {
    for number in 0..CHAINS.len() {
        for (bits, count, in_place) in [(128, 1, true), (192, 32, false), (256, 33, true), (128, 70, false)] {
            check_chain(number, bits, count, in_place);
        }
    }
    check_chain(0, 256, 1030, true);
}

#[repr(C)]
struct Hashing {
    segments: *mut Segment,
    first_tile: *const u64,
    first_input: *const u64,
    input: *const u8,
    output: *mut u8,
    rows: *const u8,
    extras: *const Extra,
    matrices: *const u8,
    tiles: u64,
    count: u32,
    level: u32,
    polyval: u32,
    padding: u32,
}

#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
struct Extra {
    aad: u64,
    aad_bytes: u64,
    tag: u64,
    tag_block: u64,
    place: u64,
    tag_bytes: u32,
    opens: u32,
    /// For OCB3, the number of bits by which Ktop is shifted, from 0 to 63. Other modes ignore it.
    bottom: u32,
}

/// The way in which segments are hashed: GHASH or POLYVAL, and the method that computes products.
#[derive(Debug, Clone, Copy)]
struct How {
    polyval: bool,
    /// If true, the kernel that computes with matrices hashes level 0.
    matrices: bool,
    /// If true, carry-less multiply-add instructions compute the products.
    carry_less: bool,
}

impl How {
    /// The name of the kernel for the part `part` of the hash, with this method for products.
    fn kernel(&self, part: &str) -> String {
        format!("ghash{}_{part}", if self.carry_less { "_carry_less" } else { "" })
    }
}

const GHASH: How = How { polyval: false, matrices: false, carry_less: false };
const HOWS: [How; 6] = [
    GHASH,
    How { matrices: true, ..GHASH },
    How { carry_less: true, ..GHASH },
    How { polyval: true, ..GHASH },
    How { polyval: true, matrices: true, ..GHASH },
    How { polyval: true, carry_less: true, ..GHASH },
];

/// Hashes all segments, level by level, with the launches that the backend makes.
fn hash(how: How, segments: &mut [Segment], extras: Option<&[Extra]>, hash_keys: &mut Memory) {
    let polyval = u32::from(how.polyval);
    let tile = constant("ghash_tile_blocks") as u64;
    let levels = constant("ghash_levels");
    let mut rows = Memory::new(KEYS * constant("ghash_rows_bytes"));
    #[repr(C)]
    struct Powers(*const u8, *mut u8, u32, u32, u32, u32);
    let (from, to) = (hash_keys.bytes().as_ptr(), rows.bytes().as_mut_ptr());
    let powers = Powers(from, to, KEYS as u32, levels as u32, 16, polyval);
    launch(&how.kernel("powers"), KEYS, 32, 0, &powers).unwrap();
    let mut matrices = Memory::new(KEYS * constant("ghash_matrices_bytes"));
    if how.matrices {
        #[repr(C)]
        struct Matrices(*const u8, *mut u8, u32, u32);
        let parameters = Matrices(rows.bytes().as_ptr(), matrices.bytes().as_mut_ptr(), KEYS as u32, polyval);
        let threads = KEYS * constant("ghash_matrices_threads");
        launch("ghash_matrices", threads.div_ceil(256), 256, 0, &parameters).unwrap();
    }
    let mut blocks: Vec<u64> = segments.iter().map(|segment| segment.bytes.div_ceil(16)).collect();
    if let Some(extras) = extras {
        blocks.iter_mut().zip(extras).for_each(|(blocks, extra)| *blocks += extra.aad_bytes.div_ceil(16) + 1);
    }
    let mut input = Memory::new(0);
    let mut first_input: Vec<u64> = Vec::new();
    for level in 0..levels {
        let first: Vec<u64> = std::iter::once(0)
            .chain(blocks.iter().scan(0, |sum, blocks| {
                *sum += blocks.div_ceil(tile).max(1);
                Some(*sum)
            }))
            .collect();
        let tiles = *first.last().unwrap();
        let mut output = Memory::new(16 * tiles as usize);
        let parameters = Hashing {
            segments: segments.as_mut_ptr(),
            first_tile: first.as_ptr(),
            first_input: first_input.as_ptr(),
            input: input.bytes().as_ptr(),
            output: output.bytes().as_mut_ptr(),
            rows: rows.bytes().as_ptr(),
            extras: extras.map_or(std::ptr::null(), <[Extra]>::as_ptr),
            matrices: matrices.bytes().as_ptr(),
            tiles,
            count: segments.len() as u32,
            level: level as u32,
            polyval,
            padding: 0,
        };
        let warps = constant("ghash_block_tiles");
        let kernel =
            if how.matrices && level == 0 { "ghash_tensor_tiles".into() } else { how.kernel("tiles") };
        launch(&kernel, (tiles as usize).div_ceil(warps), 32 * warps, 0, &parameters).unwrap();
        if blocks.iter().all(|&blocks| blocks <= tile) {
            break;
        }
        blocks.iter_mut().for_each(|blocks| *blocks = blocks.div_ceil(tile));
        (input, first_input) = (output, first);
    }
}

fn hash_keys() -> Memory {
    let mut memory = Memory::new(16 * KEYS);
    for i in 0..KEYS {
        memory.bytes()[16 * i..][..16].copy_from_slice(&Aes::new(&key(128, i)).encrypt([0; 16]));
    }
    memory
}

#[test]
fn ghash_and_polyval_equal_the_oracle() {
    HOWS.into_iter().for_each(check_hashes);
}

fn check_hashes(how: How) {
    let tile = constant("ghash_tile_blocks");
    let lengths = [0, 1, 2, 31, 32, 33, tile - 1, tile, tile + 1, 2 * tile + 7, tile * tile + 5];
    let mut keys = hash_keys();
    let data = noise(16 * lengths[lengths.len() - 1] + 3, 5);
    let mut segments: Vec<Segment> = lengths
        .iter()
        .enumerate()
        .map(|(i, blocks)| Segment {
            from: data.as_ptr() as u64 + (i % 3) as u64,
            bytes: 16 * *blocks as u64,
            key: (i % KEYS) as u32,
            state: block(i as u64),
            ..Default::default()
        })
        .collect();
    let results: Vec<[u8; 16]> = segments
        .iter()
        .enumerate()
        .map(|(i, segment)| {
            let h = keys.bytes()[16 * (i % KEYS)..][..16].try_into().unwrap();
            let data = &data[i % 3..][..segment.bytes as usize];
            match how.polyval {
                false => ghash::update(&h, segment.state, data),
                true => polyval::update(&h, segment.state, data),
            }
        })
        .collect();
    hash(how, &mut segments, None, &mut keys);
    for (segment, result) in segments.iter_mut().zip(&results) {
        assert_eq!(segment.next, *result, "{how:?}, {} bytes", segment.bytes);
        segment.next = [0; 16];
    }
    #[repr(C)]
    struct Each(*mut Segment, *const u8, *const Extra, u32, u32, u32);
    let count = segments.len() - 1;
    let each = Each(
        segments.as_mut_ptr(),
        keys.bytes().as_ptr(),
        std::ptr::null(),
        count as u32,
        16,
        how.polyval.into(),
    );
    launch(&how.kernel("each"), 1, 128, 0, &each).unwrap();
    for (segment, result) in segments[..count].iter().zip(&results) {
        assert_eq!(segment.next, *result, "{} bytes, by one thread", segment.bytes);
    }
}

#[test]
fn tags_equal_the_oracle_and_wrong_ones_zero_the_message() {
    let mut keys = hash_keys();
    let data = noise(20_000, 6);
    let shapes =
        [(0, 0, 16), (1, 0, 16), (0, 5, 12), (13, 100, 4), (16, 9000, 16), (9001, 33, 15), (20, 17_000, 16)];
    let masks: Vec<[u8; 16]> = (0..shapes.len())
        .map(|i| {
            let mut j0 = [0; 16];
            j0[..12].copy_from_slice(&block(i as u64)[..12]);
            j0[15] = 1;
            Aes::new(&key(128, i % KEYS)).encrypt(j0)
        })
        .collect();
    let mut mask_memory = Memory::new(16 * masks.len());
    mask_memory.bytes().copy_from_slice(masks.as_flattened());
    let cases = [(false, false), (true, false), (true, true)];
    for (how, (opens, breaks)) in HOWS[..2].iter().flat_map(|&how| cases.map(|case| (how, case))) {
        let mut outputs: Vec<Vec<u8>> = shapes.iter().map(|(_, len, _)| vec![0xEE; *len]).collect();
        let mut tags: Vec<[u8; 16]> = Vec::new();
        let mut expected = Vec::new();
        for (i, &(aad, len, tag_len)) in shapes.iter().enumerate() {
            let aes = Aes::new(&key(128, i % KEYS));
            // GHASH reads the ciphertext. The oracle computes the tag from the plaintext.
            let plaintext = lockstep_reference::ctr::apply32(&aes, &counter(i), &data[..len]);
            let (ciphertext, tag) = gcm::seal(&aes, &block(i as u64)[..12], &data[7..7 + aad], &plaintext);
            assert!(ciphertext == data[..len]);
            let mut given = [0x55; 16];
            given[..tag_len].copy_from_slice(&tag[..tag_len]);
            if breaks {
                given[i % tag_len] ^= 1 << (i % 8);
            }
            expected.push(given);
            tags.push(if opens { given } else { [0x55; 16] });
        }
        let extras: Vec<Extra> = shapes
            .iter()
            .zip(&mut tags)
            .enumerate()
            .map(|(i, (&(aad, _, tag_bytes), tag))| Extra {
                aad: data[7..].as_ptr() as u64,
                aad_bytes: aad as u64,
                tag: tag.as_mut_ptr() as u64,
                tag_block: mask_memory.bytes()[16 * i..].as_ptr() as u64,
                place: data.as_ptr() as u64,
                tag_bytes: tag_bytes as u32,
                opens: opens.into(),
                bottom: 0,
            })
            .collect();
        let mut segments: Vec<Segment> = shapes
            .iter()
            .zip(&mut outputs)
            .enumerate()
            .map(|(i, ((_, len, _), output))| Segment {
                to: output.as_mut_ptr() as u64,
                bytes: *len as u64,
                key: (i % KEYS) as u32,
                ..Default::default()
            })
            .collect();
        hash(how, &mut segments, Some(&extras), &mut keys);
        let mut status = vec![0u8; shapes.len()];
        #[repr(C)]
        struct Tags(*mut Segment, *const Extra, *mut u8, u32);
        let count = shapes.len() as u32;
        let parameters = Tags(segments.as_mut_ptr(), extras.as_ptr(), status.as_mut_ptr(), count);
        launch("gcm_tags", 1, 32, 0, &parameters).unwrap();
        assert_eq!(tags, expected);
        assert_eq!(status, vec![if breaks { 2 } else { 1 }; shapes.len()]);
        if !opens {
            continue;
        }
        let first: Vec<u64> = std::iter::once(0)
            .chain(shapes.iter().scan(0, |sum, (_, len, _)| {
                *sum += len.div_ceil(4096) as u64;
                Some(*sum)
            }))
            .collect();
        let pieces = *first.last().unwrap();
        #[repr(C)]
        struct Zero(*const Segment, *const u64, u64, u64, u32);
        let parameters = Zero(segments.as_ptr(), first.as_ptr(), pieces, 4096, count);
        launch("zero_refused", pieces as usize, 64, 0, &parameters).unwrap();
        for (segment, output) in segments.iter().zip(&outputs) {
            assert!(output.iter().all(|&byte| byte == if breaks { 0 } else { 0xEE }));
            assert_eq!(segment.bytes, if breaks { 0 } else { output.len() as u64 });
        }
    }
}

/// The counter block for the first block of data in GCM.
fn counter(i: usize) -> [u8; 16] {
    let mut counter = [0; 16];
    counter[..12].copy_from_slice(&block(i as u64)[..12]);
    counter[15] = 2;
    counter
}
