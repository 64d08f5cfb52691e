// The CUDA paper's coarse grain: a thread encrypts a block of 16 bytes from the first round to the last.
//
// The state is in shared memory, 16 bytes per thread. Word i of thread t is at i * threads + t (the paper's figure 3), so
// that the threads of a warp use different banks. (The paper's section 3.3 states one set of four words per thread, and in
// the same paragraph 32 bytes per thread. This kernel has one set of four words.) A thread block may have 512 threads; the
// paper's card had room for 256.
#pragma once
#include "tboxes.cuh"
#include "work.cuh"

namespace papers {

using namespace aes;

constexpr u32 COARSE_THREAD_BYTES = 16;

template <u32 BITS, Pass PASS, bool INVERSE>
__device__ __forceinline__ void coarse(const Launch &launch, const PlainTables<INVERSE> &tables, u32 *shared) {
    u32 threads = blockDim.x, thread = threadIdx.x;
    // Volatile, so that the compiler keeps the state in shared memory and not in registers.
    volatile u32 *state = shared + thread;
    for (u64 index = blockIdx.x; index < launch.tiles; index += gridDim.x) {
        Tile tile = tile_at(launch, index, threads * COARSE_THREAD_BYTES);
        if (thread >= tile.blocks) continue;
        const u32 *keys = keys_of<BITS, INVERSE>(launch, tile);
        Input input = input_of<PASS>(tile, thread);
        state[0 * threads] = input.block.x ^ keys[0];
        state[1 * threads] = input.block.y ^ keys[1];
        state[2 * threads] = input.block.z ^ keys[2];
        state[3 * threads] = input.block.w ^ keys[3];
        for (u32 round = 1; round < rounds(BITS); round++) {
            u32 s[4] = {state[0 * threads], state[1 * threads], state[2 * threads], state[3 * threads]};
#pragma unroll
            for (u32 c = 0; c < 4; c++)
                state[c * threads] = round_column(tables, s[c], s[source<INVERSE>(c, 1)], s[source<INVERSE>(c, 2)],
                                                  s[source<INVERSE>(c, 3)], keys[4 * round + c]);
        }
        u32 s[4] = {state[0 * threads], state[1 * threads], state[2 * threads], state[3 * threads]};
        u32 mask[4] = {input.mask.x, input.mask.y, input.mask.z, input.mask.w}, t[4];
#pragma unroll
        for (u32 c = 0; c < 4; c++)
            t[c] = last_column(tables, s[c], s[source<INVERSE>(c, 1)], s[source<INVERSE>(c, 2)],
                               s[source<INVERSE>(c, 3)], keys[4 * rounds(BITS) + c], mask[c]);
        TRACE(store, tile.to + 16 * thread, 16);
        tile.store(thread, u32x4{t[0], t[1], t[2], t[3]});
    }
}

}  // namespace papers
