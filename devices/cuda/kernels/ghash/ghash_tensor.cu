// GHASH and POLYVAL of long messages by the tensor units.
//
// Multiplication by a power of the key is linear: a block times a power is the product of the block's 128 bits and a 128 x
// 128 matrix of bits. In ghash_tiles, lane j computes the sum over i of block 32 i + j, counted from the end of the tile,
// times K^(32 i). In these kernels, such a sum is one row of a product of matrices: 32 rows of 16 blocks, multiplied by 16
// matrices. The tensor units count the positions in which a row and a column both have a 1. The lowest bit of the count is
// the sum over GF(2). The rest is as in ghash_tiles.
//
// Everything is constant time: addresses and branches depend on lengths only.
#include "message.cuh"
#include "../common/tensor.cuh"

namespace {

// Two groups of 16 rows. The 32 rows correspond to the lanes of ghash_tiles.
constexpr u32 row_groups = 2;

// Output bit `bit` of word `word` is in this group of columns, and in this column of the group. bits_of is the inverse.
__device__ inline u32 group_of(u32 bit) { return bit % 16; }
__device__ inline u32 column_of(u32 word, u32 bit) { return 2 * word + bit / 16; }

// The word of a block whose bits are the lowest bits of these sums: bit v is in the first sum of group v, and bit 16 + v is in
// the second sum. A sum is at most 128 * 16, so it does not reach the upper half of `both`.
__device__ inline u32 bits_of(const u32 (&sums)[matrix_columns][4], u32 row) {
    u32 word = 0;
#pragma unroll
    for (u32 v = 0; v < matrix_columns; v++) {
        u32 both = sums[v][2 * row] + (sums[v][2 * row + 1] << 16);
        word += (both & 0x00010001) << v;
    }
    return word;
}

__device__ inline u32 word_of(u32x4 block, u32 index) {
    u32 low = index & 1 ? block.y : block.x, high = index & 1 ? block.w : block.z;
    return index & 2 ? high : low;
}

__device__ inline u32 word_of(const u32 (&words)[4], u32 index) {
    return word_of(u32x4{words[0], words[1], words[2], words[3]}, index);
}

// Word t of each block of a tile. A block is named by its distance from the end of the tile.
struct Words {
    const Tile &tile;
    u32 t;
    u64 last;  // address of word t of the last block, if all blocks of the tile are aligned data without a chaining state; else 0

    __device__ inline Words(const Tile &tile, u32 t) : tile(tile), t(t), last(0) {
        u64 block = last_of_data(tile);
        if (tile.blocks == tile_blocks && block && block % 4 == 0) last = block + 4 * t;
    }

    __device__ inline u32 slow(u32 distance) const {
        if (distance >= tile.blocks) return 0;
        return word_of(block_of_message(*tile.segment, tile.extra, tile.end - 1 - distance), t);
    }
};

}  // namespace

EXPORT(ghash_matrices_bytes, sizeof(Matrices));
EXPORT(ghash_matrices_threads, 2 * matrix_pairs * 4 * 32);

// Makes the matrices of each key. A warp processes one power and one word of the input. A lane processes one bit of the
// word.
KERNEL(ghash_matrices, (const Row *rows, Matrices *matrices, u32 count, u32 polyval)) {
    u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    u32 t = warp % 4, power = warp / 4 % (2 * matrix_pairs), key = warp / (8 * matrix_pairs);
    if (key >= count) return;
    // K^(32 * power), by Horner's rule over the bits of the exponent.
    const Factor stride = Factor::of(element_of(rows[levels * (u64)key].power[32]));
    Element factor = one();
#pragma unroll 1
    for (u32 bit = 4; bit-- > 0;) {
        factor = times(factor, factor);
        if (power >> bit & 1) factor = times(factor, stride);
    }
    u32 unit = 1u << lane;
    u32x4 input = {t == 0 ? unit : 0, t == 1 ? unit : 0, t == 2 ? unit : 0, t == 3 ? unit : 0};
    u32x4 column = block_of(times(element_of(input, polyval), factor), polyval);
    u32 words[4] = {column.x, column.y, column.z, column.w};
#pragma unroll
    for (u32 word = 0; word < 4; word++) {
        u32 row = 0;
#pragma unroll
        for (u32 bit = 0; bit < 32; bit++) {
            u32 inputs = __ballot_sync(0xFFFFFFFF, words[word] >> bit & 1);
            if (lane == bit) row = inputs;
        }
        u32 group = group_of(lane), column_lane = 4 * column_of(word, lane) + t;
        matrices[key].word[power / 2][group / 2][column_lane][2 * (group % 2) + power % 2] = row;
    }
}

// Hashes the tiles of level 0. One warp hashes one tile.
KERNEL_BOUNDS(ghash_tensor_tiles, 32 * warps, 2, (Hashing hashing)) {
#if HAS_TENSOR_BITS
    u64 number = (u64)blockIdx.x * warps + threadIdx.x / 32;
    u32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if (number >= hashing.tiles) return;
    Tile tile = tile_of(hashing, number, lane);
    if (tile.blocks == 0) return;
    Words words(tile, t);
    const Matrices &matrices = hashing.matrices[tile.segment->key];
    u32 sums[row_groups][matrix_columns][4] = {};
#pragma unroll 1
    for (u32 pair = 0; pair < matrix_pairs; pair++) {
        // Row r of the left matrix has the blocks at distances 64 pair + r and 64 pair + 32 + r.
        u32 left[row_groups][4];
        if (words.last) {
            const u32 *last = global_pointer<const u32>(words.last - 16 * (64 * pair + g));
#pragma unroll
            for (int i = 0; i < 4 * (int)row_groups; i++)
                left[i / 4][i % 4] = last[-4 * (16 * (i / 4) + 8 * (i % 2) + 32 * (i % 4 / 2))];
        } else {
#pragma unroll 1
            for (u32 i = 0; i < 4 * row_groups; i++) {
                u32 word = words.slow(64 * pair + g + 16 * (i / 4) + 8 * (i % 2) + 32 * (i % 4 / 2));
#pragma unroll
                for (u32 j = 0; j < 4 * row_groups; j++)
                    if (i == j) left[j / 4][j % 4] = word;
            }
        }
#pragma unroll
        for (u32 v = 0; v < matrix_columns; v += 2) {
            u32x4 of_two = load_aligned((const u8 *)matrices.word[pair][v / 2][lane]);
            const u32 right[2][2] = {{of_two.x, of_two.y}, {of_two.z, of_two.w}};
#pragma unroll
            for (u32 group = 0; group < row_groups; group++) {
                add_product_of_bits(sums[group][v], left[group], right[0]);
                add_product_of_bits(sums[group][v + 1], left[group], right[1]);
            }
        }
    }
    // `rows` has word t of rows g, g + 8, g + 16 and g + 24. The four lanes with the same g have all words of these rows.
    // They exchange words, so that lane t gets row g + 8 t.
    u32 rows[4] = {bits_of(sums[0], 0), bits_of(sums[0], 1), bits_of(sums[1], 0), bits_of(sums[1], 1)}, row[4] = {};
#pragma unroll
    for (u32 flip = 0; flip < 4; flip++) {
        u32 word = __shfl_xor_sync(0xFFFFFFFF, word_of(rows, t ^ flip), flip);
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            if (i == (t ^ flip)) row[i] = word;
    }
    Element sum = element_of(u32x4{row[0], row[1], row[2], row[3]}, hashing.polyval);
    store_hash(hashing, tile, number, lane, times(sum, element_of(tile.row->power[g + 8 * t])));
#endif
}
