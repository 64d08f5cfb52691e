// The family `bitslice`, the default. It is constant time. A warp processes a tile of 16 KiB.
#include "entries.cuh"

EXPORT(bitslice_tile_bytes, 16 * WarpShape::tile_blocks);
EXPORT(bitslice_tile_threads, WarpShape::threads);
EXPORT(bitslice_block_tiles, 1);
EXPORT(bitslice_schedule_bytes_128, Size<128>::schedule_bytes);
EXPORT(bitslice_schedule_bytes_192, Size<192>::schedule_bytes);
EXPORT(bitslice_schedule_bytes_256, Size<256>::schedule_bytes);

ENTRY_POINTS(bitslice, WarpShape)

// Makes the schedules of `count` keys, one thread for each key. The kernels of bitslice_lane.cu read the same schedules.
template <u32 Bits>
__device__ inline void expand_keys(const u8 *keys, u8 *schedules, u32 count) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    expand<Bits>(keys + (u64)index * (Bits / 8), schedules + (u64)index * Size<Bits>::schedule_bytes);
}

KERNEL(bitslice_expand_128, (const u8 *keys, u8 *schedules, u32 count)) { expand_keys<128>(keys, schedules, count); }
KERNEL(bitslice_expand_192, (const u8 *keys, u8 *schedules, u32 count)) { expand_keys<192>(keys, schedules, count); }
KERNEL(bitslice_expand_256, (const u8 *keys, u8 *schedules, u32 count)) { expand_keys<256>(keys, schedules, count); }
