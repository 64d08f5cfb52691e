//! Compares fused OCB3 with the oracle. The tests use messages over several tiles and chunks, wrong tags, and data in device memory.

use crate::software;

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Status, Stream, Tag, Task};
use lockstep_core::{Error, Key, KeySize};
use lockstep_reference::{Aes, ocb};
use lockstep_testkit::suite::{noise, test_key};
use lockstep_wgpu::{LaunchOptions, SOFTWARE_GL, WgpuDevice};

/// A message, and its results as computed by the oracle.
struct Case {
    key: usize,
    nonce: Vec<u8>,
    aad: Vec<u8>,
    plaintext: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Vec<u8>,
}

/// Messages with these lengths of nonce, associated data, data and tag.
fn cases(keys: &[Key], shapes: &[(usize, usize, usize, usize)]) -> Vec<Case> {
    let case = |(index, &(nonce, aad, len, tag)): (usize, &(usize, usize, usize, usize))| {
        // Messages 2k and 2k + 1 have the same key.
        let (number, seed) = (index / 2 % keys.len(), index as u64);
        let (nonce, aad, plaintext) = (noise(seed, nonce), noise(seed + 100, aad), noise(seed + 200, len));
        let aes = Aes::new(keys[number].bytes());
        let (ciphertext, tag) = ocb::seal(&aes, &nonce, &aad, &plaintext, tag);
        Case { key: number, nonce, aad, plaintext, ciphertext, tag }
    };
    shapes.iter().enumerate().map(case).collect()
}

/// The memory in which the data are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Where {
    InPlace,
    Apart,
    OnDevice,
}

/// Seals or opens all messages at once. Returns outputs, tags and statuses.
fn run(
    device: &WgpuDevice,
    keys: &[Key],
    cases: &[Case],
    opens: bool,
    place: Where,
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<Status>) {
    let input = |case: &Case| if opens { case.ciphertext.clone() } else { case.plaintext.clone() };
    let inputs: Vec<_> = cases.iter().map(input).collect();
    let mut outputs = inputs.clone();
    let mut tags: Vec<_> =
        cases.iter().map(|case| if opens { case.tag.clone() } else { vec![0; case.tag.len()] }).collect();
    let memory = device.memory().unwrap();
    // In device memory, two bytes follow each output, and the call must not change them.
    let buffers: Vec<_> = (inputs.iter().filter(|_| place == Where::OnDevice))
        .map(|input| {
            let [from, to] = [(); 2].map(|()| memory.allocate(input.len() + 2).unwrap());
            memory.upload(&[input, &[1, 2][..]].concat(), &from.slice(), Stream::default()).unwrap();
            memory.upload(&vec![7; input.len() + 2], &to.slice(), Stream::default()).unwrap();
            (from, to)
        })
        .collect();
    let places = inputs.iter().zip(&mut outputs).zip(&mut tags);
    let mut messages: Vec<AeadMessage<'_>> = (cases.iter().zip(places).enumerate())
        .map(|(index, (case, ((input, output), tag)))| AeadMessage {
            key: &keys[case.key],
            nonce: &case.nonce,
            aad: &case.aad,
            data: match place {
                Where::InPlace => Data::in_place(output),
                Where::Apart => Data::copy(input, output).unwrap(),
                Where::OnDevice => {
                    let (from, to) = &buffers[index];
                    let range = 0..input.len();
                    Data::on_device(from.slice().slice(range.clone()), to.slice().slice(range)).unwrap()
                }
            },
            tag: if opens { Tag::Expect(tag) } else { Tag::Write(tag) },
            status: Status::Pending,
        })
        .collect();
    let fused = if opens { FusedAead::OcbOpen } else { FusedAead::OcbSeal };
    device.submit(KernelId(0), Task::Fused(fused, &mut messages).into()).unwrap().wait().unwrap();
    let statuses = messages.iter().map(|message| message.status).collect();
    drop(messages);
    for ((_, to), output) in buffers.iter().zip(&mut outputs) {
        output.extend([0; 2]);
        memory.download(&to.slice(), output, Stream::default()).unwrap();
        assert_eq!(output.split_off(output.len() - 2), [7; 2], "bytes behind an output have changed");
    }
    (outputs, tags, statuses)
}

/// Seals messages, opens them, and opens them again after some have been forged.
fn check(device: &WgpuDevice, size: KeySize, shapes: &[(usize, usize, usize, usize)], places: &[Where]) {
    let keys: Vec<Key> = (0..3).map(|seed| test_key(seed, size)).collect();
    for &place in places {
        let mut cases = cases(&keys, shapes);
        let (outputs, tags, statuses) = run(device, &keys, &cases, false, place);
        for (i, case) in cases.iter().enumerate() {
            assert!(outputs[i] == case.ciphertext, "{size:?} {place:?} {:?}: ciphertext", shapes[i]);
            assert_eq!(tags[i], case.tag, "{size:?} {place:?} {:?}", shapes[i]);
            assert_eq!(statuses[i], Status::Done);
        }
        let (outputs, _, statuses) = run(device, &keys, &cases, true, place);
        for (i, case) in cases.iter().enumerate() {
            assert!(outputs[i] == case.plaintext, "{size:?} {place:?} {:?}: plaintext", shapes[i]);
            assert_eq!(statuses[i], Status::Done);
        }
        let is_forged = |i: usize| i % 3 == 1;
        for (i, case) in cases.iter_mut().enumerate().filter(|(i, _)| is_forged(*i)) {
            // Changes the tag, the ciphertext, the associated data or the nonce.
            let last = case.tag.len() - 1;
            let Case { nonce, aad, ciphertext, tag, .. } = case;
            let part = match i / 3 % 4 {
                1 => &mut nonce[..],
                2 if !aad.is_empty() => aad,
                3 if !ciphertext.is_empty() => ciphertext,
                _ => &mut tag[last..],
            };
            part[0] ^= 0x80 >> (i % 8);
        }
        let (outputs, _, statuses) = run(device, &keys, &cases, true, place);
        for (i, case) in cases.iter().enumerate() {
            let expected = if is_forged(i) { &vec![0; case.plaintext.len()] } else { &case.plaintext };
            assert!(outputs[i] == *expected, "{size:?} {place:?} {:?}: with forgeries", shapes[i]);
            let status = if is_forged(i) { Status::AuthenticationFailed } else { Status::Done };
            assert_eq!(statuses[i], status, "{size:?} {place:?} {:?}", shapes[i]);
        }
    }
}

/// Lengths of nonces, associated data, data and tags. The lengths of data and associated data are near multiples of blocks, tiles, and runs
/// of sums.
const SHAPES: [(usize, usize, usize, usize); 16] = [
    (12, 0, 0, 16),
    (12, 5, 1, 16),
    (1, 16, 15, 16),
    (15, 37, 16, 8),
    (7, 0, 17, 1),
    (8, 700, 511, 12),
    (9, 512, 512, 16),
    (10, 33 * 16 + 1, 529, 16),
    (11, 255, 16_384, 16),
    (12, 256, 16_384 + 16, 16),
    (13, 2, 2 * 16_384 - 3, 13),
    (14, 0, 33_001, 16),
    (12, 40_000, 5, 16),
    (12, 20, 64 * 512 + 512, 16),
    (6, 0, 65 * 512 + 31, 16),
    (12, 0, 0, 16),
];

#[test]
fn an_invocation_has_a_tile() {
    let Some(device) = software::device() else { return };
    for size in KeySize::ALL {
        check(&device, size, &SHAPES, &[Where::InPlace]);
    }
    check(&device, KeySize::Aes128, &SHAPES, &[Where::Apart, Where::OnDevice]);
    let counters = device.counters();
    let launches = |name| counters.iter().find(|counter| counter.name == name).map_or(0, |it| it.launches);
    // Each of the five sealing calls has one chunk.
    assert_eq!([launches("bitslice_lane_ocb_encrypt"), launches("bitslice_lane_ocb_decrypt")], [5, 10]);
}

#[test]
fn invocations_share_tiles() {
    let Some(device) = software::device() else { return };
    let device = device.with_launches(LaunchOptions { wide: Some(true), ..LaunchOptions::default() });
    check(&device, KeySize::Aes192, &SHAPES, &[Where::InPlace, Where::OnDevice]);
}

/// Messages of all lengths have the right results, with several chunks in flight and with messages that are too long for one chunk.
#[test]
fn messages_of_any_length() {
    let Some(device) = software::device() else { return };
    let device = device.with_launches(LaunchOptions { chunk: Some(4096), ..LaunchOptions::default() });
    let mut shapes = SHAPES.to_vec();
    shapes.extend([
        (12, 0, 32_768, 16),
        (12, 0, 32_769, 16),
        (9, 40_001, 50_003, 5),
        (12, 32_768, 32_768, 16),
    ]);
    check(&device, KeySize::Aes256, &shapes, &[Where::InPlace, Where::Apart, Where::OnDevice]);
    let options = LaunchOptions { chunk: Some(4096), wide: Some(true), ..LaunchOptions::default() };
    let device = software::device().unwrap().with_launches(options);
    check(&device, KeySize::Aes128, &[(12, 1, 5 * 16_384 + 35, 16); 2], &[Where::InPlace]);
}

/// The shaders of OCB3 give the same results through OpenGL ES instead of Vulkan.
#[test]
fn opengl_gives_the_same_results() {
    let Some(device) = software::by_name(&SOFTWARE_GL.to_string()) else { return };
    check(&device, KeySize::Aes256, &SHAPES[..8], &[Where::InPlace]);
    let options = LaunchOptions { wide: Some(true), ..LaunchOptions::default() };
    let device = software::by_name(&SOFTWARE_GL.to_string()).unwrap().with_launches(options);
    check(&device, KeySize::Aes128, &SHAPES[8..11], &[Where::InPlace]);
}

/// The first offset depends on the last six bits of the nonce, which state by how many bits Ktop is shifted. All values are tested.
#[test]
fn all_shifts_of_the_nonce() {
    let Some(device) = software::device() else { return };
    let key = [test_key(1, KeySize::Aes128)];
    let aes = Aes::new(key[0].bytes());
    let mut cases = cases(&key, &[(12, 0, 20, 16); 64]);
    for (number, case) in cases.iter_mut().enumerate() {
        case.nonce[11] = 0x40 | number as u8;
        (case.ciphertext, case.tag) = ocb::seal(&aes, &case.nonce, &[], &case.plaintext, 16);
    }
    let (outputs, tags, _) = run(&device, &key, &cases, false, Where::InPlace);
    for (i, case) in cases.iter().enumerate() {
        assert!(outputs[i] == case.ciphertext && tags[i] == case.tag, "shift {i}");
    }
}

/// Lengths that OCB3 does not allow are errors, even if no mode has checked them. Kernels that are not constant time do not offer OCB3.
#[test]
fn what_is_refused() {
    let Some(device) = software::device() else { return };
    let key = test_key(1, KeySize::Aes128);
    for (fused, nonce, tag) in [
        (FusedAead::OcbSeal, 0, 16),
        (FusedAead::OcbSeal, 16, 16),
        (FusedAead::OcbOpen, 12, 17),
        (FusedAead::OcbSeal, 12, 0),
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
    for (number, kernel) in device.kernels().iter().enumerate() {
        for fused in [FusedAead::OcbSeal, FusedAead::OcbOpen] {
            let cost = device.cost(KernelId(number as u16), Operation::Fused(fused), KeySize::Aes128);
            assert_eq!(cost.is_some(), kernel.constant_time, "{}", kernel.name);
        }
    }
}
