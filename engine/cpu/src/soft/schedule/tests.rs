
use super::*;

#[test]
fn a_shorter_key_leaves_nothing_of_a_longer_one() {
    let mut schedule = Schedule::blank().unwrap();
    schedule.set(&[7; 32]);
    schedule.set(&[9; 16]);
    assert!(schedule.keys.bytes[11..].as_flattened().iter().all(|byte| *byte == 0));
    let mut fresh = Schedule::blank().unwrap();
    fresh.set(&[9; 16]);
    assert!(schedule.keys.bytes == fresh.keys.bytes);
}
