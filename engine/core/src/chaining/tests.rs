use super::*;

#[test]
fn chaining_states_advance() {
    let ones = [0xff; 16];
    assert_eq!(ChainingState::Keep.after(ones, 99, None), ones);
    assert_eq!(ChainingState::Counter.after(ones, 17, None)[15], 1);
    let mut low = ones;
    low[12..].copy_from_slice(&[0, 0, 0, 1]);
    assert_eq!(ChainingState::Counter32.after(ones, 17, None), low);
    let mut first = ones;
    first[..4].copy_from_slice(&[1, 0, 0, 0]);
    assert_eq!(ChainingState::CounterLittle32.after(ones, 17, None), first);
    assert_eq!(ChainingState::LastCiphertext.after(ones, 15, None), ones);
    assert_eq!(ChainingState::LastCiphertext.after(ones, 16, Some(low)), low);
}

/// Adds 1 to a number. The iterator returns its bytes, the lowest byte first.
fn increment<'a>(bytes: impl Iterator<Item = &'a mut u8>) {
    for byte in bytes {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}

/// The counters have each number of low bytes that are 0xff and each value of the byte above them, and are advanced by up to 257
/// blocks. Every carry from byte to byte and every wrap of a counter is thus compared with repeated additions of 1.
#[test]
fn counters_are_increased_like_single_blocks() {
    let rest: Block = std::array::from_fn(|i| 0x5a ^ (i as u8).wrapping_mul(29));
    for ones in 0..=16 {
        for value in 0..=u8::MAX {
            let mut big_endian = rest;
            big_endian[16 - ones..].fill(0xff);
            let mut little_endian = rest;
            little_endian[..ones].fill(0xff);
            if ones < 16 {
                (big_endian[15 - ones], little_endian[ones]) = (value, value);
            }
            let (mut all, mut last, mut first) = (big_endian, big_endian, little_endian);
            for blocks in 0..=257 {
                assert_eq!(counter_after(Pass::Ctr, &big_endian, blocks), all);
                assert_eq!(counter_after(Pass::Ctr32, &big_endian, blocks), last);
                assert_eq!(counter_after(Pass::CtrLittle32, &little_endian, blocks), first);
                increment(all.iter_mut().rev());
                increment(last[12..].iter_mut().rev());
                increment(first[..4].iter_mut());
            }
        }
    }
}

/// A partial block counts as a block. All lengths up to 17 blocks are tested.
#[test]
fn states_after_each_number_of_bytes() {
    let state = [0xfe; 16];
    let data: [u8; 272] = std::array::from_fn(|i| i as u8);
    for len in 0..=data.len() {
        let last = data[..len / 16 * 16].last_chunk().copied();
        for (rule, pass) in [
            (ChainingState::Counter, Pass::Ctr),
            (ChainingState::Counter32, Pass::Ctr32),
            (ChainingState::CounterLittle32, Pass::CtrLittle32),
        ] {
            let blocks = (0..len).step_by(16).count() as u128;
            assert_eq!(rule.after(state, len, last), counter_after(pass, &state, blocks), "{len} bytes");
        }
        let expected = if len < 16 { state } else { last.unwrap() };
        assert_eq!(ChainingState::LastCiphertext.after(state, len, last), expected, "{len} bytes");
        assert_eq!(ChainingState::DeviceComputed.after(state, len, last), state);
    }
}
