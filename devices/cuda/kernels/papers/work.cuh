// Common parts of the papers' kernels: the inputs of the cipher, and the round keys. A tile is the data that a thread block
// processes at once, so its size depends on the number of threads.
#pragma once
#include "../common/counter.cuh"
#include "../table/tables.cuh"
#include "../table/tile.cuh"

namespace papers {

using namespace aes;

enum class Pass { ecb, ctr };

// The input of the cipher for a block of the tile, and the mask that is added to the output.
struct Input {
    u32x4 block, mask;
};

template <Pass PASS>
__device__ inline Input input_of(const Tile &tile, u32 block) {
    TRACE(load, tile.from + 16 * block, 16);
    u32x4 data = tile.load(block);
    if (PASS == Pass::ecb) return Input{data, u32x4{0, 0, 0, 0}};
    Counter counter = advance<false>(counter_of(load_aligned(tile.segment->state)), tile.offset / 16 + block);
    return Input{block_of(counter), data};
}

// The round keys of the tile, in global memory.
template <u32 BITS, bool INVERSE>
__device__ inline const u32 *keys_of(const Launch &launch, const Tile &tile) {
    const u8 *schedule = launch.schedules + static_cast<u64>(tile.segment->key) * schedule_bytes(BITS);
    return reinterpret_cast<const u32 *>(schedule) + (INVERSE ? schedule_words(BITS) : 0);
}

}  // namespace papers
