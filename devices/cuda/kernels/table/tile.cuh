// The blocks of a tile that a lane processes: every 32nd block, so that accesses of 16 bytes per lane coalesce.
#pragma once
#include "../common/block.cuh"
#include "../common/work.cuh"

namespace aes {

// The place of a tile in its segment.
struct Tile {
    const Segment *segment;
    const u8 *from;
    u8 *to;
    u64 offset;  // of the tile in its segment
    u32 bytes;   // bytes of the segment in the tile; 0 if the segment ends before the tile
    u32 blocks;  // blocks of the tile, including a partial block
    u32 whole;   // blocks that one access of 16 bytes can move; 0 if the segment is not aligned

    // Bytes of a block: 16, fewer for the last block of a message, 0 after it.
    __device__ u32 bytes_of(u32 block) const {
        u32 at = 16 * block;
        return at >= bytes ? 0 : bytes - at < 16 ? bytes - at : 16;
    }

    __device__ __forceinline__ u32x4 load(u32 block) const {
        if (block < whole) return load_aligned(from + 16 * block);
        return load_bytes(from + 16 * block, bytes_of(block));
    }

    __device__ __forceinline__ void store(u32 block, u32x4 result) const {
        if (block < whole) store_aligned(to + 16 * block, result);
        else store_bytes(to + 16 * block, result, bytes_of(block));
    }
};

__device__ inline Tile tile_at(const Launch &launch, u64 index, u32 tile_bytes) {
    u32 owner = segment_of(launch, index);
    const Segment &segment = launch.segments[owner];
    u64 offset = (index - launch.first_tile[owner]) * tile_bytes;
    u64 left = segment.bytes > offset ? segment.bytes - offset : 0;
    const u8 *from = global_pointer<const u8>(segment.from + offset);
    u8 *to = global_pointer<u8>(segment.to + offset);
    u32 bytes = static_cast<u32>(left < tile_bytes ? left : tile_bytes);
    u32 whole = is_aligned(segment.from | segment.to) ? bytes / 16 : 0;
    return Tile{&segment, from, to, offset, bytes, (bytes + 15) / 16, whole};
}

}  // namespace aes
