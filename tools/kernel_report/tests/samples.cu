// Small kernels for which the tests contain the expected report. With these names, inputs.py treats both pointers as
// pointers to secrets.
#include "../../../devices/cuda/kernels/common/platform.cuh"

#define SAMPLE(name) KERNEL(name##_expand_128, (const u8 *from, u8 *to, u32 count))

// `count` iterations, each with a multiplication that the compiler cannot remove.
SAMPLE(loop) {
    u32 sum = from[threadIdx.x];
#pragma unroll 1
    for (u32 i = 0; i < count; i++) sum = sum * (sum | 5) + i;
    ((u32 *)to)[threadIdx.x] = sum;
}

SAMPLE(branch) {
    if (from[threadIdx.x] == 7) return;
    to[threadIdx.x] = 1;
    to[count] = 2;
}

SAMPLE(lookup) {
    to[threadIdx.x] = to[256 + from[threadIdx.x]];
}

SAMPLE(shared_lookup) {
    SHARED(u32, table, 256);
    for (u32 i = threadIdx.x; i < 256; i += blockDim.x) table[i] = i * i;
    __syncthreads();
    to[threadIdx.x] = (u8)table[from[threadIdx.x]];
}

SAMPLE(trip) {
    u32 sum = 0;
#pragma unroll 1
    for (u32 i = 0; i < from[threadIdx.x]; i++) sum = sum * (sum | 5) + i;
    to[threadIdx.x] = (u8)sum;
}

SAMPLE(choose) {
    u8 a = from[threadIdx.x], b = from[threadIdx.x + 32];
    to[threadIdx.x] = a > 100 ? b : (u8)(b + a);
}

// A secret that passes through shared memory.
SAMPLE(detour) {
    SHARED(u8, place, 64);
    place[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    to[256 + place[threadIdx.x ^ 1]] = 1;
}

// The lanes of a warp access words at a distance of 32, which are all in one bank.
SAMPLE(conflict) {
    SHARED(u32, table, 1024);
    table[threadIdx.x] = count;
    __syncthreads();
    to[threadIdx.x] = (u8)((volatile u32 *)table)[threadIdx.x * 32];
}

// Operations for which the interpreter must return the same results as C++.
SAMPLE(arithmetic) {
    const u32 *words = (const u32 *)from;
    u32 a = words[threadIdx.x], b = words[threadIdx.x + 32], c = words[threadIdx.x + 64];
    u64 wide = (u64)a << 32 | b, other = (u64)c << 32 | a;
    u64 sum = wide + other, difference = wide - other, product = wide * other, shifted = wide >> (c & 63) | other << (a & 31);
    int less = (int)a < (int)b, quotient = (int)a >> (b & 31);
    u32 mixed = __byte_perm(a, b, 0x2613) ^ __funnelshift_l(a, b, c) ^ (a & b | c & ~a) ^ (u32)(wide < other);
    u64 result = sum ^ difference ^ product ^ shifted ^ (u64)mixed << 13 ^ (u32)quotient;
    if (less) result = result * 3 + (a > c ? 11 : 5);
    else result -= 8 * other;
    // A predicate that joins the bits of two words: see test_joined_predicates.
    if (wide >> (c & 63) & 1) result ^= 0x5555;
    ((u64 *)to)[threadIdx.x] = result;
}
