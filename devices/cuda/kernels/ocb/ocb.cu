// OCB3 (RFC 7253) except for its whole blocks, which the kernels of bitslice/ocb.cuh encrypt. These kernels contain no AES:
// they prepare blocks for ECB, and read the encrypted blocks.
//
//   1. ECB of a block of zeros under each key, and of the nonce block of each message (its tag block).
//   2. ocb_keys makes the masks, ocb_begin the first offsets and the blocks of the region of each message.
//   3. ECB of the regions. bitslice/ocb.cuh processes the whole blocks, and stores the checksum of each tile.
//   4. ocb_sum processes the partial block, and stores in the tag block the sum whose encryption gives the tag.
//   5. ECB of the tag blocks. ocb_tags writes or compares the tags.
//
// The *region* of a message has a block for each block of associated data, and one for the partial block of the data.
#include "../common/aead.cuh"
#include "masks.cuh"

EXPORT(ocb_masks_bytes, sizeof(OcbMasks));

namespace {

struct Ocb {
    Segment *segments;
    const Extra *extras;
    const OcbMasks *masks;   // of each key
    const u64 *first_tile;   // of each segment
    const u8 *checksums;     // a block for each tile
    u8 *status;              // of each message
    u32 count;
    u32 tile_bytes;
};
static_assert(sizeof(Ocb) == 56, "shared with src/passes/ocb.rs");

// A message of OCB3.
struct Message {
    Segment &segment;
    const Extra &extra;
    const OcbMasks &masks;
    u8 *region;
    u64 aad_blocks;

    __device__ Message(const Ocb &ocb, u64 index)
        : segment(ocb.segments[index]), extra(ocb.extras[index]), masks(ocb.masks[segment.key]),
          region(global_pointer<u8>(extra.place)), aad_blocks((extra.aad_bytes + 15) / 16) {}

    // The last block of the region. ECB turns it into the pad of the partial block. ocb_sum then replaces it by the hash of
    // the associated data.
    __device__ u8 *pad() const { return region + 16 * aad_blocks; }
    __device__ u32 tail() const { return segment.bytes % 16; }
    // The offset after the last block (Offset_m or Offset_*).
    __device__ u32x4 last_offset(u32x4 first) const {
        u32x4 offset = offset_of(masks, first, segment.bytes / 16);
        return tail() ? offset ^ masks.star : offset;
    }
};

// The first offset: the bits `bottom` to `bottom + 127` of Ktop || (Ktop[1..64] xor Ktop[9..72]). `bottom` is below 64 and
// public.
__device__ inline u32x4 first_offset(u32x4 ktop, u32 bottom) {
    u32 a = swap_bytes(ktop.x), b = swap_bytes(ktop.y), c = swap_bytes(ktop.z), d = swap_bytes(ktop.w);
    u32 e = a ^ funnel_left(b, a, 8), f = b ^ funnel_left(c, b, 8);
    if (bottom >= 32) {
        a = b;
        b = c;
        c = d;
        d = e;
        e = f;
    }
    u32 shift = bottom % 32;
    return {swap_bytes(funnel_left(b, a, shift)), swap_bytes(funnel_left(c, b, shift)),
            swap_bytes(funnel_left(d, c, shift)), swap_bytes(funnel_left(e, d, shift))};
}

// The first `count` bytes of a block, followed by a byte 0x80 and by zeros. `count` is below 16.
__device__ inline u32x4 terminated(u32x4 block, u32 count) {
    u32 words[4] = {block.x, block.y, block.z, block.w};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 left = count > 4 * i ? count - 4 * i : 0;
        u32 kept = left >= 4 ? 0xFFFFFFFF : (1u << 8 * left) - 1;
        u32 mark = count / 4 == i ? 0x80u << 8 * (count % 4) : 0;
        words[i] = (words[i] & kept) | mark;
    }
    return {words[0], words[1], words[2], words[3]};
}

}  // namespace

// Makes the masks of each key from the encryption of a block of zeros under the key.
KERNEL(ocb_keys, (OcbMasks *masks, const u8 *stars, u32 count)) {
    u64 index = thread_number();
    if (index >= count) return;
    OcbMasks &own = masks[index];
    u32x4 mask = load_aligned(stars + 16 * index);
    own.star = mask;
    own.dollar = mask = doubled_block(mask);
#pragma unroll 1
    for (u32 i = 0; i < ocb_levels; i++) own.l[i] = mask = doubled_block(mask);
}

// Makes the first offset of each message, and the blocks of its region before their encryption. One warp processes one
// message.
KERNEL(ocb_begin, (Ocb ocb)) {
    u64 index = thread_number() / 32;
    u32 lane = threadIdx.x % 32;
    if (index >= ocb.count) return;
    Message message(ocb, index);
    const Extra &extra = message.extra;
    u32x4 first = first_offset(load_aligned(global_pointer<const u8>(extra.tag_block)), extra.bottom);
    if (lane == 0) {
        store_aligned(message.segment.state, first);
        store_aligned(message.pad(), message.last_offset(first));
    }
    const u8 *aad = global_pointer<const u8>(extra.aad);
    u64 whole = extra.aad_bytes / 16;
    u32x4 zero = {0, 0, 0, 0};
    for (u64 i = lane; i < message.aad_blocks; i += 32) {
        u32x4 block, offset;
        if (i < whole) {
            block = load_block(aad + 16 * i);
            offset = offset_of(message.masks, zero, i + 1);
        } else {
            u32 tail = extra.aad_bytes % 16;
            block = terminated(load_some(aad + 16 * i, tail), tail);
            offset = offset_of(message.masks, message.masks.star, whole);
        }
        store_aligned(message.region + 16 * i, block ^ offset);
    }
}

// Processes the partial block of each message, and makes the block that is encrypted to its tag and the hash of its
// associated data. One warp processes one message.
KERNEL(ocb_sum, (Ocb ocb)) {
    u64 index = thread_number() / 32;
    u32 lane = threadIdx.x % 32;
    if (index >= ocb.count) return;
    Message message(ocb, index);
    const Segment &segment = message.segment;
    u64 whole = segment.bytes / 16 * 16, tiles = (whole + ocb.tile_bytes - 1) / ocb.tile_bytes;
    const u8 *checksums = ocb.checksums + 16 * ocb.first_tile[index];
    u32x4 checksum = {0, 0, 0, 0}, hash = {0, 0, 0, 0};
    for (u64 i = lane; i < tiles; i += 32) checksum = checksum ^ load_aligned(checksums + 16 * i);
    for (u64 i = lane; i < message.aad_blocks; i += 32) hash = hash ^ load_aligned(message.region + 16 * i);
    checksum = sum_of_warp(checksum);
    hash = sum_of_warp(hash);
    if (lane != 0) return;
    if (u32 tail = message.tail()) {
        u32x4 input = load_some(global_pointer<const u8>(segment.from) + whole, tail);
        u32x4 output = input ^ load_aligned(message.pad());
        store_some(global_pointer<u8>(segment.to) + whole, output, tail);
        checksum = checksum ^ terminated(message.extra.opens ? output : input, tail);
    }
    u32x4 offset = message.last_offset(load_aligned(segment.state));
    store_aligned(global_pointer<u8>(message.extra.tag_block), checksum ^ offset ^ message.masks.dollar);
    store_aligned(message.pad(), hash);
}

// Writes or compares the tags. A tag is the sum of the encrypted tag block and the hash.
KERNEL(ocb_tags, (Ocb ocb)) {
    u64 index = thread_number();
    if (index >= ocb.count) return;
    Message message(ocb, index);
    u32x4 tag = load_aligned(global_pointer<const u8>(message.extra.tag_block)) ^ load_aligned(message.pad());
    settle(message.segment, message.extra, tag, ocb.status[index]);
}
