//! Every pass, compared with the mock device, which uses the oracle. The suite does not reach these cases on a software device: tiles that
//! invocations share, several chunks in flight, and OpenGL ES in place of Vulkan.

use crate::software;

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{Operation, Pass, Segment, Task, Tweak};
use lockstep_core::{Block, Key, KeySize};
use lockstep_testkit::mock::MockAsyncDevice;
use lockstep_testkit::suite::{noise, test_block, test_key};
use lockstep_wgpu::{LaunchOptions, Overhead, SOFTWARE_GL, WgpuDevice};

struct Message {
    key: Key,
    tweak: Key,
    position: u64,
    state: Block,
    data: Vec<u8>,
}

fn messages(size: KeySize, lengths: &[usize]) -> Vec<Message> {
    let message = |(index, &len): (usize, &usize)| {
        let seed = index as u64;
        let (key, tweak) = (test_key(seed % 3, size), test_key(seed + 9, size));
        // The position is deep in a data unit, and counters wrap within the message.
        let mut state = test_block(seed);
        state[12..15].fill(0xff);
        Message { key, tweak, position: 70_000 * seed, state, data: noise(seed, len) }
    };
    lengths.iter().enumerate().map(message).collect()
}

/// Submits all messages in one call, by each kernel.
fn check(device: &WgpuDevice, pass: Pass, size: KeySize, lengths: &[usize]) {
    for number in 0..device.kernels().len() {
        let kernel = KernelId(number as u16);
        if device.cost(kernel, Operation::Pass(pass), size).is_none() {
            continue;
        }
        let mut messages = messages(size, lengths);
        let mut expected = self::messages(size, lengths);
        let mut segments: Vec<_> = expected.iter_mut().map(|message| segment(pass, message)).collect();
        MockAsyncDevice::default()
            .submit(KernelId(0), Task::Pass(pass, &mut segments).into())
            .unwrap()
            .wait()
            .unwrap();
        let mut segments: Vec<_> = messages.iter_mut().map(|message| segment(pass, message)).collect();
        device.submit(kernel, Task::Pass(pass, &mut segments).into()).unwrap().wait().unwrap();
        for (index, (message, expected)) in messages.iter().zip(&expected).enumerate() {
            let len = message.data.len();
            if !pass.is_read_only() {
                assert!(
                    message.data == expected.data,
                    "{pass:?}, kernel {number}, message {index} of {len} bytes"
                );
            }
            if len.is_multiple_of(16) && !matches!(pass, Pass::EcbEncrypt | Pass::EcbDecrypt) {
                assert_eq!(message.state, expected.state, "{pass:?}, kernel {number}, message {index}");
            }
        }
    }
}

fn segment(pass: Pass, message: &mut Message) -> Segment<'_> {
    let tweak = Tweak { key: &message.tweak, position: message.position };
    let data =
        if pass.is_read_only() { Data::read_only(&message.data) } else { Data::in_place(&mut message.data) };
    Segment { key: &message.key, tweak: pass.is_xts().then_some(tweak), state: &mut message.state, data }
}

fn parallel() -> impl Iterator<Item = Pass> {
    Pass::ALL.into_iter().filter(|pass| !pass.is_serial())
}

#[test]
fn invocations_share_tiles() {
    let Some(device) = software::device() else { return };
    let device = device.with_launches(LaunchOptions { wide: Some(true), ..LaunchOptions::default() });
    for pass in parallel() {
        let tail = if pass.unit() == 1 { 5 } else { 0 };
        check(&device, pass, KeySize::Aes192, &[16, 16 * 31, 16 * 1024, 16 * 1057 + tail, 16 * 33, 0]);
    }
}

#[test]
fn several_chunks_are_in_flight() {
    let Some(device) = software::device() else { return };
    let options = LaunchOptions { chunk: Some(8192), ..LaunchOptions::default() };
    let device = device.with_launches(options);
    for pass in parallel() {
        let tail = if pass.unit() == 1 { 3 } else { 0 };
        check(
            &device,
            pass,
            KeySize::Aes256,
            &[100_000, 16, 70_000 + tail, 48].map(|len| len / 16 * 16 + tail),
        );
    }
    // There are more messages than one invocation processes, and some messages of serial modes need several launches.
    check(&device, Pass::CbcEncrypt, KeySize::Aes128, &[40_000, 16, 70_000, 32]);
    check(&device, Pass::CbcMac, KeySize::Aes128, &[32 * 1024 + 16; 40]);
    check(&device, Pass::Cfb8Decrypt, KeySize::Aes128, &[1500, 3]);
}

#[test]
fn copies_are_unchanged() {
    let Some(device) = software::device() else { return };
    let key = test_key(1, KeySize::Aes128);
    for len in [1, 1000, 5 << 20] {
        let (input, mut output) = (noise(7, len), vec![0; len]);
        let mut state = [3; 16];
        let data = Data::copy(&input, &mut output).unwrap();
        let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data }];
        device.overhead(Overhead::Copy, &mut segments).unwrap().wait().unwrap();
        assert!(input == output);
        assert_eq!(state, [3; 16]);
    }
}

/// The shaders give the same results through OpenGL ES, the interface of old and small GPUs.
#[test]
fn opengl_gives_the_same_results() {
    let Some(device) = software::by_name(&SOFTWARE_GL.to_string()) else { return };
    for pass in Pass::ALL {
        let tail = if pass.unit() == 1 { 7 } else { 0 };
        check(&device, pass, KeySize::Aes256, &[16, 16 * 5 + tail, 16 * 70]);
    }
}
