//! Tests of failures in the middle of a call: the state of the data, of the memory and of the device after the failure.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use lockstep_core::backend::{Device, DeviceId, KernelId, Unit};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Stream, Tag, Task};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_gpu_host::Overhead;
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::MockCpu;

use crate::chunk::CHUNK;
use crate::device::Cuda;
use crate::machine::Fault;
use crate::machine::emulator::Emulator;
use crate::machine::failing::{Control, Failing};

const BITSLICE: KernelId = KernelId(0);
const TABLE: KernelId = KernelId(1);
const NAME: DeviceId = DeviceId { backend: "cuda", unit: Unit::Named("failing") };

fn device() -> (Cuda, Arc<Control>) {
    let control = Arc::new(Control::default());
    let machine = Failing { emulator: Emulator::new(), control: Arc::clone(&control) };
    (Cuda::new(NAME, Box::new(machine), true, None), control)
}

fn lost() -> Fault {
    Fault::Lost("an illegal address (TEST)".into())
}

fn failed() -> Fault {
    Fault::Failed("no (TEST)".into())
}

fn no_memory() -> Fault {
    Fault::OutOfMemory { bytes: 7, what: "memory of the test" }
}

fn reason(error: &Error) -> &str {
    match error {
        Error::DeviceFailed { device, reason } if *device == NAME => reason,
        other => panic!("{other}"),
    }
}

/// Runs CTR over one message, with a key whose bytes are all 1.
fn ctr(device: &Cuda, kernel: KernelId, data: Data<'_>) -> Result<()> {
    let key = Key::new(&[1; 16]).unwrap();
    let mut state = [2; 16];
    let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data }];
    let outcome = device
        .submit(kernel, Task::Pass(Pass::Ctr, &mut segments).into())
        .and_then(|completion| completion.wait());
    assert_eq!(state != [2; 16], outcome.is_ok(), "the chaining state changes only on success");
    outcome
}

fn expected(len: usize) -> Vec<u8> {
    lockstep_reference::ctr::apply(&lockstep_reference::Aes::new(&[1; 16]), &[2; 16], &vec![5; len])
}

#[test]
fn a_failed_call_leaves_host_data_as_they_were_and_the_device_goes_on() {
    for (at, fault) in [(0, failed()), (1, failed())] {
        let (device, control) = device();
        *control.launch.lock().unwrap() = Some((at, fault));
        let (input, mut output) = (vec![5; 1000], vec![7; 1000]);
        let error = ctr(&device, BITSLICE, Data::copy(&input, &mut output).unwrap()).unwrap_err();
        assert_eq!(reason(&error), "no (TEST)");
        assert_eq!(output, vec![7; 1000]);
        ctr(&device, BITSLICE, Data::copy(&input, &mut output).unwrap()).unwrap();
        assert_eq!(output, expected(1000));
    }
}

#[test]
fn every_allocation_may_fail() {
    for at in 0..20 {
        let (device, control) = device();
        *control.allocation.lock().unwrap() = Some((at, no_memory()));
        let mut data = vec![5; 100_000];
        match ctr(&device, TABLE, Data::in_place(&mut data)) {
            Ok(()) => {
                assert!(at >= 4, "a staging buffer takes two, and two more to grow");
                assert_eq!(data, expected(100_000));
                return;
            }
            Err(error) => {
                assert!(reason(&error).contains("out of memory of the test"), "{error}");
                assert_eq!(data, vec![5; 100_000]);
                ctr(&device, TABLE, Data::in_place(&mut data)).unwrap();
                assert_eq!(data, expected(100_000));
            }
        }
    }
    panic!("too many allocations");
}

#[test]
fn a_large_call_that_fails_late_is_zeroed() {
    // A chunk has two launches: key expansion and the pass. Launch 10, counted from 0, is in the sixth chunk. Results of the
    // first chunk have been written before this launch. `submit` finishes three chunks, with two waits each. All later chunks
    // finish after `submit` has returned, with one or two waits each.
    let len = 7 * CHUNK;
    for (launch, wait) in [(Some(10), None), (None, Some(4)), (None, Some(6)), (None, Some(9))] {
        let (device, control) = device();
        *control.launch.lock().unwrap() = launch.map(|at| (at, failed()));
        *control.wait.lock().unwrap() = wait.map(|at| (at, failed()));
        let mut data = vec![5; len];
        // A failed wait has the same effect whether or not kernels run. Copies without kernels make this test faster.
        let error = match launch {
            Some(_) => ctr(&device, TABLE, Data::in_place(&mut data)),
            None => copy(&device, Data::in_place(&mut data)),
        }
        .unwrap_err();
        assert_eq!(reason(&error), "no (TEST)");
        assert!(data.iter().all(|&byte| byte == 0), "a part of a result");
    }
}

fn copy(device: &Cuda, data: Data<'_>) -> Result<()> {
    let key = Key::new(&[1; 16]).unwrap();
    let mut state = [2; 16];
    let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data }];
    device.overhead(Overhead::Copy, &mut segments, Stream::default())?.wait()
}

#[test]
fn a_lost_device_stays_lost() {
    for in_wait in [false, true] {
        let (device, control) = device();
        let plan = if in_wait { &control.wait } else { &control.launch };
        *plan.lock().unwrap() = Some((0, lost()));
        let mut data = vec![5; 100];
        let error = ctr(&device, BITSLICE, Data::in_place(&mut data)).unwrap_err();
        assert!(reason(&error).contains("(TEST); the device is lost to this process"), "{error}");
        let late = control.late.load(SeqCst);
        let error = ctr(&device, BITSLICE, Data::in_place(&mut data)).unwrap_err();
        assert!(reason(&error).contains("(TEST); the device is lost"), "{error}");
        let error = device.memory().unwrap().allocate(10).err().unwrap();
        assert!(reason(&error).contains("restart the program"), "{error}");
        assert_eq!(control.late.load(SeqCst), late, "no call reaches a lost device");
        assert_eq!(data, vec![5; 100]);
    }
}

#[test]
fn data_on_the_device_are_zeroed_when_work_on_them_fails() {
    for (plan, at) in [("launch", 1), ("wait", 0)] {
        let (device, control) = device();
        let memory = device.memory().unwrap();
        let buffer = memory.allocate(1000).unwrap();
        memory.upload(&[5; 1000], &buffer.slice(), Stream::default()).unwrap();
        let plan = if plan == "wait" { &control.wait } else { &control.launch };
        *plan.lock().unwrap() = Some((at, failed()));
        let error =
            ctr(&device, TABLE, Data::on_device(buffer.slice(), buffer.slice()).unwrap()).unwrap_err();
        assert_eq!(reason(&error), "no (TEST)");
        let mut back = vec![1; 1000];
        memory.download(&buffer.slice(), &mut back, Stream::default()).unwrap();
        assert_eq!(back, vec![0; 1000]);
    }
}

#[test]
fn messages_of_a_failed_call_stay_pending() {
    let key = Key::new(&[1; 16]).unwrap();
    let aes = lockstep_reference::Aes::new(&[1; 16]);
    let (sealed, tag) = lockstep_reference::gcm::seal(&aes, &[3; 12], b"x", &[5; 1000]);
    for fused in [FusedAead::GcmSeal, FusedAead::GcmOpen] {
        let (device, control) = device();
        let seals = fused == FusedAead::GcmSeal;
        let (mut data, mut made) = if seals { (vec![5; 1000], [0; 16]) } else { (sealed.clone(), tag) };
        assert_eq!(gcm(&device, &key, fused, &mut data, &mut made).unwrap(), Status::Done);
        assert_eq!((data, made), (if seals { sealed.clone() } else { vec![5; 1000] }, tag));
        let launches = control.launches.load(SeqCst);
        assert!(launches >= 4, "expansion, blocks before, CTR, GHASH and tags");
        for at in 0..launches {
            let (device, control) = self::device();
            *control.launch.lock().unwrap() = Some((at, failed()));
            let (mut data, mut kept) = (sealed.clone(), tag);
            let error = gcm(&device, &key, fused, &mut data, &mut kept).unwrap_err();
            assert_eq!(reason(&error), "no (TEST)");
            assert_eq!((data, kept), (sealed.clone(), tag), "host memory is unchanged");
        }
    }
}

/// A large call that fails late zeroes the data and the tags.
#[test]
fn many_messages_of_which_the_last_fail_are_zeroed() {
    let (device, control) = device();
    let key = Key::new(&[1; 16]).unwrap();
    // There are six chunks. The results of the first two are delivered before the fifth wait.
    let (mut data, mut tags) = (vec![vec![5; CHUNK]; 6], vec![[7; 16]; 6]);
    *control.wait.lock().unwrap() = Some((4, failed()));
    let mut messages: Vec<_> = (data.iter_mut().zip(&mut tags))
        .map(|(data, tag)| AeadMessage {
            key: &key,
            nonce: &[3; 12],
            aad: b"x",
            data: Data::in_place(data),
            tag: Tag::Write(tag),
            status: Status::Done,
        })
        .collect();
    let error = device
        .submit(TABLE, Task::Fused(FusedAead::GcmSeal, &mut messages).into())
        .and_then(|completion| completion.wait())
        .unwrap_err();
    assert_eq!(reason(&error), "no (TEST)");
    assert!(messages.iter().all(|message| message.status == Status::Pending));
    assert!(data.iter().flatten().all(|&byte| byte == 0) && tags == [[0; 16]; 6]);
}

/// Processes one message with GCM and returns its status. After a failure the status must be `Pending`.
fn gcm(device: &Cuda, key: &Key, fused: FusedAead, data: &mut [u8], tag: &mut [u8]) -> Result<Status> {
    let tag = if fused == FusedAead::GcmSeal { Tag::Write(tag) } else { Tag::Expect(tag) };
    let (data, status) = (Data::in_place(data), Status::Done);
    let mut messages = [AeadMessage { key, nonce: &[3; 12], aad: b"x", data, tag, status }];
    let outcome = device
        .submit(BITSLICE, Task::Fused(fused, &mut messages).into())
        .and_then(|completion| completion.wait());
    assert!(outcome.is_ok() || messages[0].status == Status::Pending);
    outcome.map(|()| messages[0].status)
}

/// Opens a message of OCB3 whose data are in device memory, in place. Returns the outcome, the status and the data.
fn open_ocb_on_device(device: &Cuda, sealed: &[u8], tag: &[u8]) -> (Result<()>, Status, Vec<u8>) {
    let memory = device.memory().unwrap();
    let buffer = memory.allocate(sealed.len()).unwrap();
    memory.upload(sealed, &buffer.slice(), Stream::default()).unwrap();
    let key = Key::new(&[1; 16]).unwrap();
    let data = Data::on_device(buffer.slice(), buffer.slice()).unwrap();
    let (tag, status) = (Tag::Expect(tag), Status::Done);
    let mut messages = [AeadMessage { key: &key, nonce: &[3; 15], aad: b"x", data, tag, status }];
    let outcome = device
        .submit(BITSLICE, Task::Fused(FusedAead::OcbOpen, &mut messages).into())
        .and_then(|completion| completion.wait());
    let status = messages[0].status;
    let mut output = vec![1; sealed.len()];
    memory.download(&buffer.slice(), &mut output, Stream::default()).unwrap();
    (outcome, status, output)
}

/// The plaintext of OCB3 is on the device before the tag is compared. The plaintext is zeroed if the tag is wrong or if any
/// call fails.
#[test]
fn ocb_on_the_device_is_zeroed_if_the_tag_is_wrong_or_the_device_fails() {
    let plaintext: Vec<u8> = (1..=250).cycle().take(20_007).collect();
    let aes = lockstep_reference::Aes::new(&[1; 16]);
    let (sealed, tag) = lockstep_reference::ocb::seal(&aes, &[3; 15], b"x", &plaintext, 8);
    let (device, control) = device();
    let opened = open_ocb_on_device(&device, &sealed, &tag);
    assert!(opened == (Ok(()), Status::Done, plaintext), "{:?}", opened.0);
    let launches = control.launches.load(SeqCst);
    assert!(launches >= 8, "expansion, four times ECB, and the kernels of OCB3");
    let mut wrong = tag.clone();
    wrong[7] ^= 0x80;
    let refused = open_ocb_on_device(&device, &sealed, &wrong);
    assert!(refused == (Ok(()), Status::AuthenticationFailed, vec![0; 20_007]), "{:?}", refused.0);
    // The first wait is the wait for the end of the work.
    let faults = (0..launches).map(|at| (Some(at), None)).chain([(None, Some(0))]);
    for (launch, wait) in faults {
        let (device, control) = self::device();
        *control.launch.lock().unwrap() = launch.map(|at| (at, failed()));
        *control.wait.lock().unwrap() = wait.map(|at| (at, failed()));
        let (outcome, status, output) = open_ocb_on_device(&device, &sealed, &tag);
        assert_eq!(reason(&outcome.unwrap_err()), "no (TEST)", "launch {launch:?}, wait {wait:?}");
        assert_eq!(status, Status::Pending);
        assert!(output.iter().all(|&byte| byte == 0), "launch {launch:?}, wait {wait:?}");
    }
}

/// The kernels with the carry-less multiply-add are used only if the device passes the test of the instruction. Otherwise GHASH
/// uses the other kernels, with the same results.
#[test]
fn ghash_multiplies_carry_less_only_after_a_test() {
    let key = Key::new(&[1; 16]).unwrap();
    let aes = lockstep_reference::Aes::new(&[1; 16]);
    let plaintext: Vec<u8> = (0..=250).cycle().take(400_003).collect();
    let (sealed, tag) = lockstep_reference::gcm::seal(&aes, &[3; 12], b"x", &plaintext);
    for (fault, is_used) in [("none", true), ("wrong product", false), ("launch", false), ("wait", false)] {
        let control = Arc::new(Control::default());
        let machine = Failing { emulator: Emulator::with_carry_less(), control: Arc::clone(&control) };
        let device = Cuda::new(NAME, Box::new(machine), true, None);
        match fault {
            "wrong product" => *control.wrong_copy.lock().unwrap() = Some(0),
            "launch" => *control.launch.lock().unwrap() = Some((0, failed())),
            "wait" => *control.wait.lock().unwrap() = Some((0, failed())),
            _ => {}
        }
        for _ in 0..2 {
            let (mut data, mut made) = (plaintext.clone(), [0; 16]);
            let status = gcm(&device, &key, FusedAead::GcmSeal, &mut data, &mut made);
            assert_eq!(status, Ok(Status::Done), "{fault}");
            assert!(data == sealed && made == tag, "{fault}");
        }
        let counters = device.counters();
        let launches = |name: &str| {
            counters.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.launches)
        };
        assert_eq!(launches("carry_less_products"), u64::from(fault != "launch"), "the test runs once");
        let (new, old) = (launches("ghash_carry_less_tiles"), launches("ghash_tensor_tiles"));
        assert_eq!((new > 0, old > 0), (is_used, !is_used), "{fault}: {new} and {old} launches");
    }
}

#[test]
fn pinned_data_are_zeroed_when_work_on_them_fails() {
    let (device, control) = device();
    let buffer = device.memory().unwrap().allocate_pinned(1000).unwrap();
    buffer.lock().fill(5);
    *control.wait.lock().unwrap() = Some((0, failed()));
    ctr(&device, TABLE, Data::pinned(buffer.slice(0..500), buffer.slice(0..500)).unwrap()).unwrap_err();
    assert_eq!(buffer.lock()[..], [vec![0; 500], vec![5; 500]].concat());
}

/// A wrong byte in a result of a GPU is detected. Results in host memory are then computed again, and results in device
/// memory are zeroed.
#[test]
fn a_wrong_byte_is_detected() {
    for on_device in [false, true] {
        let (device, control) = device();
        let device = Arc::new(device);
        let devices: Vec<Arc<dyn Device>> = vec![Arc::clone(&device) as _, Arc::<MockCpu>::default()];
        let selection = Selection { device: Some(NAME.into()), kernel: None };
        let planner = Planner::new(devices, &selection).unwrap();
        let memory = device.memory().unwrap();
        let buffer = memory.allocate(16).unwrap();
        let key = Key::new(&[1; 16]).unwrap();
        let run = |data: Data<'_>| {
            let mut state = [2; 16];
            let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data }];
            let resident = segments[0].data.device();
            let plan = planner.plan(Operation::Pass(Pass::Ctr), KeySize::Aes128, 16, resident).unwrap();
            // For data in host memory, the next copy to the host contains the result. For data in device memory, the
            // next copy contains the input, and the copy after it contains the result.
            *control.wrong_copy.lock().unwrap() =
                Some(control.copies.load(SeqCst) + u64::from(resident.is_some()));
            plan.run(Task::Pass(Pass::Ctr, &mut segments))
        };
        if on_device {
            memory.upload(&[5; 16], &buffer.slice(), Stream::default()).unwrap();
            let outcome = run(Data::on_device(buffer.slice(), buffer.slice()).unwrap());
            assert_eq!(outcome, Err(Error::WrongResult { device: NAME }));
            let mut left = [1; 16];
            memory.download(&buffer.slice(), &mut left, Stream::default()).unwrap();
            assert_eq!(left, [0; 16]);
        } else {
            let mut data = [5; 16];
            run(Data::in_place(&mut data)).unwrap();
            assert_eq!(data[..], expected(16));
            assert_eq!(planner.incidents(), [Error::WrongResult { device: NAME }]);
        }
    }
}

/// The cost of a kernel that must be compiled first is so high that the planner avoids the kernel.
#[test]
fn kernels_that_must_be_compiled_first_cost_much() {
    let (device, control) = device();
    let cost = || device.cost(BITSLICE, Operation::Pass(Pass::Ctr), KeySize::Aes128).unwrap();
    assert!(cost().fixed_ns < 1e9);
    control.compiles.store(true, SeqCst);
    assert!(cost().fixed_ns > 10e9);
}

#[test]
fn nothing_stays_allocated() {
    let (device, control) = device();
    ctr(&device, TABLE, Data::in_place(&mut vec![5; 2 * CHUNK])).unwrap();
    *control.wait.lock().unwrap() = Some((control.waits.load(SeqCst), failed()));
    ctr(&device, TABLE, Data::in_place(&mut vec![5; CHUNK])).unwrap_err();
    let buffer = device.memory().unwrap().allocate(1000).unwrap();
    let pinned = device.memory().unwrap().allocate_pinned(1000).unwrap();
    assert!(control.bytes.load(SeqCst) > 2000);
    drop((buffer, pinned, device));
    assert_eq!(control.bytes.load(SeqCst), 0);
}

#[test]
fn freed_memory_is_out_of_bounds() {
    let (device, _) = device();
    let memory = device.memory().unwrap();
    let slice = memory.allocate(100).unwrap().slice();
    assert!(
        reason(&memory.upload(&[0; 100], &slice, Stream::default()).unwrap_err()).contains("not allocated")
    );
    ctr(&device, TABLE, Data::on_device(slice.clone(), slice).unwrap()).unwrap_err();
    // Memory of another device causes the same error.
    let (other, _) = self::device();
    let pinned = other.memory().unwrap().allocate_pinned(16).unwrap();
    let error = ctr(&device, TABLE, Data::pinned(pinned.slice(0..16), pinned.slice(0..16)).unwrap());
    assert!(matches!(error, Err(Error::OutOfReach { .. })));
}

#[test]
fn large_calls_are_correct_and_counted() {
    let (device, _) = device();
    let len = 5 * CHUNK + 1000;
    let mut data = vec![5; len];
    let kernel = TABLE;
    ctr(&device, kernel, Data::in_place(&mut data)).unwrap();
    assert!(data == expected(len));
    let counters = device.counters();
    let counter = |name: &str| counters.iter().find(|counter| counter.name == name).unwrap();
    assert_eq!((counter("table_ctr_128").launches, counter("table_ctr_128").bytes), (6, len as u64));
    assert_eq!(counter("table_expand_128").launches, 6);
}

#[test]
fn overheads_change_nothing() {
    let (device, control) = device();
    let mut data = vec![5; 3 * CHUNK];
    copy(&device, Data::in_place(&mut data)).unwrap();
    assert!(data.iter().all(|&byte| byte == 5));
    assert_eq!(control.launches.load(SeqCst), 0);
    assert!(device.kernels().iter().all(|kernel| !matches!(kernel.name, "cuda/null" | "cuda/copy")));
}
