use lockstep_testkit::suite::noise;

use super::*;
use crate::memory::zero;
use crate::{LaunchOptions, software};

/// Zeroes and overwrites ranges that begin and end within words, and checks that the neighbouring bytes are unchanged. The last range
/// extends over several buffers and is copied in several parts.
#[test]
fn ragged_ranges_do_not_change_their_neighbours() {
    let Some(device) = software::device() else { return };
    let device = device.with_launches(LaunchOptions { buffer: Some(64 << 10), ..LaunchOptions::default() });
    let (pool, stream) = (device.pool().unwrap(), Stream::default());
    for at in 0..4 {
        for len in (0..=9).chain([66_001]) {
            let mut expected = noise(at as u64, at + len + 7);
            let memory = device.allocate(expected.len()).unwrap();
            let slice = memory.slice().slice(at..at + len);
            let holds = |expected: &[u8]| {
                let mut found = vec![0; expected.len()];
                device.download(&memory.slice(), &mut found, stream).unwrap();
                found == expected
            };
            device.upload(&expected, &memory.slice(), stream).unwrap();
            zero(&pool, &slice).unwrap();
            expected[at..at + len].fill(0);
            assert!(holds(&expected), "{len} bytes at {at} are zeroed");
            let new = noise(9, len);
            device.upload(&new, &slice, stream).unwrap();
            expected[at..at + len].copy_from_slice(&new);
            assert!(holds(&expected), "{len} bytes at {at} are overwritten");
        }
    }
}
