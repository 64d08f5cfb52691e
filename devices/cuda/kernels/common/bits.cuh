// Instructions that the compiler does not generate from C++: three-input logic, byte permutation, shifts by the multiplier.
// Each function also has an equivalent in C++, which the emulator runs.
#pragma once
#include "platform.cuh"

// Any function of three bits, applied to 32 bit positions at once. For the bits a, b and c, its value is bit 4a + 2b + c of
// Imm (PTX: lop3.b32).
template <u32 Imm>
__device__ inline u32 lop3(u32 a, u32 b, u32 c) {
#ifdef __CUDA_ARCH__
    u32 d;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(Imm));
    return d;
#else
    // Each pair of bits of Imm is a function of c. First b and then a select one of the four functions.
    const u32 of_c[4] = {0, ~c, c, ~0u};
    u32 f0 = of_c[Imm & 3], f1 = of_c[Imm >> 2 & 3], f2 = of_c[Imm >> 4 & 3], f3 = of_c[Imm >> 6 & 3];
    u32 low = ((f0 ^ f1) & b) ^ f0, high = ((f2 ^ f3) & b) ^ f2;
    return ((low ^ high) & a) ^ low;
#endif
}

__device__ inline u32 xor3(u32 a, u32 b, u32 c) { return lop3<0x96>(a, b, c); }

// The bits of a where the mask is 1, and the bits of b where it is 0.
__device__ inline u32 select(u32 mask, u32 a, u32 b) { return lop3<0xCA>(mask, a, b); }

// Selects four of the eight bytes of b:a, which are numbered from 0 (lowest byte of a) to 7. Each byte of the result has
// one hexadecimal digit of Digits; the lowest byte has the last digit. If 8 is added to a digit, the result has eight
// copies of the sign bit of that byte (PTX: prmt.b32).
template <u32 Digits>
__device__ inline u32 permute(u32 a, u32 b) {
#ifdef __CUDA_ARCH__
    u32 d;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "n"(Digits));
    return d;
#else
    auto byte = [both = (u64)b << 32 | a](u32 digit) {
        u32 byte = (u32)(both >> 8 * (digit & 7)) & 0xff;
        return digit & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
    };
    return byte(Digits & 15) | byte(Digits >> 4 & 15) << 8 | byte(Digits >> 8 & 15) << 16 | byte(Digits >> 12 & 15) << 24;
#endif
}

__device__ inline u32 swap_bytes(u32 a) { return permute<0x0123>(a, 0); }

// a << Count, computed by the multiplier, which is idle in kernels that use the logic unit fully. The multiplication is
// written in assembly, because the compiler turns multiplications by powers of two into shifts.
template <u32 Count>
__device__ inline u32 shift_left(u32 a) {
#ifdef __CUDA_ARCH__
    u32 d;
    asm("mul.lo.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "n"(1u << Count));
    return d;
#else
    return a << Count;
#endif
}

// The low word of (high:low) >> count, for counts below 32.
__device__ inline u32 funnel_right(u32 low, u32 high, u32 count) {
#ifdef __CUDA_ARCH__
    u32 d;
    asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(low), "r"(high), "r"(count));
    return d;
#else
    return (u32)(((u64)high << 32 | low) >> (count & 31));
#endif
}

// The high word of (high:low) << count, for counts below 32.
__device__ inline u32 funnel_left(u32 low, u32 high, u32 count) {
#ifdef __CUDA_ARCH__
    u32 d;
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(low), "r"(high), "r"(count));
    return d;
#else
    return (u32)(((u64)high << 32 | low) << (count & 31) >> 32);
#endif
}

// A word whose bits all equal bit `index` of a.
__device__ inline u32 mask_of_bit(u32 a, u32 index) { return 0u - (a >> index & 1); }

// The same for an index that is constant after loops have been unrolled. The multiplier moves the bit to the sign bit of
// its byte, and a permutation copies the sign bit to all bits.
__device__ inline u32 mask_of(u32 a, u32 index) {
#ifdef __CUDA_ARCH__
    u32 shifted, d;
    asm("mul.lo.u32 %0, %1, %2;" : "=r"(shifted) : "r"(a), "r"(0x80u >> index % 8));
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(d) : "r"(shifted), "r"(0x1111 * (8 + index / 8)));
    return d;
#else
    return mask_of_bit(a, index);
#endif
}

// The value itself. The compiler does not know that it is equal, so it computes again what depends on it, and needs no register for that
// in the meantime.
__device__ inline u32 opaque(u32 value) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(value));
#endif
    return value;
}
