// The S-box and the T-boxes, computed by the compiler from FIPS 197.
//
// A word is a column of the state, with row 0 in the lowest byte.
#pragma once
#include "../common/bits.cuh"

namespace aes {

__device__ inline u32 rotate_right(u32 a, u32 count) { return funnel_right(a, a, count); }

struct Bytes {
    u8 of[256];
};
struct Words {
    u32 of[256];
};

// Multiplies by x in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, 4.2).
__host__ __device__ constexpr u8 times_x(u8 a) { return static_cast<u8>(a << 1 ^ (a & 0x80 ? 0x1B : 0)); }

__host__ __device__ constexpr u8 product(u8 a, u8 b) {
    u8 sum = 0;
    for (; b; b >>= 1, a = times_x(a))
        if (b & 1) sum ^= a;
    return sum;
}

__host__ __device__ constexpr u8 rotated(u8 a, int by) { return static_cast<u8>(a << by | a >> (8 - by)); }

// FIPS 197, 5.1.1. x + 1 generates the multiplicative group: p takes all its values, and q is the inverse of p.
__host__ __device__ constexpr Bytes sbox() {
    Bytes s = {};
    u8 inverse_of_3 = 0xF6;
    for (u8 p = 1, q = 1, first = 1; first || p != 1; first = 0) {
        p = static_cast<u8>(p ^ times_x(p));
        q = product(q, inverse_of_3);
        s.of[p] = static_cast<u8>(q ^ rotated(q, 1) ^ rotated(q, 2) ^ rotated(q, 3) ^ rotated(q, 4) ^ 0x63);
    }
    s.of[0] = 0x63;
    return s;
}

__host__ __device__ constexpr Bytes inverse_sbox() {
    Bytes forward = sbox(), inverse = {};
    for (int x = 0; x < 256; x++) inverse.of[forward.of[x]] = static_cast<u8>(x);
    return inverse;
}

// The contribution of a byte in row `row` to its column, by SubBytes and MixColumns or by their inverses (Rijndael's
// specification calls these tables T-boxes).
__host__ __device__ constexpr Words tbox(bool inverse, int row) {
    Bytes s = inverse ? inverse_sbox() : sbox();
    u8 forward_factors[4] = {2, 1, 1, 3}, inverse_factors[4] = {14, 9, 13, 11};
    Words words = {};
    for (int x = 0; x < 256; x++) {
        u32 word = 0;
        for (int i = 0; i < 4; i++) {
            u8 factor = inverse ? inverse_factors[(i - row) & 3] : forward_factors[(i - row) & 3];
            word |= static_cast<u32>(product(s.of[x], factor)) << 8 * i;
        }
        words.of[x] = word;
    }
    return words;
}

// The round constants (FIPS 197, 5.2) that the key sizes need: ten for 128 bits.
struct RoundConstants {
    u8 of[10];
};
__host__ __device__ constexpr RoundConstants round_constants() {
    RoundConstants r = {};
    u8 x = 1;
    for (int i = 0; i < 10; i++, x = times_x(x)) r.of[i] = x;
    return r;
}

__host__ __device__ constexpr u32 rounds(u32 bits) { return bits / 32 + 6; }
// The number of words of the round keys for one direction.
__host__ __device__ constexpr u32 schedule_words(u32 bits) { return 4 * (rounds(bits) + 1); }
// The number of bytes of a schedule: the round keys for encryption, then those of the equivalent inverse cipher (FIPS 197,
// 5.3.5), in the order of use.
__host__ __device__ constexpr u32 schedule_bytes(u32 bits) { return 2 * 4 * schedule_words(bits); }

}  // namespace aes
