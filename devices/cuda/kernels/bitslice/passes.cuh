// The passes: the inputs of the cipher, and the processing of its outputs.
#pragma once
#include "../common/gf128.cuh"
#include "counter_rounds.cuh"
#include "rounds.cuh"
#include "tile.cuh"

enum class Pass { ecb_encrypt, ecb_decrypt, ctr, ctr32, ctr_little32, cbc_decrypt, cfb_decrypt, xts_encrypt, xts_decrypt };

template <Pass P>
struct Does {
    static constexpr bool decrypt = P == Pass::ecb_decrypt || P == Pass::cbc_decrypt || P == Pass::xts_decrypt;
    static constexpr bool count = P == Pass::ctr || P == Pass::ctr32 || P == Pass::ctr_little32;
    static constexpr bool tweak = P == Pass::xts_encrypt || P == Pass::xts_decrypt;
};

// The tweak of a thread's next row.
template <class Shape>
__device__ inline u32x4 next_tweak(u32x4 tweak) {
    return Shape::step == 32 ? times_x32(tweak) : times_x(tweak);
}

// CTR: makes the states before a round and prepares the keys from this round on. Returns the number of the round.
template <Pass P, class Shape, class Shared>
__device__ inline u32 begin_counters(State &state, Shared &shared, const Segment &segment, u64 offset,
                                     const u8 *schedule, u32 rounds) {
    if (P == Pass::ctr_little32) {
        // Other bytes change than in big-endian counters, so the code of counter_rounds.cuh cannot be used.
        Shape::template prepare<1>(shared, schedule, rounds);
        u32x4 key = load_aligned(schedule), first = load_aligned(segment.state);
        fill<true>(state, [&](u32 row) { return advance_little32(first, offset / 16 + Shape::lane() + Shape::step * row) ^ key; });
        transpose(state);
        return 1;
    }
    Counter counter = advance<P == Pass::ctr32>(counter_of(load_aligned(segment.state)), offset / 16);
    u32 last_bytes = counter.words[0] & 0xFFFF;
    if (last_bytes + Shape::tile_blocks <= 0x10000) {
        u32 columns[6];
        constant_columns(block_of(counter), schedule, columns);
        Shape::publish(shared, columns);
        Shape::template prepare<3>(shared, schedule, rounds);
        u32 key = swap_bytes(load_aligned(schedule).w);
        counter_rounds<Shape::step>(state, last_bytes + Shape::lane(), key,
                                    [&](u32 index) { return Shape::published(shared, columns, index); });
        return 3;
    }
    Shape::template prepare<1>(shared, schedule, rounds);
    u32x4 key = load_aligned(schedule);
    fill<false>(state, [&](u32 row) {
        return block_of(advance<P == Pass::ctr32>(counter, Shape::lane() + Shape::step * row)) ^ key;
    });
    transpose(state);
    return 1;
}

// The other passes: loads blocks and adds the first round key and, for XTS, the tweak.
template <Pass P, bool Plain, class Shape, class Shared>
__device__ inline void begin_blocks(State &state, Shared &shared, const Tile<Shape> &tile, u32x4 key) {
    u32x4 tweak = {0, 0, 0, 0};
    if (Does<P>::tweak) tweak = Shape::kept(shared);
    fill<Plain>(state, [&](u32 row) {
        u32x4 block = P == Pass::cfb_decrypt ? tile.template load_before<Plain>(row) : tile.template load<Plain>(row);
        u32x4 sum = block ^ key ^ tweak;
        if (Does<P>::tweak) tweak = next_tweak<Shape>(tweak);
        return sum;
    });
}

// Adds the last round key and the addend of the mode to the outputs of the cipher, and stores the sums. The output may
// overwrite the input. So lanes wait for each other before they overwrite blocks that other lanes read, and CBC processes
// the rows backward, so that the previous ciphertext block is still unchanged.
template <Pass P, bool Plain, class Shape, class Shared>
__device__ inline void end(State &state, Shared &shared, const Tile<Shape> &tile, u32x4 key) {
    u32x4 tweak = {0, 0, 0, 0};
    if (Does<P>::tweak) tweak = Shape::kept(shared);
    if (P == Pass::cfb_decrypt) Shape::sync();
    drain<Plain, P == Pass::cbc_decrypt>(state, [&](u32 row, const Group &group) {
        u32x4 added[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            added[i] = tweak;
            if (P == Pass::cbc_decrypt) added[i] = tile.template load_before<Plain>(row + i);
            if (Does<P>::count || P == Pass::cfb_decrypt) added[i] = tile.template load<Plain>(row + i);
            if (Does<P>::tweak) tweak = next_tweak<Shape>(tweak);
        }
        if (P == Pass::cbc_decrypt) Shape::sync();
#pragma unroll
        for (u32 i = 0; i < 4; i++) tile.template store<Plain>(row + i, group.block[i] ^ key ^ added[i]);
    });
}

// Launch::option is the number of rounds, so one entry point serves all key sizes.
template <Pass P, class Shape>
__device__ inline void run(const Launch &launch) {
    u32 rounds = launch.option;
    SHARED(typename Shape::Shared, shared, 1);
    Tile<Shape> tile;
    if (!tile.find(launch)) return;
    const Segment &segment = launch.segments[tile.segment];
    const u8 *schedule = schedule_of(launch, segment, Does<P>::decrypt);
    bool is_plain = tile.is_plain();
    State state;
    u32 first = 1;
    if (Does<P>::count) {
        first = begin_counters<P, Shape>(state, shared[0], segment, tile.offset, schedule, rounds);
    } else {
        if (Does<P>::tweak) {
            u64 power = segment.position + tile.offset / 16 + Shape::lane();
            Shape::kept(shared[0]) = times_power(load_aligned(segment.state), power);
        }
        Shape::template prepare<1>(shared[0], schedule, rounds);
        u32x4 key = load_aligned(schedule);
        if (is_plain) begin_blocks<P, true>(state, shared[0], tile, key);
        else begin_blocks<P, false>(state, shared[0], tile, key);
        transpose(state);
    }
    if (Does<P>::decrypt) decrypt(state, Shape::keys(shared[0], schedule), rounds);
    else encrypt(state, Shape::keys(shared[0], schedule), rounds, first);
    transpose(state);
    // In these two passes, the compiler moves fewer registers between the rounds if the schedule is found again.
    if (P == Pass::ecb_encrypt || P == Pass::xts_decrypt)
        schedule = schedule_of(launch, launch.segments[opaque(tile.segment)], Does<P>::decrypt);
    u32x4 key = load_aligned(schedule + 16 * rounds);
    if (is_plain) end<P, true>(state, shared[0], tile, key);
    else end<P, false>(state, shared[0], tile, key);
    Shape::wipe(shared[0]);
}
