// OCB3 of whole blocks (RFC 7253, sections 4.2 and 4.3): ECB with offsets, and the checksum of the plaintext of each tile.
// ocb/ocb.cu has the rest of OCB3.
#pragma once
#include "../ocb/masks.cuh"
#include "rounds.cuh"
#include "tile.cuh"

// The offsets of the rows of a thread, in sequence, each plus a round key.
//
// In a warp's tile, the block of lane l and row r has number 32 h + n, with n = (l + 1) % 32 and h = 32 tile + r. For the
// last lane, h is one more. Bits 0 to 3 of its Gray code depend on n alone, bits 5 and above on h alone, and bit 4 is the
// sum of a bit of n and a bit of h. So the offset is the sum of a part that depends on the lane and a part that depends on
// h. The 33 parts that depend on h are in shared memory.
template <class Shape>
struct Offsets;

template <>
struct Offsets<WarpShape> {
    static constexpr u32 parts = 33;
    u32x4 of_lane;
    const u32x4 *of_row;

    // Returns the part that depends on the lane, plus the first offset, for Shape::kept. Fills the table with the parts
    // that depend on h.
    __device__ static u32x4 prepare(u32x4 (&table)[parts], const OcbMasks &masks, u32x4 first, u64 tile) {
        u32 lane = threadIdx.x, number = (lane + 1) % 32;
        // The part of the bits of h above bit 4: each lane contributes the mask of one bit.
        u32x4 high = {0, 0, 0, 0};
        u64 gray = gray_code(tile);
        if (gray >> lane & 1) high = masks.l[10 + lane];
        // There are 38 masks above L_9. The first 32 have been contributed above.
        if (lane < ocb_levels - 42 && gray >> (32 + lane) & 1) high = high ^ masks.l[42 + lane];
        high = sum_of_warp(high);
        auto part = [&](u32 row, u32x4 above, u32 next_bit) {
            u32x4 sum = row & 1 ? above ^ masks.l[4] : above;
            return plus_masks(sum, masks, 5, (row ^ row >> 1 ^ next_bit << 4) & 31);
        };
        table[lane] = part(lane, high, tile & 1);
        if (lane == 0) table[32] = part(0, high ^ masks.l[10 + trailing_zeros(tile + 1)], (tile + 1) & 1);
        WarpShape::sync();
        return plus_masks(first, masks, 0, number ^ number >> 1);
    }

    __device__ Offsets(u32x4 (&table)[parts], const OcbMasks &, u32x4 kept, u64, u32x4 key)
        : of_lane(kept ^ key), of_row(table + threadIdx.x / 31) {}

    __device__ u32x4 next(u32 row) { return of_lane ^ of_row[row]; }

    // Stores the checksum of a tile, which is the sum of the checksums of the threads.
    __device__ static void store_checksum(u8 *to, u32x4 checksum) {
        checksum = sum_of_warp(checksum);
        if (threadIdx.x == 0) store_aligned(to, checksum);
    }

    __device__ static void wipe(u32x4 (&table)[parts]) {
        wipe_quad(table + threadIdx.x);
        if (threadIdx.x == 0) wipe_quad(table + 32);
    }
};

// A tile is processed by one thread, which computes each offset from the offset of the previous row.
template <>
struct Offsets<LaneShape> {
    static constexpr u32 parts = 1;
    u32x4 offset;
    const OcbMasks &masks;
    u64 tile;

    __device__ static u32x4 prepare(u32x4 (&)[parts], const OcbMasks &masks, u32x4 first, u64 tile) {
        return offset_of(masks, first, 32 * tile + 1);
    }

    __device__ Offsets(u32x4 (&)[parts], const OcbMasks &masks, u32x4 kept, u64 tile, u32x4 key)
        : offset(kept ^ key), masks(masks), tile(tile) {}

    // Row r has the block number 32 tile + r + 1. The next offset differs by L_i, where i is the number of trailing zeros
    // of the next block number.
    __device__ u32x4 next(u32 row) {
        u32x4 current = offset;
        if (row < 31) offset = offset ^ masks.l[row == 30 ? 5 + trailing_zeros(tile + 1) : trailing_zeros(row + 2)];
        return current;
    }

    __device__ static void store_checksum(u8 *to, u32x4 checksum) { store_aligned(to, checksum); }
    __device__ static void wipe(u32x4 (&)[parts]) {}
};

template <bool Encrypts, bool Plain, class Shape>
__device__ inline void begin_ocb(State &state, const Tile<Shape> &tile, Offsets<Shape> offsets, u8 *checksums) {
    u32x4 checksum = {0, 0, 0, 0};
    fill<Plain>(state, [&](u32 row) {
        u32x4 block = tile.template load<Plain>(row);
        if (Encrypts) checksum = checksum ^ block;
        return block ^ offsets.next(row);
    });
    if (Encrypts) Offsets<Shape>::store_checksum(checksums + 16 * Shape::tile(), checksum);
}

template <bool Encrypts, bool Plain, class Shape>
__device__ inline void end_ocb(State &state, const Tile<Shape> &tile, Offsets<Shape> offsets, u8 *checksums) {
    u32x4 checksum = {0, 0, 0, 0};
    drain<Plain, false>(state, [&](u32 row, const Group &group) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32x4 block = group.block[i] ^ offsets.next(row + i);
            if (!Encrypts && (Plain || tile.bytes_of(row + i) > 0)) checksum = checksum ^ block;
            tile.template store<Plain>(row + i, block);
        }
    });
    if (!Encrypts) Offsets<Shape>::store_checksum(checksums + 16 * Shape::tile(), checksum);
}

template <bool Encrypts, class Shape>
__device__ inline void run_ocb(const Launch &launch, const OcbMasks *all_masks) {
    u32 rounds = launch.option;
    SHARED(typename Shape::Shared, shared, 1);
    SHARED(u32x4, table, Offsets<Shape>::parts);
    Tile<Shape> tile;
    if (!tile.find(launch)) return;
    tile.bytes &= ~15u;  // ocb_sum processes a partial block
    if (tile.bytes == 0) return;
    const Segment &segment = launch.segments[tile.segment];
    const OcbMasks &masks = all_masks[segment.key];
    const u8 *schedule = schedule_of(launch, segment, !Encrypts);
    u64 number = tile.offset / Tile<Shape>::tile_bytes;
    Shape::kept(shared[0]) = Offsets<Shape>::prepare(table, masks, load_aligned(segment.state), number);
    Shape::template prepare<1>(shared[0], schedule, rounds);
    auto offsets = [&](u32x4 key) { return Offsets<Shape>(table, masks, Shape::kept(shared[0]), number, key); };
    bool is_plain = tile.is_plain();
    State state;
    u32x4 key = load_aligned(schedule);
    if (is_plain) begin_ocb<Encrypts, true>(state, tile, offsets(key), launch.scratch);
    else begin_ocb<Encrypts, false>(state, tile, offsets(key), launch.scratch);
    transpose(state);
    if (Encrypts) encrypt(state, Shape::keys(shared[0], schedule), rounds);
    else decrypt(state, Shape::keys(shared[0], schedule), rounds);
    transpose(state);
    // Found again: an address that is kept during the rounds would take two registers, which the cipher needs.
    key = load_aligned(schedule_of(launch, launch.segments[opaque(tile.segment)], !Encrypts) + 16 * rounds);
    if (is_plain) end_ocb<Encrypts, true>(state, tile, offsets(key), launch.scratch);
    else end_ocb<Encrypts, false>(state, tile, offsets(key), launch.scratch);
    Shape::wipe(shared[0]);
    Offsets<Shape>::wipe(table);
}
