// The masks of OCB3 (RFC 7253, section 4.1), and the offsets that are sums of them.
//
// The offset of block n, counted from 1, is the offset before the first block plus L_i for each bit i that is set in the
// Gray code of n, n ^ n >> 1, because the Gray codes of n - 1 and n differ in bit ntz(n). So the offset of any block can be
// computed without the offsets before it. The number of a block is public; the masks are secret.
#pragma once
#include "../common/block.cuh"

constexpr u32 ocb_levels = 48;  // enough for 2^48 blocks

struct alignas(16) OcbMasks {
    u32x4 star;           // L_*
    u32x4 dollar;         // L_$
    u32x4 l[ocb_levels];  // L_0, L_1, ...
};
static_assert(sizeof(OcbMasks) == 16 * (2 + ocb_levels), "");

// Doubling in GF(2^128), most significant bit first.
__device__ inline u32x4 doubled_block(u32x4 block) {
    u32 a = swap_bytes(block.x), b = swap_bytes(block.y), c = swap_bytes(block.z), d = swap_bytes(block.w);
    u32 carry = mask_of_bit(a, 31) & 0x87;
    return {swap_bytes(funnel_left(b, a, 1)), swap_bytes(funnel_left(c, b, 1)), swap_bytes(funnel_left(d, c, 1)),
            swap_bytes(d << 1 ^ carry)};
}

// `sum` plus L_(first + i) for each bit i that is set in `bits`, which is public.
__device__ inline u32x4 plus_masks(u32x4 sum, const OcbMasks &masks, u32 first, u64 bits) {
    for (u32 i = first; bits != 0; i++, bits >>= 1)
        if (bits & 1) sum = sum ^ masks.l[i];
    return sum;
}

__device__ inline u64 gray_code(u64 number) { return number ^ number >> 1; }

// The offset of block `number`, counted from 1. `first` is the offset before the first block.
__device__ inline u32x4 offset_of(const OcbMasks &masks, u32x4 first, u64 number) {
    return plus_masks(first, masks, 0, gray_code(number));
}

// The number of zeros below the lowest bit that is set.
__device__ inline u32 trailing_zeros(u64 number) { return (u32)__popcll(~number & (number - 1)); }

// The sum of the values of all lanes of a warp. Every lane gets the sum.
__device__ inline u32x4 sum_of_warp(u32x4 block) {
#pragma unroll
    for (u32 flip = 16; flip > 0; flip /= 2) {
        block.x ^= __shfl_xor_sync(0xFFFFFFFF, block.x, flip);
        block.y ^= __shfl_xor_sync(0xFFFFFFFF, block.y, flip);
        block.z ^= __shfl_xor_sync(0xFFFFFFFF, block.z, flip);
        block.w ^= __shfl_xor_sync(0xFFFFFFFF, block.w, flip);
    }
    return block;
}
