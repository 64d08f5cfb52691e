// The two shapes of this family. A *shape* is a way to divide work among threads: it determines the blocks of a thread, and
// the place of its round keys.
#pragma once
#include "keys.cuh"

// Writes zeros to shared memory. The compiler must not remove the writes, although the zeros are not read.
__device__ inline void wipe_quad(u32x4 *quad) {
#ifdef __CUDA_ARCH__
    asm volatile("st.shared.v4.u32 [%0], {0, 0, 0, 0};" ::"r"((u32)__cvta_generic_to_shared(quad)) : "memory");
#else
    *(volatile u32 *)&quad->x = *(volatile u32 *)&quad->y = *(volatile u32 *)&quad->z = *(volatile u32 *)&quad->w = 0;
#endif
}

// A warp processes 1024 neighbouring blocks of one segment. The blocks of a thread are 32 blocks apart, so that accesses of
// 16 bytes per lane coalesce. The masks of the round keys are in shared memory, and are computed once per tile. A thread
// block is one warp.
struct WarpShape {
    static constexpr u32 threads = 32, tile_blocks = 1024, step = 32;

    __device__ static u64 tile() { return blockIdx.x; }
    __device__ static u32 lane() { return threadIdx.x; }
    __device__ static void sync() { __syncwarp(); }

    // The data of a tile in shared memory: masks for up to 14 rounds, and kept values.
    struct Shared {
        u32x4 masks[32 * 13];
        u32x4 kept[32];
    };

    // Makes the masks of rounds `Begin` to End - 1. A lane makes the masks of four bits of each round key.
    template <u32 Begin, u32 End>
    __device__ static void make_masks(Shared &shared, const u8 *schedule) {
        u32 shift = threadIdx.x % 2 ? 0 : 4;
#pragma unroll
        for (u32 round = Begin; round < End; round++) {
            u32 nibble = (u32)schedule[16 * round + threadIdx.x / 2] << shift;
            shared.masks[32 * (round - 1) + threadIdx.x] =
                u32x4{mask_of(nibble, 4), mask_of(nibble, 5), mask_of(nibble, 6), mask_of(nibble, 7)};
        }
    }
    // Makes the masks of rounds `First` to rounds - 1. Every key size has the masks of round 9.
    template <u32 First>
    __device__ static void prepare(Shared &shared, const u8 *schedule, u32 rounds) {
        make_masks<First, 10>(shared, schedule);
        if (rounds > 10) make_masks<10, 12>(shared, schedule);
        if (rounds > 12) make_masks<12, 14>(shared, schedule);
        sync();
    }
    __device__ static Masks keys(const Shared &shared, const u8 *) { return {shared.masks}; }

    // Stores the masks of `Count` words, which are the same in all lanes, in the place of the masks of the first rounds.
    // prepare() must follow, and must begin with a round whose masks do not overwrite them.
    template <u32 Count>
    __device__ static void publish(Shared &shared, const u32 (&words)[Count]) {
        u32 *masks = (u32 *)shared.masks;
#pragma unroll
        for (u32 i = 0; i < Count; i++) masks[32 * i + threadIdx.x] = mask_of_bit(words[i], threadIdx.x);
    }
    template <u32 Count>
    __device__ static Masks published(const Shared &shared, const u32 (&)[Count], u32 index) {
        return {shared.masks + 8 * index};
    }

    // A value of the thread that would otherwise occupy registers during the rounds.
    __device__ static u32x4 &kept(Shared &shared) { return shared.kept[threadIdx.x]; }

    // Wipes the masks of the round keys and the kept values.
    __device__ static void wipe(Shared &shared) {
        sync();
#pragma unroll
        for (u32 i = 0; i < sizeof(shared) / 16; i += 32) wipe_quad((u32x4 *)&shared + i + threadIdx.x);
    }
};

// A thread processes 32 neighbouring blocks. This shape is for messages that are so short that the tile of a warp would be
// mostly empty. Each message may have its own key, so each thread computes its masks in every round: this takes 2 to 3 more
// ALU instructions per byte.
struct LaneShape {
    static constexpr u32 threads = 1, tile_blocks = 32, step = 1, threads_of_block = 32;

    __device__ static u64 tile() { return (u64)blockIdx.x * threads_of_block + threadIdx.x; }
    __device__ static u32 lane() { return 0; }
    __device__ static void sync() {}

    struct Shared {
        u32x4 kept[threads_of_block];
    };

    template <u32 First>
    __device__ static void prepare(Shared &, const u8 *, u32) {}
    __device__ static Words keys(const Shared &, const u8 *schedule) { return {schedule}; }

    template <u32 Count>
    __device__ static void publish(Shared &, const u32 (&)[Count]) {}
    template <u32 Count>
    __device__ static ColumnWord published(const Shared &, const u32 (&words)[Count], u32 index) {
        return {words[index]};
    }

    __device__ static u32x4 &kept(Shared &shared) { return shared.kept[threadIdx.x]; }

    __device__ static void wipe(Shared &shared) {
        wipe_quad(&shared.kept[threadIdx.x]);
    }
};
