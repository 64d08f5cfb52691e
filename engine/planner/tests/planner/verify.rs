//! Wrong results of devices are detected, and the work is repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo, Unit};
use lockstep_core::data::Data;
use lockstep_core::work::{FusedAead, Operation, Pass, Segment, Status, Tag, Task, Work};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_modes::cmac::{CmacMessage, cmac};
use lockstep_modes::{Aead, AeadKey, Cipher, CipherKey, Direction, Executor, Message, aead};
use lockstep_planner::timing::Shape;
use lockstep_planner::verify::Verify;
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::{Behaviour, MockAsyncDevice};

/// The ways in which a device behaves after its self-test. RIGHT: all results are right.
const RIGHT: usize = 0;
/// Each byte is wrong, differently in each block, since in chaining modes a single error would propagate.
const WRONG: usize = 1;
/// The last byte is wrong.
const ALMOST_RIGHT: usize = 2;
const FAILS: usize = 3;
/// The data are right, but the chaining state is wrong.
const WRONG_STATE: usize = 4;
/// One block of each tile of 32 blocks is wrong, always at the same place in the tile, as if one lane of the device were broken.
const BROKEN_LANE: usize = 5;
/// The last whole block of a call of a pass is wrong if the last segment has at most 16 whole blocks.
const WRONG_SHORT_BLOCK: usize = 7;
/// The MAC of the longest message of a pass, or the tags that a fused AEAD writes, are wrong. All else is right.
const WRONG_MAC: usize = 6;

struct Pretend {
    id: DeviceId,
    kernels: [KernelInfo; 1],
    trusted: bool,
    behaviour: Arc<AtomicUsize>,
    oracle: MockAsyncDevice,
}

impl Pretend {
    fn new(backend: &'static str, trusted: bool, behaviour: &Arc<AtomicUsize>) -> Pretend {
        let name = if trusted { "mock-cpu/right" } else { "gpu/wrong" };
        Pretend {
            id: DeviceId { backend, unit: Unit::Only },
            kernels: [KernelInfo { name, description: "for tests", constant_time: true, missing: None }],
            trusted,
            behaviour: Arc::clone(behaviour),
            oracle: MockAsyncDevice::new(Behaviour { ocb: true, ..Behaviour::default() }),
        }
    }
}

fn spoil(data: &mut Data<'_>, behaviour: usize) {
    let Data::Host(data) = data else { return };
    let output = data.output();
    match behaviour {
        WRONG => output.iter_mut().enumerate().for_each(|(i, byte)| *byte ^= (i / 16 * 5 % 250 + 1) as u8),
        BROKEN_LANE => output.chunks_exact_mut(16).skip(7).step_by(32).for_each(|block| block[3] ^= 4),
        ALMOST_RIGHT => output.last_mut().into_iter().for_each(|byte| *byte ^= 1),
        _ => {}
    }
}

impl Device for Pretend {
    fn id(&self) -> DeviceId {
        self.id
    }
    fn description(&self) -> String {
        "for tests".into()
    }
    fn is_trusted(&self) -> bool {
        self.trusted
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn cost(&self, _: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        let cost = if self.trusted { Cost::new(1e9, 1.0) } else { Cost::new(1.0, 100.0) };
        operation.takes_key(key).then_some(cost)
    }
    fn submit<'w, 'd: 'w>(&self, _: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let behaviour = if self.trusted { RIGHT } else { self.behaviour.load(Ordering::Relaxed) };
        if behaviour == FAILS {
            return Err(Error::DeviceFailed { device: self.id, reason: "on demand".into() });
        }
        match work.task {
            Task::Pass(pass, segments) => {
                self.oracle.submit(KernelId(0), Task::Pass(pass, &mut *segments).into())?.wait()?;
                if behaviour == WRONG_STATE {
                    segments.iter_mut().for_each(|segment| segment.state[15] ^= 1);
                }
                if pass.is_read_only() && behaviour == WRONG {
                    segments.iter_mut().for_each(|segment| segment.state[3] ^= 1);
                }
                if pass.is_read_only() && behaviour == WRONG_MAC {
                    let longest = segments.iter_mut().max_by_key(|segment| segment.data.len());
                    longest.unwrap().state[15] ^= 1;
                }
                segments.iter_mut().for_each(|segment| spoil(&mut segment.data, behaviour));
                let last =
                    segments.last_mut().filter(|_| behaviour == WRONG_SHORT_BLOCK && !pass.is_read_only());
                if let Some(Segment { data: Data::Host(data), .. }) = last
                    && data.output().len() < 272
                    && let Some(block) = data.output().chunks_exact_mut(16).last()
                {
                    block[0] ^= 1;
                }
            }
            Task::Fused(fused, messages) => {
                self.oracle.submit(KernelId(0), Task::Fused(fused, &mut *messages).into())?.wait()?;
                for message in messages {
                    spoil(&mut message.data, behaviour);
                    if let (Tag::Write(tag), WRONG_MAC) = (&mut message.tag, behaviour) {
                        tag[0] ^= 1;
                    }
                }
            }
        }
        Ok(Completion::Done)
    }
}

/// Returns a planner with a fast device, which may compute wrong results, and a slow trusted device; and the setting of the fast
/// device's behaviour.
fn planner(verify: Verify, device: Option<&str>) -> (Planner, Arc<AtomicUsize>) {
    let behaviour = Arc::new(AtomicUsize::new(RIGHT));
    let devices: Vec<Arc<dyn Device>> = vec![
        Arc::new(Pretend::new("gpu", false, &behaviour)),
        Arc::new(Pretend::new("mock-cpu", true, &behaviour)),
    ];
    let selection = Selection { device: device.map(Into::into), kernel: None };
    (Planner::new(devices, &selection).unwrap().with_verify(verify), behaviour)
}

const WRONG_RESULT: Error = Error::WrongResult { device: DeviceId { backend: "gpu", unit: Unit::Only } };

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn run(
    planner: &Planner,
    cipher: Cipher,
    direction: Direction,
    inputs: &[Vec<u8>],
    in_place: bool,
) -> Result<Vec<Vec<u8>>> {
    let keys: Vec<CipherKey> = inputs
        .iter()
        .enumerate()
        .map(|(i, _)| {
            CipherKey::new(cipher, &data(if cipher == Cipher::Xts { 32 } else { 16 + i % 2 * 16 })).unwrap()
        })
        .collect();
    let mut ivs = vec![[0xFE; 16]; inputs.len()];
    let mut outputs: Vec<Vec<u8>> =
        if in_place { inputs.to_vec() } else { inputs.iter().map(|input| vec![0; input.len()]).collect() };
    let mut messages: Vec<Message<'_>> = inputs
        .iter()
        .zip(&mut outputs)
        .zip(&keys)
        .zip(&mut ivs)
        .map(|(((input, output), key), iv)| {
            let data = if in_place { Data::in_place(output) } else { Data::copy(input, output).unwrap() };
            Message { key, iv, data }
        })
        .collect();
    cipher.run(planner, direction, &mut messages)?;
    drop(messages);
    Ok([outputs, ivs.into_iter().map(Vec::from).collect()].concat())
}

#[test]
fn wrong_results_are_computed_again() {
    let inputs = [data(2048 + 32), data(48), data(0), data(1024)];
    for verify in [Verify::Sample, Verify::Full] {
        for cipher in Cipher::ALL {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                for in_place in [true, false] {
                    let inputs = if cipher == Cipher::Xts { &inputs[..2] } else { &inputs[..] };
                    let (planner, behaviour) = planner(verify, Some("gpu"));
                    let right = run(&planner, cipher, direction, inputs, in_place).unwrap();
                    assert_eq!(planner.incidents(), []);
                    behaviour.store(WRONG, Ordering::Relaxed);
                    let again = run(&planner, cipher, direction, inputs, in_place).unwrap();
                    assert!(right == again, "{cipher:?} {direction:?}");
                    assert!(
                        planner.incidents().contains(&WRONG_RESULT),
                        "{cipher:?} {direction:?} {verify:?}"
                    );
                    behaviour.store(WRONG_STATE, Ordering::Relaxed);
                    assert!(right == run(&planner, cipher, direction, inputs, in_place).unwrap());
                    behaviour.store(ALMOST_RIGHT, Ordering::Relaxed);
                    if verify == Verify::Full {
                        assert!(right == run(&planner, cipher, direction, inputs, in_place).unwrap());
                    }
                }
            }
        }
    }
}

#[test]
fn samples_find_periodic_errors() {
    let (planner, behaviour) = planner(Verify::Sample, None);
    let inputs = [data(1 << 20)];
    run(&planner, Cipher::Ctr, Direction::Encrypt, &inputs, true).unwrap();
    behaviour.store(BROKEN_LANE, Ordering::Relaxed);
    // Each call compares 16 blocks. If they all had the same place in a tile, only one call in 32 would find the broken lane.
    for _ in 0..8 {
        run(&planner, Cipher::Ctr, Direction::Encrypt, &inputs, true).unwrap();
    }
    assert!(planner.incidents().contains(&WRONG_RESULT));
}

#[test]
fn off_is_off() {
    let (planner, behaviour) = planner(Verify::Off, None);
    let inputs = [data(65536)];
    let right = run(&planner, Cipher::Ctr, Direction::Encrypt, &inputs, true).unwrap();
    behaviour.store(WRONG, Ordering::Relaxed);
    assert!(right != run(&planner, Cipher::Ctr, Direction::Encrypt, &inputs, true).unwrap());
    assert_eq!(planner.incidents(), []);
}

#[test]
fn failed_work_is_repeated_unless_the_device_was_named() {
    for (name, redone) in [(None, true), (Some("gpu"), false)] {
        for in_place in [true, false] {
            let (planner, behaviour) = planner(Verify::Sample, name);
            let inputs = [data(1000)];
            let right = run(&planner, Cipher::Ctr, Direction::Encrypt, &inputs, in_place).unwrap();
            behaviour.store(FAILS, Ordering::Relaxed);
            let outcome = run(&planner, Cipher::Ctr, Direction::Encrypt, &inputs, in_place);
            assert_eq!(outcome.is_ok(), redone);
            assert!(outcome.is_err() || outcome.unwrap() == right);
            assert_eq!(planner.incidents().len(), usize::from(redone));
        }
    }
}

/// A wrong byte that only some samples cover is found in some calls, because the samples differ from call to call.
#[test]
fn samples_move() {
    let (planner, behaviour) = planner(Verify::Sample, Some("gpu"));
    // 20 blocks: in calls of at most 16 blocks, all blocks are compared.
    let inputs = [data(320)];
    let right = run(&planner, Cipher::Ecb, Direction::Encrypt, &inputs, true).unwrap();
    behaviour.store(ALMOST_RIGHT, Ordering::Relaxed);
    let outcomes: Vec<bool> = (0..64)
        .map(|_| run(&planner, Cipher::Ecb, Direction::Encrypt, &inputs, true).unwrap() == right)
        .collect();
    assert!(outcomes.contains(&true) && outcomes.contains(&false));
}

#[test]
fn macs_of_long_messages_are_verified() {
    // The MAC of each message that has more than a 16th of all bytes is verified. The cases are a single message, several such messages,
    // and one such message among many short ones.
    let among_short_ones = [vec![16; 40], vec![4096], vec![0; 40]].concat();
    for lengths in [vec![16], vec![4096], vec![4096; 5], among_short_ones] {
        for (verify, seen) in [(Verify::Off, false), (Verify::Sample, true), (Verify::Full, true)] {
            let (planner, behaviour) = planner(verify, Some("gpu"));
            let key = Key::new(&[1; 16]).unwrap();
            let bytes: Vec<Vec<u8>> = lengths.iter().map(|len| data(*len)).collect();
            for pass in [Pass::CbcMac, Pass::Ghash, Pass::Polyval] {
                let macs = || {
                    let mut states = vec![[3; 16]; bytes.len()];
                    let segments = bytes.iter().zip(&mut states).map(|(bytes, state)| Segment {
                        key: &key,
                        tweak: None,
                        state,
                        data: Data::read_only(bytes),
                    });
                    planner.run_pass(pass, &mut segments.collect::<Vec<_>>()).unwrap();
                    states
                };
                behaviour.store(RIGHT, Ordering::Relaxed);
                let right = macs();
                behaviour.store(WRONG_MAC, Ordering::Relaxed);
                let before = planner.incidents().len();
                assert_eq!(right == macs(), seen, "{pass:?}, {verify:?}, {lengths:?}");
                assert_eq!(planner.incidents().len() - before, usize::from(seen));
            }
        }
    }
}

/// The CPU computes these MACs again, so another device saves no time.
#[test]
fn macs_that_are_repeated_are_not_given_to_another_device() {
    for (verify, name, messages, expected) in [
        (Verify::Off, None, 1, "gpu"),
        (Verify::Sample, None, 1, "mock-cpu"),
        (Verify::Sample, None, 100, "gpu"),
        (Verify::Full, None, 100, "mock-cpu"),
        (Verify::Full, Some("gpu"), 1, "gpu"),
    ] {
        let (planner, _) = planner(verify, name);
        let shape = Shape { messages, bytes: 4096 * messages, longest: 4096 };
        let plan = planner.plan(Operation::Pass(Pass::CbcMac), KeySize::Aes128, shape, None).unwrap();
        assert_eq!(plan.device.id().backend, expected, "{verify:?}, {name:?}, {messages}");
    }
}

/// Seals messages while the device computes right results and again while it computes wrong results, and then opens them while it
/// computes wrong results. All results of the planner must be right.
fn no_result_is_wrong(mode: (Aead, usize), lengths: &[usize], wrong: usize) {
    let (planner, behaviour) = planner(Verify::Sample, Some("gpu"));
    let key = AeadKey::new(mode.0, &data(32)).unwrap();
    let nonce = &[9; 16][..mode.1];
    let plain: Vec<Vec<u8>> = lengths.iter().map(|len| data(*len)).collect();
    let sealed = || {
        let (mut bytes, mut tags) = (plain.clone(), vec![[0; 16]; plain.len()]);
        let statuses = aead_once(&key, nonce, &planner, false, &mut bytes, &mut tags);
        (statuses, bytes, tags)
    };
    let right = sealed();
    assert_eq!(planner.incidents(), []);
    behaviour.store(wrong, Ordering::Relaxed);
    assert!(sealed() == right, "{mode:?}, {lengths:?}");
    let (_, mut bytes, mut tags) = right;
    let opened = aead_once(&key, nonce, &planner, true, &mut bytes, &mut tags);
    assert!(opened.iter().all(|status| *status == Status::Done) && bytes == plain, "{mode:?}, {lengths:?}");
    assert!(planner.incidents().iter().all(|incident| *incident == WRONG_RESULT));
    assert!(planner.incidents().len() >= 2);
}

/// Modes that are composed of passes, and the length of a nonce.
const COMPOSED: [(Aead, usize); 5] =
    [(Aead::Ccm, 12), (Aead::Eax, 12), (Aead::GcmSiv, 12), (Aead::Siv, 12), (Aead::Gcm, 16)];

/// Tests the modes whose MAC is a pass of its own, which the sample of blocks does not cover.
#[test]
fn a_wrong_mac_gives_no_wrong_tag() {
    for mode in COMPOSED {
        for len in [0, 16, 70_007] {
            no_result_is_wrong(mode, &[len], WRONG_MAC);
        }
    }
    for len in [0, 16, 70_007] {
        let (planner, behaviour) = planner(Verify::Sample, Some("gpu"));
        let (key, data) = (Key::new(&[1; 32]).unwrap(), data(len));
        let mac = || {
            let mut mac = [0; 16];
            cmac(&planner, &mut [CmacMessage { key: &key, data: &data, mac: &mut mac }]).unwrap();
            mac
        };
        let right = mac();
        behaviour.store(WRONG_MAC, Ordering::Relaxed);
        assert_eq!(mac(), right, "{len}");
        assert!(planner.incidents().contains(&WRONG_RESULT));
    }
}

/// The short segments of a batch have derived keys and masks. One wrong block among all of them must be found.
#[test]
fn a_wrong_key_or_mask_in_a_batch_gives_no_wrong_result() {
    for mode in COMPOSED {
        for messages in [1, 3, 100] {
            no_result_is_wrong(mode, &vec![48; messages], WRONG_SHORT_BLOCK);
        }
    }
}

/// If a pass has many MACs, some of them are computed again.
#[test]
fn macs_of_many_messages_are_sampled() {
    let (planner, behaviour) = planner(Verify::Sample, Some("gpu"));
    let key = Key::new(&[1; 16]).unwrap();
    let bytes = data(480);
    let macs = || {
        let mut states = [[0; 16]; 20];
        let segment = |state| Segment { key: &key, tweak: None, state, data: Data::read_only(&bytes) };
        let mut segments: Vec<_> = states.iter_mut().map(segment).collect();
        let plan = planner.plan(Operation::Pass(Pass::CbcMac), KeySize::Aes128, 9600, None).unwrap();
        plan.run(Task::Pass(Pass::CbcMac, &mut segments)).unwrap();
        states
    };
    let right = macs();
    behaviour.store(WRONG, Ordering::Relaxed);
    assert_eq!(macs(), right);
    assert_eq!(planner.incidents(), [WRONG_RESULT]);
}

/// The tag of a single message of a fused AEAD is verified in the first call of the operation, and then in some of its calls.
#[test]
fn tags_of_fused_aeads_are_sampled() {
    const CALLS: usize = 600;
    let (planner, behaviour) = planner(Verify::Sample, Some("gpu"));
    run(&planner, Cipher::Ctr, Direction::Encrypt, &[data(40)], true).unwrap();
    for (aead, fused) in [(Aead::Gcm, FusedAead::GcmSeal), (Aead::Ocb, FusedAead::OcbSeal)] {
        behaviour.store(RIGHT, Ordering::Relaxed);
        let key = AeadKey::new(aead, &[1; 16]).unwrap();
        let before = planner.incidents().len();
        let mut right = [[0; 16]];
        let (cpu, _) = self::planner(Verify::Off, Some("mock-cpu"));
        aead_once(&key, &[9; 12], &cpu, false, &mut [data(40)], &mut right);
        // This call runs the self-test, while the device still computes right results.
        planner.plan(Operation::Fused(fused), KeySize::Aes128, 40, None).unwrap();
        behaviour.store(WRONG_MAC, Ordering::Relaxed);
        let found = (0..CALLS).map(|call| {
            let mut tags = [[0; 16]];
            aead_once(&key, &[9; 12], &planner, false, &mut [data(40)], &mut tags);
            assert!(call > 0 || tags == right, "{aead}");
            usize::from(tags == right)
        });
        let found: usize = found.sum();
        assert!((2..CALLS / 10).contains(&found), "{aead}: {found}");
        assert_eq!(planner.incidents().len() - before, found);
    }
}

fn aead_once(
    key: &AeadKey,
    nonce: &[u8],
    planner: &Planner,
    opens: bool,
    bytes: &mut [Vec<u8>],
    tags: &mut [[u8; 16]],
) -> Vec<Status> {
    let mut messages: Vec<aead::Message<'_>> = bytes
        .iter_mut()
        .zip(tags)
        .map(|(bytes, tag)| aead::Message {
            key,
            nonce,
            aad: &[b"aad"],
            data: Data::in_place(bytes),
            tag: if opens { Tag::Expect(tag) } else { Tag::Write(tag) },
            status: Status::Pending,
        })
        .collect();
    let direction = if opens { Direction::Decrypt } else { Direction::Encrypt };
    let outcome = key.mode().run(planner, direction, &mut messages);
    assert!(matches!(outcome, Ok(()) | Err(Error::AuthenticationFailed)), "{outcome:?}");
    messages.iter().map(|message| message.status).collect()
}

#[test]
fn fused_aeads_are_verified() {
    let ways = |aead| [Verify::Sample, Verify::Full].map(|verify| (aead, verify));
    for (aead, verify) in [Aead::Gcm, Aead::Ocb].into_iter().flat_map(ways) {
        let (planner, behaviour) = planner(verify, Some("gpu"));
        let run = |opens, bytes: &mut [Vec<u8>], tags: &mut [[u8; 16]]| {
            aead_once(&AeadKey::new(aead, &[1; 16]).unwrap(), &[9; 12], &planner, opens, bytes, tags)
        };
        let plain = [data(70_000), data(0), data(40)];
        let mut tags = [[0; 16]; 3];
        let mut sealed = plain.to_vec();
        run(false, &mut sealed, &mut tags);
        // This call runs the self-test of opening, while the device still computes right results.
        run(true, &mut sealed.clone(), &mut tags.clone());
        assert_eq!(planner.incidents(), [], "right results are accepted");
        behaviour.store(WRONG, Ordering::Relaxed);
        let mut again = plain.to_vec();
        let mut tags_again = [[0; 16]; 3];
        run(false, &mut again, &mut tags_again);
        assert!(again == sealed && tags_again == tags);
        assert_eq!(planner.incidents(), [WRONG_RESULT]);
        tags[2][0] ^= 1;
        let statuses = run(true, &mut again, &mut tags);
        assert_eq!(statuses, [Status::Done, Status::Done, Status::AuthenticationFailed]);
        assert!(again[..2] == plain[..2] && again[2] == [0; 40]);
        assert_eq!(planner.incidents().len(), 2);
    }
}
