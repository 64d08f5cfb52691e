// The kernels `bitslice_lane` are like `bitslice` and use the same schedules, but a thread processes a tile of 512 bytes.
// They are for many short messages, such as XTS sectors or batches in which each message has its own key.
#include "entries.cuh"

EXPORT(bitslice_lane_tile_bytes, 16 * LaneShape::tile_blocks);
EXPORT(bitslice_lane_tile_threads, LaneShape::threads);
EXPORT(bitslice_lane_block_tiles, LaneShape::threads_of_block);

ENTRY_POINTS(bitslice_lane, LaneShape)
