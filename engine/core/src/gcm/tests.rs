
use super::*;

#[test]
fn tags_of_all_lengths_are_compared() {
    let computed: Block = std::array::from_fn(|i| 3 * i as u8 + 1);
    for len in 1..=16 {
        assert!(tags_match(&computed, &computed[..len]), "{len} bytes");
        for bit in 0..8 * len {
            let mut wrong = computed;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!tags_match(&computed, &wrong[..len]), "{len} bytes, bit {bit}");
        }
    }
    assert!(!tags_match(&computed, &[]) && !tags_match(&computed, &[0; 17]));
}
