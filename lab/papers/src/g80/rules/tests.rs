use super::*;

fn words(of: impl Fn(u64) -> u64) -> Vec<u64> {
    (0..16).map(|thread| 4 * of(thread)).collect()
}

#[test]
fn passes_of_shared_memory() {
    // 16 successive words are in different banks, wherever they start.
    assert_eq!(shared_passes(&words(|thread| 5 + thread)), 1);
    // All threads read one word, which is broadcast.
    assert_eq!(shared_passes(&words(|_| 7)), 1);
    // Threads read every 2nd, 4th or 16th word.
    for stride in [2, 4, 16] {
        assert_eq!(shared_passes(&words(|thread| stride * thread)), stride as u32);
    }
    assert_eq!(shared_passes(&words(|thread| 3 * thread)), 1);
    assert_eq!(shared_passes(&[]), 0);
    // Threads that read different bytes of a word read the same word.
    assert_eq!(shared_passes(&[0, 1, 2, 3]), 1);
}

#[test]
fn a_pass_broadcasts_one_word() {
    // Two threads read each word. A pass serves one pair of threads by broadcast, and one thread of each other pair.
    let pairs = words(|thread| thread / 2);
    assert_eq!((shared_passes(&pairs), shared_passes_with_broadcasts(&pairs)), (2, 1));
    // Four threads read each of four words. Each of passes 1 to 3 serves one word to all its threads, and one thread of each other word.
    // Then one thread of the fourth word is left.
    let fours = words(|thread| thread / 4);
    assert_eq!((shared_passes(&fours), shared_passes_with_broadcasts(&fours)), (4, 1));
    // Two words of one bank, each read by eight threads.
    let bank = words(|thread| 16 * (thread % 2));
    assert_eq!((shared_passes(&bank), shared_passes_with_broadcasts(&bank)), (2, 2));
}

#[test]
fn the_layouts_of_figure_3() {
    let threads = 64;
    for word in 0..4 {
        let naive = words(|thread| 4 * thread + word);
        let good = words(|thread| thread + threads * word);
        assert_eq!((shared_passes(&naive), shared_passes(&good)), (4, 1));
    }
}

#[test]
fn passes_of_the_constant_cache() {
    assert_eq!(constant_passes(&words(|_| 3)), 1);
    assert_eq!(constant_passes(&words(|thread| thread)), 16);
    assert_eq!(constant_passes(&words(|thread| 100 * (thread % 5))), 5);
}

#[test]
fn accesses_coalesce_in_order_and_aligned() {
    let at = |first: u64, step: u64| (0..16).map(|thread| first + step * thread).collect::<Vec<u64>>();
    for size in [4, 8, 16] {
        assert_eq!(global_bytes(&at(1024, size), size), 16 * size);
        // These accesses do not coalesce: one is not aligned, and one reads every second element.
        assert_eq!(global_bytes(&at(1024 + size, size), size), 16 * 32);
        assert_eq!(global_bytes(&at(1024, 2 * size), size), 16 * 32);
    }
    let mut swapped = at(1024, 4);
    swapped.swap(3, 4);
    assert_eq!(global_bytes(&swapped, 4), 16 * 32);
    // Accesses to bytes never coalesce. Accesses of all threads to one word do not coalesce either.
    assert_eq!(global_bytes(&at(0, 1), 1), 16 * 32);
    assert_eq!(global_bytes(&at(0, 0), 4), 16 * 32);
    assert_eq!(global_bytes(&at(0, 4)[..8], 4), 64);
}
