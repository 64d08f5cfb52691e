// The inputs of every pass kernel: segments, the tiles into which they are divided, and the key schedules.
//
// src/launch.rs has the same layout. Both files assert the sizes.
//
// A kernel *family* is an implementation of AES with entry points for its passes and key sizes (src/kernel.rs lists the
// families). A launch processes *tiles*. A tile is the data that one group of threads of the family processes at once. In
// the family `bitslice`, for example, a warp processes 32 lanes x 32 blocks = 16 KiB. Segment i has the tiles from
// first_tile[i] up to first_tile[i + 1] - 1. The last of these tiles may be short. Tiles that begin at or after the end of
// the segment are skipped. Such tiles exist if the lengths are only in device memory: then each message gets as many tiles
// as the longest message.
#pragma once
#include "platform.cuh"

// A *segment*: a piece of one message, processed with one key. Its addresses are in device memory. They need no alignment,
// but accesses to aligned data are faster.
struct alignas(16) Segment {
    u64 from;       // address of the input
    u64 to;         // address of the output: the same address or a disjoint range
    u64 bytes;      // length of the input and of the output
    u64 position;   // XTS: blocks of the data unit before this segment
    u32 key;        // index of the key schedule
    u32 tweak_key;  // XTS: index of the schedule (for encryption) of the key that encrypts tweaks
    // The two members are not in use at the same time: a table is described before its tags are compared.
    union {
        u64 is_valid;       // of a table: not 0 if the message is inside of the data and has an allowed length
        u64 refused_bytes;  // after tags were compared: the length of the message if its tag was wrong, otherwise 0
    };
    u8 state[16];   // the chaining state before the segment (IV, counter, encrypted tweak or hash; see engine/core/src/work.rs)
    u8 next[16];    // the chaining state after the segment; kernels write it if the host cannot compute it (chain, GHASH, edges)
};
static_assert(sizeof(Segment) == 80, "shared with src/launch.rs");

// The parameters of a pass kernel.
struct Launch {
    Segment *segments;
    const u64 *first_tile;  // count + 1 numbers
    const u8 *schedules;    // schedule i is at offset i * (the family's schedule size for the key size)
    u8 *scratch;            // for each tile, its edge (CBC and CFB decryption) or checksum (OCB3); chain.cu: planes of keys
    u64 tiles;              // first_tile[count]
    u32 count;              // number of segments
    u32 option;             // an option of the kernel family; 0 if it has none
};
static_assert(sizeof(Launch) == 48, "shared with src/launch.rs");

// The number of a thread in a launch. It has 64 bits, because a launch with a warp for each message has more than 2^32 threads
// from 2^27 messages on.
__device__ inline u64 thread_number() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }

// The segment of a tile: the last i with first_tile[i] <= tile. The branches depend only on public data.
__device__ inline u32 segment_of(const Launch &launch, u64 tile) {
    u32 low = 0, high = launch.count;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (launch.first_tile[middle] <= tile) low = middle; else high = middle;
    }
    return low;
}
