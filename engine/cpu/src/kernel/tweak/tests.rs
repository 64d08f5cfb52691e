
use super::*;

#[test]
fn advance_matches_repeated_doubling() {
    let start = 0x1234_5678_9abc_def0_0fed_cba9_8765_4321u128.to_le_bytes();
    let mut slow = u128::from_le_bytes(start);
    for blocks in 0..2000 {
        let mut tweak = start;
        advance(&mut tweak, blocks);
        assert_eq!(u128::from_le_bytes(tweak), slow, "{blocks}");
        slow = double(slow);
    }
}

#[test]
fn take_advances_the_tweak() {
    let mut tweak = (1u128 << 126).to_le_bytes();
    let mut seen = Vec::new();
    take(&mut tweak, 2, |_, t| seen.push(u128::from_le_bytes(t)));
    assert_eq!(seen, [1 << 126, 1 << 127]);
    assert_eq!(u128::from_le_bytes(tweak), 0x87);
}
