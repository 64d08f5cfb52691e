// Kernels with which tests/cuda/emulator.rs tests the emulator itself.
#include "../kernels/common/platform.cuh"

// out[block * threads + i] = sum of what the block's threads i+1, i+2, ... (cyclically, 3 of them) wrote.
KERNEL(emulator_barrier, (u32 *out)) {
    SHARED(u32, values, 1024);
    DYNAMIC_SHARED(u32, twice);
    u32 n = blockDim.x, i = threadIdx.x;
    values[i] = i + 1000 * blockIdx.x;
    __syncthreads();
    u32 sum = 0;
    for (u32 step = 1; step <= 3; step++) {
        sum += values[(i + step) % n];
        twice[i] = 2 * sum;
        __syncthreads();
        sum = twice[(i + n - 1) % n] - twice[(i + n - 1) % n] + sum;
        __syncthreads();
    }
    out[blockIdx.x * n + i] = sum;
}

// Writes four words per thread: the number of a neighbouring lane, obtained by each kind of exchange.
KERNEL(emulator_warp, (u32 *out)) {
    u32 i = threadIdx.x;
    u32 *mine = out + 4 * i;
    mine[0] = __shfl_xor_sync(0xFFFFFFFF, i, 1);
    mine[1] = __ballot_sync(0xFFFFFFFF, i % 3 == 0);
    mine[2] = static_cast<u32>(__shfl_down_sync(0xFFFFFFFF, static_cast<u64>(i), 4, 8));
    // The halves of a warp may take different branches.
    if (i % 32 < 16) mine[3] = __shfl_sync(0x0000FFFF, i, 15);
    else mine[3] = __shfl_sync(0xFFFF0000, i, 16);
}

// This kernel has no barrier. u8 and u64 test the layout of parameters.
KERNEL(emulator_parameters, (u8 first, u64 second, u32 third, u64 *out)) {
    if (threadIdx.x == 0) atomicAdd(out, static_cast<u64>(first + second + third));
}

// Thread 0 ends while the others wait, or it waits at another place.
KERNEL(emulator_divergence, (u32 kind)) {
    if (threadIdx.x == 0) {
        if (kind == 0) return;
        if (kind == 1) {
            __syncthreads();
            return;
        }
        if (kind == 2) return;
    }
    if (kind == 2) __syncwarp();
    else __syncthreads();
}

KERNEL(emulator_overrun, (u32 count)) {
    SHARED(u32, values, 32);
    values[threadIdx.x + count] = 1;
    __syncthreads();
}

// A barrier is missing between the write and the neighbour's read.
KERNEL(emulator_race, (u32 *out)) {
    SHARED(u32, values, 64);
    values[threadIdx.x % 64] = threadIdx.x;
    out[threadIdx.x] = values[(threadIdx.x + 1) % 64];
}
