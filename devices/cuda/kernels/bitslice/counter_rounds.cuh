// The first rounds of CTR, without transposing the input and without most of the work of rounds 1 and 2.
//
// In most tiles, only the last two bytes of the counter change. (The other tiles, one in 64 for a warp, are processed by
// all rounds.) So two S-boxes are enough in round 1 instead of 16. Two of the columns after round 1 are the same in all
// blocks, so eight S-boxes are enough in round 2 instead of 16. The part that does not change is computed once, as bytes,
// and is added in place of the round keys.
#pragma once
#include "../common/counter.cuh"
#include "shape.cuh"
#include "state.cuh"

// Steps of a round on one block, four words.

__device__ inline void substitute(u32 (&block)[4]) {
    u32 words[8] = {block[0], block[1], block[2], block[3], 0, 0, 0, 0};
    transpose_bits(words);
    sbox(words);
    transpose_bits(words);
#pragma unroll
    for (u32 i = 0; i < 4; i++) block[i] = words[i];
}

__device__ inline void shift_rows_and_mix(u32 (&block)[4]) {
    u32 old[4] = {block[0], block[1], block[2], block[3]};
#pragma unroll
    for (u32 c = 0; c < 4; c++) {
        u32 rows_01 = permute<0x0050>(old[c], old[(c + 1) % 4]);
        u32 rows_23 = permute<0x7200>(old[(c + 2) % 4], old[(c + 3) % 4]);
        block[c] = mix_column(permute<0x7610>(rows_01, rows_23));
    }
}

__device__ inline void add(u32 (&block)[4], u32x4 key) {
    block[0] ^= key.x;
    block[1] ^= key.y;
    block[2] ^= key.z;
    block[3] ^= key.w;
}

// Columns 0 and 1 after round 1, and all columns after round 2, without the contributions of the bytes that change.
__device__ inline void constant_columns(u32x4 counter, const u8 *schedule, u32 (&columns)[6]) {
    u32 block[4] = {counter.x, counter.y, counter.z, counter.w};
    add(block, load_aligned(schedule));
    substitute(block);
    block[3] &= 0x0000FFFF;
    shift_rows_and_mix(block);
    add(block, load_aligned(schedule + 16));
    columns[0] = block[0];
    columns[1] = block[1];
    substitute(block);
    block[0] = block[1] = 0;
    shift_rows_and_mix(block);
    add(block, load_aligned(schedule + 32));
#pragma unroll
    for (u32 c = 0; c < 4; c++) columns[2 + c] = block[c];
}

// Bit planes of the last two bytes of the counters, after the first AddRoundKey. `first` is the value of these bytes in the
// first block of the thread. In row r, the value is first + Step * r. `key` is the last word of the first round key, in the
// byte order of `first`.
template <u32 Step>
__device__ inline void counter_planes(u32 first, u32 key, u32 (&high)[8], u32 (&low)[8]) {
    static_assert(Step == 1 || Step == 32, "the row's number, 5 bits, is added to bits 0 to 4 or 5 to 9");
    constexpr int begin = Step == 1 ? 0 : 5, end = begin + 5;
    // The planes of the bits of the row number. state.cuh defines the order of the rows in a plane.
    constexpr u32 number[5] = {0xFF00FF00, 0xFFFF0000, 0xAAAAAAAA, 0xCCCCCCCC, 0xF0F0F0F0};
    // The bits below `begin` are the same in all rows. The bits from `end` on change only by the carry.
    u32 fixed = first ^ key, change = first ^ ((first >> end) + 1) << end, carry = 0;
    auto plane = [&](int i) -> u32 {
        if (i < begin) return mask_of(fixed, i);
        if (i >= end) return lop3<0x6C>(mask_of(change, i), mask_of(fixed, i), carry);
        u32 bit = mask_of(first, i), row = number[i - begin], sum = xor3(bit, row, carry);
        carry = lop3<0xE8>(bit, row, carry);
        return sum ^ mask_of(key, i);
    };
#pragma unroll
    for (int i = 0; i < 8; i++) low[i] = plane(i);
#pragma unroll
    for (int i = 0; i < 8; i++) high[i] = plane(8 + i);
}

// doubled: the plane of bit i of 2a. key_plane: the plane of bit i of the round key in a row of a column.
__device__ inline u32 doubled(const u32 (&a)[8], u32 i) {
    bool is_reduced = i == 1 || i == 3 || i == 4;  // x^8 = x^4 + x^3 + x + 1
    return i == 0 ? a[7] : is_reduced ? a[i - 1] ^ a[7] : a[i - 1];
}
template <class Keys>
__device__ inline u32 key_plane(const Keys &keys, u32 row, u32 i) {
    u32x4 quad = keys.quad(2 * row + i / 4);
    return i % 4 == 0 ? quad.x : i % 4 == 1 ? quad.y : i % 4 == 2 ? quad.z : quad.w;
}

// MixColumns of a column that has byte `a` in row Row and zeros elsewhere, plus the key.
template <u32 Row, class Keys>
__device__ inline void mix_one(const u32 (&a)[8], const Keys &keys, u32 (&column)[4][8]) {
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        column[Row][i] = key_plane(keys, Row, i) ^ doubled(a, i);
        column[(Row + 1) % 4][i] = key_plane(keys, (Row + 1) % 4, i) ^ a[i];
        column[(Row + 2) % 4][i] = key_plane(keys, (Row + 2) % 4, i) ^ a[i];
        column[(Row + 3) % 4][i] = key_plane(keys, (Row + 3) % 4, i) ^ doubled(a, i) ^ a[i];
    }
}

// The same for a column that has `a` in row Row and `b` in the next row (row 0 follows row 3). The result goes to four
// bytes of a state.
template <u32 Row, class Keys>
__device__ inline void mix_two(const u32 (&a)[8], const u32 (&b)[8], const Keys &keys, u32 (*column)[8]) {
    u32 both[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) both[i] = a[i] ^ b[i];
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        column[Row][i] = key_plane(keys, Row, i) ^ doubled(both, i) ^ b[i];
        column[(Row + 1) % 4][i] = key_plane(keys, (Row + 1) % 4, i) ^ doubled(b, i) ^ a[i];
        column[(Row + 2) % 4][i] = key_plane(keys, (Row + 2) % 4, i) ^ both[i];
        column[(Row + 3) % 4][i] = key_plane(keys, (Row + 3) % 4, i) ^ doubled(a, i) ^ both[i];
    }
}

// Computes the state after round 2. `constant` gives the columns of constant_columns().
template <u32 Step, class Constant>
__device__ inline void counter_rounds(State &state, u32 first, u32 key, const Constant &constant) {
    u32 high[8], low[8], left[4][8], right[4][8];
    counter_planes<Step>(first, key, high, low);
    // ShiftRows moves the last byte to row 3 of column 0, and the byte before it to row 2 of column 1.
    sbox(low);
    mix_one<3>(low, constant(0), left);
    sbox(high);
    mix_one<2>(high, constant(1), right);
    // After ShiftRows, each column has a byte of column 0 and, in the row below, a byte of column 1. The other two bytes
    // are in `constant`.
#pragma unroll
    for (u32 r = 0; r < 4; r++) {
        sbox(left[r]);
        sbox(right[r]);
    }
    mix_two<0>(left[0], right[1], constant(2), state.of);
    mix_two<3>(left[3], right[0], constant(3), state.of + 4);
    mix_two<2>(left[2], right[3], constant(4), state.of + 8);
    mix_two<1>(left[1], right[2], constant(5), state.of + 12);
}
