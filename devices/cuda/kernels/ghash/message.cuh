// The inputs of GHASH (SP 800-38D, 6.4) and POLYVAL (RFC 8452, section 3): the messages, their blocks, the powers of their
// keys, and the tiles into which messages are divided.
//
// The two differ in the order of bytes: GHASH reads a block as a big-endian number and POLYVAL as a little-endian one.
// GHASH's key is multiplied by x beforehand (RFC 8452, appendix A). The rest is the same.
#pragma once
#include "../common/aead.cuh"
#include "field.cuh"

namespace {

constexpr u32 tile_blocks = 512, warps = 4, levels = 4;

// A Row belongs to a key and a level, whose key is K. It has the factor of each lane, and K^32. At level 0, lane j
// multiplies its sum by K^(j + 1), because the last block is also multiplied by K. At the other levels this multiplication
// has already been done, and lane j multiplies its sum by K^j.
constexpr u32 row_blocks = 33;

struct Row {
    u32x4 power[row_blocks];
};
static_assert(sizeof(Row) == 16 * row_blocks, "");

// Multiplications by K^0, K^32, ..., K^480 for ghash_tensor.cu, as matrices of bits.
constexpr u32 matrix_pairs = tile_blocks / 32 / 2, matrix_columns = 16;

struct alignas(16) Matrices {
    // For each pair of powers, each two of the 16 groups of output bits, and each lane: the words of the pair for the first
    // group, then those for the second group.
    u32 word[matrix_pairs][matrix_columns / 2][32][4];
};
static_assert(sizeof(Matrices) == 32 * 1024, "");

struct Hashing {
    Segment *segments;       // results go to their field `next`
    const u64 *first_tile;   // of this level; count + 1 of them
    const u64 *first_input;  // of the level below, whose results are `input`; not used at level 0
    const u8 *input;
    u8 *output;              // a block for each tile
    const Row *rows;         // `levels` rows for each key
    const Extra *extras;     // for GCM: the Extra of each segment; otherwise null
    const Matrices *matrices;  // of each key, if level 0 is hashed by matrices
    u64 tiles;
    u32 count;
    u32 level;
    u32 polyval;             // 0 for GHASH
    u32 padding;
};
static_assert(sizeof(Hashing) == 88, "shared with src/passes/ghash.rs");

// Convert a block to a number, and back.
__device__ inline Element element_of(u32x4 block, u32 polyval) {
    return polyval ? Element{{block.x, block.y, block.z, block.w}} : element_of(block);
}
__device__ inline u32x4 block_of(const Element &element, u32 polyval) {
    const u32(&w)[4] = element.word;
    return polyval ? u32x4{w[0], w[1], w[2], w[3]} : block_of(element);
}

__device__ inline u64 blocks_of(u64 bytes) { return (bytes + 15) / 16; }

// The number of blocks of a message. A message of GCM consists of associated data, data, and the block of lengths.
__device__ inline u64 blocks_of(const Segment &segment, const Extra *extra) {
    return blocks_of(segment.bytes) + (extra ? blocks_of(extra->aad_bytes) + 1 : 0);
}

// Block number `block` of `bytes` bytes at `from`. A partial block is filled up with zeros.
__device__ inline u32x4 padded(u64 from, u64 bytes, u64 block) {
    u64 rest = bytes - 16 * block;
    return load_some(global_pointer<const u8>(from) + 16 * block, rest < 16 ? (u32)rest : 16);
}

// The block of lengths that ends a message of GCM.
__device__ inline u32x4 lengths_block(const Segment &segment, const Extra *extra) {
    u64 aad_bits = 8 * extra->aad_bytes, bits = 8 * segment.bytes;
    return block_of(Element{{(u32)bits, (u32)(bits >> 32), (u32)aad_bits, (u32)(aad_bits >> 32)}});
}

// A block of a message in the order of bytes in memory. Without an Extra, the chaining state is added to the first block.
__device__ inline u32x4 block_of_message(const Segment &segment, const Extra *extra, u64 index) {
    if (extra) {
        u64 aad_blocks = blocks_of(extra->aad_bytes), data_blocks = blocks_of(segment.bytes);
        if (index < aad_blocks) return padded(extra->aad, extra->aad_bytes, index);
        if (index - aad_blocks < data_blocks) return padded(extra->place, segment.bytes, index - aad_blocks);
        return lengths_block(segment, extra);
    }
    u32x4 block = padded(segment.from, segment.bytes, index);
    return index == 0 ? block ^ load_aligned(segment.state) : block;
}

__device__ inline Element times(const Element &a, const Element &b) { return times(a, Factor::of(b)); }

// A tile at a level, hashed by a warp.
struct Tile {
    Segment *segment;
    const Extra *extra;
    const Row *row;
    u64 owner;  // index of the segment
    u64 end;    // index after the last block, among the blocks of the message or the results of the level below
    u32 blocks; // of the tile; 0 if there is nothing to do
    bool only;  // true if it is the only tile of its message at its level: its hash is the hash of the message
};

// Describes the tile with this number. If the message has no blocks, also writes its hash.
__device__ inline Tile tile_of(const Hashing &hashing, u64 number, u32 lane) {
    Tile tile = {};
    Launch launch = {};
    launch.first_tile = hashing.first_tile;
    launch.count = hashing.count;
    u32 owner = segment_of(launch, number);
    tile.owner = owner;
    tile.segment = hashing.segments + owner;
    tile.extra = hashing.extras ? hashing.extras + owner : nullptr;
    tile.row = hashing.rows + ((u64)levels * tile.segment->key + hashing.level);
    u64 blocks = blocks_of(*tile.segment, tile.extra), tiles = (blocks + tile_blocks - 1) / tile_blocks;
    u64 local = number - hashing.first_tile[owner];
    if (blocks == 0) {
        if (hashing.level == 0 && local == 0 && lane == 0) store_aligned(tile.segment->next, load_aligned(tile.segment->state));
        return tile;
    }
    for (u32 level = 0; level < hashing.level; level++) {
        if (tiles == 1) return tile;  // a level below has hashed the whole message
        blocks = tiles;
        tiles = (blocks + tile_blocks - 1) / tile_blocks;
    }
    if (local >= tiles) return tile;
    tile.end = blocks - (tiles - 1 - local) * tile_blocks;
    tile.blocks = tile.end < tile_blocks ? (u32)tile.end : tile_blocks;
    tile.only = tiles == 1;
    return tile;
}

// The address of the last block of a tile of level 0, if all blocks of the tile are whole blocks of data without a chaining state;
// else 0.
__device__ inline u64 last_of_data(const Tile &tile) {
    u64 from = tile.segment->from, blocks = tile.segment->bytes / 16, end = tile.end, first = end - tile.blocks;
    if (!tile.extra) return first > 0 && end <= blocks ? from + 16 * (end - 1) : 0;
    u64 place = tile.extra->place, aad_blocks = blocks_of(tile.extra->aad_bytes);
    return first >= aad_blocks && end - aad_blocks <= blocks ? place + 16 * (end - 1 - aad_blocks) : 0;
}

// Adds the sums of the lanes and stores the hash of the tile.
__device__ inline void store_hash(const Hashing &hashing, const Tile &tile, u64 number, u32 lane, Element sum) {
#pragma unroll
    for (u32 flip = 16; flip > 0; flip /= 2)
#pragma unroll
        for (u32 i = 0; i < 4; i++) sum.word[i] ^= __shfl_xor_sync(0xFFFFFFFF, sum.word[i], flip);
    if (lane != 0) return;
    if (tile.only) store_aligned(tile.segment->next, block_of(sum, hashing.polyval));
    else store_aligned(hashing.output + 16 * number, block_of(sum));
}

}  // namespace
