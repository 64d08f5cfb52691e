// GHASH and POLYVAL of many messages, and the tags of GCM.
//
// A message of n blocks is a sum of its blocks, each times a power of H that says how far it is from the end. Tiles of
// 512 blocks are counted from the end, so that only the first may be short, and become a block each: these are hashed
// in the same way under H^512, and so on until one is left. In a tile lane j has the blocks that are j, j + 32, ... from
// the end: Horner's rule with H^32, then one product with the power of its place, then the sum over the warp.
#include "hashing.cuh"

EXPORT(ghash_tile_blocks, tile_blocks);
EXPORT(ghash_tile_threads, 32);
EXPORT(ghash_block_tiles, warps);
EXPORT(ghash_levels, levels);
EXPORT(ghash_rows_bytes, levels * sizeof(Row));

GHASH_KERNELS(ghash, Factor)

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
