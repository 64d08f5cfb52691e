//! Tests with small chunks, with OpenGL ES, and with contexts that are lost.

use crate::software;

use std::sync::Arc;

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task, Work};
use lockstep_core::{Error, Key, Result};
use lockstep_testkit::suite::{self, Subject};

/// One kernel of each design: modes in the shader, blocks in fragments, blocks in vertices, and blocks as bytes in
/// fragments.
const KERNELS: [&str; 4] = ["opengl/fixslice", "opengl/gems-fragment", "opengl/gems-vertex", "opengl/6800"];

fn ctr(device: &dyn Device, data: &mut [u8]) -> Result<()> {
    ctr_by(device, KERNELS[0], data)
}

fn ctr_by(device: &dyn Device, kernel: &str, data: &mut [u8]) -> Result<()> {
    let kernel = lockstep_core::backend::kernel_by_name(device, kernel)?;
    let key = Key::new(&[7; 16])?;
    let mut state = [0xff; 16];
    let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(data) }];
    let work = Work::from(Task::Pass(Pass::Ctr, &mut segments));
    device.submit(kernel, work).and_then(|completion| completion.wait())
}

fn check_shapes(device: Arc<dyn Device>, kernel: &str) {
    let subject = Subject::new(device, kernel).expect("the kernel runs everywhere");
    suite::passes::many_segments(&subject);
    suite::passes::chaining_states_link_segments(&subject);
    suite::messages::batches_of_mixed_sizes(&subject);
}

#[test]
fn chunks_of_any_size_give_the_same_bytes() {
    for (chunk, kernel) in
        [(5000, KERNELS[0]), (64 << 10, KERNELS[0]), (5000, KERNELS[1]), (5000, KERNELS[2])]
    {
        let Some(device) = software::device() else { return };
        check_shapes(Arc::new(device.with_chunk(chunk)), kernel);
    }
}

#[test]
fn opengl_es_gives_the_same_bytes() {
    let Some(device) = software::device() else { return };
    let device: Arc<dyn Device> = Arc::new(device.by_opengl_es());
    assert!(device.description().contains("OpenGL ES 3"), "{}", device.description());
    for kernel in KERNELS {
        check_shapes(Arc::clone(&device), kernel);
    }
}

#[test]
fn thousands_of_short_messages_with_a_key_each() {
    let Some(device) = software::device() else { return };
    for kernel in 0..device.kernels().len() as u16 {
        many_keys(&device, KernelId(kernel));
    }
}

fn many_keys(device: &dyn Device, kernel: KernelId) {
    // Kernels that encrypt blocks draw once for each key, so they get fewer messages.
    let count = if kernel.0 == 0 { 9000 } else { 700u32 };
    let keys: Vec<Key> =
        (0..count).map(|number| Key::new(&[number.to_le_bytes(); 4].concat()).unwrap()).collect();
    let mut data = vec![[0x5a; 16]; keys.len()];
    let mut states = vec![[0; 16]; keys.len()];
    let mut segments: Vec<_> = (keys.iter().zip(&mut data).zip(&mut states))
        .map(|((key, data), state)| Segment { key, tweak: None, state, data: Data::in_place(data) })
        .collect();
    let work = Work::from(Task::Pass(Pass::EcbEncrypt, &mut segments));
    device.submit(kernel, work).and_then(|completion| completion.wait()).unwrap();
    for (key, block) in keys.iter().zip(&data) {
        assert_eq!(*block, lockstep_reference::Aes::new(key.bytes()).encrypt([0x5a; 16]));
    }
}

#[test]
fn no_bytes_are_no_work() {
    let Some(device) = software::device() else { return };
    device.lose_after(0).unwrap();
    ctr(&device, &mut []).unwrap();
}

/// If a context is lost before any result has been delivered, the data are unchanged.
#[test]
fn a_lost_context_leaves_the_input() {
    let Some(device) = software::device() else { return };
    device.lose_after(0).unwrap();
    let mut data = vec![3; 100_000];
    for kernel in [KERNELS[0]].into_iter().chain(KERNELS) {
        assert!(matches!(ctr_by(&device, kernel, &mut data), Err(Error::DeviceFailed { .. })));
        assert!(data.iter().all(|byte| *byte == 3));
    }
}

/// If a context is lost after some chunks have been delivered in place, their input is lost too, so all data are zeroed.
#[test]
fn a_context_that_is_lost_midway_leaves_zeros() {
    for kernel in KERNELS {
        let Some(device) = software::device() else { return };
        let device = device.with_chunk(16 << 10);
        device.lose_after(12).unwrap();
        let mut data = vec![3; 1 << 20];
        assert!(matches!(ctr_by(&device, kernel, &mut data), Err(Error::DeviceFailed { .. })));
        assert!(data.iter().all(|byte| *byte == 0), "{kernel}");
    }
}

/// A driver may state a larger limit than it supports, or a smaller limit than OpenGL requires.
#[test]
fn a_driver_that_states_a_wrong_limit() {
    // A chunk of this size needs more than 16384 rows of 512 blocks in one texture. 16384 rows are the limit of llvmpipe.
    const CHUNK: usize = 16 * 512 * 16400;
    let cases = [
        (1 << 20, CHUNK, "opengl/gems-fragment", "OpenGL error 0x501"),
        (4, 1 << 20, "opengl/gems-fragment", "limit of 4"),
        (4, 1 << 20, "opengl/fixslice", "limit of 4"),
    ];
    for (limit, chunk, kernel, expected) in cases {
        let Some(device) = software::device() else { return };
        if !device.properties().by_name_only {
            return; // A GPU with other limits.
        }
        let device = device.with_texture_limit(limit).with_chunk(chunk);
        let input = vec![3; chunk];
        let mut output = vec![7; chunk];
        let key = Key::new(&[7; 16]).unwrap();
        let data = Data::copy(&input, &mut output).unwrap();
        let mut segments = [Segment { key: &key, tweak: None, state: &mut [0; 16], data }];
        let work = Work::from(Task::Pass(Pass::EcbEncrypt, &mut segments));
        let kernel = lockstep_core::backend::kernel_by_name(&device, kernel).unwrap();
        let outcome = device.submit(kernel, work).and_then(|completion| completion.wait());
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(output.iter().all(|byte| *byte == 7), "the output was written");
    }
}

/// After a call, neither keys nor data are left in textures, buffers and uniforms.
#[test]
fn keys_and_data_are_wiped() {
    let Some(device) = software::device() else { return };
    for kernel in device.kernels().to_vec() {
        // The messages have one key or several keys, because kernels store one key and several keys in different places.
        for keys in [1, 5] {
            let keys: Vec<Key> = (0..keys).map(|number| Key::new(&[7 + number; 16]).unwrap()).collect();
            let mut data = vec![3; 100_000];
            let mut states = [[9; 16]; 5];
            let parts = data.chunks_mut(20_000).zip(&mut states).enumerate();
            let mut segments: Vec<_> = parts
                .map(|(at, (data, state))| {
                    let key = &keys[at % keys.len()];
                    Segment { key, tweak: None, state, data: Data::in_place(data) }
                })
                .collect();
            let work = Work::from(Task::Pass(Pass::Ctr, &mut segments));
            let id = lockstep_core::backend::kernel_by_name(&device, kernel.name).unwrap();
            let completion = device.submit(id, work).unwrap();
            assert!(device.remains().unwrap() > 10_000, "{}: nothing to wipe is found", kernel.name);
            completion.wait().unwrap();
            assert_eq!(device.remains(), Ok(0), "{}", kernel.name);
        }
    }
}

/// Experiments have defined results: whole passes, which the engine for the GeForce 6800 draws, and draws without encryption, in which CTR
/// adds the counters to the data.
#[test]
fn experiments_have_defined_results() {
    use lockstep_opengl::{Experiment, Steps};
    let edge = Some(256);
    // The data exceed a whole pass by one block.
    let plain: Vec<u8> = (0..16 * 256 * 256 + 16).map(|at| (at % 251) as u8).collect();
    let run = |experiment| {
        let device = software::device()?.with_experiment(experiment);
        let mut data = plain.clone();
        ctr_by(&device, "opengl/6800", &mut data).unwrap();
        Some(data)
    };
    let Some(usual) = run(Experiment::default()) else { return };
    assert!(run(Experiment { edge, steps: Steps::All }).unwrap() == usual);
    let nothing = run(Experiment { edge: None, steps: Steps::Nothing }).unwrap();
    assert!(run(Experiment { edge, steps: Steps::Copies }).unwrap() == nothing);
    // The first counter block is all ones. It is not encrypted, so CTR inverts the first block.
    assert!(nothing[..16].iter().zip(&plain).all(|(result, input)| *result == input ^ 0xff));
}
