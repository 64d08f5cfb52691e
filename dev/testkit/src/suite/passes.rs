//! Submits passes to the device directly, and compares the results with those of the oracle.

use super::{Subject, noise, test_block, test_key};
use crate::mock::oracle_pass;
use lockstep_core::data::Data;
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{Operation, Pass, Segment, Task, Tweak};
use lockstep_planner::selftest;

/// The kernel must support at least one operation. The other checks skip unsupported operations, so without this check they would all pass
/// for a kernel that supports nothing.
pub fn it_does_something(subject: &Subject) {
    let supported = Operation::all()
        .filter(|&operation| KeySize::ALL.iter().any(|&size| subject.planner.supports(operation, size)));
    assert!(supported.count() > 0);
}

/// Runs the known-answer tests that a planner runs before it uses a kernel.
pub fn proves_itself(subject: &Subject) {
    for operation in Operation::all() {
        selftest::run(&*subject.device, subject.kernel, operation).unwrap();
    }
}

/// The inputs of one segment.
pub(super) struct Case {
    pub(super) key: Key,
    pub(super) tweak: Key,
    pub(super) position: u64,
    pub(super) state: Block,
    pub(super) data: Vec<u8>,
}

impl Case {
    pub(super) fn new(seed: u64, size: KeySize, len: usize) -> Case {
        Case {
            key: test_key(seed, size),
            tweak: test_key(seed + 1000, size),
            position: seed % 5,
            state: test_block(seed),
            data: noise(seed, len),
        }
    }

    /// The output and the next chaining state, computed by the oracle.
    pub(super) fn expected(&self, pass: Pass) -> (Vec<u8>, Block) {
        let mut state = self.state;
        let tweak = pass.is_xts().then_some((self.tweak.bytes(), self.position));
        let output = oracle_pass(pass, self.key.bytes(), tweak, &mut state, &self.data);
        (output, state)
    }

    /// A segment with these inputs, to be processed in place.
    pub(super) fn segment(&mut self, pass: Pass) -> Segment<'_> {
        let tweak = Tweak { key: &self.tweak, position: self.position };
        Segment {
            key: &self.key,
            tweak: pass.is_xts().then_some(tweak),
            state: &mut self.state,
            data: if pass.is_read_only() {
                Data::read_only(&self.data)
            } else {
                Data::in_place(&mut self.data)
            },
        }
    }
}

/// True if another segment can continue from the chaining state after the pass.
pub(super) fn state_is_defined(pass: Pass, len: usize) -> bool {
    match pass {
        Pass::EcbEncrypt | Pass::EcbDecrypt => false,
        Pass::Cfb128Encrypt | Pass::Cfb128Decrypt | Pass::Ofb => len.is_multiple_of(16),
        _ => true,
    }
}

/// Runs a pass out of place and in place. On a slow device, two of four cases run only out of place, and the other two only in place.
fn check(subject: &Subject, pass: Pass, number: usize, mut case: Case) {
    let len = case.data.len();
    let (output, state) = case.expected(pass);
    let is_apart = !pass.is_read_only() && (!subject.slow || number % 4 < 2);
    // The first run is out of place, and must not change the input.
    let mut apart = vec![0xee; len];
    let mut separate_state = case.state;
    if is_apart {
        let before = case.data.clone();
        let tweak = Tweak { key: &case.tweak, position: case.position };
        let mut segments = [Segment {
            key: &case.key,
            tweak: pass.is_xts().then_some(tweak),
            state: &mut separate_state,
            data: Data::copy(&case.data, &mut apart).unwrap(),
        }];
        submit(subject, pass, &mut segments);
        assert_eq!(case.data, before, "{pass:?} changed its input, {len} bytes");
        assert!(apart == output, "{pass:?} out of place, {len} bytes");
        if state_is_defined(pass, len) {
            assert_eq!(separate_state, state, "state of {pass:?} out of place, {len} bytes");
        }
        if subject.slow {
            return;
        }
    }
    submit(subject, pass, &mut [case.segment(pass)]);
    if !pass.is_read_only() {
        assert!(case.data == output, "{pass:?} in place, {len} bytes, {:?}", case.key);
    }
    if state_is_defined(pass, len) {
        assert_eq!(case.state, state, "state of {pass:?}, {len} bytes");
    }
}

pub(super) fn submit(subject: &Subject, pass: Pass, segments: &mut [Segment<'_>]) {
    subject.device.submit(subject.kernel, Task::Pass(pass, segments).into()).unwrap().wait().unwrap();
}

fn lengths(subject: &Subject, pass: Pass) -> Vec<usize> {
    let unit = pass.unit();
    let mut lengths: Vec<usize> = (0..=40).map(|blocks| 16 * blocks).collect();
    lengths.extend([1024, 4096, 16 * 1024 - 16, 16 * 1024]);
    if unit == 1 {
        lengths.extend(1..100);
        lengths.extend([1023, 16 * 1024 + 1]);
    }
    let slow_pass =
        matches!(pass, Pass::Cfb1Encrypt | Pass::Cfb1Decrypt | Pass::Cfb8Encrypt | Pass::Cfb8Decrypt);
    if slow_pass || subject.slow {
        lengths.retain(|&len| len <= 300);
    } else {
        // This length is large enough to be divided among threads, and is not a multiple of 8 blocks.
        lengths.push(3 * 1024 * 1024 + 16 * 7);
    }
    lengths
}

/// Each pass and key size, in place and out of place, with lengths from 0 to several megabytes. Slow devices are tested with fewer lengths.
pub fn every_pass_every_length(subject: &Subject) {
    for pass in Pass::ALL {
        for size in KeySize::ALL {
            if !subject.does(pass, size) {
                continue;
            }
            // Code that depends on the length does not depend on the key size, so slow devices are tested with all lengths
            // for one size only.
            let is_only_size = KeySize::ALL.iter().all(|&other| other == size || !pass.takes_key(other));
            let gets_all =
                !subject.slow || is_only_size || KeySize::ALL[pass as usize % KeySize::ALL.len()] == size;
            for (i, len) in lengths(subject, pass).into_iter().enumerate() {
                // The longest input is tested with one key size only, since the oracle is slow.
                if len > 1 << 20 && size != KeySize::Aes192 && !is_only_size {
                    continue;
                }
                if !gets_all && !len.is_power_of_two() && len % 23 != 0 {
                    continue;
                }
                check(subject, pass, i, Case::new(i as u64, size, len));
            }
        }
    }
}

/// A message in two segments, submitted in two calls, gives the same result as in one segment.
pub fn chaining_states_link_segments(subject: &Subject) {
    for pass in Pass::ALL {
        let size = if pass.takes_key(KeySize::Aes256) { KeySize::Aes256 } else { KeySize::Aes128 };
        if !subject.does(pass, size) {
            continue;
        }
        for cut in [0, 1, 2, 7, 8, 9, 33] {
            let mut case = Case::new(cut as u64, size, 16 * 40);
            let (output, state) = case.expected(pass);
            let mut rest = Case::new(cut as u64, size, 0);
            rest.data = case.data.split_off(16 * cut);
            rest.position += cut as u64;
            submit(subject, pass, &mut [case.segment(pass)]);
            rest.state = case.state;
            submit(subject, pass, &mut [rest.segment(pass)]);
            if !pass.is_read_only() {
                case.data.extend(&rest.data);
                assert!(case.data == output, "{pass:?} cut at block {cut}");
            }
            if state_is_defined(pass, 0) {
                assert_eq!(rest.state, state, "{pass:?} cut at block {cut}");
            }
        }
    }
}

/// Counters that wrap at 2^32, 2^64 and 2^128, where the wrap is before, within and after the loops that process the most blocks at once.
pub fn counters_wrap(subject: &Subject) {
    let bytes = if subject.slow { 16 * 70 } else { 16 * 300 + 5 };
    for pass in [Pass::Ctr, Pass::Ctr32, Pass::CtrLittle32] {
        let sizes = subject.sizes(pass);
        for (index, &size) in sizes.iter().enumerate() {
            for (i, ones) in [4, 8, 12, 16].into_iter().enumerate() {
                for (k, before) in
                    [0u128, 1, 2, 3, 5, 8, 17, 31, 32, 33, 63, 64, 65, 200].into_iter().enumerate()
                {
                    if !subject.tests(i + k, index, &sizes) {
                        continue;
                    }
                    let mut case = Case::new(before as u64, size, bytes);
                    case.state[16 - ones..].fill(0xff);
                    let counter = u128::from_be_bytes(case.state).wrapping_sub(before);
                    case.state = counter.to_be_bytes();
                    if pass == Pass::CtrLittle32 {
                        case.state.reverse();
                    }
                    check(subject, pass, i + k, case);
                }
            }
        }
    }
}

/// Runs passes with input and output in separate buffers, at every alignment.
pub fn unaligned(subject: &Subject) {
    let size = KeySize::Aes128;
    for pass in Pass::ALL {
        if !subject.does(pass, size) || pass.is_read_only() {
            continue;
        }
        for shift in 0..16 {
            let mut case = Case::new(shift, size, 16 * 21);
            let (output, _) = case.expected(pass);
            let at = shift as usize;
            let mut input = vec![0; at];
            input.extend(&case.data);
            let mut place = vec![0xaa; case.data.len() + 32];
            let end = 16 - at + case.data.len();
            let tweak = Tweak { key: &case.tweak, position: case.position };
            let mut segments = [Segment {
                key: &case.key,
                tweak: pass.is_xts().then_some(tweak),
                state: &mut case.state,
                data: Data::copy(&input[at..], &mut place[16 - at..end]).unwrap(),
            }];
            submit(subject, pass, &mut segments);
            assert!(place[16 - at..end] == output, "{pass:?} shifted by {shift}");
            assert!(
                place[..16 - at].iter().chain(&place[end..]).all(|&byte| byte == 0xaa),
                "{pass:?} wrote outside"
            );
        }
    }
}

/// Runs many segments of different lengths in one call; some segments share a key.
pub fn many_segments(subject: &Subject) {
    for pass in Pass::ALL {
        let sizes = subject.sizes(pass);
        for (index, &size) in sizes.iter().enumerate() {
            for (case, count) in [0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 70].into_iter().enumerate() {
                if !subject.tests(case, index, &sizes) {
                    continue;
                }
                let mut cases: Vec<Case> = (0..count)
                    .map(|i| {
                        // Lengths increase and decrease; every third segment has the same key.
                        let len = 16 * ((i * 7) % 23) as usize;
                        let mut case = Case::new(i, size, len);
                        if i % 3 == 0 {
                            case.key = test_key(77, size);
                        }
                        case
                    })
                    .collect();
                let expected: Vec<_> = cases.iter().map(|case| case.expected(pass)).collect();
                let mut segments: Vec<_> = cases.iter_mut().map(|case| case.segment(pass)).collect();
                submit(subject, pass, &mut segments);
                for (i, (case, (output, state))) in cases.iter().zip(&expected).enumerate() {
                    if !pass.is_read_only() {
                        assert!(case.data == *output, "{pass:?}, message {i} of {count}");
                    }
                    if state_is_defined(pass, 0) {
                        assert_eq!(case.state, *state, "{pass:?}, message {i} of {count}");
                    }
                }
            }
        }
    }
}
