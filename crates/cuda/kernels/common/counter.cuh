// Counter blocks: 128 bits, big-endian, of which all or the last 32 count; or 32 bits, little-endian, at the beginning.
#pragma once
#include "block.cuh"

// A counter as numbers: word 0 has the least significant bits.
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

// The block of a counter of GCM-SIV `blocks` later (RFC 8452, section 4): the first 32 bits count, without carry.
__device__ inline u32x4 advance_little32(u32x4 block, u64 blocks) {
    return u32x4{block.x + (u32)blocks, block.y, block.z, block.w};
}

// The counter `blocks` later. `Only32`: without carry out of the last 32 bits (SP 800-38D, 6.2).
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
