// Rounds by table lookups. The type `Tables` determines where the tables are. It has
//
//   static constexpr bool INVERSE;
//   template <u32 Row, u32 Byte> u32 get(u32 word) const;   the T-box of this row at this byte of the word
//
// Not constant time: addresses depend on the state.
#pragma once
#include "tables.cuh"

namespace aes {

// The column from which ShiftRows, or its inverse, takes row `row` of an output column.
template <bool INVERSE>
__device__ constexpr u32 source(u32 column, u32 row) {
    return (INVERSE ? column - row : column + row) & 3;
}

// One column of a round. The arguments are the columns from which ShiftRows takes rows 0 to 3.
template <class Tables>
__device__ __forceinline__ u32 round_column(const Tables &tables, u32 a, u32 b, u32 c, u32 d, u32 key) {
    u32 three = xor3(tables.template get<0, 0>(a), tables.template get<1, 1>(b), tables.template get<2, 2>(c));
    return xor3(three, tables.template get<3, 3>(d), key);
}

// The same of the last round, which has no MixColumns. `mask` is also added; in CTR it is the data.
template <class Tables>
__device__ __forceinline__ u32 last_column(const Tables &tables, u32 a, u32 b, u32 c, u32 d, u32 key, u32 mask) {
    if constexpr (!Tables::INVERSE) {
        // The S-box is in two bytes of each T-box: rows 1 and 2 of T0, rows 2 and 3 of T1, and so on.
        u32 even = select(0x0000FFFF, tables.template get<3, 0>(a), tables.template get<1, 2>(c));
        u32 odd = select(0x0000FFFF, tables.template get<0, 1>(b), tables.template get<2, 3>(d));
        return xor3(select(0x00FF00FF, even, odd), key, mask);
    }
    // No byte of the inverse T-boxes is the inverse S-box. But 14 + 9 + 13 + 11 = 1, so the inverse S-box is the sum of the
    // four bytes. The code adds neighbouring bytes, for two words at a time, and then the halves of these sums.
    u32 wa = tables.template get<0, 0>(a), wb = tables.template get<0, 1>(b);
    u32 wc = tables.template get<0, 2>(c), wd = tables.template get<0, 3>(d);
    u32 ab = permute<0x6240>(wa, wb) ^ permute<0x7351>(wa, wb);
    u32 cd = permute<0x6240>(wc, wd) ^ permute<0x7351>(wc, wd);
    u32 sum = permute<0x5410>(ab, cd) ^ permute<0x7632>(ab, cd);
    return xor3(sum, key, mask);
}

// Rounds `First` to the last. `keys` has the round keys from round 0 on. `state` is the state after round First - 1.
template <u32 BITS, u32 First, class Tables, class Keys>
__device__ __forceinline__ u32x4 finish(const Tables &tables, u32x4 state, const Keys &keys, u32x4 mask) {
    u32 s[4] = {state.x, state.y, state.z, state.w};
    constexpr bool I = Tables::INVERSE;
    constexpr u32 LAST = rounds(BITS);
#pragma unroll
    for (u32 round = First; round < LAST; round++) {
        u32 t[4];
#pragma unroll
        for (u32 c = 0; c < 4; c++)
            t[c] = round_column(tables, s[c], s[source<I>(c, 1)], s[source<I>(c, 2)], s[source<I>(c, 3)], keys[4 * round + c]);
#pragma unroll
        for (u32 c = 0; c < 4; c++) s[c] = t[c];
    }
    u32 m[4] = {mask.x, mask.y, mask.z, mask.w}, t[4];
#pragma unroll
    for (u32 c = 0; c < 4; c++)
        t[c] = last_column(tables, s[c], s[source<I>(c, 1)], s[source<I>(c, 2)], s[source<I>(c, 3)], keys[4 * LAST + c], m[c]);
    return u32x4{t[0], t[1], t[2], t[3]};
}

// The whole cipher or its inverse on one block. `mask` is added to the result.
template <u32 BITS, class Tables, class Keys>
__device__ __forceinline__ u32x4 apply(const Tables &tables, u32x4 block, const Keys &keys, u32x4 mask) {
    u32x4 state = {block.x ^ keys[0], block.y ^ keys[1], block.z ^ keys[2], block.w ^ keys[3]};
    return finish<BITS, 1>(tables, state, keys, mask);
}

}  // namespace aes
