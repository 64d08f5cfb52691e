// GF(2^128) of GHASH, by integer multiplication. The code is constant time. It uses the multiplier, which the logic of AES
// leaves idle.
//
// A block is read as a big-endian number, whose bits are the coefficients of the polynomial in reverse order. The product
// of two such numbers lacks a factor x, so the key is multiplied by x in advance. The reduction works from the low end (RFC
// 8452, appendix A).
#pragma once
#include "../common/block.cuh"

// Word 0 has the least significant bits.
struct Element {
    u32 word[4];
};

__device__ inline Element element_of(u32x4 block) {
    return {{swap_bytes(block.w), swap_bytes(block.z), swap_bytes(block.y), swap_bytes(block.x)}};
}
__device__ inline u32x4 block_of(const Element &element) {
    const u32(&w)[4] = element.word;
    return {swap_bytes(w[3]), swap_bytes(w[2]), swap_bytes(w[1]), swap_bytes(w[0])};
}
__device__ inline Element operator^(const Element &a, const Element &b) {
    return {{a.word[0] ^ b.word[0], a.word[1] ^ b.word[1], a.word[2] ^ b.word[2], a.word[3] ^ b.word[3]}};
}

// The neutral element of times(): x^128, reduced.
__device__ inline Element one() { return {{1, 0, 0, 0xC2000000}}; }

// The key H times x (RFC 8452, appendix A: mulX_POLYVAL).
__device__ inline Element key_of(u32x4 hash_key) {
    Element h = element_of(hash_key);
    const u32(&w)[4] = h.word;
    u32 carry = mask_of_bit(w[3], 31);
    return {{w[0] << 1 ^ (carry & 1), funnel_right(w[0], w[1], 31), funnel_right(w[1], w[2], 31),
             funnel_right(w[2], w[3], 31) ^ (carry & 0xC2000000)}};
}

// The second factor of a product: its words, and the sums of words that Karatsuba's rule needs. Each of these is split into
// four parts, which have every fourth bit. In the product of two parts, at most 8 terms are added in one position. Such a
// sum has at most 4 bits, so no carry reaches the next position of the same product.
struct Factor {
    u32 part[9][4];

    __device__ static inline Factor of(const Element &element);
};

constexpr u32 every_fourth = 0x11111111;

__device__ inline Factor Factor::of(const Element &element) {
    const u32(&w)[4] = element.word;
    u32 sums[9] = {w[0], w[1], w[0] ^ w[1], w[2], w[3], w[2] ^ w[3], w[0] ^ w[2], w[1] ^ w[3], w[0] ^ w[1] ^ w[2] ^ w[3]};
    Factor factor;
#pragma unroll
    for (u32 i = 0; i < 9; i++)
#pragma unroll
        for (u32 j = 0; j < 4; j++) factor.part[i][j] = sums[i] & every_fourth << j;
    return factor;
}

// The carry-less product of two words.
__device__ inline u64 product(u32 a, const u32 (&b)[4]) {
    u32 parts[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) parts[i] = a & every_fourth << i;
    u64 sum = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u64 place = 0;
#pragma unroll
        for (u32 j = 0; j < 4; j++) place ^= (u64)parts[j] * b[(i - j) % 4];
        sum |= place & 0x1111111111111111 << i;
    }
    return sum;
}

// The product of two double words. The second one is given by `of`: its low word at `first`, then its high word, then the
// sum of both.
__device__ inline void product(u32 low, u32 high, const u32 (&of)[9][4], u32 first, u32 (&result)[4]) {
    u64 lower = product(low, of[first]), upper = product(high, of[first + 1]);
    u64 middle = product(low ^ high, of[first + 2]) ^ lower ^ upper;
    result[0] = (u32)lower;
    result[1] = (u32)(lower >> 32) ^ (u32)middle;
    result[2] = (u32)upper ^ (u32)(middle >> 32);
    result[3] = (u32)(upper >> 32);
}

// a times b times x^-128, the operation `dot` of RFC 8452.
__device__ inline Element times(const Element &a, const Factor &b) {
    u32 low[4], high[4], middle[4];
    product(a.word[0], a.word[1], b.part, 0, low);
    product(a.word[2], a.word[3], b.part, 3, high);
    product(a.word[0] ^ a.word[2], a.word[1] ^ a.word[3], b.part, 6, middle);
    u32 sum[8];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        sum[i] = low[i];
        sum[4 + i] = high[i];
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) sum[2 + i] ^= xor3(middle[i], low[i], high[i]);
    // 1 = x^121 + x^126 + x^127 + x^128: so each low word is added at these four positions.
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 word = sum[i];
        sum[i + 3] ^= xor3(word << 25, word << 30, word << 31);
        sum[i + 4] ^= xor3(word >> 7, word >> 2, word >> 1) ^ word;
    }
    return {{sum[4], sum[5], sum[6], sum[7]}};
}
