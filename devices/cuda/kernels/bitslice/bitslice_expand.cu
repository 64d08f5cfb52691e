// Key expansion of the family `bitslice`, the default, and its constants. The family is constant time. It has two shapes: in the
// kernels `bitslice`, a warp processes a tile of 16 KiB. In the kernels `bitslice_lane`, a thread processes a tile of 512 bytes. These are
// for many short messages, such as XTS sectors or batches in which each message has its own key.
#include "shape.cuh"

EXPORT(bitslice_tile_bytes, 16 * WarpShape::tile_blocks);
EXPORT(bitslice_tile_threads, WarpShape::threads);
EXPORT(bitslice_block_tiles, 1);
EXPORT(bitslice_lane_tile_bytes, 16 * LaneShape::tile_blocks);
EXPORT(bitslice_lane_tile_threads, LaneShape::threads);
EXPORT(bitslice_lane_block_tiles, LaneShape::threads_of_block);
EXPORT(bitslice_schedule_bytes_128, Size<128>::schedule_bytes);
EXPORT(bitslice_schedule_bytes_192, Size<192>::schedule_bytes);
EXPORT(bitslice_schedule_bytes_256, Size<256>::schedule_bytes);

// Makes the schedules of `count` keys, one thread for each key.
template <u32 Bits>
__device__ inline void expand_keys(const u8 *keys, u8 *schedules, u32 count) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    expand<Bits>(keys + (u64)index * (Bits / 8), schedules + (u64)index * Size<Bits>::schedule_bytes);
}

KERNEL(bitslice_expand_128, (const u8 *keys, u8 *schedules, u32 count)) { expand_keys<128>(keys, schedules, count); }
KERNEL(bitslice_expand_192, (const u8 *keys, u8 *schedules, u32 count)) { expand_keys<192>(keys, schedules, count); }
KERNEL(bitslice_expand_256, (const u8 *keys, u8 *schedules, u32 count)) { expand_keys<256>(keys, schedules, count); }
