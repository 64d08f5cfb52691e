//! Authenticated modes on an executor that fails in one of their passes: no message is then done, and no tag and no output looks
//! like a result.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockstep_core::backend::{Device, DeviceId, DeviceMemory};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Status, Tag};
use lockstep_core::{Block, Error, Result};
use lockstep_modes::Executor;
use lockstep_modes::aead::{Aead, AeadKey, Message};
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::MockCpu;

/// Runs passes, but no fused AEADs, and fails in the pass with a number, counted from 0.
struct Failing {
    planner: Planner,
    passes: AtomicUsize,
    fails_at: usize,
    /// True if the pass that fails has written its output before.
    has_written: bool,
}

impl Failing {
    fn new(fails_at: usize, has_written: bool) -> Failing {
        let planner = Planner::new(vec![Arc::new(MockCpu::default())], &Selection::default()).unwrap();
        Failing { planner, passes: AtomicUsize::new(0), fails_at, has_written }
    }
}

impl Executor for Failing {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        if segments.is_empty() {
            return Ok(());
        }
        let fails = self.passes.fetch_add(1, Ordering::Relaxed) == self.fails_at;
        if !fails || self.has_written {
            self.planner.run_pass(pass, segments)?;
        }
        if fails {
            let device = MockCpu::default().id();
            return Err(Error::DeviceFailed { device, reason: "on demand".into() });
        }
        Ok(())
    }

    fn run_fused(&self, _: FusedAead, _: &mut [AeadMessage<'_>]) -> Result<bool> {
        Ok(false)
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        self.planner.memory(device)
    }
}

const OLD: u8 = 0xEE;

/// Messages of several lengths and their tags.
struct Batch {
    texts: Vec<Vec<u8>>,
    tags: Vec<Block>,
}

impl Batch {
    fn plain() -> Batch {
        let texts: Vec<_> = [40, 5, 0, 16, 100].iter().map(|&len| vec![len as u8; len]).collect();
        Batch { tags: vec![[OLD; 16]; texts.len()], texts }
    }

    /// Seals or opens the messages. Returns the outcome, the outputs and the statuses.
    fn run(
        &mut self,
        executor: &Failing,
        key: &AeadKey,
        opens: bool,
        in_place: bool,
    ) -> (Result<()>, Vec<Vec<u8>>, Vec<Status>) {
        let mode = key.mode();
        let nonce = &[7; 24][..if mode == Aead::Xaes { 24 } else { 12 }];
        let mut outputs: Vec<_> = self.texts.iter().map(|text| vec![OLD; text.len()]).collect();
        if in_place {
            outputs.clone_from(&self.texts);
        }
        let parts = self.texts.iter().zip(&mut self.tags).zip(&mut outputs);
        let mut messages: Vec<_> = parts
            .map(|((text, tag), output)| {
                let data = if in_place { Data::in_place(output) } else { Data::copy(text, output).unwrap() };
                let tag = if opens { Tag::Expect(tag) } else { Tag::Write(tag) };
                Message { key, nonce, aad: &[b"header"], data, tag, status: Status::Done }
            })
            .collect();
        let outcome =
            if opens { mode.open(executor, &mut messages) } else { mode.seal(executor, &mut messages) };
        let statuses = messages.iter().map(|message| message.status).collect();
        drop(messages);
        (outcome, outputs, statuses)
    }
}

/// Runs a batch with a failure in each of its passes. `batch` makes the batch. Returns the outcome without a failure.
fn fail_in_each_pass(
    key: &AeadKey,
    opens: bool,
    in_place: bool,
    has_written: bool,
    batch: impl Fn() -> Batch,
) -> Result<()> {
    for fails_at in 0.. {
        let executor = Failing::new(fails_at, has_written);
        let mut batch = batch();
        let before = batch.tags.clone();
        let (outcome, outputs, statuses) = batch.run(&executor, key, opens, in_place);
        if executor.passes.into_inner() <= fails_at {
            assert!(fails_at > 2, "a mode has several passes");
            return outcome;
        }
        let what = format!("{}, pass {fails_at}, opens {opens}", key.mode());
        assert!(matches!(outcome, Err(Error::DeviceFailed { .. })), "{what}: {outcome:?}");
        assert!(statuses.iter().all(|&status| status == Status::Pending), "{what}: {statuses:?}");
        let are_zeroed = |bytes: &[Vec<u8>]| bytes.iter().flatten().all(|&byte| byte == 0);
        let is_old = |(output, text): (&Vec<u8>, &Vec<u8>)| {
            if in_place { output == text } else { output.iter().all(|&byte| byte == OLD) }
        };
        let are_old = outputs.iter().zip(&batch.texts).all(is_old);
        assert!(are_old || are_zeroed(&outputs), "{what}: {outputs:?}");
        let are_tags_zeroed = batch.tags.iter().flatten().all(|&byte| byte == 0);
        assert!(batch.tags == before || are_tags_zeroed && !opens, "{what}: {:?}", batch.tags);
    }
    unreachable!("a mode has a finite number of passes")
}

#[test]
fn a_batch_that_fails_leaves_no_partial_result() {
    for mode in Aead::ALL {
        let len = *mode.key_lengths().last().unwrap();
        let key = AeadKey::new(mode, &(0..len as u8).collect::<Vec<_>>()).unwrap();
        let mut sealed = Batch::plain();
        let (outcome, outputs, _) = sealed.run(&Failing::new(usize::MAX, false), &key, false, false);
        outcome.unwrap();
        sealed.texts = outputs;
        for in_place in [true, false] {
            // A pass that fails must not have written a result. Only SIV, whose last pass writes, relies on that.
            for has_written in
                [false, true].into_iter().filter(|&has_written| !has_written || mode != Aead::Siv)
            {
                assert_eq!(fail_in_each_pass(&key, false, in_place, has_written, Batch::plain), Ok(()));
                for is_forged in [false, true] {
                    let batch = || {
                        let mut batch = Batch { texts: sealed.texts.clone(), tags: sealed.tags.clone() };
                        batch.tags[1][3] ^= u8::from(is_forged);
                        batch
                    };
                    let expected = if is_forged { Err(Error::AuthenticationFailed) } else { Ok(()) };
                    assert_eq!(fail_in_each_pass(&key, true, in_place, has_written, batch), expected);
                }
            }
        }
    }
}
