// The algorithm of GPU Gems 3, chapter 36, in CUDA. The chapter has it in OpenGL, and names CUDA as future work.
//
// A thread encrypts or decrypts a block. There are two tables of 256 words for each direction, in global memory: the S-box, and
// the contribution of a byte in row 0 to its column in MixColumns. For a byte in row r, the word is rotated by r bytes. The
// number of rounds is a parameter (`option`), as in the chapter, so one function serves all key sizes. Decryption is the
// equivalent inverse cipher (FIPS 197, 5.3.5): the steps are those of encryption, with other tables and other round keys.
#include "../table/rounds.cuh"
#include "work.cuh"

namespace {

using namespace papers;

struct Tables {
    Words sbox, mix;
};

__host__ __device__ constexpr Tables tables(bool inverse) {
    Bytes s = inverse ? inverse_sbox() : sbox();
    u8 forward_factors[4] = {2, 1, 1, 3}, inverse_factors[4] = {14, 9, 13, 11};
    Tables both = {};
    for (int x = 0; x < 256; x++) {
        both.sbox.of[x] = s.of[x];
        for (int row = 0; row < 4; row++) {
            u8 factor = inverse ? inverse_factors[row] : forward_factors[row];
            both.mix.of[x] |= static_cast<u32>(product(static_cast<u8>(x), factor)) << 8 * row;
        }
    }
    return both;
}

__device__ const Tables FORWARD = tables(false);
__device__ const Tables BACKWARD = tables(true);

__device__ inline u32 looked_up(const Words &table, u32 byte) {
    TRACE(lookup, &table.of[byte], 4);
    return table.of[byte];
}

// SubBytes of the bytes of a column. The arguments are the columns from which ShiftRows takes rows 0 to 3.
__device__ inline u32 substituted(const Words &sbox, u32 a, u32 b, u32 c, u32 d) {
    return looked_up(sbox, a & 0xFF) | looked_up(sbox, b >> 8 & 0xFF) << 8 | looked_up(sbox, c >> 16 & 0xFF) << 16 |
           looked_up(sbox, d >> 24) << 24;
}

__device__ inline u32 mixed(const Words &mix, u32 column) {
    return looked_up(mix, column & 0xFF) ^ rotate_right(looked_up(mix, column >> 8 & 0xFF), 24) ^
           rotate_right(looked_up(mix, column >> 16 & 0xFF), 16) ^ rotate_right(looked_up(mix, column >> 24), 8);
}

template <Pass PASS, bool INVERSE>
__device__ __forceinline__ void gems(const Launch &launch) {
    const Tables &tables = INVERSE ? BACKWARD : FORWARD;
    u32 rounds = launch.option, words = 4 * (rounds + 1), thread = threadIdx.x;
    for (u64 index = blockIdx.x; index < launch.tiles; index += gridDim.x) {
        Tile tile = tile_at(launch, index, blockDim.x * 16);
        if (thread >= tile.blocks) continue;
        // A schedule has the round keys for encryption, and then those for decryption.
        const u32 *schedules = reinterpret_cast<const u32 *>(launch.schedules);
        const u32 *keys = schedules + (2 * static_cast<u64>(tile.segment->key) + INVERSE) * words;
        Input input = input_of<PASS>(tile, thread);
        u32 s[4] = {input.block.x ^ keys[0], input.block.y ^ keys[1], input.block.z ^ keys[2], input.block.w ^ keys[3]};
        for (u32 round = 1; round <= rounds; round++) {
            u32 t[4];
#pragma unroll
            for (u32 c = 0; c < 4; c++) {
                t[c] = substituted(tables.sbox, s[c], s[source<INVERSE>(c, 1)], s[source<INVERSE>(c, 2)], s[source<INVERSE>(c, 3)]);
                if (round < rounds) t[c] = mixed(tables.mix, t[c]);
            }
#pragma unroll
            for (u32 c = 0; c < 4; c++) s[c] = t[c] ^ keys[4 * round + c];
        }
        TRACE(store, tile.to + 16 * thread, 16);
        tile.store(thread, u32x4{s[0], s[1], s[2], s[3]} ^ input.mask);
    }
}

}  // namespace

KERNEL_BOUNDS(gems_ecb_encrypt, 512, 0, (Launch launch)) { gems<Pass::ecb, false>(launch); }
KERNEL_BOUNDS(gems_ecb_decrypt, 512, 0, (Launch launch)) { gems<Pass::ecb, true>(launch); }
KERNEL_BOUNDS(gems_ctr, 512, 0, (Launch launch)) { gems<Pass::ctr, false>(launch); }
