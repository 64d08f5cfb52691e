//! Tests with data in device memory that go beyond the shared suite: data in several chunks and buffers, data of odd lengths next to other
//! bytes, and data in place where a chunk reads the previous chunk. Also tests work that is refused or fails.

use crate::software;

use lockstep_core::backend::{Device, DeviceBuffer, DeviceMemory, KernelId};
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::{
    AeadMessage, FusedAead, Operation, Pass, Segment, Status, Stream, Table, Tag, Task, Tweak,
};
use lockstep_core::{Error, KeySize, Result};
use lockstep_reference::{Aes, gcm};
use lockstep_testkit::mock::MockAsyncDevice;
use lockstep_testkit::suite::{noise, test_block, test_key};
use lockstep_wgpu::{LaunchOptions, WgpuDevice};

const SIZE: KeySize = KeySize::Aes192;

/// A device with chunks of 4 KiB and buffers of 64 KiB.
fn device() -> Option<WgpuDevice> {
    let options = LaunchOptions { chunk: Some(4096), buffer: Some(64 << 10), ..LaunchOptions::default() };
    software::device().map(|device| device.with_launches(options))
}

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

/// Runs a pass over one segment and returns the chaining state.
fn pass(device: &dyn Device, kernel: KernelId, pass: Pass, data: Data<'_>) -> Result<[u8; 16]> {
    let (key, tweak) = (test_key(1, SIZE), test_key(2, SIZE));
    let tweak = pass.is_xts().then_some(Tweak { key: &tweak, position: 3 });
    let mut state = test_block(4);
    let mut segments = [Segment { key: &key, tweak, state: &mut state, data }];
    device.submit(kernel, Task::Pass(pass, &mut segments).into())?.wait()?;
    Ok(state)
}

/// A length for a pass. It covers several chunks unless the pass is serial, and is odd if the pass accepts any number of
/// bytes.
fn length(pass: Pass) -> usize {
    let len = if pass.is_serial() { 16 * 20 } else { 16 * 900 };
    if pass.unit() == 1 { len + 7 } else { len }
}

#[test]
fn neighbouring_bytes_do_not_change() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    for number in 0..device.kernels().len() as u16 {
        for which in Pass::ALL {
            if device.cost(KernelId(number), Operation::Pass(which), SIZE).is_none() {
                continue;
            }
            let len = length(which);
            // The data extend over the border between two buffers.
            let at = (64 << 10) - 4000;
            let bytes = noise(7, (64 << 10) + len + 3);
            let (begin, end) = (at, at + len);
            let mut expected = bytes.clone();
            let place = if which.is_read_only() {
                Data::read_only(&bytes[begin..end])
            } else {
                Data::in_place(&mut expected[begin..end])
            };
            let state = pass(&MockAsyncDevice::default(), KernelId(0), which, place).unwrap();
            for in_place in [true, false] {
                let (from, to) = (upload(memory, &bytes), upload(memory, &bytes));
                let target = if in_place || which.is_read_only() { &from } else { &to };
                let data = Data::on_device(from.slice().slice(begin..end), target.slice().slice(begin..end))
                    .unwrap();
                let left = pass(&device, KernelId(number), which, data).unwrap();
                assert!(
                    download(memory, &**target) == expected,
                    "{which:?}, kernel {number}, in place: {in_place}"
                );
                if len.is_multiple_of(16) && !matches!(which, Pass::EcbEncrypt | Pass::EcbDecrypt)
                    || matches!(which, Pass::Ctr | Pass::Ctr32)
                {
                    assert_eq!(left, state, "{which:?}, kernel {number}");
                }
            }
        }
    }
}

/// Short and long messages of GCM in device memory are sealed and opened, and forged messages are refused.
#[test]
fn gcm_in_device_memory() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    let (key, nonce) = (test_key(1, SIZE), [5; 12]);
    let aes = Aes::new(key.bytes());
    for (aad, len) in [(0, 0), (5, 16), (33, 1001), (16, 4096), (2, 40_003), (40_000, 3)] {
        let (aad, plain) = (noise(1, aad), noise(2, len));
        let (sealed, expected_tag) = gcm::seal(&aes, &nonce, &aad, &plain);
        let (buffer, mut tag) = (upload(memory, &plain), [0; 16]);
        let run = |fused, tag: Tag<'_>| {
            let data = Data::on_device(buffer.slice(), buffer.slice()).unwrap();
            let mut messages =
                [AeadMessage { key: &key, nonce: &nonce, aad: &aad, data, tag, status: Status::Pending }];
            device.submit(KernelId(0), Task::Fused(fused, &mut messages).into()).unwrap().wait().unwrap();
            messages[0].status
        };
        assert_eq!(run(FusedAead::GcmSeal, Tag::Write(&mut tag)), Status::Done);
        assert!(download(memory, &*buffer) == sealed && tag == expected_tag, "{len} bytes");
        assert_eq!(run(FusedAead::GcmOpen, Tag::Expect(&tag)), Status::Done);
        assert!(download(memory, &*buffer) == plain, "{len} bytes");
        memory.upload(&sealed, &buffer.slice(), Stream::default()).unwrap();
        tag[3] ^= 1;
        assert_eq!(run(FusedAead::GcmOpen, Tag::Expect(&tag)), Status::AuthenticationFailed);
        assert!(download(memory, &*buffer) == vec![0; len], "{len} bytes of a forgery");
    }
}

/// Copies may start anywhere and have any length. The bytes around them do not change.
#[test]
fn copies_go_anywhere() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    let mut all = noise(1, 200_001);
    let buffer = upload(memory, &all);
    for (at, len) in [(0, 0), (1, 1), (3, 5), (65_530, 13), (65_536, 4), (1, 150_000), (200_000, 1)] {
        let new = noise(at as u64, len);
        memory.upload(&new, &buffer.slice().slice(at..at + len), Stream::default()).unwrap();
        all[at..at + len].copy_from_slice(&new);
        assert!(download(memory, &*buffer) == all, "{len} bytes at {at}");
        let mut back = vec![0; len];
        memory.download(&buffer.slice().slice(at..at + len), &mut back, Stream::default()).unwrap();
        assert!(back == new);
        // A fetch is limited to one buffer.
        let part = len.min(30_000);
        let fetched = memory.fetch(&[buffer.slice().slice(at..at + part)], Stream::default()).unwrap();
        assert!(fetched.wait().unwrap()[..] == new[..part]);
    }
    assert!(matches!(
        memory.upload(&[0; 3], &buffer.slice().slice(0..4), Stream::default()),
        Err(Error::OutputLength { needed: 3, got: 4 })
    ));
    assert!(download(memory, &*memory.allocate(100_000).unwrap()).iter().all(|&byte| byte == 0));
}

/// Threads that write to different bytes of the same words do not overwrite each other's bytes.
#[test]
fn bytes_of_one_word_have_several_owners() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    let buffer = upload(memory, &[0; 64]);
    for turn in 1..=8 {
        std::thread::scope(|scope| {
            for part in 0..8 {
                let slice = buffer.slice().slice(part * 7..part * 7 + 7);
                scope.spawn(move || {
                    memory.upload(&[turn + part as u8; 7], &slice, Stream::default()).unwrap()
                });
            }
        });
        let expected: Vec<u8> = (0..8).flat_map(|part| [turn + part; 7]).chain([0; 8]).collect();
        assert_eq!(download(memory, &*buffer), expected);
    }
}

/// A thread uploads bytes to a word while another thread runs a kernel that writes the other bytes of this word. Neither result is lost.
#[test]
fn results_share_words_with_what_is_uploaded() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    let (key, len) = (test_key(1, SIZE), 4 * 100 + 2);
    let mut expected = noise(3, len);
    let from = upload(memory, &expected);
    let mut state = test_block(4);
    let mut segments =
        [Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(&mut expected) }];
    MockAsyncDevice::default()
        .submit(KernelId(0), Task::Pass(Pass::Ctr, &mut segments).into())
        .unwrap()
        .wait()
        .unwrap();
    for turn in 0..16 {
        let to = upload(memory, &vec![0; len + 6]);
        std::thread::scope(|scope| {
            let rest = to.slice().slice(len..len + 6);
            scope.spawn(move || memory.upload(&[turn; 6], &rest, Stream::default()).unwrap());
            let mut state = test_block(4);
            let data = Data::on_device(from.slice(), to.slice().slice(0..len)).unwrap();
            let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data }];
            device.submit(KernelId(0), Task::Pass(Pass::Ctr, &mut segments).into()).unwrap().wait().unwrap();
        });
        let got = download(memory, &*to);
        assert!(got[..len] == expected && got[len..] == [turn; 6], "turn {turn}: {:?}", &got[len - 4..]);
    }
}

#[test]
fn foreign_and_freed_memory_is_out_of_reach() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    let buffer = memory.allocate(1000).unwrap();
    let odd = buffer.slice().slice(2..18);
    let refused = pass(&device, KernelId(0), Pass::Ctr, Data::on_device(odd.clone(), odd).unwrap());
    assert!(matches!(refused, Err(Error::OutOfReach { .. })), "{refused:?}");
    let slice = buffer.slice();
    drop(buffer);
    let gone = pass(&device, KernelId(0), Pass::Ctr, Data::on_device(slice.clone(), slice).unwrap());
    assert!(matches!(gone, Err(Error::OutOfReach { .. })), "{gone:?}");
    let far = MockAsyncDevice::default();
    let other = far.memory().unwrap().allocate(16).unwrap();
    let refused =
        pass(&device, KernelId(0), Pass::Ctr, Data::on_device(other.slice(), other.slice()).unwrap());
    assert!(matches!(refused, Err(Error::OutOfReach { .. })), "{refused:?}");
    let pinned = far.memory().unwrap().allocate_pinned(16).unwrap();
    let data = Data::pinned(pinned.slice(0..16), pinned.slice(0..16)).unwrap();
    let refused = pass(&device, KernelId(0), Pass::Ctr, data);
    assert!(matches!(refused, Err(Error::OutOfReach { .. })), "{refused:?}");
}

/// Work that fails before it is submitted leaves its data unchanged, because they may be the only copy.
#[test]
fn work_that_cannot_begin_leaves_its_data() {
    let Some(device) = software::device() else { return };
    let options = LaunchOptions { chunk: Some(60_000), buffer: Some(64 << 10), ..LaunchOptions::default() };
    let device = device.with_launches(options);
    let memory = device.memory().unwrap();
    let is_too_much = |result: Result<()>| match result {
        Err(Error::DeviceFailed { reason, .. }) => assert!(reason.contains("less at once"), "{reason}"),
        other => panic!("{other:?}"),
    };
    // Messages of GCM are not divided, so the larger message does not fit.
    let (small, large) = (noise(1, 500), noise(2, 200_000));
    let key = test_key(1, SIZE);
    for lengths in [&[200_000][..], &[500, 200_000], &[200_000, 500]] {
        for on_device in [true, false] {
            let plains = || lengths.iter().map(|&len| if len == 500 { &small } else { &large });
            let buffers: Vec<_> = plains().map(|plain| upload(memory, plain)).collect();
            let mut hosts: Vec<_> = plains().cloned().collect();
            let (mut tags, mut messages) = (vec![[0; 16]; lengths.len()], Vec::new());
            for ((buffer, host), tag) in buffers.iter().zip(&mut hosts).zip(&mut tags) {
                let data = if on_device {
                    Data::on_device(buffer.slice(), buffer.slice()).unwrap()
                } else {
                    Data::in_place(host)
                };
                let (tag, status) = (Tag::Write(tag), Status::Done);
                messages.push(AeadMessage { key: &key, nonce: &[5; 12], aad: &[], data, tag, status });
            }
            let task = Task::Fused(FusedAead::GcmSeal, &mut messages);
            is_too_much(device.submit(KernelId(0), task.into()).map(|_| ()));
            assert!(messages.iter().all(|message| message.status == Status::Pending));
            drop(messages);
            for ((index, plain), buffer) in plains().enumerate().zip(&buffers) {
                let left = if on_device { download(memory, &**buffer) } else { hosts[index].clone() };
                // A short message before the long one has already been submitted, so its output is zeroed.
                let begun = on_device && lengths[..=index] == [500];
                assert!(left == if begun { vec![0; 500] } else { plain.clone() }, "{lengths:?} {on_device}");
            }
        }
    }
}

/// A message of GCM without data may have a null slice, or a slice of freed memory.
#[test]
fn empty_data_may_be_anywhere() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    let (key, nonce) = (test_key(1, SIZE), [5; 12]);
    let aes = Aes::new(key.bytes());
    let freed = memory.allocate(16).unwrap().slice().slice(16..16);
    // SAFETY: the slice has no bytes.
    let null = unsafe { DeviceSlice::from_raw(device.id(), 0, 0) };
    // The message with much associated data is composed of passes.
    for aad in [noise(1, 5), noise(2, 40_000)] {
        let buffer = upload(memory, &noise(3, 100));
        let mut tags = [[0; 16]; 3];
        let slices = [freed.clone(), buffer.slice(), null.clone()];
        let mut messages: Vec<_> = (slices.into_iter().zip(&mut tags))
            .map(|(slice, tag)| AeadMessage {
                key: &key,
                nonce: &nonce,
                aad: &aad,
                data: Data::on_device(slice.clone(), slice).unwrap(),
                tag: Tag::Write(tag),
                status: Status::Pending,
            })
            .collect();
        let task = Task::Fused(FusedAead::GcmSeal, &mut messages);
        device.submit(KernelId(0), task.into()).unwrap().wait().unwrap();
        assert!(messages.iter().all(|message| message.status == Status::Done));
        drop(messages);
        let (sealed, tag) = gcm::seal(&aes, &nonce, &aad, &noise(3, 100));
        let (_, tag_of_nothing) = gcm::seal(&aes, &nonce, &aad, &[]);
        assert_eq!(tags, [tag_of_nothing, tag, tag_of_nothing]);
        assert_eq!(download(memory, &*buffer), sealed);
    }
}

/// If an adapter is opened twice, both devices have the same name, but neither device can access the memory of the other device.
#[test]
fn memory_of_another_instance_is_out_of_reach() {
    let (Some(one), Some(two)) = (device(), device()) else { return };
    let (memory, other) = (one.memory().unwrap(), two.memory().unwrap());
    let (buffer, others) = (upload(memory, &[1; 64]), upload(other, &[2; 64]));
    assert_eq!(buffer.slice().device(), others.slice().device());
    let refused =
        pass(&one, KernelId(0), Pass::Ctr, Data::on_device(others.slice(), others.slice()).unwrap());
    assert!(matches!(refused, Err(Error::OutOfReach { .. })), "{refused:?}");
    for result in [
        memory.upload(&[3; 64], &others.slice(), Stream::default()),
        other.download(&buffer.slice(), &mut [0; 64], Stream::default()),
        memory.fetch(&[others.slice()], Stream::default()).map(|_| ()),
    ] {
        assert!(matches!(result, Err(Error::OutOfReach { .. })), "{result:?}");
    }
    assert_eq!((download(memory, &*buffer), download(other, &*others)), (vec![1; 64], vec![2; 64]));
}

/// A slice may state a length beyond its buffer, or an address instead of a handle. Both are errors.
#[test]
fn a_slice_beyond_its_buffer_is_out_of_reach() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    let buffer = memory.allocate(64).unwrap();
    let all = DeviceSlice::of_buffer(device.id(), buffer.slice().buffer(), usize::MAX);
    // SAFETY: a device without addresses never accesses memory by an address.
    let address = unsafe { DeviceSlice::from_raw(device.id(), 0, 16) };
    let ranges = [16..usize::MAX, 16..usize::MAX - 3, 0..usize::MAX, 0..65, 64..65];
    for slice in ranges.map(|range| all.slice(range)).into_iter().chain([address]) {
        let refused = memory.fetch(std::slice::from_ref(&slice), Stream::default()).map(|_| ());
        assert!(matches!(refused, Err(Error::OutOfReach { .. })), "{slice:?}: {refused:?}");
    }
}

/// Allocations that are too large are errors, and so is every use of the memory of a lost device.
#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    let much = memory.allocate(usize::MAX - 3).map(|_| ());
    assert!(matches!(much, Err(Error::DeviceFailed { .. })), "{much:?}");
    let much = memory.allocate_pinned(usize::MAX / 2).map(|_| ());
    assert!(matches!(much, Err(Error::DeviceFailed { .. })), "{much:?}");
    let buffer = upload(memory, &[1; 100]);
    device.lose().unwrap();
    assert!(memory.allocate(16).is_err());
    assert!(memory.upload(&[1; 100], &buffer.slice(), Stream::default()).is_err());
    assert!(memory.download(&buffer.slice(), &mut [0; 100], Stream::default()).is_err());
}

/// Messages of a table that are not within its data stay pending; the other messages are processed.
#[test]
fn messages_outside_of_a_table_are_refused() {
    let Some(device) = device() else { return };
    let memory = device.memory().unwrap();
    let key = test_key(1, SIZE);
    let words = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let data = noise(1, 96);
    let (offsets, lengths) = (words(&[0, 80, 32, u64::MAX, 64]), words(&[32, 32, 24, 16, 16]));
    let arrays = [key.bytes(), &[0; 80], &offsets, &lengths, &data].map(|bytes| upload(memory, bytes));
    let [keys, states, offsets, lengths, from] = arrays;
    let (to, status) = (upload(memory, &[7; 96]), upload(memory, &[9; 5]));
    let table = Table {
        messages: 5,
        key_size: SIZE,
        keys: keys.slice(),
        states: states.slice(),
        offsets: offsets.slice(),
        lengths: lengths.slice(),
        longest: 1000,
        from: from.slice(),
        to: to.slice(),
        tags: None,
        status: status.slice(),
    };
    let run = |table: Table| {
        let operation = Operation::Pass(Pass::EcbEncrypt);
        device.submit_table(KernelId(0), Stream::default(), operation, &table)?.wait()
    };
    run(table.clone()).unwrap();
    assert_eq!(download(memory, &*status), [1, 0, 0, 0, 1]);
    let mut expected = vec![7; 96];
    let aes = Aes::new(key.bytes());
    for range in [0..32, 64..80] {
        expected[range.clone()].copy_from_slice(&lockstep_reference::ecb::encrypt(&aes, &data[range]));
    }
    assert!(download(memory, &*to) == expected);
    let short = run(Table { messages: 6, ..table });
    assert!(matches!(short, Err(Error::OutputLength { .. })), "{short:?}");
}

/// Statuses of an earlier call do not remain if a call fails.
#[test]
fn a_table_that_fails_leaves_its_messages_pending() {
    let Some(device) = software::device() else { return };
    let options =
        LaunchOptions { chunk: Some(usize::MAX / 4), buffer: Some(64 << 10), ..LaunchOptions::default() };
    let device = device.with_launches(options);
    let memory = device.memory().unwrap();
    let key = test_key(1, SIZE);
    let data = noise(1, 200_000);
    let (offset, len) = (0u64.to_le_bytes(), 200_000u64.to_le_bytes());
    let arrays = [key.bytes(), &[0; 16], &offset, &len, &data, &[1]].map(|bytes| upload(memory, bytes));
    let [keys, states, offsets, lengths, data_there, status] = arrays;
    let table = Table {
        messages: 1,
        key_size: SIZE,
        keys: keys.slice(),
        states: states.slice(),
        offsets: offsets.slice(),
        lengths: lengths.slice(),
        longest: 200_000,
        from: data_there.slice(),
        to: data_there.slice(),
        tags: None,
        status: status.slice(),
    };
    let operation = Operation::Pass(Pass::EcbEncrypt);
    let failed = device.submit_table(KernelId(0), Stream::default(), operation, &table).map(|_| ());
    assert!(matches!(failed, Err(Error::DeviceFailed { .. })), "{failed:?}");
    assert_eq!(download(memory, &*status), [Status::Pending as u8]);
    assert!(download(memory, &*data_there) == data, "nothing was submitted");
}
