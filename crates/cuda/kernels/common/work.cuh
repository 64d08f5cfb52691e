// The inputs of every pass kernel: segments, the tiles into which they are divided, and the key schedules.
//
// The layout is shared with src/launch.rs; both sides assert sizes.
//
// A launch covers *tiles*. A tile is the data that one work group of the kernel family processes at once (a warp of
// bitslice/32: 32 lanes x 32 blocks = 16 KiB). Segment i has the tiles first_tile[i] .. first_tile[i + 1]. The last of them
// may be short. Nothing is done for tiles that begin at or after the end of the segment. Such tiles exist if the lengths are
// in device memory only: then each message gets as many tiles as the longest one.
#pragma once
#include "platform.cuh"

// A piece of one message. Addresses are of the device's memory and need no alignment, but aligned ones are faster.
struct alignas(16) Segment {
    u64 from;       // address of the input
    u64 to;         // address of the output: the same address or a disjoint range
    u64 bytes;      // length of the input and of the output
    u64 position;   // XTS: blocks of the data unit before this segment
    u32 key;        // index of the key schedule
    u32 tweak_key;  // XTS: index of the schedule (for encryption) of the key that encrypts tweaks
    u64 reserved;
    u8 reg[16];     // IV, counter, encrypted tweak or hash so far; see Pass in core/src/work.rs
    u8 next[16];    // the next register, if the host cannot compute it; written by kernels (chains, GHASH, edges)
};
static_assert(sizeof(Segment) == 80, "shared with src/launch.rs");

// The parameters of a pass kernel.
struct Launch {
    Segment *segments;
    const u64 *first_tile;  // count + 1 numbers
    const u8 *schedules;    // schedule i at i * (the family's schedule size for the key size)
    u8 *scratch;            // 16 bytes a tile: for CBC and CFB decryption the ciphertext block before it, for OCB3 its checksum
    u64 tiles;              // first_tile[count]
    u32 count;              // number of segments
    u32 option;             // an option of the kernel family; 0 if it has none
};
static_assert(sizeof(Launch) == 48, "shared with src/launch.rs");

// The number of a thread in a launch. It has 64 bits, because a launch with a warp for each message has more than 2^32 threads
// from 2^27 messages on.
__device__ inline u64 thread_number() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }

// The segment that owns a tile: the last i with first_tile[i] <= tile. Public data: it may branch.
__device__ inline u32 segment_of(const Launch &launch, u64 tile) {
    u32 low = 0, high = launch.count;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (launch.first_tile[middle] <= tile) low = middle; else high = middle;
    }
    return low;
}
