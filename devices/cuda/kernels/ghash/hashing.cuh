// The kernels of GHASH and POLYVAL, as templates over a way to multiply. `Factor` is the second factor of a product, in the form
// that this way needs (field.cuh, ghash_carry_less.cu).
#pragma once
#include "message.cuh"

namespace {

// The factor by which blocks are multiplied: for GHASH the hash key times x, for POLYVAL the hash key.
__device__ inline Element key_of(u32x4 hash_key, u32 polyval) {
    return polyval ? element_of(hash_key, polyval) : key_of(hash_key);
}

__device__ inline Element chosen(bool first, const Element &a, const Element &b) {
    u32 mask = 0u - first;
    Element result;
#pragma unroll
    for (u32 i = 0; i < 4; i++) result.word[i] = select(mask, a.word[i], b.word[i]);
    return result;
}

// Makes the powers of each key from its hash key. One warp processes one key. Hash keys are `stride` bytes apart.
template <class Factor>
__device__ inline void make_powers(const u8 *hash_keys, Row *rows, u32 count, u32 wanted_levels, u32 stride, u32 polyval) {
    u64 index = thread_number() / 32;
    u32 lane = threadIdx.x % 32;
    if (index >= count) return;
    Element key = key_of(load_aligned(hash_keys + stride * index), polyval);
#pragma unroll 1
    for (u32 level = 0; level < wanted_levels; level++) {
        Row &row = rows[levels * index + level];
        u32 exponent = lane + (level == 0);
        Element power = one(), square = key;
#pragma unroll 1
        for (u32 bit = 0; bit < 6; bit++) {
            power = chosen(exponent >> bit & 1, times(power, Factor::of(square)), power);
            if (bit == 5 && lane == 0) row.power[32] = block_of(square);
            square = times(square, Factor::of(square));
        }
        row.power[lane] = block_of(power);
        // `square` is now K^64. The key of the next level is K^512.
#pragma unroll 1
        for (u32 bit = 6; bit < 9; bit++) square = times(square, Factor::of(square));
        key = square;
    }
}

// Hashes the tiles of a level. One warp hashes one tile.
template <class Factor>
__device__ inline void hash_tiles(const Hashing &hashing) {
    u64 number = (u64)blockIdx.x * warps + threadIdx.x / 32;
    u32 lane = threadIdx.x % 32;
    if (number >= hashing.tiles) return;
    Tile tile = tile_of(hashing, number, lane);
    if (tile.blocks == 0) return;
    Factor stride = Factor::of(element_of(tile.row->power[32]));
    // If all blocks of the tile are aligned data, they are read without a check of each block.
    u64 last = hashing.level == 0 ? last_of_data(tile) : 0;
    if (last % 16 != 0) last = 0;
    Element sum = {};
#pragma unroll 1
    for (u32 i = (tile.blocks + 31) / 32; i-- > 0;) {
        u32 distance = 32 * i + lane;
        sum = times(sum, stride);
        if (distance >= tile.blocks) continue;
        u64 index = tile.end - 1 - distance;
        if (last) {
            u32x4 block = load_aligned(global_pointer<const u8>(last - 16 * (u64)distance));
            sum = sum ^ element_of(block, hashing.polyval);
        } else if (hashing.level == 0) {
            sum = sum ^ element_of(block_of_message(*tile.segment, tile.extra, index), hashing.polyval);
        } else {
            sum = sum ^ element_of(load_aligned(hashing.input + 16 * (hashing.first_input[tile.owner] + index)));
        }
    }
    store_hash(hashing, tile, number, lane, times(sum, Factor::of(element_of(tile.row->power[lane]))));
}

// Hashes short messages. One thread hashes one message in a single launch, without powers of the key.
template <class Factor>
__device__ inline void hash_each(Segment *segments, const u8 *hash_keys, const Extra *extras, u32 count, u32 stride,
                                 u32 polyval) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    Segment &segment = segments[index];
    const Extra *extra = extras ? extras + index : nullptr;
    u64 blocks = blocks_of(segment, extra);
    Factor key = Factor::of(key_of(load_aligned(hash_keys + stride * (u64)segment.key), polyval));
    // block_of_message adds the chaining state to block 0.
    Element sum = {};
#pragma unroll 1
    for (u64 i = 0; i < blocks; i++) sum = times(sum ^ element_of(block_of_message(segment, extra, i), polyval), key);
    store_aligned(segment.next, blocks == 0 ? load_aligned(segment.state) : block_of(sum, polyval));
}

}  // namespace

// The entry points for a way to multiply.
#define GHASH_KERNELS(family, Factor)                                                                                      \
    KERNEL(family##_powers, (const u8 *hash_keys, Row *rows, u32 count, u32 wanted_levels, u32 stride, u32 polyval)) {     \
        make_powers<Factor>(hash_keys, rows, count, wanted_levels, stride, polyval);                                       \
    }                                                                                                                      \
    KERNEL_BOUNDS(family##_tiles, 32 * warps, 4, (Hashing hashing)) { hash_tiles<Factor>(hashing); }                       \
    KERNEL_BOUNDS(family##_each, 128, 4,                                                                                   \
                  (Segment *segments, const u8 *hash_keys, const Extra *extras, u32 count, u32 stride, u32 polyval)) {     \
        hash_each<Factor>(segments, hash_keys, extras, count, stride, polyval);                                            \
    }
