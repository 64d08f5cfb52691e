// Kernels that all families share: edges of tiles, chaining states, messages that arrays in device memory describe, gathered
// parts of memory, and the zeroing of messages with wrong tags.
#include "common/aead.cuh"
#include "common/counter.cuh"

namespace {

__device__ inline void copy_block(u8 *to, const u8 *from) { store_block(to, load_block(from)); }

// Reads an integer of an array, which may have any alignment.
__device__ inline u64 integer(const u8 *array, u64 index) {
    u64 value = 0;
    for (u32 i = 0; i < 8; i++) value |= static_cast<u64>(array[8 * index + i]) << 8 * i;
    return value;
}

// Messages that arrays in device memory describe. src/table.rs has the same structure.
struct Arrays {
    const u8 *states, *offsets, *lengths;
    u64 from, to, room;   // addresses of the data, and their length in bytes
    u64 longest;          // the launch has tiles for messages of at most this length
    u64 tiles;            // number of tiles of each message
    Segment *segments;
    u64 *first_tile;
    u8 *tweaks;           // XTS: address for a copy of the states; otherwise null
    Segment *tweak_segments;  // if each message has its own key: a segment for each tweak; otherwise null
    u64 *tweak_first_tile;
    u64 tweak_tiles;      // number of tiles of each tweak segment
    u32 count;
    u32 keys_each;        // keys for each message: 2 for XTS, otherwise 1
    u32 shared;           // not 0 if all messages have the same key
    u32 unit;             // a length must be a multiple of this
};
static_assert(sizeof(Arrays) == 128, "shared with src/table.rs");

// How a pass changes the chaining state. enum ChainingState in engine/core/src/chaining.rs has the same values. KEEP:
// the state does not change. COUNTER, COUNTER32 and COUNTER_LITTLE32: the state is a counter. LAST_CIPHERTEXT: the state is the last
// whole block of the input. DEVICE_COMPUTED: the kernel of the pass computes the state and stores it in Segment::next.
enum ChainingState : u32 { KEEP, COUNTER, COUNTER32, LAST_CIPHERTEXT, DEVICE_COMPUTED, COUNTER_LITTLE32 };

}  // namespace

// The *edge* of a tile is the ciphertext block before it; for the first tile of a segment, it is the chaining state. This
// kernel copies the edges of tiles of launch.option bytes, because decryption in place overwrites the block when the
// previous tile is processed. It also copies the last whole block of each segment to Segment::next.
KERNEL(edges, (Launch launch)) {
    u64 tile = thread_number();
    if (tile >= launch.tiles) return;
    u32 owner = segment_of(launch, tile);
    Segment &segment = launch.segments[owner];
    u64 offset = (tile - launch.first_tile[owner]) * launch.option;
    const u8 *from = reinterpret_cast<const u8 *>(segment.from);
    if (offset == 0) {
        copy_block(launch.scratch + 16 * tile, segment.state);
        copy_block(segment.next, segment.bytes < 16 ? segment.state : from + (segment.bytes / 16 - 1) * 16);
    } else if (offset < segment.bytes) {
        copy_block(launch.scratch + 16 * tile, from + offset - 16);
    }
}

// Sets the chaining state of segment i to block i.
KERNEL(set_states, (Segment *segments, const u8 *states, u32 count)) {
    u64 index = thread_number();
    if (index < count) copy_block(segments[index].state, states + 16 * index);
}

// Makes the segments of messages that arrays describe. A message becomes empty if it is outside of the data or if its
// length is not allowed.
KERNEL(table_segments, (Arrays table)) {
    u64 index = thread_number();
    if (index > table.count) return;
    table.first_tile[index] = index * table.tiles;
    if (table.tweak_segments) table.tweak_first_tile[index] = index * table.tweak_tiles;
    if (index == table.count) return;
    u64 offset = integer(table.offsets, index), bytes = integer(table.lengths, index);
    bool good = bytes <= table.longest && bytes % table.unit == 0 && bytes <= table.room && offset <= table.room - bytes;
    u32 key = table.shared ? 0 : static_cast<u32>(index) * table.keys_each;
    Segment segment = {};
    segment.from = good ? table.from + offset : table.from;
    segment.to = good ? table.to + offset : table.to;
    segment.bytes = good ? bytes : 0;
    segment.key = key;
    segment.tweak_key = key + table.keys_each - 1;
    segment.is_valid = good;
    table.segments[index] = segment;
    copy_block(table.segments[index].state, table.states + 16 * index);
    if (!table.tweaks) return;
    copy_block(table.tweaks + 16 * index, table.states + 16 * index);
    if (!table.tweak_segments) return;
    Segment tweak = {};
    tweak.from = tweak.to = reinterpret_cast<u64>(table.tweaks) + 16 * index;
    tweak.bytes = 16;
    tweak.key = segment.tweak_key;
    table.tweak_segments[index] = tweak;
}

// After a pass, writes the chaining states after the messages, and the status of each message. The status of a message that
// was not processed is PENDING.
KERNEL(table_results, (const Segment *segments, u8 *states, u8 *status, u32 count, u32 rule)) {
    u64 index = thread_number();
    if (index >= count) return;
    const Segment &segment = segments[index];
    status[index] = segment.is_valid ? DONE : PENDING;
    if (!segment.is_valid || segment.bytes == 0) return;
    u64 blocks = (segment.bytes + 15) / 16;
    u8 *place = states + 16 * index;
    if (rule == COUNTER) store_block(place, block_of(advance<false>(counter_of(load_block(segment.state)), blocks)));
    if (rule == COUNTER32) store_block(place, block_of(advance<true>(counter_of(load_block(segment.state)), blocks)));
    if (rule == COUNTER_LITTLE32) store_block(place, advance_little32(load_block(segment.state), blocks));
    if (rule == LAST_CIPHERTEXT || rule == DEVICE_COMPUTED) copy_block(place, segment.next);
}

// Copies parts of device memory to one buffer, from which the host reads them: part i has bytes[i] bytes at the address
// from[i] and is copied to the address to + places[i]. One warp copies one part.
KERNEL(gather, (const u64 *from, const u64 *bytes, const u64 *places, u8 *to, u32 count)) {
    u64 index = thread_number() / 32;
    if (index >= count) return;
    const u8 *part = reinterpret_cast<const u8 *>(from[index]);
    u8 *place = to + places[index];
    for (u64 at = 16 * (threadIdx.x % 32); at < bytes[index]; at += 16 * 32) {
        u64 rest = bytes[index] - at;
        if (rest >= 16) copy_block(place + at, part + at);
        else
            for (u64 i = 0; i < rest; i++) place[at + i] = part[at + i];
    }
}

// Zeroes the output of opened messages whose tags differ: settle() of common/aead.cuh has stored their lengths in
// Segment::refused_bytes. One thread block zeroes one tile of the data.
KERNEL(zero_refused, (const Segment *segments, const u64 *first_tile, u64 tiles, u64 tile_bytes, u32 count)) {
    u64 tile = blockIdx.x;
    if (tile >= tiles) return;
    Launch order = {};
    order.first_tile = first_tile;
    order.count = count;
    u32 owner = segment_of(order, tile);
    const Segment &segment = segments[owner];
    u64 start = tile_bytes * (tile - first_tile[owner]);
    u8 *to = global_pointer<u8>(segment.to);
    for (u64 at = start + threadIdx.x; at < start + tile_bytes && at < segment.refused_bytes; at += blockDim.x) to[at] = 0;
}
