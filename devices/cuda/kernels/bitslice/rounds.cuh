// The cipher on a State, without the first and the last AddRoundKey. These cost less on blocks.
#pragma once
#include "state.cuh"

// A round with MixColumns. The columns are those of the state after ShiftRows. They are computed in the places of their
// bytes, and shift_rows then renames the bytes. The order of the columns affects only how many registers the compiler moves at the
// end of a round, up to 47 of 128. This order was the best one of those that were compiled for sm_90.
template <class Keys>
__device__ inline void encrypt_round(State &state, const Keys &keys) {
    u32(&b)[16][8] = state.of;
    column(b[0], b[5], b[10], b[15], keys.column(0));
    column(b[4], b[9], b[14], b[3], keys.column(1));
    column(b[12], b[1], b[6], b[11], keys.column(3));
    column(b[8], b[13], b[2], b[7], keys.column(2));
    shift_rows<1>(state);
}

template <class Keys>
__device__ inline void decrypt_round(State &state, const Keys &keys) {
    u32(&b)[16][8] = state.of;
    inverse_column(b[0], b[13], b[10], b[7], keys.column(0));
    inverse_column(b[4], b[1], b[14], b[11], keys.column(1));
    inverse_column(b[8], b[5], b[2], b[15], keys.column(2));
    inverse_column(b[12], b[9], b[6], b[3], keys.column(3));
    shift_rows<3>(state);
}

// Rounds from `first` to round number `rounds`, the last. The code of a round has 24 KB, so the loop is not unrolled.
template <class Keys>
__device__ inline void encrypt(State &state, const Keys &keys, u32 rounds, u32 first = 1) {
#pragma unroll 1
    for (u32 round = first; round < rounds; round++) encrypt_round(state, keys.round(round));
#pragma unroll
    for (u32 p = 0; p < 16; p++) sbox(state.of[p]);
    shift_rows<1>(state);
}

template <class Keys>
__device__ inline void decrypt(State &state, const Keys &keys, u32 rounds) {
#pragma unroll 1
    for (u32 round = 1; round < rounds; round++) decrypt_round(state, keys.round(round));
#pragma unroll
    for (u32 p = 0; p < 16; p++) inverse_sbox(state.of[p]);
    shift_rows<3>(state);
}
