// Blocks in device memory: 16 bytes at any address, and shorter blocks at the end of a message.
#pragma once
#include "bits.cuh"

// Words are little-endian: byte i of a block is byte i % 4 of word i / 4, counted from the lowest byte.

// Makes a pointer from an address in a Segment. The compiler cannot deduce that the address is in global memory and not in
// shared memory, so this function states it.
template <class Byte>
__device__ inline Byte *global_pointer(u64 address) {
#ifdef __CUDA_ARCH__
    const void *pointer = (const void *)address;
    __builtin_assume(__isGlobal(pointer));
    return (Byte *)pointer;
#else
    return (Byte *)address;
#endif
}

__device__ inline bool is_aligned(u64 address) { return (address & 15) == 0; }

// 16 bytes from an address that is a multiple of 16.
__device__ inline u32x4 load_aligned(const u8 *from) { return *(const u32x4 *)from; }
__device__ inline void store_aligned(u8 *to, u32x4 block) { *(u32x4 *)to = block; }

// The first `count` bytes, at most 16, followed by zeros.
__device__ inline u32x4 load_bytes(const u8 *from, u32 count) {
    u32 words[4] = {0, 0, 0, 0};
#pragma unroll
    for (u32 i = 0; i < 16; i++)
        if (i < count) words[i / 4] |= (u32)from[i] << 8 * (i % 4);
    return u32x4{words[0], words[1], words[2], words[3]};
}

__device__ inline void store_bytes(u8 *to, u32x4 block, u32 count) {
    u32 words[4] = {block.x, block.y, block.z, block.w};
#pragma unroll
    for (u32 i = 0; i < 16; i++)
        if (i < count) to[i] = (u8)(words[i / 4] >> 8 * (i % 4));
}

// Load or store the first `count` bytes, at most 16, at any address. The accesses are as large as the alignment of the
// address allows.
__device__ inline u32x4 load_some(const u8 *from, u32 count) {
    if (count < 16 || (u64)from % 4 != 0) return load_bytes(from, count);
    if (is_aligned((u64)from)) return load_aligned(from);
    const u32 *words = (const u32 *)from;
    return u32x4{words[0], words[1], words[2], words[3]};
}
__device__ inline void store_some(u8 *to, u32x4 block, u32 count) {
    if (count < 16 || (u64)to % 4 != 0) return store_bytes(to, block, count);
    if (is_aligned((u64)to)) return store_aligned(to, block);
    u32 *words = (u32 *)to;
    words[0] = block.x;
    words[1] = block.y;
    words[2] = block.z;
    words[3] = block.w;
}

// Load or store 16 bytes at any address.
__device__ inline u32x4 load_block(const u8 *from) { return load_some(from, 16); }
__device__ inline void store_block(u8 *to, u32x4 block) { store_some(to, block, 16); }

__device__ inline u32x4 operator^(u32x4 a, u32x4 b) {
    return u32x4{a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w};
}
