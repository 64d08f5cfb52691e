// The CUDA paper's fine grain: four threads encrypt a block of 16 bytes, one thread for each column, with a barrier in each
// round.
//
// Shared memory has two sets of the state (8 bytes per thread), so that a round reads one set while it writes the other. In
// each set, column c of block b is word 4 b + c, so that the threads of a warp always use different banks.
#pragma once
#include "tboxes.cuh"
#include "work.cuh"

namespace papers {

using namespace aes;

constexpr u32 FINE_THREAD_BYTES = 4;

__device__ inline u32 word_of(u32x4 block, u32 index) {
    return index == 0 ? block.x : index == 1 ? block.y : index == 2 ? block.z : block.w;
}

template <u32 BITS, Pass PASS, bool INVERSE>
__device__ __forceinline__ void fine(const Launch &launch, const PlainTables<INVERSE> &tables, u32 *shared) {
    u32 threads = blockDim.x, column = threadIdx.x % 4, first = threadIdx.x - column;
    u32 one = first + source<INVERSE>(column, 1), two = first + source<INVERSE>(column, 2), three = first + source<INVERSE>(column, 3);
    for (u64 index = blockIdx.x; index < launch.tiles; index += gridDim.x) {
        Tile tile = tile_at(launch, index, threads * FINE_THREAD_BYTES);
        // Threads after the end of the message take part, because all threads of the thread block must reach the barriers.
        u32 block = threadIdx.x / 4;
        bool there = block < tile.blocks;
        const u32 *keys = keys_of<BITS, INVERSE>(launch, tile) + column;
        u32 *set = shared, *other = shared + threads;
        u32 mask = 0;
        if (there) {
            Input input = input_of<PASS>(tile, block);
            set[threadIdx.x] = word_of(input.block, column) ^ keys[0];
            mask = word_of(input.mask, column);
        }
        __syncthreads();
        for (u32 round = 1; round < rounds(BITS); round++) {
            if (there) other[threadIdx.x] = round_column(tables, set[threadIdx.x], set[one], set[two], set[three], keys[4 * round]);
            __syncthreads();
            u32 *swapped = set;
            set = other;
            other = swapped;
        }
        if (there) {
            u32 word = last_column(tables, set[threadIdx.x], set[one], set[two], set[three], keys[4 * rounds(BITS)], mask);
            // Each thread stores a word of a whole block if the message is aligned. Other blocks are stored byte by byte.
            u8 *to = tile.to + 16 * block + 4 * column;
            u32 bytes = tile.bytes_of(block), before = 4 * column;
            TRACE(store, to, 4);
            if (block < tile.whole) *reinterpret_cast<u32 *>(to) = word;
            else for (u32 i = 0; i < 4 && before + i < bytes; i++) to[i] = static_cast<u8>(word >> 8 * i);
        }
        // The state of the next tile overwrites the state of this tile.
        __syncthreads();
    }
}

}  // namespace papers
