//! Checks data in device memory and in page-locked memory, messages whose descriptions are in device memory, and completions that are
//! dropped.

use super::passes::{Case, state_is_defined};
use super::{Subject, noise, test_key};
use crate::mock::{oracle_fused, oracle_pass};
use lockstep_core::backend::{DeviceBuffer, DeviceMemory};
use lockstep_core::data::{BufferHandle, Data, DeviceSlice};
use lockstep_core::error::Error;
use lockstep_core::key::KeySize;
use lockstep_core::work::{AeadMessage, Operation, Pass, Segment, Status, Stream, Table, Tag, Task, Tweak};
use lockstep_modes::{Aead, Cipher, CipherKey, Direction};

fn upload(memory: &dyn DeviceMemory, bytes: &[u8]) -> Box<dyn DeviceBuffer> {
    let buffer = memory.allocate(bytes.len()).unwrap();
    memory.upload(bytes, &buffer.slice(), Stream::default()).unwrap();
    buffer
}

fn download(memory: &dyn DeviceMemory, buffer: &dyn DeviceBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.slice().len()];
    memory.download(&buffer.slice(), &mut bytes, Stream::default()).unwrap();
    bytes
}

/// The device refuses memory that it did not allocate: memory of another device, and a handle that it never gave out.
fn foreign_memory(subject: &Subject) {
    let unknown = BufferHandle::new(std::num::NonZero::<u64>::MAX);
    let unknown = DeviceSlice::of_buffer(subject.device.id(), unknown, 16);
    // The mock device needs a thread, and WebAssembly has no threads.
    let other = (!cfg!(target_family = "wasm")).then(crate::mock::MockAsyncDevice::default);
    let memory = other.as_ref().map(|other| lockstep_core::backend::Device::memory(other).unwrap());
    let foreign = memory.map(|memory| memory.allocate(16).unwrap());
    let slices: Vec<_> = foreign.iter().map(|foreign| foreign.slice()).chain([unknown]).collect();
    let size = KeySize::Aes128;
    for pass in Pass::ALL.into_iter().filter(|&pass| subject.does(pass, size)) {
        for slice in &slices {
            let mut case = Case::new(1, size, 0);
            let mut segment = case.segment(pass);
            segment.data = Data::on_device(slice.clone(), slice.clone()).unwrap();
            let refused = subject
                .device
                .submit(subject.kernel, Task::Pass(pass, &mut [segment]).into())
                .and_then(|completion| completion.wait());
            assert!(matches!(refused, Err(Error::OutOfReach { .. })), "{pass:?} {refused:?}");
        }
    }
}

/// Runs passes over device memory, in place and from one buffer to another, and modes with partial blocks in device memory. A device
/// without memory must refuse such data.
pub fn device_memory(subject: &Subject) {
    foreign_memory(subject);
    let Some(memory) = subject.device.memory() else { return };
    let bytes = noise(7, 1500);
    let buffer = upload(memory, &bytes);
    let parts = [3..99, 0..1, 10..10, 500..1500].map(|range| buffer.slice().slice(range));
    let fetched = memory.fetch(&parts, Stream::default()).unwrap().wait().unwrap();
    assert!(fetched[..] == [&bytes[3..99], &bytes[..1], &bytes[500..]].concat());
    for pass in Pass::ALL {
        let size = KeySize::Aes256;
        if !subject.does(pass, size) {
            continue;
        }
        for in_place in [true, false] {
            let case = Case::new(3, size, 16 * 21);
            let (output, state) = case.expected(pass);
            let from = upload(memory, &case.data);
            let to = memory.allocate(case.data.len()).unwrap();
            let target = if in_place || pass.is_read_only() { &from } else { &to };
            let mut left = case.state;
            let mut segments = [Segment {
                key: &case.key,
                tweak: pass.is_xts().then_some(Tweak { key: &case.tweak, position: case.position }),
                state: &mut left,
                data: Data::on_device(from.slice(), target.slice()).unwrap(),
            }];
            super::passes::submit(subject, pass, &mut segments);
            if !pass.is_read_only() {
                assert!(download(memory, &**target) == output, "{pass:?}");
            }
            if state_is_defined(pass, 0) {
                assert_eq!(left, state, "{pass:?}");
            }
        }
    }
    // The zeroed part begins at an odd address and is longer than a piece of the default implementation of `zero`.
    let buffer = upload(memory, &[7; 200_000]);
    memory.zero(&buffer.slice().slice(3..150_000), Stream::default()).unwrap();
    let expected = [&[7; 3][..], &[0; 149_997], &[7; 50_000]].concat();
    assert!(download(memory, &*buffer) == expected, "zeroed in part");
    // Modes also process data in device memory, with ciphertext stealing and partial blocks.
    if subject.does(Pass::XtsEncrypt, KeySize::Aes128) {
        let key = CipherKey::new(Cipher::Xts, &noise(1, 32)).unwrap();
        let data = noise(2, 100);
        let expected = super::messages::expected(Cipher::Xts, Direction::Encrypt, &key, &[4; 16], &data);
        let buffer = upload(memory, &data);
        let place = Data::on_device(buffer.slice(), buffer.slice()).unwrap();
        Cipher::Xts.one(&*subject.planner, Direction::Encrypt, &key, &mut [4; 16], place).unwrap();
        assert_eq!(download(memory, &*buffer), expected);
    }
    for size in super::aead::gcm_sizes(subject) {
        let key = test_key(1, size);
        let aes = lockstep_reference::Aes::new(key.bytes());
        for nonce in [&[1; 12][..], &[1; 8][..]] {
            let data = noise(2, 100);
            let (expected, expected_tag) = lockstep_reference::gcm::seal(&aes, nonce, b"x", &data);
            let buffer = upload(memory, &data);
            let mut tag = [0; 16];
            let place = || Data::on_device(buffer.slice(), buffer.slice()).unwrap();
            let status = Status::Pending;
            let mut message =
                AeadMessage { key: &key, nonce, aad: b"x", data: place(), tag: Tag::Write(&mut tag), status };
            Aead::Gcm
                .run_messages(&*subject.planner, Direction::Encrypt, std::slice::from_mut(&mut message))
                .unwrap();
            assert_eq!((download(memory, &*buffer), tag), (expected, expected_tag));
            tag[0] ^= 1;
            let mut message =
                AeadMessage { key: &key, nonce, aad: b"x", data: place(), tag: Tag::Expect(&tag), status };
            let refused = Aead::Gcm.run_messages(
                &*subject.planner,
                Direction::Decrypt,
                std::slice::from_mut(&mut message),
            );
            assert_eq!(refused, Err(Error::AuthenticationFailed));
            assert_eq!(download(memory, &*buffer), vec![0; 100], "device memory is zeroed too");
        }
    }
}

/// Runs passes over page-locked memory, if the device supports it.
pub fn pinned_memory(subject: &Subject) {
    let Some(memory) = subject.device.memory() else { return };
    if matches!(memory.allocate_pinned(1), Err(Error::Unsupported { .. })) {
        return;
    }
    for pass in Pass::ALL {
        let size = KeySize::Aes128;
        if !subject.does(pass, size) || pass.is_read_only() {
            continue;
        }
        let case = Case::new(4, size, 16 * 9);
        let (output, _) = case.expected(pass);
        let buffer = memory.allocate_pinned(300).unwrap();
        buffer.lock()[8..8 + 144].copy_from_slice(&case.data);
        let mut state = case.state;
        let mut segments = [Segment {
            key: &case.key,
            tweak: pass.is_xts().then_some(Tweak { key: &case.tweak, position: case.position }),
            state: &mut state,
            data: Data::pinned(buffer.slice(8..152), buffer.slice(152..296)).unwrap(),
        }];
        super::passes::submit(subject, pass, &mut segments);
        assert!(buffer.lock()[152..296] == output, "{pass:?}");
        assert!(buffer.lock()[8..152] == case.data, "{pass:?} changed its input");
    }
}

/// Processes messages whose keys, chaining states, offsets, lengths, tags and statuses are arrays in device memory.
pub fn tables(subject: &Subject) {
    let Some(memory) = subject.device.memory() else { return };
    let size = KeySize::Aes256;
    let lengths: [usize; 6] = [16, 0, 160, 48, 1024, 32];
    let offsets: Vec<usize> = lengths
        .iter()
        .scan(0, |at, len| {
            let here = *at;
            *at += len;
            Some(here)
        })
        .collect();
    let data = noise(1, lengths.iter().sum());
    let integers = |values: &[usize]| -> Vec<u8> {
        values.iter().flat_map(|&value| (value as u64).to_le_bytes()).collect()
    };
    let mut has_tables = false;
    for operation in Operation::all() {
        if !subject.planner.supports(operation, size) {
            continue;
        }
        let is_xts = matches!(operation, Operation::Pass(pass) if pass.is_xts());
        let key_bytes = size.bytes() * if is_xts { 2 } else { 1 };
        let keys = noise(2, key_bytes * lengths.len());
        let states = noise(3, 16 * lengths.len());
        let mut expected = Vec::new();
        let mut statuses = vec![Status::Done as u8; lengths.len()];
        let mut tags = vec![0; 16 * lengths.len()];
        let mut input = data.clone();
        for (i, (&len, &at)) in lengths.iter().zip(&offsets).enumerate() {
            let (key, tweak) = keys[i * key_bytes..][..key_bytes].split_at(size.bytes());
            let mut state = states[16 * i..][..16].try_into().unwrap();
            let piece = &data[at..at + len];
            match operation {
                Operation::Pass(pass) => {
                    let tweak = is_xts.then_some((tweak, 0));
                    expected.extend(oracle_pass(pass, key, tweak, &mut state, piece));
                }
                Operation::Fused(fused) => {
                    let (sealed, tag, _) =
                        oracle_fused(fused.sealing(), key, &state[..12], &[], &[0; 16], piece);
                    tags[16 * i..][..16].copy_from_slice(&tag);
                    if !fused.opens() {
                        expected.extend(sealed);
                    } else {
                        input[at..at + len].copy_from_slice(&sealed);
                        expected.extend(piece);
                    }
                }
            }
        }
        let opens = matches!(operation, Operation::Fused(fused) if fused.opens());
        let seals = matches!(operation, Operation::Fused(fused) if !fused.opens());
        if opens {
            // Message 2 is forged: its output must be zeroed, and the other messages must succeed.
            tags[32] ^= 1;
            expected[offsets[2]..offsets[3]].fill(0);
            statuses[2] = Status::AuthenticationFailed as u8;
        }
        let made_tags = if seals { vec![0; tags.len()] } else { tags.clone() };
        let arrays = [&keys, &states, &integers(&offsets), &integers(&lengths), &input, &made_tags]
            .map(|bytes| upload(memory, bytes));
        let [keys, states, offsets, lens, from, made_tags] = &arrays;
        let to = memory.allocate(data.len()).unwrap();
        let status = memory.allocate(lengths.len()).unwrap();
        let table = Table {
            messages: lengths.len(),
            key_size: size,
            keys: keys.slice(),
            states: states.slice(),
            offsets: offsets.slice(),
            lengths: lens.slice(),
            // An upper bound above all lengths, so that launches are larger than necessary.
            longest: 1 << 16,
            from: from.slice(),
            to: to.slice(),
            tags: Some(made_tags.slice()),
            status: status.slice(),
        };
        let submitted = subject.device.submit_table(subject.kernel, Stream::default(), operation, &table);
        let completion = match submitted {
            // Tables are optional, but a device must support them for all of its operations or for none.
            Err(Error::Unsupported { .. }) if !has_tables => return,
            submitted => submitted.unwrap(),
        };
        completion.wait().unwrap();
        has_tables = true;
        if !matches!(operation, Operation::Pass(pass) if pass.is_read_only()) {
            assert!(download(memory, &*to) == expected, "{operation}");
        }
        assert_eq!(download(memory, &*status), statuses, "{operation}");
        if seals {
            assert_eq!(download(memory, &**made_tags), tags);
        }
    }
}

/// A completion that is dropped accesses no memory afterwards, and the device remains usable.
pub fn dropped_completions(subject: &Subject) {
    if !subject.does(Pass::EcbEncrypt, KeySize::Aes128) {
        return;
    }
    for _ in 0..3 {
        let mut case = Case::new(5, KeySize::Aes128, 16 * 8);
        let mut segments = [case.segment(Pass::EcbEncrypt)];
        drop(
            subject
                .device
                .submit(subject.kernel, Task::Pass(Pass::EcbEncrypt, &mut segments).into())
                .unwrap(),
        );
    }
    let mut case = Case::new(6, KeySize::Aes128, 16 * 8);
    let (output, _) = case.expected(Pass::EcbEncrypt);
    super::passes::submit(subject, Pass::EcbEncrypt, &mut [case.segment(Pass::EcbEncrypt)]);
    assert_eq!(case.data, output);
}
