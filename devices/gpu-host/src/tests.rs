//! Tests of the host side with a fake backend. The backend counts its steps, adds one to every byte instead of encrypting,
//! and fails on demand.

use std::num::NonZero;
use std::sync::{Arc, Mutex};

use lockstep_core::backend::{Completion, DeviceId, Unit};
use lockstep_core::data::{BufferHandle, Data, DeviceSlice};
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag};
use lockstep_core::{Block, Error, Key, Result};

use crate::{HostDevice, Limits, Messages, Piece, Pipeline, Results, StagingPool, submit, with_input};

const NAME: DeviceId = DeviceId { backend: "fake", unit: Unit::Only };
const WINDOW: usize = crate::call::WINDOW;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Allocate,
    Stage,
    Launch,
    Wait,
    ReadBack,
}

#[derive(Default)]
struct Log {
    steps: Vec<(Step, usize)>,
    /// Number of staging buffers that exist, and the maximum so far.
    staging: usize,
    most_staging: usize,
    /// For each launched chunk: the segment, the start, and whether the data are on the device.
    launched: Vec<(usize, usize, bool)>,
    zeroed: Vec<DeviceSlice>,
    wiped: usize,
}

#[derive(Default)]
struct Fake {
    log: Arc<Mutex<Log>>,
    fails: Mutex<Option<(Step, usize)>>,
}

impl Fake {
    /// Counts a step. Returns an error if this step was chosen to fail.
    fn step(&self, step: Step) -> Result<()> {
        let mut log = self.log.lock().unwrap();
        let number = log.steps.iter().filter(|(other, _)| *other == step).count();
        log.steps.push((step, number));
        if *self.fails.lock().unwrap() == Some((step, number)) {
            return Err(Error::DeviceFailed { device: NAME, reason: "on demand".into() });
        }
        Ok(())
    }

    fn count(&self, step: Step) -> usize {
        self.log.lock().unwrap().steps.iter().filter(|(other, _)| *other == step).count()
    }
}

struct Staging {
    bytes: Vec<u8>,
    log: Arc<Mutex<Log>>,
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.log.lock().unwrap().staging -= 1;
    }
}

impl HostDevice for Fake {
    type Staging = Staging;
    type Event = ();
    const MOST_IDLE: usize = WINDOW;
    const WIPES_EACH_CHUNK: bool = false;

    fn id(&self) -> DeviceId {
        NAME
    }
    fn allocate_staging(self: &Arc<Self>) -> Result<Staging> {
        self.step(Step::Allocate)?;
        let mut log = self.log.lock().unwrap();
        log.staging += 1;
        log.most_staging = log.most_staging.max(log.staging);
        Ok(Staging { bytes: Vec::new(), log: Arc::clone(&self.log) })
    }
    fn wipe(&self, staging: &mut Staging) -> bool {
        staging.bytes.clear();
        self.log.lock().unwrap().wiped += 1;
        true
    }
    fn is_past(&self, _: &Staging, _: &()) -> bool {
        true
    }
    fn wait(&self, _: &()) -> Result<()> {
        self.step(Step::Wait)
    }
}

struct FakeCall {
    pool: Arc<StagingPool<Fake>>,
    operation: Operation,
}

impl Pipeline for FakeCall {
    type Device = Fake;
    type Staged = ();
    type Found = ();

    fn pool(&self) -> &Arc<StagingPool<Fake>> {
        &self.pool
    }
    fn limits(&self, _: bool) -> Limits {
        Limits { bytes: 64, pieces: 9, least_room: 1, tile: 16, serial: 32, aead_overhead: 0 }
    }
    fn admit(&mut self, _: &Data<'_>) -> Result<()> {
        Ok(())
    }
    fn stage(&self, staging: &mut Staging, pieces: &mut [Piece], messages: &Messages<'_, '_>) -> Result<()> {
        self.pool.device().step(Step::Stage)?;
        staging.bytes.clear();
        for piece in pieces {
            with_input(messages.data(piece.segment), |input| {
                staging.bytes.extend(input[piece.range.clone()].iter().map(|byte| byte + 1));
            });
        }
        Ok(())
    }
    fn launch(
        &self,
        _: &mut Staging,
        (): (),
        pieces: &[Piece],
        messages: &Messages<'_, '_>,
    ) -> Result<((), ())> {
        let first = &pieces[0];
        let resident = matches!(messages.data(first.segment), Data::Device { .. });
        self.pool.device().log.lock().unwrap().launched.push((first.segment, first.range.start, resident));
        self.pool.device().step(Step::Launch).map(|()| ((), ()))
    }
    fn read_back(
        &self,
        staging: &mut Staging,
        (): &(),
        pieces: &[Piece],
        results: &mut Results<'_, '_, '_>,
    ) -> Result<()> {
        self.pool.device().step(Step::ReadBack)?;
        let mut at = 0;
        for piece in pieces {
            let len = piece.range.len().min(staging.bytes.len() - at);
            results.set_output(piece, &staging.bytes[at..at + len]);
            at += len;
            if let Operation::Pass(Pass::CbcMac) = self.operation {
                let blocks = u128::from_be_bytes(piece.state) + piece.range.len() as u128 / 16;
                results.set_chaining_state(piece.segment, blocks.to_be_bytes());
            }
            results.set_status(piece.segment, 1, &[9; 16]);
        }
        Ok(())
    }
    fn zero(&self, outputs: &[DeviceSlice]) {
        self.pool.device().log.lock().unwrap().zeroed.extend_from_slice(outputs);
    }
}

fn device() -> (Arc<StagingPool<Fake>>, Key) {
    (Arc::new(StagingPool::new(Arc::default())), Key::new(&[0; 16]).unwrap())
}

fn start<'w, 'd: 'w>(
    pool: &Arc<StagingPool<Fake>>,
    pass: Pass,
    segments: &'w mut [Segment<'d>],
) -> Result<Completion<'w>> {
    let call = FakeCall { pool: Arc::clone(pool), operation: Operation::Pass(pass) };
    submit(call, Messages::Pass(pass, segments))
}

fn run(
    pool: &Arc<StagingPool<Fake>>,
    pass: Pass,
    key: &Key,
    state: &mut Block,
    data: Data<'_>,
) -> Result<()> {
    start(pool, pass, &mut [Segment { key, tweak: None, state, data }])?.wait()
}

fn on_device(number: u64, len: usize) -> DeviceSlice {
    DeviceSlice::of_buffer(NAME, BufferHandle::new(NonZero::new(number).unwrap()), len)
}

#[test]
fn a_large_call_passes_through_a_window_of_staging_buffers() {
    let (pool, key) = device();
    for _ in 0..2 {
        let (mut data, mut state) = (vec![5; 64 * 10 + 7], [0; 16]);
        run(&pool, Pass::Ctr, &key, &mut state, Data::in_place(&mut data)).unwrap();
        assert!(data.iter().all(|&byte| byte == 6));
        assert_eq!(u128::from_be_bytes(state), 41);
    }
    let log = pool.device().log.lock().unwrap();
    assert_eq!((log.most_staging, log.staging, log.wiped), (WINDOW, WINDOW, 2 * WINDOW));
    assert_eq!(log.launched.len(), 22);
}

/// Whichever step fails, the chaining state does not change. Host data do not change, or are zero if results have been
/// delivered.
#[test]
fn every_step_may_fail() {
    for chunks in [3, 10] {
        for step in [Step::Allocate, Step::Stage, Step::Launch, Step::Wait, Step::ReadBack] {
            for number in 0..chunks {
                let (pool, key) = device();
                *pool.device().fails.lock().unwrap() = Some((step, number));
                let (mut data, mut state) = (vec![5; 64 * chunks], [0; 16]);
                let outcome = run(&pool, Pass::Ctr, &key, &mut state, Data::in_place(&mut data));
                let what = format!("{step:?} {number} of {chunks} chunks");
                if step == Step::Allocate && number >= WINDOW {
                    outcome.unwrap();
                    continue;
                }
                assert!(matches!(outcome, Err(Error::DeviceFailed { .. })), "{what}");
                assert_eq!(state, [0; 16], "{what}");
                let is_delivered = pool.device().count(Step::ReadBack) > 0;
                let left = if is_delivered { 0 } else { 5 };
                assert!(data.iter().all(|&byte| byte == left), "{what}");
                assert!(is_delivered || chunks > 3 || step != Step::ReadBack);
                // Staging buffers of failed work are freed; the others are kept.
                *pool.device().fails.lock().unwrap() = None;
                run(&pool, Pass::Ctr, &key, &mut state, Data::in_place(&mut data)).unwrap();
                assert!(pool.device().log.lock().unwrap().staging <= WINDOW, "{what}");
            }
        }
    }
}

#[test]
fn what_was_not_begun_stays() {
    let (pool, key) = device();
    // Three segments of four chunks each: the seventh launch belongs to the second segment.
    *pool.device().fails.lock().unwrap() = Some((Step::Launch, 6));
    let (mut data, mut states) = (vec![vec![5; 256]; 3], [[0; 16]; 3]);
    let mut segments: Vec<_> = (data.iter_mut().zip(&mut states))
        .map(|(data, state)| Segment { key: &key, tweak: None, state, data: Data::in_place(data) })
        .collect();
    assert!(start(&pool, Pass::Ctr, &mut segments).is_err());
    assert_eq!(data, [vec![0; 256], vec![0; 256], vec![5; 256]]);
}

#[test]
fn serial_segments_go_on_with_the_state_that_came_back() {
    let (pool, key) = device();
    let mut states = [[0; 16], [0; 16]];
    let data = [vec![1; 16 * 9], vec![1; 16 * 3]];
    let mut segments: Vec<_> = (data.iter().zip(&mut states))
        .map(|(data, state)| Segment { key: &key, tweak: None, state, data: Data::read_only(data) })
        .collect();
    start(&pool, Pass::CbcMac, &mut segments).unwrap().wait().unwrap();
    assert_eq!(states.map(u128::from_be_bytes), [9, 3]);
    let starts: Vec<_> = pool.device().log.lock().unwrap().launched.iter().map(|chunk| chunk.1).collect();
    assert_eq!(starts, [0, 32, 64, 96, 128]);
}

#[test]
fn chunks_that_read_the_block_before_them_run_from_the_end() {
    let (pool, key) = device();
    let slice = on_device(1, 64 * 3);
    let data = Data::on_device(slice.clone(), slice).unwrap();
    run(&pool, Pass::CbcDecrypt, &key, &mut [0; 16], data).unwrap();
    let starts: Vec<_> = pool.device().log.lock().unwrap().launched.iter().map(|chunk| chunk.1).collect();
    assert_eq!(starts, [128, 64, 0]);
}

/// Chunks of host memory do not wait for chunks of device memory, because the latter wait for the caller's stream, which may be busy.
#[test]
fn chunks_of_host_memory_do_not_wait_for_those_on_the_device() {
    let (pool, key) = device();
    let slice = on_device(1, 64 * 3);
    let (mut data, mut states) = (vec![5; 64 * 6], [[0; 16]; 2]);
    let [a, b] = &mut states;
    let on_device = Data::on_device(slice.clone(), slice.clone()).unwrap();
    let mut segments = [
        Segment { key: &key, tweak: None, state: a, data: Data::in_place(&mut data) },
        Segment { key: &key, tweak: None, state: b, data: on_device },
    ];
    let completion = start(&pool, Pass::Ctr, &mut segments).unwrap();
    assert_eq!(pool.device().count(Step::Wait), 2, "for the first two of six");
    assert!(completion.is_ready());
    *pool.device().fails.lock().unwrap() = Some((Step::Wait, 4));
    assert!(completion.wait().is_err());
    assert_eq!(pool.device().log.lock().unwrap().zeroed, [slice]);
    assert!(data.iter().all(|&byte| byte == 0));
}

#[test]
fn memory_of_another_device_is_out_of_reach() {
    let (pool, key) = device();
    let other = DeviceId { backend: "other", unit: Unit::Only };
    let slice = DeviceSlice::of_buffer(other, BufferHandle::new(NonZero::<u64>::MIN), 16);
    let data = Data::on_device(slice.clone(), slice).unwrap();
    let refused = run(&pool, Pass::Ctr, &key, &mut [0; 16], data);
    assert!(matches!(refused, Err(Error::OutOfReach { .. })), "{refused:?}");
    assert_eq!(pool.device().count(Step::Allocate), 0);
}

#[test]
fn a_call_that_is_dropped_gives_its_staging_buffers_back() {
    let (pool, key) = device();
    let (mut data, mut state) = (vec![5; 64 * 3], [0; 16]);
    let mut segments =
        [Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(&mut data) }];
    drop(start(&pool, Pass::Ctr, &mut segments).unwrap());
    assert_eq!((pool.device().count(Step::Wait), pool.device().count(Step::ReadBack)), (3, 0));
    assert!(data.iter().all(|&byte| byte == 5) && state == [0; 16]);
    run(&pool, Pass::Ctr, &key, &mut state, Data::in_place(&mut data)).unwrap();
    assert_eq!(pool.device().count(Step::Allocate), 3);
}

#[test]
fn messages_have_statuses_and_tags_or_neither() {
    // The messages need seven chunks.
    for fails in [None, Some((Step::Launch, 0)), Some((Step::Wait, 3))] {
        let (pool, key) = device();
        *pool.device().fails.lock().unwrap() = fails;
        let lengths = [64, 64, 64, 64, 64, 0, 64];
        let mut data = lengths.map(|len| vec![5; len]);
        let mut tags = [[7; 16]; 7];
        let mut messages: Vec<_> = (data.iter_mut().zip(&mut tags))
            .map(|(data, tag)| AeadMessage {
                key: &key,
                nonce: &[0; 12],
                aad: b"x",
                data: Data::in_place(data),
                tag: Tag::Write(&mut tag[..]),
                status: Status::Done,
            })
            .collect();
        let operation = Operation::Fused(FusedAead::GcmSeal);
        let call = FakeCall { pool: Arc::clone(&pool), operation };
        let outcome =
            submit(call, Messages::Fused(FusedAead::GcmSeal, &mut messages)).and_then(Completion::wait);
        assert_eq!(outcome.is_err(), fails.is_some());
        let expected = if fails.is_none() { Status::Done } else { Status::Pending };
        assert!(messages.iter().all(|message| message.status == expected));
        let expected_tag = match fails {
            None => 9,
            Some((Step::Wait, _)) => 0,
            // The first launch failed, so no result was delivered and the tags are unchanged.
            Some(_) => 7,
        };
        assert_eq!(tags, [[expected_tag; 16]; 7]);
        if expected_tag == 0 {
            assert!(data[0].iter().all(|&byte| byte == 0), "what was delivered is zeroed");
        }
    }
}
