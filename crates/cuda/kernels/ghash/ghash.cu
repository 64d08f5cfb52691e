// GHASH and POLYVAL of many messages, and the tags of GCM.
//
// A message of n blocks is a sum of its blocks, each times a power of H that says how far it is from the end. Tiles of
// 512 blocks are counted from the end, so that only the first may be short, and become a block each: these are hashed
// in the same way under H^512, and so on until one is left. In a tile lane j has the blocks that are j, j + 32, ... from
// the end: Horner's rule with H^32, then one product with the power of its place, then the sum over the warp.
#include "message.cuh"

namespace {

// The number that products of a key are made with.
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

}  // namespace

EXPORT(ghash_tile_blocks, tile_blocks);
EXPORT(ghash_tile_threads, 32);
EXPORT(ghash_block_tiles, warps);
EXPORT(ghash_levels, levels);
EXPORT(ghash_rows_bytes, levels * sizeof(Row));

// Powers for each key, from E(K, 0): a warp a key. Hash keys lie `stride` bytes apart.
KERNEL(ghash_powers, (const u8 *hash_keys, Row *rows, u32 count, u32 wanted_levels, u32 stride, u32 polyval)) {
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
            power = chosen(exponent >> bit & 1, times(power, square), power);
            if (bit == 5 && lane == 0) row.power[32] = block_of(square);
            square = times(square, square);
        }
        row.power[lane] = block_of(power);
        // K^64 is at hand; the next level's key is K^512.
#pragma unroll 1
        for (u32 bit = 6; bit < 9; bit++) square = times(square, square);
        key = square;
    }
}

// A level, a warp a tile.
KERNEL_BOUNDS(ghash_tiles, 32 * warps, 4, (Hashing hashing)) {
    u64 number = (u64)blockIdx.x * warps + threadIdx.x / 32;
    u32 lane = threadIdx.x % 32;
    if (number >= hashing.tiles) return;
    Tile tile = tile_of(hashing, number, lane);
    if (tile.blocks == 0) return;
    Factor stride = factor_of(element_of(tile.row->power[32]));
    Element sum = {};
#pragma unroll 1
    for (u32 i = (tile.blocks + 31) / 32; i-- > 0;) {
        u32 distance = 32 * i + lane;
        sum = times(sum, stride);
        if (distance < tile.blocks) {
            u64 index = tile.end - 1 - distance;
            sum = sum ^ (hashing.level == 0
                             ? element_of(block_of_message(*tile.segment, tile.extra, index), hashing.polyval)
                             : element_of(load_aligned(hashing.input + 16 * (hashing.first_input[tile.owner] + index))));
        }
    }
    store_hash(hashing, tile, number, lane, times(sum, element_of(tile.row->power[lane])));
}

// Short messages, a thread a message: no powers are needed, and all is done at once.
KERNEL_BOUNDS(ghash_each, 128, 4,
              (Segment *segments, const u8 *hash_keys, const Extra *extras, u32 count, u32 stride, u32 polyval)) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    Segment &segment = segments[index];
    const Extra *extra = extras ? extras + index : nullptr;
    u64 blocks = blocks_of(segment, extra);
    Factor key = factor_of(key_of(load_aligned(hash_keys + stride * (u64)segment.key), polyval));
    // The register goes in with block 0.
    Element sum = {};
#pragma unroll 1
    for (u64 i = 0; i < blocks; i++) sum = times(sum ^ element_of(block_of_message(segment, extra, i), polyval), key);
    store_aligned(segment.next, blocks == 0 ? load_aligned(segment.reg) : block_of(sum, polyval));
}

// Messages that only the device knows, once table_segments of helpers.cu has made their segments from IVs: counters, what
// GCM has beside, and the blocks that are encrypted first: zeros for the hash key, then J0. Under one key these are one
// segment, which the host describes; else they lie in pairs with a segment over each.
KERNEL(gcm_messages, (Segment *segments, Extra *extras, u8 *blocks, Segment *pairs, u64 *first_tile, u64 tags, u32 count,
                      u32 opens)) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index > count) return;
    if (pairs) first_tile[index] = index;
    if (index == count) return;
    Segment &segment = segments[index];
    u32x4 iv = load_aligned(segment.reg);
    iv.w = swap_bytes(1);
    u64 place = reinterpret_cast<u64>(blocks) + 16 * (pairs ? 2 * (u64)index + 1 : (u64)index + 1);
    store_aligned(global_pointer<u8>(place), iv);
    if (pairs || index == 0) store_aligned(blocks + (pairs ? 32 * (u64)index : 0), u32x4{0, 0, 0, 0});
    iv.w = swap_bytes(2);
    store_aligned(segment.reg, iv);
    Extra extra = {};
    extra.tag = tags + 16 * (u64)index;
    extra.tag_block = place;
    extra.tag_bytes = segment.reserved ? 16 : 0;
    extra.opens = opens;
    extra.place = opens ? segment.from : segment.to;
    extras[index] = extra;
    if (!pairs) return;
    Segment pair = {};
    pair.from = pair.to = place - 16;
    pair.bytes = 32;
    pair.key = segment.key;
    pairs[index] = pair;
}

// How many tiles each message has at a level, where the longest one shapes the launch.
KERNEL(uniform_tiles, (u64 *first_tile, u64 each, u32 count)) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index <= count) first_tile[index] = index * each;
}

// The tags of messages: `next` of a segment is the hash.
KERNEL(gcm_tags, (Segment *segments, const Extra *extras, u8 *status, u32 count)) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    Segment &segment = segments[index];
    const Extra &extra = extras[index];
    u32x4 tag = load_aligned(segment.next) ^ load_aligned(global_pointer<const u8>(extra.tag_block));
    settle(segment, extra, tag, status[index]);
}
