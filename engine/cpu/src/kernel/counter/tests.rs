
use super::*;

#[test]
fn counters_wrap_at_their_width() {
    let all = u128::MAX;
    assert_eq!(Whole::advance(all, 1), 0);
    assert_eq!(Whole::advance(u128::from(u64::MAX), 2), (1 << 64) + 1);
    assert_eq!(Low32::advance(all, 1), all << 32);
    assert_eq!(Low32::advance(all - 1, 5), (all << 32) + 3);
    assert_eq!(Low32::advance(7, 1 << 32), 7);
}

#[test]
fn take_advances_the_counter() {
    let mut counter = [0xff; 16];
    let mut seen = Vec::new();
    take::<Low32>(&mut counter, 2, |i, block| seen.push((i, block)));
    let mut wrapped = [0xff; 16];
    wrapped[12..].fill(0);
    assert_eq!(seen, [(0, [0xff; 16]), (1, wrapped)]);
    wrapped[15] = 1;
    assert_eq!(counter, wrapped);
}
