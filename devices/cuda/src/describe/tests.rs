
use super::*;

#[test]
fn runs_are_of_one_key() {
    let mut runs = Runs::default();
    assert_eq!((&runs.0[..], runs.blocks()), (&[][..], 0));
    for (key, blocks) in [(1, 1), (1, 4), (3, 1), (1, 2)] {
        runs.add(key, blocks);
    }
    assert_eq!((&runs.0[..], runs.blocks()), (&[(1, 0..5), (3, 5..6), (1, 6..8)][..], 8));
}
