// Products of matrices of bits, by the tensor units of compute capability 8.0 to 9.0.
//
// Later architectures have only products of bytes. Their compiler replaces a product of bits by eight products of bytes and
// instructions that extract the bits, which is slower than integer multiplication.
#pragma once
#include "platform.cuh"

#if !defined(__CUDACC__) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1000)
#define HAS_TENSOR_BITS 1

// Adds the product of a 16 x 256 and a 256 x 8 matrix of bits to `sums`. All lanes of a warp together hold the matrices. An
// element of the product is the number of positions in which the row and the column both have a 1. With g = lane / 4 and t =
// lane % 4, a lane holds (PTX ISA, "Matrix fragments for mma.m16n8k256"):
//   left   bits 32 t .. 32 t + 31 of rows g and g + 8, then bits 128 + 32 t .. 128 + 32 t + 31 of both rows
//   right  bits 32 t .. 32 t + 31 of column g, then its bits 128 + 32 t .. 128 + 32 t + 31
//   sums   columns 2 t and 2 t + 1 of row g, then the same columns of row g + 8
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
