// 32 blocks as bit planes, in 128 registers: of[p][i] has bit i of byte p of each block.
//
// The known alternative has 8 blocks in 32 registers, with the bytes of a column next to each other in a word. It allows
// four times as many threads, but ShiftRows and MixColumns must then move bytes. Compiled for sm_90, AES-128-ECB took 42.5
// ALU instructions per byte in the alternative, and takes 32 in this form (docs/kernels.md). In this form, bytes are moved
// by renaming registers.
#pragma once
#include "../circuit/aes.cuh"
#include "../common/block.cuh"

struct State {
    u32 of[16][8];
};

// A thread's 32 blocks are 8 groups of 4. Block 4 * group + place is bit 8 * place + group of each plane. This order costs
// least, because permutations move bytes, and swaps move bits within bytes.
constexpr u32 groups = 8;

struct Group {
    u32x4 block[4];
};

// Transposes 4 words of 4 bytes each. The function is its own inverse.
__device__ inline void transpose_bytes(u32 &a, u32 &b, u32 &c, u32 &d) {
    u32 low_ab = permute<0x5140>(a, b), high_ab = permute<0x7362>(a, b);
    u32 low_cd = permute<0x5140>(c, d), high_cd = permute<0x7362>(c, d);
    a = permute<0x5410>(low_ab, low_cd);
    b = permute<0x7632>(low_ab, low_cd);
    c = permute<0x5410>(high_ab, high_cd);
    d = permute<0x7632>(high_ab, high_cd);
}

__device__ inline void transpose_bytes(Group &group) {
    u32x4(&block)[4] = group.block;
    transpose_bytes(block[0].x, block[1].x, block[2].x, block[3].x);
    transpose_bytes(block[0].y, block[1].y, block[2].y, block[3].y);
    transpose_bytes(block[0].z, block[1].z, block[2].z, block[3].z);
    transpose_bytes(block[0].w, block[1].w, block[2].w, block[3].w);
}

// In each group of 2 * Distance bits, swaps the upper half of a with the lower half of b. The left shift runs on the
// multiplier.
template <u32 Distance, u32 Lower>
__device__ inline void swap_halves(u32 &a, u32 &b) {
    u32 left = select(Lower, a, shift_left<Distance>(b));
    b = select(Lower, a >> Distance, b);
    a = left;
}

// Transposes the 8 x 8 bits that 8 words have in each byte position. The function is its own inverse.
__device__ inline void transpose_bits(u32 (&words)[8]) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) swap_halves<4, 0x0F0F0F0F>(words[i], words[i + 4]);
#pragma unroll
    for (u32 i = 0; i < 8; i += i % 4 == 1 ? 3 : 1) swap_halves<2, 0x33333333>(words[i], words[i + 2]);
#pragma unroll
    for (u32 i = 0; i < 8; i += 2) swap_halves<1, 0x55555555>(words[i], words[i + 1]);
}

// Puts a group of blocks into the state; transpose() must be called after all groups are in the state.
__device__ inline void put_group(State &state, u32 group, Group blocks) {
    transpose_bytes(blocks);
#pragma unroll
    for (u32 row = 0; row < 4; row++) {
        state.of[row][group] = blocks.block[row].x;
        state.of[4 + row][group] = blocks.block[row].y;
        state.of[8 + row][group] = blocks.block[row].z;
        state.of[12 + row][group] = blocks.block[row].w;
    }
}

// The inverse of put_group, after transpose().
__device__ inline Group group_of(const State &state, u32 group) {
    Group blocks;
#pragma unroll
    for (u32 row = 0; row < 4; row++)
        blocks.block[row] = u32x4{state.of[row][group], state.of[4 + row][group], state.of[8 + row][group],
                                  state.of[12 + row][group]};
    transpose_bytes(blocks);
    return blocks;
}

// Converts groups to bit planes, and bit planes to groups.
__device__ inline void transpose(State &state) {
#pragma unroll
    for (u32 p = 0; p < 16; p++) transpose_bits(state.of[p]);
}

// Moves row r by Turn * r columns to the left, by renaming registers.
template <u32 Turn>
__device__ inline void shift_rows(State &state) {
    State old = state;
#pragma unroll
    for (u32 p = 0; p < 16; p++)
#pragma unroll
        for (u32 i = 0; i < 8; i++) state.of[p][i] = old.of[(p + 4 * Turn * (p % 4)) % 16][i];
}
