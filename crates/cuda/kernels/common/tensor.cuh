// Products of matrices of bits, by the tensor units of compute capability 8.0 to 9.0.
//
// Later architectures have only products of bytes: the compiler would make one product of bits of eight of those and the
// instructions that take the bits apart, which is slower than integer multiplication.
#pragma once
#include "platform.cuh"

#if !defined(__CUDACC__) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1000)
#define HAS_TENSOR_BITS 1

// Adds the product of a 16 x 256 and a 256 x 8 matrix of bits, which all lanes of a warp hold together: an element of the
// sum is increased by the number of places where a row and a column both have a 1. With g = lane / 4 and t = lane % 4, a lane
// holds (PTX ISA, "Matrix fragments for mma.m16n8k256"):
//   left   of rows g and g + 8 the bits 32 t .. 32 t + 31, then of both rows the bits 128 + 32 t .. 128 + 32 t + 31
//   right  of column g the bits 32 t .. 32 t + 31, and 128 + 32 t .. 128 + 32 t + 31
//   sums   of row g the columns 2 t and 2 t + 1, then the same of row g + 8
__device__ inline void add_product_of_bits(u32 (&sums)[4], const u32 (&left)[4], const u32 (&right)[2]) {
#if defined(__CUDACC__)
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
#else
    emulator::add_product_of_bits(sums, left, right);
#endif
}

#endif
