// What the host hands to every pass kernel: segments, the tiles they are cut into, and the keys' schedules.
//
// The layout is shared with src/launch.rs; both sides assert sizes.
//
// A launch covers *tiles*. A tile is what one work group of the kernel family does at once (a warp of bitslice/32: 32
// lanes x 32 blocks = 16 KiB). Segment i owns the tiles first_tile[i] .. first_tile[i + 1]; the last of them may be
// short, and tiles that begin at or behind the segment's end do nothing (so that a launch may be shaped by the longest
// message when only the device knows the lengths).
#pragma once
#include "platform.cuh"

// A piece of one message. Addresses are of the device's memory and need no alignment, but aligned ones are faster.
struct alignas(16) Segment {
    u64 from;       // what is read
    u64 to;         // where results go: the same address or a disjoint range
    u64 bytes;      // length of both
    u64 position;   // XTS: blocks of the data unit before this segment
    u32 key;        // index of its schedule
    u32 tweak_key;  // XTS: index of the schedule (for encryption) of the key that encrypts tweaks
    u64 reserved;
    u8 reg[16];     // IV, counter, encrypted tweak or hash so far; see Pass in core/src/work.rs
    u8 next[16];    // written by kernels whose next register the host cannot know (chains, GHASH, edges)
};
static_assert(sizeof(Segment) == 80, "shared with src/launch.rs");

// The parameters of a pass kernel.
struct Launch {
    Segment *segments;
    const u64 *first_tile;  // count + 1 of them
    const u8 *schedules;    // schedule i at i * (the family's schedule size for the key size)
    u8 *scratch;            // 16 bytes a tile: for CBC and CFB decryption the ciphertext block before it, for OCB3 its checksum
    u64 tiles;              // first_tile[count]
    u32 count;              // of segments
    u32 option;             // of the kernel family; 0 where there is none
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
