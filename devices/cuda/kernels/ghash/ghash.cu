// GHASH and POLYVAL of many messages, and the tags of GCM.
//
// The hash is the sum of the blocks of a message, each multiplied by a power of H; the exponent grows with the distance
// from the end. Tiles of 512 blocks are counted from the end, so that only the first tile may be short. The hash of each
// tile is one block. These blocks are hashed in the same way under H^512, and so on until one block is left. In a tile,
// lane j has the blocks at the distances j, j + 32, ... from the end. It adds them by Horner's rule with H^32 and
// multiplies the sum by the power of H for its position. The hash of the tile is the sum of all lanes of the warp.
#include "hashing.cuh"

EXPORT(ghash_tile_blocks, tile_blocks);
EXPORT(ghash_tile_threads, 32);
EXPORT(ghash_block_tiles, warps);
EXPORT(ghash_levels, levels);
EXPORT(ghash_rows_bytes, levels * sizeof(Row));

GHASH_KERNELS(ghash, Factor)

// Prepares GCM of messages that arrays in device memory describe, after table_segments of helpers.cu has made their
// segments. For each message it writes the first counter, the Extra, and the blocks that are encrypted before the pass: a
// block of zeros for the hash key, and J0. If all messages have one key, there is only one block of zeros, and the host
// describes these blocks as one segment. Otherwise each message has a pair of blocks, and `pairs` gets a segment for each.
KERNEL(gcm_messages, (Segment *segments, Extra *extras, u8 *blocks, Segment *pairs, u64 *first_tile, u64 tags, u32 count,
                      u32 opens)) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index > count) return;
    if (pairs) first_tile[index] = index;
    if (index == count) return;
    Segment &segment = segments[index];
    u32x4 iv = load_aligned(segment.state);
    iv.w = swap_bytes(1);
    u64 place = reinterpret_cast<u64>(blocks) + 16 * (pairs ? 2 * (u64)index + 1 : (u64)index + 1);
    store_aligned(global_pointer<u8>(place), iv);
    if (pairs || index == 0) store_aligned(blocks + (pairs ? 32 * (u64)index : 0), u32x4{0, 0, 0, 0});
    iv.w = swap_bytes(2);
    store_aligned(segment.state, iv);
    Extra extra = {};
    extra.tag = tags + 16 * (u64)index;
    extra.tag_block = place;
    extra.tag_bytes = segment.is_valid ? 16 : 0;
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

// Sets the first tile of each message at a level. Each message gets as many tiles as the longest one.
KERNEL(uniform_tiles, (u64 *first_tile, u64 each, u32 count)) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index <= count) first_tile[index] = index * each;
}

// Writes or compares the tags of messages. `next` of a segment is its hash.
KERNEL(gcm_tags, (Segment *segments, const Extra *extras, u8 *status, u32 count)) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    Segment &segment = segments[index];
    const Extra &extra = extras[index];
    u32x4 tag = load_aligned(segment.next) ^ load_aligned(global_pointer<const u8>(extra.tag_block));
    settle(segment, extra, tag, status[index]);
}
