// The family `bitslice_lane`: as `bitslice` and with its schedules, but a tile is a thread's, 512 bytes. For many short
// messages: XTS sectors, batches with a key each.
#include "entries.cuh"

EXPORT(bitslice_lane_tile_bytes, 16 * LaneShape::tile_blocks);
EXPORT(bitslice_lane_tile_threads, LaneShape::threads);
EXPORT(bitslice_lane_block_tiles, LaneShape::threads_of_block);

ENTRY_POINTS(bitslice_lane, LaneShape)
