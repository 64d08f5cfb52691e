//! Tests of OCB3 on the device: messages with several tiles, and tiles at high positions of very long messages.
#![cfg(feature = "emulator")]

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::ocb::{Masks, first_offset};
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag, Task};
use lockstep_core::{Error, Key, KeySize};
use lockstep_cuda::{Cuda, LaunchOptions};
use lockstep_reference::{Aes, ocb};

use crate::emulation::passes::{Family, Launch, Memory, Segment, block, expanded, key, noise};
use crate::emulation::{constant, launch, launch_from};

/// A message, and its results as computed by the oracle.
struct Case {
    key: usize,
    nonce: Vec<u8>,
    aad: Vec<u8>,
    plaintext: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Vec<u8>,
}

fn cases(keys: &[Key], shapes: &[(usize, usize, usize, usize)]) -> Vec<Case> {
    let case = |(index, &(nonce, aad, len, tag)): (usize, &(usize, usize, usize, usize))| {
        // Messages 2k and 2k + 1 have the same key.
        let (number, seed) = (index / 2 % keys.len(), index as u64);
        let (nonce, aad, plaintext) = (noise(nonce, seed), noise(aad, seed + 100), noise(len, seed + 200));
        let aes = Aes::new(keys[number].bytes());
        let (ciphertext, tag) = ocb::seal(&aes, &nonce, &aad, &plaintext, tag);
        Case { key: number, nonce, aad, plaintext, ciphertext, tag }
    };
    shapes.iter().enumerate().map(case).collect()
}

/// Seals or opens all messages at once, in place or out of place. Returns outputs, tags and statuses.
fn run(
    device: &Cuda,
    keys: &[Key],
    cases: &[Case],
    opens: bool,
    in_place: bool,
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<Status>) {
    let input = |case: &Case| if opens { case.ciphertext.clone() } else { case.plaintext.clone() };
    let inputs: Vec<_> = cases.iter().map(input).collect();
    let mut outputs = inputs.clone();
    let mut tags: Vec<_> =
        cases.iter().map(|case| if opens { case.tag.clone() } else { vec![0; case.tag.len()] }).collect();
    let places = inputs.iter().zip(&mut outputs).zip(&mut tags);
    let mut messages: Vec<AeadMessage<'_>> = (cases.iter().zip(places))
        .map(|(case, ((input, output), tag))| AeadMessage {
            key: &keys[case.key],
            nonce: &case.nonce,
            aad: &case.aad,
            data: if in_place { Data::in_place(output) } else { Data::copy(input, output).unwrap() },
            tag: if opens { Tag::Expect(tag) } else { Tag::Write(tag) },
            status: Status::Pending,
        })
        .collect();
    let fused = if opens { FusedAead::OcbOpen } else { FusedAead::OcbSeal };
    device.submit(KernelId(0), Task::Fused(fused, &mut messages).into()).unwrap().wait().unwrap();
    let statuses = messages.iter().map(|message| message.status).collect();
    (outputs, tags, statuses)
}

/// The lengths of nonce, associated data, data and tag. Many lengths of data are near multiples of blocks and tiles, and the longest data
/// exceed 32 wide tiles.
const SHAPES: [(usize, usize, usize, usize); 14] = [
    (12, 0, 0, 16),
    (12, 5, 1, 16),
    (1, 16, 15, 16),
    (15, 37, 16, 8),
    (7, 0, 17, 1),
    (8, 700, 511, 12),
    (9, 512, 512, 16),
    (10, 33 * 16 + 1, 529, 16),
    (11, 1, 16_384, 16),
    (12, 0, 16_384 + 16, 16),
    (13, 2, 2 * 16_384 - 3, 13),
    (14, 3, 40_000, 16),
    (12, 20, (33 << 14) + 5, 16),
    (12, 0, 0, 16),
];

/// Runs the kernels of all key sizes and of both tilings with little work.
pub(crate) fn every_kernel() {
    for always_wide in [true, false] {
        let options = LaunchOptions { always_wide, ..LaunchOptions::default() };
        let device = lockstep_cuda::emulator().launched(options);
        for size in KeySize::ALL {
            let keys = [Key::new(&key(size.bits(), 0)).unwrap()];
            let long = if always_wide { 16_384 + 17 } else { 600 };
            let cases = cases(&keys, &[(12, 20, 5, 16), (12, 0, long, 16)]);
            for (opens, expected) in [(false, &cases[1].ciphertext), (true, &cases[1].plaintext)] {
                assert!(run(&device, &keys, &cases, opens, true).0[1] == *expected);
            }
        }
    }
}

#[test]
fn messages_over_several_tiles() {
    let wide = LaunchOptions { always_wide: true, ..LaunchOptions::default() };
    for (size, options) in [
        (KeySize::Aes128, wide),
        (KeySize::Aes128, LaunchOptions::default()),
        (KeySize::Aes192, wide),
        (KeySize::Aes256, wide),
    ] {
        let device = lockstep_cuda::emulator().launched(options);
        let keys: Vec<Key> = (0..3).map(|i| Key::new(&key(size.bits(), i)).unwrap()).collect();
        // Without the longest messages, the average length is so small that the kernel for short messages runs.
        let shapes = if options == wide { &SHAPES[..] } else { &SHAPES[..8] };
        let family = if options == wide { "bitslice" } else { "bitslice_lane" };
        let names = ["encrypt", "decrypt"].map(|part| format!("{family}_ocb_{part}"));
        let mut cases = cases(&keys, shapes);
        for in_place in [true, false] {
            let (outputs, tags, statuses) = run(&device, &keys, &cases, false, in_place);
            for (i, case) in cases.iter().enumerate() {
                assert!(outputs[i] == case.ciphertext, "{size:?} {:?}: ciphertext", shapes[i]);
                assert_eq!(tags[i], case.tag, "{size:?} {:?}", shapes[i]);
                assert_eq!(statuses[i], Status::Done);
            }
            let (outputs, _, statuses) = run(&device, &keys, &cases, true, in_place);
            for (i, case) in cases.iter().enumerate() {
                assert!(outputs[i] == case.plaintext, "{size:?} {:?}: plaintext", shapes[i]);
                assert_eq!(statuses[i], Status::Done);
            }
        }
        // The forged messages: one has a changed tag, one a changed ciphertext, one changed associated data, and one a changed nonce.
        let forged = [2, 3, 5, 7];
        cases[2].tag[0] ^= 1;
        cases[3].ciphertext[15] ^= 0x80;
        cases[5].aad[699] ^= 4;
        cases[7].nonce[9] ^= 2;
        let (outputs, _, statuses) = run(&device, &keys, &cases, true, true);
        for (i, case) in cases.iter().enumerate() {
            let refused = forged.contains(&i);
            let expected = if refused { &vec![0; case.plaintext.len()] } else { &case.plaintext };
            assert!(outputs[i] == *expected, "{size:?} {:?}: forged {refused}", shapes[i]);
            assert_eq!(statuses[i], if refused { Status::AuthenticationFailed } else { Status::Done });
        }
        let counters = device.counters();
        let launches =
            |name: &&String| counters.iter().find(|counter| counter.name == **name).unwrap().launches;
        assert_eq!(names.each_ref().map(|name| launches(&name)), [2, 3]);
    }
}

/// Processes one tile at a high position of a long message, so that masks with high numbers are used.
#[test]
fn tiles_far_behind_the_beginning() {
    #[repr(C)]
    struct Parameters(Launch, *const u8);
    #[repr(C)]
    struct MakeMasks(*mut u8, *const u8, u32);
    let key = key(128, 1);
    let aes = Aes::new(&key);
    let star = aes.encrypt([0; 16]);
    let mut masks = Masks::default();
    masks.fill(&star);
    let mut stars = Memory::new(16);
    stars.bytes().copy_from_slice(&star);
    let mut table = Memory::new(constant("ocb_masks_bytes"));
    let make = MakeMasks(table.bytes().as_mut_ptr(), stars.bytes().as_ptr(), 1);
    launch("ocb_keys", 1, 32, 0, &make).unwrap();
    let mut schedules = expanded("bitslice", 128, &key, 1);
    let first = block(5);
    for name in ["bitslice", "bitslice_lane"] {
        let family = Family::bitslice(name);
        // The number of tiles of the message before the launched tile. The largest values are possible in a message
        // of 2^48 - 1 blocks.
        let all = (1 << 48) / (family.tile_bytes as u64 / 16);
        let levels = u64::BITS - 1 - all.leading_zeros();
        // After 0b1010...10 tiles, all bits of the Gray codes of the next blocks are set, except the lowest ones. After 2^i - 1 tiles, the
        // number of the last block of the next tile is 2^i times the number of blocks of a tile. Its offset differs from the previous
        // offset by the mask of this number.
        let sparse = 0xAAAA_AAAA_AAAA_AAAA % all;
        let few = [31, 0x5555_5555, sparse, 0x1_2345_6789, all - 2].map(|before| (before % (all - 1), true));
        let steps = (5..levels).map(|i| ((1 << i) - 1, false));
        for (before, both) in few.into_iter().chain(steps) {
            for encrypts in [true, false].into_iter().filter(|encrypts| both || *encrypts) {
                let input = noise(family.tile_bytes, before);
                let mut expected = input.clone();
                let (mut offset, mut checksum) = ([0; 16], [0; 16]);
                for (i, block) in expected.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                    let number = before * (family.tile_bytes as u64 / 16) + i as u64 + 1;
                    offset = if i == 0 { masks.offset(&first, number) } else { offset };
                    if i > 0 {
                        masks.advance(&mut offset, number);
                    }
                    let masked = std::array::from_fn(|i| block[i] ^ offset[i]);
                    let inner = if encrypts { aes.encrypt(masked) } else { aes.decrypt(masked) };
                    let output: [u8; 16] = std::array::from_fn(|i| inner[i] ^ offset[i]);
                    let plaintext = if encrypts { *block } else { output };
                    checksum = std::array::from_fn(|i| checksum[i] ^ plaintext[i]);
                    *block = output;
                }
                let mut data = Memory::new(family.tile_bytes);
                data.bytes().copy_from_slice(&input);
                let start = (data.bytes().as_ptr() as u64).wrapping_sub(before * family.tile_bytes as u64);
                let bytes = (before + 1) * family.tile_bytes as u64;
                let mut segment =
                    Segment { from: start, to: start, bytes, state: first, ..Segment::default() };
                let mut scratch = Memory::new(16);
                // `first_tile` is such that the launched tile, which is number 0 of the launch, has the number `before` within the message.
                let first_tile = [0u64.wrapping_sub(before), 1];
                let parameters = Launch {
                    segments: &mut segment,
                    first_tile: first_tile.as_ptr(),
                    schedules: schedules.bytes().as_ptr(),
                    scratch: scratch.bytes().as_mut_ptr(),
                    tiles: 1,
                    count: 1,
                    option: 10,
                };
                let kernel = format!("{name}_ocb_{}", if encrypts { "encrypt" } else { "decrypt" });
                let parameters = Parameters(parameters, table.bytes().as_ptr());
                launch(&kernel, 1, family.threads, 0, &parameters).unwrap();
                assert!(data.bytes() == expected, "{kernel}, {before} tiles before");
                assert_eq!(scratch.bytes(), checksum, "{kernel}, {before} tiles before");
            }
        }
    }
}

/// The parameters of `ocb_begin`: `struct Ocb` of kernels/ocb/ocb.cu, and `struct Extra` of kernels/common/aead.cuh.
#[repr(C)]
struct Begin {
    segments: *mut Segment,
    extras: *const Extra,
    masks: *const u8,
    first_tile: *const u64,
    checksums: *const u8,
    status: *mut u8,
    count: u32,
    tile_bytes: u32,
}

#[repr(C, align(16))]
#[derive(Default)]
struct Extra {
    aad: u64,
    aad_bytes: u64,
    tag: u64,
    tag_block: u64,
    place: u64,
    tag_bytes: u32,
    opens: u32,
    bottom: u32,
    padding: [u32; 3],
}

/// Runs `ocb_begin` for the last of `count` messages only. Returns the first offset of the message, and the block that is encrypted to get
/// the pad of the message's partial block. `star` is L_*.
fn last_message(count: usize, bytes: u64, star: &[u8; 16], ktop: &[u8; 16], bottom: u32) -> [[u8; 16]; 2] {
    #[repr(C)]
    struct MakeMasks(*mut u8, *const u8, u32);
    let (mut stars, mut table) = (Memory::new(16), Memory::new(constant("ocb_masks_bytes")));
    stars.bytes().copy_from_slice(star);
    let make = MakeMasks(table.bytes().as_mut_ptr(), stars.bytes().as_ptr(), 1);
    launch("ocb_keys", 1, 32, 0, &make).unwrap();
    let (mut tag_block, mut region) = (Memory::new(16), Memory::new(16));
    tag_block.bytes().copy_from_slice(ktop);
    let mut segment = Segment { bytes, ..Segment::default() };
    let extra = Extra {
        tag_block: tag_block.bytes().as_ptr() as u64,
        place: region.bytes().as_mut_ptr() as u64,
        tag_bytes: 16,
        bottom,
        ..Extra::default()
    };
    // Only the elements with the index `count - 1` exist. So each pointer to the start of an array is `count - 1` elements before the
    // existing element.
    let begin = Begin {
        segments: (&raw mut segment).wrapping_sub(count - 1),
        extras: (&raw const extra).wrapping_sub(count - 1),
        masks: table.bytes().as_ptr(),
        first_tile: std::ptr::null(),
        checksums: std::ptr::null(),
        status: std::ptr::null_mut(),
        count: count as u32,
        tile_bytes: 16_384,
    };
    // One warp processes a message, and a thread block processes 4 messages. The last thread block has one message.
    assert_eq!(count % 4, 1);
    launch_from("ocb_begin", count / 4, count / 4 + 1, 128, 0, &begin).unwrap();
    [segment.state, (&*region.bytes()).try_into().unwrap()]
}

/// The offset of a partial block is right for all masks. No kernel reads the data, so the message may have any length.
#[test]
fn offsets_of_partial_blocks_far_behind_the_beginning() {
    let (star, ktop) = (block(3), block(4));
    let mut masks = Masks::default();
    masks.fill(&star);
    for blocks in (0..48).map(|i| 1u64 << i).chain([(1 << 48) - 1, 0x5555_5555_5555, 0xAAAA_AAAA_AAAA]) {
        let bottom = (blocks % 61) as u32;
        let [first, pad] = last_message(1, 16 * blocks + 5, &star, &ktop, bottom);
        assert_eq!(first, first_offset(&ktop, bottom), "bottom {bottom}");
        let offset = masks.offset(&first, blocks);
        assert_eq!(pad, std::array::from_fn(|i| offset[i] ^ masks.star[i]), "{blocks} blocks");
    }
}

/// With 2^27 messages or more, a launch with a warp for each message has more than 2^32 threads.
#[test]
fn threads_of_many_messages_have_different_numbers() {
    let (star, ktop) = (block(3), block(4));
    let [first, _] = last_message((1 << 27) + 1, 5, &star, &ktop, 9);
    assert_eq!(first, first_offset(&ktop, 9));
}

/// Lengths that OCB3 does not allow are errors, even if the caller submits the task without a mode that checks them.
#[test]
fn lengths_are_checked() {
    let device = lockstep_cuda::emulator();
    let key = Key::new(&key(128, 0)).unwrap();
    for (fused, nonce, tag) in [
        (FusedAead::OcbSeal, 0, 16),
        (FusedAead::OcbSeal, 16, 16),
        (FusedAead::OcbOpen, 16, 16),
        (FusedAead::OcbOpen, 12, 17),
        (FusedAead::OcbSeal, 12, 0),
        (FusedAead::GcmSeal, 13, 16),
    ] {
        let (nonce, mut tag, mut data) = (vec![1; nonce], vec![2; tag], [3; 20]);
        let tag = if fused.opens() { Tag::Expect(&tag) } else { Tag::Write(&mut tag) };
        let (in_place, status) = (Data::in_place(&mut data), Status::Pending);
        let mut messages = [AeadMessage { key: &key, nonce: &nonce, aad: b"", data: in_place, tag, status }];
        let outcome = device.submit(KernelId(0), Task::Fused(fused, &mut messages).into()).map(drop);
        assert!(
            matches!(outcome, Err(Error::IvLength { .. } | Error::TagLength { .. })),
            "{fused:?} {outcome:?}"
        );
        assert_eq!(data, [3; 20]);
    }
}
