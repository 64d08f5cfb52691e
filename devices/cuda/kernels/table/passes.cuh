// The passes of family `table`: a warp works on a tile, with the round keys in registers.
#pragma once
#include "../common/counter.cuh"
#include "../common/gf128.cuh"
#include "bank_tables.cuh"
#include "tile.cuh"

namespace aes {

constexpr u32 LANES = 32;
// The blocks of a lane in a tile. With this number, the fixed cost of a tile (keys, and the rounds that its blocks share) is
// about 1/50 of its whole cost. 16 MiB of data are 2048 tiles: one for each warp of 128 multiprocessors with 16 warps each.
constexpr u32 LANE_BLOCKS = 16;
constexpr u32 TILE_BYTES = LANES * LANE_BLOCKS * 16;
// The tables leave space for one thread block on a multiprocessor. 16 warps with 16 lookups each in flight fully use the
// shared memory, and each thread has 128 registers, which are enough for the keys.
constexpr u32 THREADS = 512;

enum class Pass { ecb, ctr, ctr32, cbc, cfb, xts };

template <u32 WORDS>
struct RoundKeys {
    u32 words[WORDS];
    __device__ u32 operator[](u32 i) const { return words[i]; }
};

template <u32 BITS>
__device__ __forceinline__ RoundKeys<schedule_words(BITS)> load_keys(const u8 *schedules, u32 key, bool inverse) {
    RoundKeys<schedule_words(BITS)> keys;
    const u8 *from = schedules + static_cast<u64>(key) * schedule_bytes(BITS) + (inverse ? 4 * schedule_words(BITS) : 0);
#pragma unroll
    for (u32 i = 0; i < schedule_words(BITS); i += 4) {
        u32x4 block = load_aligned(from + 4 * i);
        keys.words[i] = block.x;
        keys.words[i + 1] = block.y;
        keys.words[i + 2] = block.z;
        keys.words[i + 3] = block.w;
    }
    return keys;
}

// CTR if only the last two bytes of the counter change. These bytes affect columns 0 and 1 of round 1, and 8 lookups of
// round 2. FirstRounds has the other contributions to both rounds, which are the same for up to 65536 blocks. This saves 22
// of 160 lookups.
struct FirstRounds {
    u32 column0, column1;  // after round 1, without the last two bytes
    u32x4 rest;            // after round 2, without those columns

    template <class Tables, class Keys>
    __device__ __forceinline__ static FirstRounds of(const Tables &t, u32x4 block, const Keys &keys) {
        u32 a = block.x ^ keys[0], b = block.y ^ keys[1], c = block.z ^ keys[2], d = block.w ^ keys[3];
        FirstRounds first;
        first.column0 = xor3(t.template get<0, 0>(a), t.template get<1, 1>(b), t.template get<2, 2>(c)) ^ keys[4];
        first.column1 = xor3(t.template get<0, 0>(b), t.template get<1, 1>(c), t.template get<3, 3>(a)) ^ keys[5];
        u32 column2 = round_column(t, c, d, a, b, keys[6]);
        u32 column3 = round_column(t, d, a, b, c, keys[7]);
        first.rest.x = xor3(t.template get<2, 2>(column2), t.template get<3, 3>(column3), keys[8]);
        first.rest.y = xor3(t.template get<1, 1>(column2), t.template get<2, 2>(column3), keys[9]);
        first.rest.z = xor3(t.template get<0, 0>(column2), t.template get<1, 1>(column3), keys[10]);
        first.rest.w = xor3(t.template get<0, 0>(column3), t.template get<3, 3>(column2), keys[11]);
        return first;
    }

    // The state after round 2; `last` is the counter's last two bytes, as a number, with the round key added.
    template <class Tables>
    __device__ __forceinline__ u32x4 with(const Tables &t, u32 last) const {
        u32 c0 = column0 ^ t.template get<3, 0>(last), c1 = column1 ^ t.template get<2, 1>(last);
        return u32x4{xor3(rest.x, t.template get<0, 0>(c0), t.template get<1, 1>(c1)),
                     xor3(rest.y, t.template get<0, 0>(c1), t.template get<3, 3>(c0)),
                     xor3(rest.z, t.template get<2, 2>(c0), t.template get<3, 3>(c1)),
                     xor3(rest.w, t.template get<1, 1>(c0), t.template get<2, 2>(c1))};
    }
};

template <bool Only32, u32 BITS, class Tables, class Keys>
__device__ __forceinline__ void ctr_tile(const Tables &tables, const Keys &keys, const Tile &tile, u32 lane) {
    Counter start = advance<Only32>(counter_of(load_aligned(tile.segment->state)), tile.offset / 16);
    u32 key = swap_bytes(keys[3]) & 0xFFFF;
    FirstRounds first;
    // The counter modulo 65536. If it reaches 65536, `first` must be computed again. The initial value has the same effect
    // for the first block.
    u32 low = 0x10000;
#pragma unroll 1
    for (u32 block = lane; block < tile.blocks; block += LANES, low += LANES) {
        u32x4 data = tile.load(block);
        if (low >> 16) {
            Counter counter = advance<Only32>(start, block);
            first = FirstRounds::of(tables, block_of(counter), keys);
            low = counter.words[0] & 0xFFFF;
        }
        tile.store(block, finish<BITS, 3>(tables, first.with(tables, low ^ key), keys, data));
    }
}

// If the data are the input of the cipher, a lane reads its next block before it processes the current one. The latency of
// memory is about as long as the processing of a block, and 16 warps alone do not hide it.

template <u32 BITS, class Tables, class Keys>
__device__ __forceinline__ void ecb_tile(const Tables &tables, const Keys &keys, const Tile &tile, u32 lane) {
    u32x4 next = tile.load(lane);
#pragma unroll 1
    for (u32 block = lane; block < tile.blocks; block += LANES) {
        u32x4 data = next;
        next = tile.load(block + LANES);
        tile.store(block, apply<BITS>(tables, data, keys, u32x4{0, 0, 0, 0}));
    }
}

template <u32 BITS, class Tables, class Keys>
__device__ __forceinline__ void xts_tile(const Tables &tables, const Keys &keys, const Tile &tile, u32 lane) {
    u64 place = tile.segment->position + tile.offset / 16;
    u32x4 tweak = times_power(load_aligned(tile.segment->state), place + lane);
    u32x4 next = tile.load(lane);
#pragma unroll 1
    for (u32 block = lane; block < tile.blocks; block += LANES) {
        u32x4 data = next;
        next = tile.load(block + LANES);
        tile.store(block, apply<BITS>(tables, data ^ tweak, keys, tweak));
        tweak = times_x32(tweak);
    }
}

// The ciphertext block before a block. `before` is the block before the tile.
__device__ __forceinline__ u32x4 load_previous(const Tile &tile, u32 block, const u8 *before) {
    return block ? tile.load(block - 1) : load_aligned(before);
}

// CBC and CFB decryption. Each block needs the ciphertext block before it, which another lane may overwrite. So the warp
// proceeds from the end of the tile to its beginning, and all lanes read before any lane writes.
template <Pass PASS, u32 BITS, class Tables, class Keys>
__device__ __forceinline__ void chained_tile(const Tables &tables, const Keys &keys, const Tile &tile, u32 lane, const u8 *before) {
    u32 step = (tile.blocks + LANES - 1) / LANES - 1;
    u32x4 next = tile.load(step * LANES + lane), before_next = load_previous(tile, step * LANES + lane, before);
#pragma unroll 1
    for (;; step--) {
        u32 block = step * LANES + lane;
        u32x4 data = next, previous = before_next;
        // All lanes have read this step's blocks.
        __syncwarp();
        if (step > 0) {
            next = tile.load(block - LANES);
            before_next = load_previous(tile, block - LANES, before);
        }
        u32x4 input = PASS == Pass::cbc ? data : previous, mask = PASS == Pass::cbc ? previous : data;
        tile.store(block, apply<BITS>(tables, input, keys, mask));
        if (step == 0) return;
    }
}

// The whole kernel. Tiles are assigned in turn to the thread blocks, and then to the warps of each thread block, so that
// even a few tiles use all multiprocessors. The grid may have any size.
template <Pass PASS, u32 BITS, class Tables>
__device__ __forceinline__ void run(const Launch &launch, u8 *shared, const Words &t0) {
    Tables tables = Tables::load(shared, t0);
    u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    u64 step = static_cast<u64>(gridDim.x) * warps;
    for (u64 index = static_cast<u64>(gridDim.x) * warp + blockIdx.x; index < launch.tiles; index += step) {
        Tile tile = tile_at(launch, index, TILE_BYTES);
        if (tile.bytes == 0) continue;
        RoundKeys<schedule_words(BITS)> keys = load_keys<BITS>(launch.schedules, tile.segment->key, Tables::INVERSE);
        if constexpr (PASS == Pass::ecb) ecb_tile<BITS>(tables, keys, tile, lane);
        if constexpr (PASS == Pass::ctr) ctr_tile<false, BITS>(tables, keys, tile, lane);
        if constexpr (PASS == Pass::ctr32) ctr_tile<true, BITS>(tables, keys, tile, lane);
        if constexpr (PASS == Pass::xts) xts_tile<BITS>(tables, keys, tile, lane);
        if constexpr (PASS == Pass::cbc || PASS == Pass::cfb) chained_tile<PASS, BITS>(tables, keys, tile, lane, launch.scratch + 16 * index);
    }
}

__constant__ const Words T0 = tbox(false, 0);
__constant__ const Words INVERSE_T0 = tbox(true, 0);

}  // namespace aes

// The entry points of one family, whose tables have this COUNT.
#define TABLE_KERNEL(family, COUNT, pass, PASS, INVERSE, BITS)                                                          \
    KERNEL_BOUNDS(family##_##pass##_##BITS, aes::THREADS, 1, (Launch launch)) {                                         \
        DYNAMIC_SHARED(u8, shared);                                                                                     \
        aes::run<aes::Pass::PASS, BITS, aes::BankTables<COUNT, INVERSE>>(launch, shared, INVERSE ? aes::INVERSE_T0 : aes::T0); \
    }
#define TABLE_PASS(family, COUNT, pass, PASS, INVERSE)          \
    TABLE_KERNEL(family, COUNT, pass, PASS, INVERSE, 128)       \
    TABLE_KERNEL(family, COUNT, pass, PASS, INVERSE, 192)       \
    TABLE_KERNEL(family, COUNT, pass, PASS, INVERSE, 256)
#define TABLE_FAMILY(family, COUNT)                             \
    TABLE_PASS(family, COUNT, ecb_encrypt, ecb, false)          \
    TABLE_PASS(family, COUNT, ecb_decrypt, ecb, true)           \
    TABLE_PASS(family, COUNT, ctr, ctr, false)                  \
    TABLE_PASS(family, COUNT, ctr32, ctr32, false)              \
    TABLE_PASS(family, COUNT, cbc_decrypt, cbc, true)           \
    TABLE_PASS(family, COUNT, cfb_decrypt, cfb, false)          \
    TABLE_PASS(family, COUNT, xts_encrypt, xts, false)          \
    TABLE_PASS(family, COUNT, xts_decrypt, xts, true)           \
    EXPORT(family##_tile_bytes, aes::TILE_BYTES);               \
    EXPORT(family##_threads, aes::THREADS);                     \
    EXPORT(family##_shared_bytes, (aes::BankTables<COUNT, false>::BYTES))
