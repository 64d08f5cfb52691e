// Messages of an AEAD: their inputs and outputs other than the data, and how their tags are written or compared.
#pragma once
#include "block.cuh"
#include "work.cuh"

// enum Status in engine/core/src/tag.rs.
enum Status : u8 { PENDING, DONE, AUTHENTICATION_FAILED };

// Extra: the inputs and outputs of a message of an AEAD other than its data. src/passes/aead.rs has the same structure.
struct alignas(16) Extra {
    u64 aad, aad_bytes;
    u64 tag;        // address of the tag, which is written or compared
    u64 tag_block;  // address of a block. GCM: E(K, J0). OCB: first Ktop, later the sum whose encryption gives the tag
    u64 place;      // GCM: address of the ciphertext. OCB: address of the region of the message (ocb/ocb.cu)
    u32 tag_bytes;  // 0 for a message that is not processed
    u32 opens;      // not 0 if the message is opened, so that its tag is compared
    u32 bottom;     // OCB: the bits by which Ktop is shifted
    u32 padding[3];
};
static_assert(sizeof(Extra) == 64, "shared with src/passes/aead.rs");

// Writes the tag of a message that is sealed. Compares the tag of a message that is opened, in constant time. If the tag
// differs, the segment gets length 0, so that later kernels do not decrypt it, and `refused_bytes` gets the length, so
// that zero_refused zeroes the output.
__device__ inline void settle(Segment &segment, const Extra &extra, u32x4 tag, u8 &status) {
    if (extra.tag_bytes == 0) {
        status = PENDING;
        return;
    }
    u8 *place = global_pointer<u8>(extra.tag);
    if (!extra.opens) {
        store_some(place, tag, extra.tag_bytes);
        status = DONE;
        return;
    }
    u32x4 given = load_some(place, extra.tag_bytes);
    // If the tag is short, the other bytes of `tag` are not compared.
    u32 words[4] = {tag.x ^ given.x, tag.y ^ given.y, tag.z ^ given.z, tag.w ^ given.w}, difference = 0;
#pragma unroll
    for (u32 i = 0; i < 16; i++)
        difference |= words[i / 4] >> 8 * (i % 4) & (i < extra.tag_bytes ? 0xFF : 0);
    // 0 if the tags are equal, all ones if they differ. No branch is needed, because `difference` has only 8 bits.
    u32 bad = 0u - ((difference + 0xFF) >> 8);
    u64 bytes = segment.bytes, kept = (u64)bad << 32 | bad;
    status = (u8)(DONE + (bad & 1));
    segment.refused_bytes = bytes & kept;
    segment.bytes = bytes & ~kept;
}
