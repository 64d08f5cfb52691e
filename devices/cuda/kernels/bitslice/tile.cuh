// The data of a tile: loads from memory into states, and stores to memory.
#pragma once
#include "../common/work.cuh"
#include "shape.cuh"
#include "state.cuh"

// A thread's part of a tile. Row r (0 to 31) is its block number `lane + step * r` in the tile.
template <class Shape>
struct Tile {
    u32 segment;       // index of the segment
    u64 offset;        // of the tile in the segment, in bytes
    u32 bytes;         // bytes of the segment in the tile
    const u8 *from;    // the thread's first block
    u8 *to;
    const u8 *before;  // the block before the tile, for passes that need it

    static constexpr u32 row_bytes = 16 * Shape::step, tile_bytes = 16 * Shape::tile_blocks;

    // Finds the tile of the thread. Returns false if there is nothing to do.
    __device__ bool find(const Launch &launch) {
        u64 number = Shape::tile();
        if (number >= launch.tiles) return false;
        segment = segment_of(launch, number);
        const Segment &owner = launch.segments[segment];
        offset = (number - launch.first_tile[segment]) * tile_bytes;
        if (offset >= owner.bytes) return false;
        u64 left = owner.bytes - offset;
        bytes = left < tile_bytes ? (u32)left : tile_bytes;
        u64 first = offset + 16 * Shape::lane();
        from = global_pointer<const u8>(owner.from) + first;
        to = global_pointer<u8>(owner.to) + first;
        before = global_pointer<const u8>((u64)launch.scratch) + 16 * number;
        return true;
    }

    // True if all blocks of the tile are complete and aligned.
    __device__ bool is_plain() const { return bytes == tile_bytes && is_aligned((u64)from | (u64)to); }

    // The number of bytes in row `row`.
    __device__ u32 bytes_of(u32 row) const {
        u32 start = 16 * (Shape::lane() + Shape::step * row);
        return start >= bytes ? 0 : bytes - start < 16 ? bytes - start : 16;
    }

    // Load row `row`, or the block before it. `Plain` is the result of is_plain().
    template <bool Plain>
    __device__ u32x4 load(u32 row) const {
        const u8 *address = from + row * row_bytes;
        return Plain ? load_aligned(address) : load_some(address, bytes_of(row));
    }
    template <bool Plain>
    __device__ u32x4 load_before(u32 row) const {
        const u8 *address = row == 0 && Shape::lane() == 0 ? before : from + row * row_bytes - 16;
        return Plain ? load_aligned(address) : load_some(address, bytes_of(row) == 0 ? 0 : 16);
    }
    template <bool Plain>
    __device__ void store(u32 row, u32x4 block) const {
        u8 *address = to + row * row_bytes;
        if (Plain) store_aligned(address, block); else store_some(address, block, bytes_of(row));
    }
};

// The schedule of a segment for one direction, of a launch with `option` rounds.
__device__ inline const u8 *schedule_of(const Launch &launch, const Segment &segment, bool decrypts) {
    u32 half_bytes = 16 * (launch.option + 1);
    return launch.schedules + (u64)segment.key * (2 * half_bytes) + (decrypts ? half_bytes : 0);
}

// Fills a state with the blocks `load(row)`, one group at a time. If `Plain` is set, the loop over the groups is unrolled.
// Otherwise it is not unrolled, and each iteration shifts the state by one group through the registers.
template <bool Plain, class Load>
__device__ inline void fill(State &state, const Load &load) {
    auto group = [&](u32 g) -> Group { return {{load(4 * g), load(4 * g + 1), load(4 * g + 2), load(4 * g + 3)}}; };
    if constexpr (Plain) {
#pragma unroll
        for (u32 g = 0; g < groups; g++) put_group(state, g, group(g));
    } else {
#pragma unroll 1
        for (u32 g = 0; g < groups; g++) {
#pragma unroll
            for (u32 p = 0; p < 16; p++)
#pragma unroll
                for (u32 i = 0; i + 1 < groups; i++) state.of[p][i] = state.of[p][i + 1];
            put_group(state, groups - 1, group(g));
        }
    }
}

// Calls `take(first row, group)` for each group of a state, from the first to the last or, if `Backward` is set, from the
// last to the first.
template <bool Plain, bool Backward, class Take>
__device__ inline void drain(State &state, const Take &take) {
    if constexpr (Plain) {
#pragma unroll
        for (u32 i = 0; i < groups; i++) {
            u32 g = Backward ? groups - 1 - i : i;
            take(4 * g, group_of(state, g));
        }
    } else {
#pragma unroll 1
        for (u32 k = 0; k < groups; k++) {
            take(4 * (Backward ? groups - 1 - k : k), group_of(state, Backward ? groups - 1 : 0));
#pragma unroll
            for (u32 p = 0; p < 16; p++)
#pragma unroll
                for (u32 i = 0; i + 1 < groups; i++) {
                    u32 g = Backward ? groups - 1 - i : i;
                    state.of[p][g] = state.of[p][Backward ? g - 1 : g + 1];
                }
        }
    }
}
