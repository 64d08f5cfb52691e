// The T-boxes of the CUDA paper's four kernels: 4 KiB in shared or in constant memory, without copies. So lookups of a warp
// may conflict, depending on the data.
#pragma once
#include "../table/rounds.cuh"

namespace papers {

using namespace aes;

struct TBoxes {
    u32 of[4][256];
};

__host__ __device__ constexpr TBoxes all_tboxes(bool inverse) {
    TBoxes boxes = {};
    for (int row = 0; row < 4; row++) {
        Words words = tbox(inverse, row);
        for (int x = 0; x < 256; x++) boxes.of[row][x] = words.of[x];
    }
    return boxes;
}

__constant__ const TBoxes FORWARD_BOXES = all_tboxes(false);
__constant__ const TBoxes INVERSE_BOXES = all_tboxes(true);

// One type serves both places, because the compiler can see the kind of memory to which the pointer points.
template <bool INVERSE_>
struct PlainTables {
    static constexpr bool INVERSE = INVERSE_;
    const u32 *boxes;

    template <u32 Row, u32 Byte>
    __device__ __forceinline__ u32 get(u32 word) const {
        u32 entry = 256 * Row + (word >> 8 * Byte & 0xFF);
        TRACE(lookup, boxes + entry, 4);
        return boxes[entry];
    }
};

template <bool INVERSE>
__device__ inline PlainTables<INVERSE> constant_tables() {
    return PlainTables<INVERSE>{INVERSE ? INVERSE_BOXES.of[0] : FORWARD_BOXES.of[0]};
}

// The threads of the block load the boxes together (the paper's figure 4).
template <bool INVERSE>
__device__ inline PlainTables<INVERSE> shared_tables(u32 *boxes) {
    const u32 *from = constant_tables<INVERSE>().boxes;
    for (u32 i = threadIdx.x; i < 4 * 256; i += blockDim.x) boxes[i] = from[i];
    __syncthreads();
    return PlainTables<INVERSE>{boxes};
}

}  // namespace papers
