
use super::*;

#[test]
fn memory_is_bounded_for_any_number_of_threads() {
    for workers in 1..=MAX_WORKERS {
        let chunks = piece_chunks(workers, None);
        assert!(chunks >= 1 && workers * chunks * ENCRYPTED_CHUNK <= MEMORY, "{workers}");
    }
    assert_eq!(piece_chunks(2, Some(3)), 3);
    assert_eq!(piece_chunks(2, Some(u64::MAX)), PIECE_CHUNKS);
}
