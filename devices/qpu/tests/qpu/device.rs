//! Tests of the simulated QPUs as a device that processes many messages at once.

use lockstep_core::Key;
use lockstep_core::backend::{Device, kernel_by_name};
use lockstep_core::chaining::ChainingState;
use lockstep_core::data::Data;
use lockstep_core::key::Block;
use lockstep_core::work::{Pass, Segment, Task, Tweak};
use lockstep_qpu::device::{Qpu, Simulated};
use lockstep_qpu::launch::MAX_RUN_BYTES;
use lockstep_reference::{Aes, cbc, cfb, ctr, pcbc, xts};

/// Executes a pass of the bitsliced kernel over messages with one key. Returns the totals.
fn run(pass: Pass, keys: [&Key; 2], states: &mut [Block], messages: &mut [Vec<u8>]) -> Simulated {
    let device = Qpu::default();
    let id = kernel_by_name(&device, "qpu/bitslice").unwrap();
    let tweak = pass.is_xts().then_some(Tweak { key: keys[1], position: 0 });
    let mut segments: Vec<_> = messages
        .iter_mut()
        .zip(states)
        .map(|(message, state)| Segment { key: keys[0], tweak, state, data: Data::in_place(message) })
        .collect();
    device.submit(id, Task::Pass(pass, &mut segments).into()).unwrap().wait().unwrap();
    device.simulated()
}

fn xor(block: &[u8], other: &[u8]) -> Block {
    std::array::from_fn(|byte| block[byte] ^ other[byte])
}

const KEYS: [[u8; 16]; 2] = [[3; 16], [4; 16]];

/// All messages are right if there are more chains than lanes, if the chains have different lengths, and if one chain takes several runs.
#[test]
fn chains_of_many_messages() {
    let keys = KEYS.map(|key| Key::new(&key).unwrap());
    let aes = Aes::new(&KEYS[0]);
    let plain: Vec<Vec<u8>> =
        (0..400usize).map(|n| vec![n as u8; 16 * (n % 7 + if n == 390 { 800 } else { 0 })]).collect();
    for pass in [Pass::CbcEncrypt, Pass::CbcMac, Pass::Cfb128Encrypt, Pass::Ofb, Pass::PcbcEncrypt] {
        let mut messages = plain.clone();
        let ivs: Vec<Block> = (0..400).map(|n| [(n * 3) as u8; 16]).collect();
        let mut states = ivs.clone();
        let done = run(pass, [&keys[0], &keys[1]], &mut states, &mut messages);
        assert_eq!(done.bytes, plain.iter().map(|message| message.len() as u64).sum::<u64>());
        for (n, (message, input)) in messages.iter().zip(&plain).enumerate() {
            let mut state = ivs[n];
            let mut expected = Vec::new();
            for block in input.chunks(16) {
                let output = match pass {
                    Pass::CbcEncrypt | Pass::CbcMac | Pass::PcbcEncrypt => aes.encrypt(xor(block, &state)),
                    _ => xor(&aes.encrypt(state), block),
                };
                let adds_input = matches!(pass, Pass::Ofb | Pass::PcbcEncrypt);
                state = if adds_input { xor(&output, block) } else { output };
                expected.extend(output);
            }
            let expected = if pass == Pass::CbcMac { input } else { &expected };
            assert!(message == expected && states[n] == state, "{pass:?}: message {n}");
        }
    }
}

/// 384 chains fill all lanes of all QPUs, so 384 messages take as long as one message.
#[test]
fn chains_fill_the_lanes() {
    let keys = KEYS.map(|key| Key::new(&key).unwrap());
    let clocks = |messages: usize| {
        let mut data = vec![vec![7; 16 * 20]; messages];
        run(Pass::CbcEncrypt, [&keys[0], &keys[1]], &mut vec![[0; 16]; messages], &mut data).clocks
    };
    let (one, all) = (clocks(1), clocks(384));
    assert!(all < one + one / 10, "{one} and {all}");
    // The thesis expects that each chain uses a quarter of a vector. A byte would then take 4 x 85 clocks of a QPU.
    let each = all as f64 * 12.0 / (384.0 * 16.0 * 20.0);
    assert!(each < 20.0, "{each} clocks a byte and QPU");
}

/// A message that is longer than a run has the right result: each run continues where the previous run ended, also if the last 32 bits of
/// the counter overflow in the first run.
#[test]
fn messages_of_several_runs() {
    let keys = KEYS.map(|key| Key::new(&key).unwrap());
    let [aes, tweak_aes] = KEYS.map(|key| Aes::new(&key));
    let input: Vec<u8> =
        (0..2 * MAX_RUN_BYTES as u32 + 80).map(|byte| (byte * 7 + byte / 64) as u8).collect();
    let mut start = [0xff; 16];
    start[15] = 5;
    for (pass, tail) in [
        (Pass::Ctr, 13),
        (Pass::Ctr32, 13),
        (Pass::CbcDecrypt, 0),
        (Pass::Cfb128Decrypt, 13),
        (Pass::PcbcDecrypt, 0),
        (Pass::XtsEncrypt, 0),
    ] {
        let input = &input[..input.len() - tail];
        let (mut messages, mut states) = ([input.to_vec()], [start]);
        run(pass, [&keys[0], &keys[1]], &mut states, &mut messages);
        let expected = match pass {
            Pass::Ctr => ctr::apply(&aes, &start, input),
            Pass::Ctr32 => ctr::apply32(&aes, &start, input),
            Pass::CbcDecrypt => cbc::decrypt(&aes, &start, input),
            Pass::Cfb128Decrypt => cfb::decrypt128(&aes, &start, input),
            Pass::PcbcDecrypt => pcbc::decrypt(&aes, &start, input),
            _ => xts::encrypt(&aes, &tweak_aes, &start, input),
        };
        assert!(messages[0] == expected, "{pass:?}");
        let last: Option<Block> = input.as_chunks().0.last().copied();
        let after = match (pass, last, expected.as_chunks::<16>().0.last()) {
            (Pass::PcbcDecrypt, Some(ciphertext), Some(plaintext)) => xor(&ciphertext, plaintext),
            _ => ChainingState::of(pass).after(start, input.len(), last),
        };
        assert_eq!(states[0], after, "{pass:?}");
    }
}

/// Sectors of XTS have the right results if they do not end at the ends of units of 32 blocks.
#[test]
fn sectors_of_many_lengths() {
    let keys = KEYS.map(|key| Key::new(&key).unwrap());
    let [aes, tweak_aes] = KEYS.map(|key| Aes::new(&key));
    let plain: Vec<Vec<u8>> = (0..40usize).map(|n| vec![n as u8; 16 * (n * 5 % 50 + 1)]).collect();
    let tweaks: Vec<Block> = (0..40u128).map(u128::to_le_bytes).collect();
    let mut messages = plain.clone();
    run(Pass::XtsEncrypt, [&keys[0], &keys[1]], &mut tweaks.clone(), &mut messages);
    for (n, (message, input)) in messages.iter().zip(&plain).enumerate() {
        assert!(*message == xts::encrypt(&aes, &tweak_aes, &tweaks[n], input), "sector {n}");
    }
    run(Pass::XtsDecrypt, [&keys[0], &keys[1]], &mut tweaks.clone(), &mut messages);
    assert!(messages == plain);
}
