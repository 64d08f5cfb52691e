//! Results in device memory or page-locked memory are verified when their completion is waited for.

use std::sync::Arc;

use lockstep_core::backend::{Completion, Device, DeviceBuffer};
use lockstep_core::data::Data;
use lockstep_core::work::{
    AeadMessage, FusedAead, Operation, Pass, Segment, Status, Stream, Tag, Task, Tweak,
};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_planner::verify::Verify;
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::{Behaviour, MOCK_DEVICE, MockAsyncDevice, MockCpu, offers};

/// A planner for a device, and this device. The result of the submission with the number `corrupt_at` has a wrong byte. Submissions are
/// counted from 0, self-tests included.
fn planner(verify: Verify, corrupt_at: Option<u64>) -> (Planner, Arc<MockAsyncDevice>) {
    let device = Arc::new(MockAsyncDevice::new(Behaviour { corrupt_at, ocb: true, ..Behaviour::default() }));
    let devices: Vec<Arc<dyn Device>> = vec![Arc::clone(&device) as _, Arc::<MockCpu>::default()];
    let selection = Selection { device: Some(MOCK_DEVICE.into()), kernel: None };
    (Planner::new(devices, &selection).unwrap().with_verify(verify), device)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251 + 1) as u8).collect()
}

/// The kind of memory in which the data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Same,
    Apart,
    Pinned,
}

/// The ciphertext and the tag of a message by the reference implementation.
fn sealed(fused: FusedAead, plain: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let aes = lockstep_reference::Aes::new(&[1; 16]);
    if fused.sealing() == FusedAead::GcmSeal {
        return lockstep_reference::gcm::seal(&aes, &[1; 12], b"", plain);
    }
    let (sealed, tag) = lockstep_reference::ocb::seal(&aes, &[1; 12], b"", plain, 16);
    (sealed, tag.try_into().unwrap())
}

const OPENING: [FusedAead; 2] = [FusedAead::GcmOpen, FusedAead::OcbOpen];

/// Runs one operation on a number of bytes; returns the outcome and the output.
fn run(planner: &Planner, operation: Operation, len: usize, place: Place) -> (Result<()>, Vec<u8>) {
    run_with(planner, operation, len, place, true)
}

fn run_with(
    planner: &Planner,
    operation: Operation,
    len: usize,
    place: Place,
    is_genuine: bool,
) -> (Result<()>, Vec<u8>) {
    let (mut input, mut given, mut opens) = (bytes(len), [0; 16], false);
    if let Operation::Fused(fused) = operation
        && fused.opens()
    {
        (input, given) = sealed(fused, &input);
        opens = true;
    }
    given[3] ^= u8::from(!is_genuine);
    let memory = planner.devices()[0].memory().unwrap();
    let buffers: [Box<dyn DeviceBuffer>; 2] = [0, 1].map(|_| memory.allocate(len).unwrap());
    let [from, to] = [0, usize::from(place != Place::Same)].map(|index| buffers[index].slice());
    memory.upload(&input, &from, Stream::default()).unwrap();
    let pinned = memory.allocate_pinned(2 * len).unwrap();
    pinned.lock()[..len].copy_from_slice(&input);
    let data = if place == Place::Pinned {
        Data::pinned(pinned.slice(0..len), pinned.slice(len..2 * len)).unwrap()
    } else {
        Data::on_device(from, to.clone()).unwrap()
    };
    let keys = [Key::new(&[1; 16]).unwrap(), Key::new(&[2; 16]).unwrap()];
    let plan = planner.plan(operation, KeySize::Aes128, len, Some(MOCK_DEVICE)).unwrap();
    let outcome = match operation {
        Operation::Pass(pass) => {
            let tweak = pass.is_xts().then_some(Tweak { key: &keys[1], position: 3 });
            let mut state = [9; 16];
            let mut segments = [Segment { key: &keys[0], tweak, state: &mut state, data }];
            match place {
                Place::Pinned => {
                    let outcome = plan.run(Task::Pass(pass, &mut segments));
                    assert!(outcome.is_ok() || state == [9; 16], "the state is as it was");
                    outcome
                }
                // Wrong results are reported when the completion is waited for, not by the submission.
                _ => plan.submit(Task::Pass(pass, &mut segments)).and_then(Completion::wait),
            }
        }
        Operation::Fused(fused) => {
            let mut made = [0; 16];
            let tag = if opens { Tag::Expect(&given) } else { Tag::Write(&mut made) };
            let status = Status::Pending;
            let mut messages = [AeadMessage { key: &keys[0], nonce: &[1; 12], aad: b"", data, tag, status }];
            let outcome = plan.run(Task::Fused(fused, &mut messages));
            let expected = match &outcome {
                Err(_) => Status::Pending,
                Ok(()) if is_genuine => Status::Done,
                Ok(()) => Status::AuthenticationFailed,
            };
            assert_eq!(messages[0].status, expected);
            assert!(opens || outcome.is_err() == (made == [0; 16]), "no tag of what was not sealed");
            outcome
        }
    };
    let mut output = vec![0; len];
    if place == Place::Pinned {
        output.copy_from_slice(&pinned.lock()[len..]);
    } else {
        memory.download(&to, &mut output, Stream::default()).unwrap();
    }
    (outcome, output)
}

fn writing() -> impl Iterator<Item = Operation> {
    let is_ocb = |operation: &Operation| {
        matches!(operation, Operation::Fused(FusedAead::OcbSeal | FusedAead::OcbOpen))
    };
    let all =
        Operation::all().filter(move |operation| offers(*operation, KeySize::Aes128) || is_ocb(operation));
    all.filter(|operation| !matches!(operation, Operation::Pass(pass) if pass.is_read_only()))
}

#[test]
fn wrong_results_are_detected_and_zeroed() {
    for operation in writing() {
        // The wrong byte is the first one: a sample of a single block must find it, and so must a full comparison.
        for (verify, len) in [(Verify::Sample, 16), (Verify::Full, 16 * 4097 + 32)] {
            for place in [Place::Same, Place::Apart, Place::Pinned] {
                let (right, device) = planner(verify, None);
                let (outcome, good) = run(&right, operation, len, place);
                assert_eq!(outcome, Ok(()), "{operation} {place:?}");
                assert!(good != vec![0; len], "{operation}");
                // The self-test comes before the work, so the last submission was the work. The next device therefore returns a
                // wrong result for the submission with this number.
                let (wrong, _) = planner(verify, Some(device.submitted() - 1));
                let (outcome, output) = run(&wrong, operation, len, place);
                assert_eq!(
                    outcome,
                    Err(Error::WrongResult { device: MOCK_DEVICE }),
                    "{operation} {verify:?} {place:?}"
                );
                assert!(output == vec![0; len], "{operation} {place:?}");
            }
        }
    }
}

#[test]
fn tails_are_compared_fully() {
    let ctr = Operation::Pass(Pass::Ctr);
    let (planner, _) = planner(Verify::Full, None);
    for len in [1, 15, 17, 65_536, 65_537] {
        assert_eq!(run(&planner, ctr, len, Place::Apart).0, Ok(()), "{len}");
    }
}

/// Seals or opens one message of OCB3 with these lengths of the nonce and the tag. The data are pinned if `pinned` is
/// true, and otherwise in device memory.
fn run_ocb(
    planner: &Planner,
    fused: FusedAead,
    (nonce, tag): (usize, usize),
    len: usize,
    pinned: bool,
) -> (Result<()>, Vec<u8>) {
    let (nonce, mut input) = (bytes(nonce), bytes(len));
    let (sealed, mut given) =
        lockstep_reference::ocb::seal(&lockstep_reference::Aes::new(&[1; 16]), &nonce, b"aad", &input, tag);
    if fused.opens() {
        input = sealed;
    }
    let memory = planner.devices()[0].memory().unwrap();
    let (buffer, locked) = (memory.allocate(len).unwrap(), memory.allocate_pinned(len).unwrap());
    memory.upload(&input, &buffer.slice(), Stream::default()).unwrap();
    locked.lock().copy_from_slice(&input);
    let data = match pinned {
        true => Data::pinned(locked.slice(0..len), locked.slice(0..len)),
        false => Data::on_device(buffer.slice(), buffer.slice()),
    };
    let key = Key::new(&[1; 16]).unwrap();
    let tag = if fused.opens() { Tag::Expect(&given) } else { Tag::Write(&mut given) };
    let (data, status) = (data.unwrap(), Status::Pending);
    let mut messages = [AeadMessage { key: &key, nonce: &nonce, aad: b"aad", data, tag, status }];
    let plan = planner.plan(Operation::Fused(fused), KeySize::Aes128, len, Some(MOCK_DEVICE)).unwrap();
    let outcome = plan.run(Task::Fused(fused, &mut messages));
    assert_eq!(messages[0].status == Status::Done, outcome.is_ok());
    let mut output = vec![0; len];
    if pinned {
        output.copy_from_slice(&locked.lock());
    } else {
        memory.download(&buffer.slice(), &mut output, Stream::default()).unwrap();
    }
    (outcome, output)
}

/// The last, partial block of OCB3 is not part of the pass over the whole blocks. Nonces and tags of other lengths than usual
/// change the offset that it is encrypted with.
#[test]
fn partial_blocks_of_ocb_are_compared_fully() {
    let planner = |corrupt_at| {
        let behaviour = Behaviour { corrupt_at, corrupt_last_byte: true, ocb: true, ..Behaviour::default() };
        let device = Arc::new(MockAsyncDevice::new(behaviour));
        let devices: Vec<Arc<dyn Device>> = vec![Arc::clone(&device) as _, Arc::<MockCpu>::default()];
        let selection = Selection { device: Some(MOCK_DEVICE.into()), kernel: None };
        (Planner::new(devices, &selection).unwrap().with_verify(Verify::Full), device)
    };
    for fused in [FusedAead::OcbSeal, FusedAead::OcbOpen] {
        for lengths in [(12, 16), (1, 8), (15, 8)] {
            for len in [1, 15, 16, 17, 65_536 + 7] {
                for pinned in [false, true] {
                    let (right, device) = planner(None);
                    let (outcome, output) = run_ocb(&right, fused, lengths, len, pinned);
                    assert_eq!(outcome, Ok(()), "{fused:?} {lengths:?} {len} pinned {pinned}");
                    assert!(output.iter().any(|&byte| byte != 0));
                    let (wrong, _) = planner(Some(device.submitted() - 1));
                    let (outcome, output) = run_ocb(&wrong, fused, lengths, len, pinned);
                    let expected = Err(Error::WrongResult { device: MOCK_DEVICE });
                    assert_eq!(outcome, expected, "{fused:?} {lengths:?} {len} pinned {pinned}");
                    assert!(output.iter().all(|&byte| byte == 0));
                }
            }
        }
    }
}

/// A nonce or a tag of a length that the mode does not allow is an error, not a panic, even if the caller bypasses the mode.
#[test]
fn lengths_of_fused_aeads_are_checked() {
    for (fused, nonce, tag) in [
        (FusedAead::OcbSeal, 0, 16),
        (FusedAead::OcbSeal, 16, 16),
        (FusedAead::OcbOpen, 16, 16),
        (FusedAead::OcbOpen, 12, 17),
        (FusedAead::OcbSeal, 12, 0),
        (FusedAead::GcmSeal, 13, 16),
        (FusedAead::GcmOpen, 0, 16),
    ] {
        let (planner, _) = planner(Verify::Sample, None);
        let memory = planner.devices()[0].memory().unwrap();
        let buffer = memory.allocate(32).unwrap();
        let key = Key::new(&[1; 16]).unwrap();
        for waits in [false, true] {
            let (nonce, mut tag_bytes) = (vec![1; nonce], vec![2; tag]);
            let tag = if fused.opens() { Tag::Expect(&tag_bytes) } else { Tag::Write(&mut tag_bytes) };
            let data = Data::on_device(buffer.slice(), buffer.slice()).unwrap();
            let status = Status::Pending;
            let mut messages = [AeadMessage { key: &key, nonce: &nonce, aad: b"", data, tag, status }];
            let plan = planner.plan(Operation::Fused(fused), KeySize::Aes128, 32, Some(MOCK_DEVICE)).unwrap();
            let task = Task::Fused(fused, &mut messages);
            let outcome = if waits { plan.run(task) } else { plan.submit(task).and_then(Completion::wait) };
            assert!(
                matches!(outcome, Err(Error::IvLength { .. } | Error::TagLength { .. })),
                "{fused:?} {} {outcome:?}",
                nonce.len()
            );
        }
    }
}

#[test]
fn off_is_off() {
    let (right, device) = planner(Verify::Off, None);
    run(&right, Operation::Pass(Pass::EcbEncrypt), 16, Place::Apart).0.unwrap();
    let (wrong, _) = planner(Verify::Off, Some(device.submitted() - 1));
    assert_eq!(run(&wrong, Operation::Pass(Pass::EcbEncrypt), 16, Place::Apart).0, Ok(()));
}

/// A refused message has zeroed output, which is correct. If an opened message has zeroed output, the result is wrong.
#[test]
fn only_refused_messages_may_be_zeroed() {
    for (fused, verify) in
        OPENING.iter().flat_map(|&fused| [Verify::Sample, Verify::Full].map(|way| (fused, way)))
    {
        for place in [Place::Same, Place::Apart, Place::Pinned] {
            let (planner, _) = planner(verify, None);
            let open = Operation::Fused(fused);
            assert_eq!(run_with(&planner, open, 70_001, place, false), (Ok(()), vec![0; 70_001]));
            assert_eq!(run_with(&planner, open, 70_001, place, true), (Ok(()), bytes(70_001)));
        }
    }
    // One bit of this plaintext is set. The device clears this bit, so that the output is all zeros.
    let mut plain = [0; 16];
    plain[0] = 0x40;
    for fused in OPENING {
        let (sealed, tag) = sealed(fused, &plain);
        let once = |corrupt_at| {
            let (planner, device) = planner(Verify::Sample, corrupt_at);
            let memory = planner.devices()[0].memory().unwrap();
            let buffer = memory.allocate(16).unwrap();
            memory.upload(&sealed, &buffer.slice(), Stream::default()).unwrap();
            let plan = planner.plan(Operation::Fused(fused), KeySize::Aes128, 16, Some(MOCK_DEVICE)).unwrap();
            let key = Key::new(&[1; 16]).unwrap();
            let data = Data::on_device(buffer.slice(), buffer.slice()).unwrap();
            let (tag, status) = (Tag::Expect(&tag), Status::Pending);
            let mut messages = [AeadMessage { key: &key, nonce: &[1; 12], aad: b"", data, tag, status }];
            let outcome = plan.run(Task::Fused(fused, &mut messages));
            (outcome, messages[0].status, device.submitted())
        };
        let (outcome, status, submitted) = once(None);
        assert_eq!((outcome, status), (Ok(()), Status::Done));
        let (outcome, status, _) = once(Some(submitted - 1));
        assert_eq!((outcome, status), (Err(Error::WrongResult { device: MOCK_DEVICE }), Status::Pending));
    }
}
