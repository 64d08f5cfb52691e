//! Authenticated modes on an executor that fails in one of the passes. After the failure, no message has the status of
//! success, and no tag and no output contains a result.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use lockstep_core::backend::{Device, DeviceId, DeviceMemory};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Status, Tag};
use lockstep_core::{Block, Error, Result};
use lockstep_modes::Executor;
use lockstep_modes::aead::{Aead, AeadKey, Message};
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::MockCpu;

/// Runs the passes. All executors share it, because its self-tests take longer than the passes.
static PLANNER: LazyLock<Planner> =
    LazyLock::new(|| Planner::new(vec![Arc::new(MockCpu::default())], &Selection::default()).unwrap());

/// Runs passes, and fails in the pass with the given number, counted from 0. Fused AEADs are either not supported or fail.
struct Failing {
    passes: AtomicUsize,
    fails_at: usize,
    /// True if the pass that fails writes its output first.
    has_written: bool,
    /// True if fused AEADs fail after they have written outputs and tags.
    fails_in_fused: bool,
}

impl Failing {
    fn new(fails_at: usize, has_written: bool) -> Failing {
        Failing { passes: AtomicUsize::new(0), fails_at, has_written, fails_in_fused: false }
    }
}

fn failure() -> Error {
    Error::DeviceFailed { device: MockCpu::default().id(), reason: "on demand".into() }
}

impl Executor for Failing {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        if segments.is_empty() {
            return Ok(());
        }
        let fails = self.passes.fetch_add(1, Ordering::Relaxed) == self.fails_at;
        if !fails || self.has_written {
            PLANNER.run_pass(pass, segments)?;
        }
        if fails { Err(failure()) } else { Ok(()) }
    }

    fn run_fused(&self, _: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool> {
        if !self.fails_in_fused {
            return Ok(false);
        }
        for message in messages {
            let Data::Host(data) = &mut message.data else { unreachable!("all data are in host memory") };
            data.output().fill(0xAB);
            if let Tag::Write(tag) = &mut message.tag {
                tag.fill(0xAB);
            }
            message.status = Status::Done;
        }
        Err(failure())
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        PLANNER.memory(device)
    }
}

const OLD: u8 = 0xEE;

/// A batch of messages of several lengths. Message `i` has the key `i` modulo the number of keys.
#[derive(Clone)]
struct Batch {
    keys: Vec<AeadKey>,
    nonce: Vec<u8>,
    opens: bool,
    in_place: bool,
    texts: Vec<Vec<u8>>,
    tags: Vec<Block>,
}

/// What a call returned, and the contents of all buffers of the messages after the call.
struct Left {
    outcome: Result<()>,
    outputs: Vec<Vec<u8>>,
    tags: Vec<Block>,
    statuses: Vec<Status>,
}

impl Batch {
    /// Messages to be sealed. `sizes` has the lengths of the keys.
    fn new(mode: Aead, sizes: &[usize], nonce: usize) -> Batch {
        let key = |&len: &usize| AeadKey::new(mode, &(0..len as u8).collect::<Vec<_>>()).unwrap();
        let texts: Vec<_> = [40, 5, 0, 16, 100].iter().map(|&len| vec![len as u8; len]).collect();
        Batch {
            keys: sizes.iter().map(key).collect(),
            nonce: vec![7; nonce],
            opens: false,
            in_place: false,
            tags: vec![[OLD; 16]; texts.len()],
            texts,
        }
    }

    /// Seals these messages, and returns a batch that opens them. If `is_forged` is true, the tag of one message is changed.
    fn to_open(&self, is_forged: bool) -> Batch {
        let sealed = self.run(&Failing::new(usize::MAX, false));
        sealed.outcome.unwrap();
        let mut batch = Batch { opens: true, texts: sealed.outputs, tags: sealed.tags, ..self.clone() };
        batch.tags[1][3] ^= u8::from(is_forged);
        batch
    }

    fn outputs(&self) -> Vec<Vec<u8>> {
        if self.in_place {
            return self.texts.clone();
        }
        self.texts.iter().map(|text| vec![OLD; text.len()]).collect()
    }

    fn run(&self, executor: &Failing) -> Left {
        let mode = self.keys[0].mode();
        let (mut outputs, mut tags) = (self.outputs(), self.tags.clone());
        let parts = self.texts.iter().zip(&mut tags).zip(&mut outputs).zip(self.keys.iter().cycle());
        let mut messages: Vec<_> = parts
            .map(|(((text, tag), output), key)| {
                let data =
                    if self.in_place { Data::in_place(output) } else { Data::copy(text, output).unwrap() };
                let tag = if self.opens { Tag::Expect(tag) } else { Tag::Write(tag) };
                Message { key, nonce: &self.nonce, aad: &[b"header"], data, tag, status: Status::Done }
            })
            .collect();
        let outcome =
            if self.opens { mode.open(executor, &mut messages) } else { mode.seal(executor, &mut messages) };
        let statuses = messages.iter().map(|message| message.status).collect();
        drop(messages);
        Left { outcome, outputs, tags, statuses }
    }

    /// Asserts that the call has failed, and that the messages of each key either have their results or have none. Returns true
    /// if all messages are unchanged.
    fn assert_no_partial_result(&self, what: &str, left: &Left, without_failure: &Left) -> bool {
        assert_eq!(left.outcome, Err(failure()), "{what}");
        assert!(left.statuses.contains(&Status::Pending), "{what}");
        let old = self.outputs();
        let zeros: Vec<_> = self.texts.iter().map(|text| vec![0; text.len()]).collect();
        let zero_tags = if self.opens { self.tags.clone() } else { vec![[0; 16]; self.tags.len()] };
        let pending = vec![Status::Pending; self.texts.len()];
        let mut all_unchanged = true;
        for key in 0..self.keys.len() {
            let are = |outputs: &[Vec<u8>], tags: &[Block], statuses: &[Status]| {
                let mut indices = (key..self.texts.len()).step_by(self.keys.len());
                indices.all(|index| {
                    left.outputs[index] == outputs[index]
                        && left.tags[index] == tags[index]
                        && left.statuses[index] == statuses[index]
                })
            };
            let Left { outputs, tags, statuses, .. } = without_failure;
            let is_unchanged = are(&old, &self.tags, &pending);
            assert!(
                is_unchanged || are(&zeros, &zero_tags, &pending) || are(outputs, tags, statuses),
                "{what}, key {key}: {:?} {:?} {:?}",
                left.statuses,
                left.outputs,
                left.tags
            );
            all_unchanged &= is_unchanged;
        }
        all_unchanged
    }

    /// Runs the batch with a failure in each of its passes.
    fn fail_in_each_pass(&self, has_written: bool) {
        let mode = self.keys[0].mode();
        let without_failure = self.run(&Failing::new(usize::MAX, false));
        for fails_at in 0.. {
            let executor = Failing::new(fails_at, has_written);
            let left = self.run(&executor);
            if executor.passes.into_inner() <= fails_at {
                assert!(fails_at > 2, "a mode has several passes");
                assert_eq!(left.outcome, without_failure.outcome);
                return;
            }
            let what = format!("{mode}, pass {fails_at}, opens {}, in place {}", self.opens, self.in_place);
            let is_unchanged = self.assert_no_partial_result(&what, &left, &without_failure);
            // Only SIV starts with a pass over the data, and only when it opens messages.
            let begins = mode == Aead::Siv && self.opens;
            assert!(is_unchanged || fails_at > 0 || begins, "{what}: {:?}", left.outputs);
        }
    }
}

/// Batches of all modes with one key and with keys of two sizes, to be sealed and to be opened, with and without a wrong tag.
fn batches() -> impl Iterator<Item = Batch> {
    let of_mode = |mode: Aead| {
        let (sizes, nonce) = (mode.key_lengths(), if mode == Aead::Xaes { 24 } else { 12 });
        let (least, most) = (sizes[0], *sizes.last().unwrap());
        let mut batches = vec![Batch::new(mode, &[most], nonce)];
        if least < most {
            batches.push(Batch::new(mode, &[most, least], nonce));
        }
        if mode == Aead::Gcm {
            // With a nonce of 16 bytes, the first counter block is a hash of the nonce.
            batches.push(Batch::new(mode, &[most], 16));
        }
        batches
    };
    let all = Aead::ALL.into_iter().flat_map(of_mode);
    let all = all.flat_map(|batch| [batch.to_open(false), batch.to_open(true), batch]);
    all.flat_map(|batch| [true, false].map(|in_place| Batch { in_place, ..batch.clone() }))
}

#[test]
fn a_batch_that_fails_leaves_no_partial_result() {
    for batch in batches() {
        for has_written in [false, true] {
            batch.fail_in_each_pass(has_written);
        }
    }
}

#[test]
fn a_fused_aead_that_fails_leaves_no_partial_result() {
    // The other modes, and GCM with a nonce of 16 bytes, do not use a fused AEAD.
    let is_fused = |batch: &Batch| {
        !matches!(batch.keys[0].mode(), Aead::Siv | Aead::Ccm | Aead::Eax) && batch.nonce.len() != 16
    };
    for batch in batches().filter(is_fused) {
        let executor = Failing { fails_in_fused: true, ..Failing::new(usize::MAX, false) };
        let without_failure = batch.run(&Failing::new(usize::MAX, false));
        let what = format!("{}, opens {}", batch.keys[0].mode(), batch.opens);
        assert!(!batch.assert_no_partial_result(&what, &batch.run(&executor), &without_failure));
    }
}
