//! Chunks of other sizes, and contexts that are lost.

use crate::software;

use std::sync::Arc;

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task, Work};
use lockstep_core::{Error, Key, Result};
use lockstep_testkit::suite::{self, Subject};

fn ctr(device: &dyn Device, data: &mut [u8]) -> Result<()> {
    let key = Key::new(&[7; 16])?;
    let mut state = [0xff; 16];
    let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(data) }];
    let work = Work::from(Task::Pass(Pass::Ctr, &mut segments));
    device.submit(KernelId(0), work).and_then(|completion| completion.wait())
}

#[test]
fn chunks_of_any_size_give_the_same_bytes() {
    for chunk in [5000, 64 << 10] {
        let Some(device) = software::device() else { return };
        let device: Arc<dyn Device> = Arc::new(device.with_chunk(chunk));
        let subject = Subject::new(device, "opengl/fixslice").expect("the kernel runs everywhere");
        suite::passes::many_segments(&subject);
        suite::passes::chaining_states_link_segments(&subject);
        suite::messages::batches_of_mixed_sizes(&subject);
    }
}

#[test]
fn thousands_of_short_messages_with_a_key_each() {
    let Some(device) = software::device() else { return };
    let keys: Vec<Key> =
        (0..9000u32).map(|number| Key::new(&[number.to_le_bytes(); 4].concat()).unwrap()).collect();
    let mut data = vec![[0x5a; 16]; keys.len()];
    let mut states = vec![[0; 16]; keys.len()];
    let mut segments: Vec<_> = (keys.iter().zip(&mut data).zip(&mut states))
        .map(|((key, data), state)| Segment { key, tweak: None, state, data: Data::in_place(data) })
        .collect();
    let work = Work::from(Task::Pass(Pass::EcbEncrypt, &mut segments));
    device.submit(KernelId(0), work).and_then(|completion| completion.wait()).unwrap();
    for (key, block) in keys.iter().zip(&data) {
        assert_eq!(*block, lockstep_reference::Aes::new(key.bytes()).encrypt([0x5a; 16]));
    }
}

#[test]
fn no_bytes_are_no_work() {
    let Some(device) = software::device() else { return };
    ctr(&device, &mut []).unwrap();
}

/// A context that is lost before any result has been delivered.
#[test]
fn a_lost_context_leaves_the_input() {
    let Some(device) = software::device() else { return };
    device.lose_after(0).unwrap();
    let mut data = vec![3; 100_000];
    for _ in 0..2 {
        assert!(matches!(ctr(&device, &mut data), Err(Error::DeviceFailed { .. })));
        assert!(data.iter().all(|byte| *byte == 3));
    }
}

/// A context that is lost when some chunks have been delivered: in place, the input of those is gone.
#[test]
fn a_context_that_is_lost_midway_leaves_zeros() {
    let Some(device) = software::device() else { return };
    let device = device.with_chunk(16 << 10);
    device.lose_after(12).unwrap();
    let mut data = vec![3; 1 << 20];
    assert!(matches!(ctr(&device, &mut data), Err(Error::DeviceFailed { .. })));
    assert!(data.iter().all(|byte| *byte == 0));
}
