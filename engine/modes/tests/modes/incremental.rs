//! Tests of the engine of the incremental modes, on an executor that fails on demand: the state after a failure, overlapping data,
//! and settings that change in the middle of a message.

use lockstep_core::chaining::counter_after;
use lockstep_core::data::Span;
use lockstep_core::work::Pass;
use lockstep_core::{Block, Error};
use lockstep_modes::incremental::{BlockBuffer, BlockIo, Hold, KeyedExecutor, SliceIo, StreamState};
use lockstep_modes::{Cipher, Direction};
use lockstep_reference as reference;

const KEY: [u8; 16] = [7; 16];
const IV: Block = [0xfe; 16];

/// Runs passes with the oracle, and fails in the call with the given number, counted from 0. A call that fails zeroes the
/// output, as a device does.
struct Executor {
    calls: usize,
    fails_at: Option<usize>,
}

impl Executor {
    fn new() -> Executor {
        Executor { calls: 0, fails_at: None }
    }

    fn failing_at(call: usize) -> Executor {
        Executor { calls: 0, fails_at: Some(call) }
    }
}

impl KeyedExecutor for Executor {
    type Error = Error;

    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Result<(), Error> {
        let aes = reference::Aes::new(&KEY);
        let mut data = data.into_host();
        let input = data.input().to_vec();
        self.calls += 1;
        if self.fails_at == Some(self.calls - 1) {
            data.output().fill(0);
            return Err(Error::NotSealed);
        }
        let output = match pass {
            Pass::Ctr => reference::ctr::apply(&aes, state, &input),
            Pass::Ctr32 => reference::ctr::apply32(&aes, state, &input),
            Pass::EcbEncrypt => reference::ecb::encrypt(&aes, &input),
            Pass::CbcEncrypt => reference::cbc::encrypt(&aes, state, &input),
            Pass::CbcDecrypt => reference::cbc::decrypt(&aes, state, &input),
            _ => unreachable!("no test uses it"),
        };
        match pass {
            Pass::Ctr | Pass::Ctr32 => {
                *state = counter_after(pass, state, input.len().div_ceil(16) as u128);
            }
            Pass::CbcEncrypt => *state = *output.last_chunk().unwrap_or(state),
            Pass::CbcDecrypt => *state = *input.last_chunk().unwrap_or(state),
            _ => {}
        }
        data.output().copy_from_slice(&output);
        Ok(())
    }
}

#[test]
fn a_block_that_was_not_computed_is_not_used_as_keystream() {
    let mut keystream = StreamState::new(Pass::Ctr, IV);
    assert!(keystream.resume(&mut Executor::failing_at(0), 5).is_err());
    assert_eq!(keystream.used(), 0, "the zeros of the failed block would be keystream");
    let mut data = [0x55; 11];
    keystream.apply(&mut Executor::new(), Span::in_place(&mut data)).unwrap();
    assert_eq!(data[..], reference::ctr::apply(&reference::Aes::new(&KEY), &IV, &[0x55; 11]));
}

/// The keystream is resumed at each byte of a block, for each length up to three blocks. Some counters wrap in the
/// block or after it.
#[test]
fn a_keystream_resumes_inside_a_block() {
    let aes = reference::Aes::new(&KEY);
    for low in [0xff, 0xfe, 0, 7] {
        for pass in [Pass::Ctr, Pass::Ctr32] {
            let mut counter = [0xff; 16];
            counter[15] = low;
            let expected = match pass {
                Pass::Ctr => reference::ctr::apply(&aes, &counter, &[0; 64]),
                _ => reference::ctr::apply32(&aes, &counter, &[0; 64]),
            };
            for used in 0..16 {
                // At a block boundary, the state is the counter of the next block.
                let after = counter_after(pass, &counter, if used > 0 { 1 } else { 0 });
                for len in 0..=48 {
                    let mut keystream = StreamState::new(pass, after);
                    keystream.resume(&mut Executor::new(), used).unwrap();
                    let mut data = vec![0; len];
                    keystream.apply(&mut Executor::new(), Span::in_place(&mut data)).unwrap();
                    assert_eq!(data, expected[used..used + len], "{pass:?} {low} {used} {len}");
                    assert_eq!(keystream.used(), (used + len) % 16);
                }
            }
        }
    }
}

#[test]
fn a_failed_tail_leaves_the_chaining_state_of_cfb() {
    let mut feedback = StreamState::new(Pass::Cfb128Encrypt, IV);
    let mut data = [1; 5];
    assert!(feedback.apply(&mut Executor::failing_at(0), Span::in_place(&mut data)).is_err());
    assert_eq!((feedback.state(), feedback.used()), (&IV, 0));
}

#[test]
fn padding_may_be_switched_off_while_a_block_is_kept_back() {
    let aes = reference::Aes::new(&KEY);
    let ciphertext = reference::cbc::encrypt(&aes, &IV, &[3; 48]);
    let mut buffer = BlockBuffer::new(Cipher::Cbc, IV);
    let mut output = [0; 64];
    let mut executor = Executor::new();
    let mut io = SliceIo { input: Some(&ciphertext[..32]), output: &mut output };
    // The last whole block is held back, because it may contain the padding.
    assert_eq!(buffer.update(&mut executor, Direction::Decrypt, Hold::Block, &mut io).unwrap(), 16);
    assert_eq!(buffer.pending().len(), 16);
    let mut io = SliceIo { input: Some(&ciphertext[32..]), output: &mut output[16..] };
    assert_eq!(buffer.update(&mut executor, Direction::Decrypt, Hold::Part, &mut io).unwrap(), 32);
    assert!(buffer.pending().is_empty() && output[..48] == [3; 48]);
}

/// Input and output in one buffer. The output starts `shift` bytes before or after the input.
struct Overlapping<'m> {
    memory: &'m mut [u8],
    input: usize,
    output: usize,
    len: usize,
}

impl BlockIo for Overlapping<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn room(&self) -> usize {
        self.memory.len() - self.output
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.memory[self.input + at..][..into.len()]);
    }

    fn part(&mut self, from: usize, to: usize, len: usize) -> Span<'_> {
        let (from, to) = (self.input + from, self.output + to);
        self.memory.copy_within(from..from + len, to);
        Span::in_place(&mut self.memory[to..to + len])
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.memory[self.output + at..][..bytes.len()].copy_from_slice(bytes);
    }
}

#[test]
fn output_may_overlap_the_input_at_any_offset() {
    let aes = reference::Aes::new(&KEY);
    let plain: Vec<u8> = (0..120).collect();
    let expected = reference::cbc::encrypt(&aes, &IV, &plain[..112]);
    for first in 0..40 {
        for shift in -40..=40 {
            let mut buffer = BlockBuffer::new(Cipher::Cbc, IV);
            let mut found = Vec::new();
            let mut executor = Executor::new();
            for piece in [&plain[..first], &plain[first..]] {
                let mut memory = vec![0xee; 300];
                let (input, output) = (100, (100 + shift) as usize);
                memory[input..input + piece.len()].copy_from_slice(piece);
                let mut io = Overlapping { memory: &mut memory, input, output, len: piece.len() };
                let len = buffer.update(&mut executor, Direction::Encrypt, Hold::Part, &mut io).unwrap();
                found.extend_from_slice(&memory[output..output + len]);
            }
            assert_eq!(found, expected, "split at {first}, output {shift} bytes from the input");
            assert_eq!(buffer.pending(), &plain[112..]);
        }
    }
}

#[test]
fn too_little_room_changes_nothing() {
    let mut buffer = BlockBuffer::new(Cipher::Cbc, IV);
    let mut executor = Executor::new();
    let mut io = SliceIo { input: Some(&[1; 20]), output: &mut [0; 15] };
    let error = buffer.update(&mut executor, Direction::Encrypt, Hold::Part, &mut io).unwrap_err();
    assert_eq!(error, Error::OutputLength { needed: 16, got: 15 });
    assert_eq!((buffer.pending().len(), buffer.state(), executor.calls), (0, &IV, 0));
}

/// For each length up to six blocks: an update outputs whole blocks only, and holds back the bytes that the end of the message
/// needs.
#[test]
fn an_update_holds_back_what_the_end_needs() {
    let buffer = BlockBuffer::new(Cipher::Cbc, IV);
    for len in 0..=96 {
        for hold in [Hold::Part, Hold::Block, Hold::BlockAndPart] {
            let output = buffer.output_len(len, hold);
            let kept = match hold {
                Hold::Part => 0..=15,
                // The last block may contain padding, so it is held back even if it is complete.
                Hold::Block => len.min(1)..=16,
                // Ciphertext stealing needs the last whole block and the partial block after it.
                Hold::BlockAndPart => len.min(16)..=31,
            };
            assert!(
                output.is_multiple_of(16) && kept.contains(&(len - output)),
                "{hold:?}: {output} of {len}"
            );
        }
    }
    let holds = [
        (Cipher::Xts, false, Direction::Encrypt, Hold::BlockAndPart),
        (Cipher::Xts, false, Direction::Decrypt, Hold::BlockAndPart),
        (Cipher::Cbc, true, Direction::Encrypt, Hold::Part),
        (Cipher::Cbc, true, Direction::Decrypt, Hold::Block),
        (Cipher::Ecb, true, Direction::Decrypt, Hold::Block),
        (Cipher::Cbc, false, Direction::Encrypt, Hold::Part),
        (Cipher::Cbc, false, Direction::Decrypt, Hold::Part),
    ];
    for (cipher, padding, direction, hold) in holds {
        assert_eq!(Hold::of(cipher, padding, direction), hold, "{cipher:?}, {padding}, {direction:?}");
    }
}
