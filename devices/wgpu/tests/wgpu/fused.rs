//! Tests of fused GCM with lengths that the suite does not reach on a software device, and of the number of its submissions.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use crate::software;

use lockstep_core::backend::{Device, DeviceId, KernelId, Unit};
use lockstep_core::data::{Data, PinnedBuffer};
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag, Task};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_reference::{Aes, gcm, ocb};
use lockstep_testkit::suite::{noise, test_key};
use lockstep_wgpu::{LaunchOptions, WgpuDevice};

struct Message {
    key: usize,
    nonce: Vec<u8>,
    aad: Vec<u8>,
    data: Vec<u8>,
    tag: Vec<u8>,
}

fn run(
    device: &WgpuDevice,
    kernel: u16,
    fused: FusedAead,
    keys: &[Key],
    messages: &mut [Message],
) -> Result<Vec<Status>> {
    let each = messages.iter_mut().map(|message| AeadMessage {
        key: &keys[message.key],
        nonce: &message.nonce,
        aad: &message.aad,
        data: Data::in_place(&mut message.data),
        tag: if fused.opens() { Tag::Expect(&message.tag) } else { Tag::Write(&mut message.tag) },
        status: Status::Pending,
    });
    let mut each: Vec<_> = each.collect();
    device.submit(KernelId(kernel), Task::Fused(fused, &mut each).into())?.wait()?;
    Ok(each.iter().map(|message| message.status).collect())
}

/// Seals and opens messages, some of them forged.
fn check(device: &WgpuDevice, size: KeySize, shapes: &[(usize, usize)]) {
    let keys: Vec<_> = (0..3).map(|seed| test_key(seed, size)).collect();
    for kernel in 0..device.kernels().len() as u16 {
        let message = |(index, &(aad, len)): (usize, &(usize, usize))| {
            let (seed, tag) = (index as u64, [16, 12, 4][index % 3]);
            let (nonce, aad, data) = (noise(seed, 12), noise(seed + 50, aad), noise(seed + 100, len));
            Message { key: index % 3, nonce, aad, data, tag: vec![0; tag] }
        };
        let mut messages: Vec<_> = shapes.iter().enumerate().map(message).collect();
        let statuses = run(device, kernel, FusedAead::GcmSeal, &keys, &mut messages).unwrap();
        assert!(statuses.iter().all(|&status| status == Status::Done));
        for (index, message) in messages.iter().enumerate() {
            let aes = Aes::new(keys[message.key].bytes());
            let plain = noise(index as u64 + 100, message.data.len());
            let (sealed, tag) = gcm::seal(&aes, &message.nonce, &message.aad, &plain);
            assert!(message.data == sealed, "message {index} by kernel {kernel}");
            assert_eq!(message.tag, tag[..message.tag.len()], "message {index} by kernel {kernel}");
        }
        let is_forged = |index: usize| index % 4 == 1;
        for (index, message) in messages.iter_mut().enumerate().filter(|(index, _)| is_forged(*index)) {
            let last = message.tag.len() - 1;
            message.tag[last] ^= 1 << (index % 8);
        }
        let statuses = run(device, kernel, FusedAead::GcmOpen, &keys, &mut messages).unwrap();
        for (index, message) in messages.iter().enumerate() {
            let len = message.data.len();
            let (status, plain) = if is_forged(index) {
                (Status::AuthenticationFailed, vec![0; len])
            } else {
                (Status::Done, noise(index as u64 + 100, len))
            };
            assert_eq!(statuses[index], status, "message {index} by kernel {kernel}");
            assert!(message.data == plain, "message {index} by kernel {kernel}");
        }
    }
}

/// Lengths around multiples of blocks, runs of GHASH and tiles.
const SHAPES: [(usize, usize); 12] = [
    (0, 0),
    (20, 0),
    (0, 1),
    (16, 16),
    (5, 1023),
    (0, 1008),
    (1009, 33),
    (13, 16_384),
    (0, 16_401),
    (70_000, 7),
    (3, 20_000),
    (64, 5000),
];

#[test]
fn invocations_share_tiles() {
    let Some(device) = software::device() else { return };
    let device = device.with_launches(LaunchOptions { wide: Some(true), ..LaunchOptions::default() });
    check(&device, KeySize::Aes192, &SHAPES);
}

/// Messages of all lengths have the right results, with several chunks in flight and with messages that are too long for one chunk.
#[test]
fn messages_of_any_length() {
    let Some(device) = software::device() else { return };
    let device = device.with_launches(LaunchOptions { chunk: Some(4096), ..LaunchOptions::default() });
    let mut shapes = SHAPES.to_vec();
    shapes.extend([(0, 32_768), (0, 32_769), (40_000, 100), (40_001, 50_003), (0, 0)]);
    check(&device, KeySize::Aes256, &shapes);
}

/// 130 messages of 16 KiB under one key, as in a file of Cobblestone, take at most three submissions.
#[test]
fn a_batch_takes_few_submissions() {
    let Some(device) = software::device() else { return };
    let keys = [test_key(1, KeySize::Aes256)];
    let message = |index: u64| Message {
        key: 0,
        nonce: noise(index, 12),
        aad: Vec::new(),
        data: noise(index, 16 << 10),
        tag: vec![0; 16],
    };
    let mut messages: Vec<_> = (0..130).map(message).collect();
    run(&device, 0, FusedAead::GcmSeal, &keys, &mut messages).unwrap();
    let aes = Aes::new(keys[0].bytes());
    for index in [0, 60, 129] {
        let (sealed, tag) = gcm::seal(&aes, &messages[index].nonce, &[], &noise(index as u64, 16 << 10));
        assert!(messages[index].data == sealed && messages[index].tag == tag, "message {index}");
    }
    // A chunk of a software device has one megabyte, and launches each program once.
    let launches =
        |name: &str| device.counters().iter().find(|counter| counter.name == name).map(|it| it.launches);
    assert!(launches("gcm_tags").unwrap() <= 3, "{:?}", device.counters());
    assert!(launches("bitslice_lane_ctr").unwrap() <= 3, "{:?}", device.counters());
}

/// Page-locked memory that makes the device fail: the first access to the memory after `device` is set loses the device.
struct Trap {
    bytes: Vec<u8>,
    device: Arc<OnceLock<Arc<WgpuDevice>>>,
}

impl Deref for Trap {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        if let Some(device) = self.device.get() {
            device.lose().unwrap();
        }
        &self.bytes
    }
}

impl DerefMut for Trap {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// Makes a call with two messages: one that is too long for one chunk, and a short one in the pinned memory. Returns the outcome, the
/// statuses, the tags, which are sevens before the call, and the data of the long message.
fn with_pinned(
    device: &WgpuDevice,
    fused: FusedAead,
    pinned: &PinnedBuffer,
) -> (Result<()>, [Status; 2], [[u8; 16]; 2], Vec<u8>) {
    let (key, mut long, mut tags) = (test_key(1, KeySize::Aes128), noise(1, 40_000), [[7; 16]; 2]);
    if fused.opens() {
        let aes = Aes::new(key.bytes());
        if fused == FusedAead::GcmOpen {
            (long, tags[0]) = gcm::seal(&aes, &[1; 12], b"", &long);
        } else {
            let (sealed, tag) = ocb::seal(&aes, &[1; 12], b"", &long, 16);
            (long, tags[0]) = (sealed, tag[..].try_into().unwrap());
        }
    }
    let [first, second] = &mut tags;
    let whole = || pinned.slice(0..pinned.len());
    let short = Data::pinned(whole(), whole()).unwrap();
    let mut messages = [(Data::in_place(&mut long), first), (short, second)].map(|(data, tag)| AeadMessage {
        key: &key,
        nonce: &[1; 12],
        aad: b"",
        data,
        tag: if fused.opens() { Tag::Expect(tag) } else { Tag::Write(tag) },
        status: Status::Pending,
    });
    // For a call with a long message, the device processes all messages within `submit`.
    let outcome = device.submit(KernelId(0), Task::Fused(fused, &mut messages).into()).map(|_| ());
    let statuses = [messages[0].status, messages[1].status];
    (outcome, statuses, tags, long)
}

/// A call that fails leaves no statuses, tags or data. This also holds for a long message that was finished before the failure.
#[test]
fn nothing_counts_of_a_call_that_fails() {
    for fused in [FusedAead::GcmSeal, FusedAead::GcmOpen, FusedAead::OcbSeal, FusedAead::OcbOpen] {
        for fails_later in [false, true] {
            let Some(device) = software::device() else { return };
            let options = LaunchOptions { chunk: Some(4096), ..LaunchOptions::default() };
            let (device, trap) = (Arc::new(device.with_launches(options)), Arc::<OnceLock<_>>::default());
            let storage = Box::new(Trap { bytes: noise(2, 500), device: trap.clone() });
            let pinned = PinnedBuffer::new(device.id(), storage);
            if fails_later {
                trap.set(device.clone()).ok().unwrap();
            } else {
                device.lose().unwrap();
            }
            let (outcome, statuses, tags, long) = with_pinned(&device, fused, &pinned);
            outcome.unwrap_err();
            assert_eq!(statuses, [Status::Pending; 2], "{fused:?}");
            if fails_later {
                let finished = device.counters().iter().map(|counter| counter.bytes).sum::<u64>();
                assert!(finished >= 40_000, "{fused:?}: the long message was not finished");
            }
            if !fused.opens() {
                assert_eq!(tags, [[0; 16]; 2], "{fused:?}");
            }
            let is_zero = |data: &[u8]| data.iter().all(|&byte| byte == 0);
            assert!(is_zero(&long) && is_zero(&pinned.lock()), "{fused:?}: a part of a result");
        }
    }
}

/// Memory that the device cannot access is found before any message is processed.
#[test]
fn pinned_memory_of_another_device_is_refused_before_anything_is_written() {
    let Some(device) = software::device() else { return };
    let device = device.with_launches(LaunchOptions { chunk: Some(4096), ..LaunchOptions::default() });
    let other = DeviceId { backend: "other", unit: Unit::Number(0) };
    let pinned = PinnedBuffer::new(other, Box::new(noise(2, 500)));
    for fused in [FusedAead::GcmSeal, FusedAead::OcbSeal] {
        let (outcome, statuses, tags, long) = with_pinned(&device, fused, &pinned);
        assert!(matches!(outcome, Err(Error::OutOfReach { .. })), "{outcome:?}");
        assert_eq!((statuses, tags), ([Status::Pending; 2], [[7; 16]; 2]));
        assert!(long == noise(1, 40_000) && pinned.lock()[..] == noise(2, 500));
    }
}
