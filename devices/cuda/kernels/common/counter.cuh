// Counter blocks. The counter is a big-endian number in all 128 bits or in the last 32 bits, or a little-endian number in
// the first 32 bits.
#pragma once
#include "block.cuh"

// A counter as a number of 128 bits. Word 0 has the least significant bits.
struct Counter {
    u32 words[4];
};

__device__ inline Counter counter_of(u32x4 block) {
    return Counter{{swap_bytes(block.w), swap_bytes(block.z), swap_bytes(block.y), swap_bytes(block.x)}};
}

__device__ inline u32x4 block_of(const Counter &counter) {
    return u32x4{swap_bytes(counter.words[3]), swap_bytes(counter.words[2]), swap_bytes(counter.words[1]),
                 swap_bytes(counter.words[0])};
}

// The counter block of GCM-SIV that is `blocks` blocks after `block` (RFC 8452, section 4). The counter is in the first 32
// bits; a carry out of them is dropped.
__device__ inline u32x4 advance_little32(u32x4 block, u64 blocks) {
    return u32x4{block.x + (u32)blocks, block.y, block.z, block.w};
}

// The counter that is `blocks` blocks after `counter`. If `Only32` is set, a carry out of the last 32 bits is dropped (SP
// 800-38D, 6.2).
template <bool Only32>
__device__ inline Counter advance(Counter counter, u64 blocks) {
    if (Only32) {
        counter.words[0] += (u32)blocks;
        return counter;
    }
    u64 low = (u64)counter.words[1] << 32 | counter.words[0], high = (u64)counter.words[3] << 32 | counter.words[2];
    u64 sum = low + blocks;
    high += sum < low;
    return Counter{{(u32)sum, (u32)(sum >> 32), (u32)high, (u32)(high >> 32)}};
}
