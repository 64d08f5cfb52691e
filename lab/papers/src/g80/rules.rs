//! The rules by which the memories of compute capability 1.0 and 1.1 serve the accesses of a half-warp, which is 16 threads.

/// The number of threads whose accesses are served together.
pub const HALF_WARP: usize = 16;

/// The number of banks of shared memory. Successive words of 32 bits are in successive banks.
pub const BANKS: u32 = 16;

/// The minimum size of a transaction of global memory, in bytes.
pub const TRANSACTION: u64 = 32;

/// The number of passes in which shared memory serves a read. `addresses` are the addresses of words of 32 bits, in bytes, one for each
/// thread.
///
/// A pass serves one word of the hardware's choice to all threads that read it, and one thread for each other bank. The choice is not
/// documented. Here the word is the one with the most threads left, in the bank with the most threads left.
pub fn shared_passes(addresses: &[u64]) -> u32 {
    let mut left: Vec<u32> = addresses.iter().map(|address| (address / 4) as u32).collect();
    let mut passes = 0;
    while !left.is_empty() {
        let of_bank = |word: u32| left.iter().filter(|other| *other % BANKS == word % BANKS).count();
        let of_word = |word: u32| left.iter().filter(|other| **other == word).count();
        let broadcast = left.iter().copied().max_by_key(|&word| (of_bank(word), of_word(word)));
        let mut served = 0u32;
        left.retain(|&word| {
            let bank = 1 << (word % BANKS);
            let is_first = served & bank == 0;
            served |= bank;
            Some(word) != broadcast && !(is_first && Some(word % BANKS) != broadcast.map(|word| word % BANKS))
        });
        passes += 1;
    }
    passes
}

/// Returns the number of passes of a read from shared memory if each bank could serve one word to all its threads. It is the maximum number
/// of different words in a bank.
pub fn shared_passes_with_broadcasts(addresses: &[u64]) -> u32 {
    let words = different_words(addresses);
    let of_bank = |bank| words.iter().filter(|word| *word % u64::from(BANKS) == u64::from(bank)).count();
    (0..BANKS).map(of_bank).max().unwrap_or(0) as u32
}

/// Returns the number of passes in which the constant cache serves a read, which is the number of different words.
pub fn constant_passes(addresses: &[u64]) -> u32 {
    different_words(addresses).len() as u32
}

fn different_words(addresses: &[u64]) -> Vec<u64> {
    let mut words: Vec<u64> = addresses.iter().map(|address| address / 4).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The number of bytes that global memory moves if each thread of a half-warp accesses `size` bytes.
///
/// If thread i accesses element i of an aligned array, whose elements have 4, 8 or 16 bytes, there is one transaction of 16 times `size`
/// bytes. Otherwise each thread has a separate transaction.
pub fn global_bytes(addresses: &[u64], size: u64) -> u64 {
    let threads = addresses.len() as u64;
    let Some(&first) = addresses.first() else { return 0 };
    let in_order = addresses.iter().zip(0..).all(|(&address, thread)| address == first + size * thread);
    let is_aligned = first.is_multiple_of(size * HALF_WARP as u64);
    if in_order && is_aligned && [4, 8, 16].contains(&size) {
        size * HALF_WARP as u64
    } else {
        threads * TRANSACTION.max(size)
    }
}

#[cfg(test)]
mod tests;
