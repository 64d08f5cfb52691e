// The carry-less multiply-add of PTX ISA 9.3, for compute capability 8.0 and later. The compilers of CUDA 13.3 and later support
// it. `tools/cuda_kernels.py` uses such a compiler for the module that needs the instruction.
#pragma once
#include "platform.cuh"

#if !defined(__CUDACC__) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1303)
#define HAS_CARRY_LESS 1

// The lower or upper half of the product of a and b as polynomials over GF(2), plus c.
__device__ inline u64 carry_less_low(u64 a, u64 b, u64 c) {
#if defined(__CUDACC__)
    u64 result;
    asm("clmad.lo.u64 %0, %1, %2, %3;" : "=l"(result) : "l"(a), "l"(b), "l"(c));
    return result;
#else
    return emulator::carry_less_product(a, b, false) ^ c;
#endif
}

__device__ inline u64 carry_less_high(u64 a, u64 b, u64 c) {
#if defined(__CUDACC__)
    u64 result;
    asm("clmad.hi.u64 %0, %1, %2, %3;" : "=l"(result) : "l"(a), "l"(b), "l"(c));
    return result;
#else
    return emulator::carry_less_product(a, b, true) ^ c;
#endif
}

#endif
