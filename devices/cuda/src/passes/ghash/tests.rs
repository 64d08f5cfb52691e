
use super::*;

#[test]
fn levels_end_with_one_tile_for_each_message() {
    let of = |blocks: &[u64]| Levels::of(&H100, blocks, 1).unwrap().0;
    assert_eq!(of(&[0, 512]), [[0, 1, 2]]);
    assert_eq!(of(&[1, 513]), [[0, 1, 3], [0, 1, 2]]);
    assert_eq!(of(&[512 * 512 + 1]), [[0, 513], [0, 2], [0, 1]]);
}

const H100: Limits = Limits { multiprocessors: 132, shared: 0, tensor_bits: true };

#[test]
fn short_messages_are_hashed_by_a_thread_each_and_long_ones_in_tiles() {
    let is_each = |blocks, messages, keys| Levels::of(&H100, &vec![blocks; messages], keys).is_none();
    assert!(is_each(0, 1, 1) && is_each(16, 1, 1));
    assert!(is_each(65, 100_000, 100_000), "one key for each: powers cost more than they save");
    assert!(!is_each(1025, 1, 1) && !is_each(1025, 6400, 1), "a file's chunks");
    assert!(is_each(1025, 1_000_000, 1), "enough to occupy all threads");
}

#[test]
fn matrices_are_made_only_if_they_save_work() {
    assert!(!by_matrices(&H100, 44, 1) && by_matrices(&H100, 45, 1));
    assert!(!by_matrices(&H100, 1000, 1000), "a key for each tile");
    assert!(!by_matrices(&Limits { tensor_bits: false, ..H100 }, 1 << 20, 1));
}
