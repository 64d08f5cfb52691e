// The thesis's kernel for the GeForce 8800: the S-box is in global memory, and MixColumns is computed on four bytes at
// once. The constants of the thesis are parameters of the launch: NUM_BLOCKS is the number of thread blocks, NUM_THREADS is
// the number of threads of a thread block, and ROUNDS_IN_THREAD, the number of 16-byte blocks that a thread processes one
// after the other, is `option`. The thesis used 360 x 512 x 10 and 240 x 256 x 10.
//
// A thread block processes a tile of threads * option * 16 bytes. Each thread processes a contiguous piece of the tile, as
// in the thesis's address formula, so neighbouring threads read memory 16 * option bytes apart.
#include "../table/tables.cuh"
#include "work.cuh"

namespace {

using namespace papers;

__device__ const Bytes SBOX = sbox();

__device__ inline u32 looked_up(u32 byte) {
    TRACE(lookup, &SBOX.of[byte], 1);
    return SBOX.of[byte];
}

__device__ inline u32 substituted(u32 a, u32 b, u32 c, u32 d) {
    return looked_up(a & 0xFF) | looked_up(b >> 8 & 0xFF) << 8 | looked_up(c >> 16 & 0xFF) << 16 | looked_up(d >> 24) << 24;
}

// FIPS 197, 5.1.3: 2 a + 3 b + c + d = 2 (a + b) + b + c + d. All four bytes are shifted and reduced at once.
__device__ inline u32 mixed(u32 a) {
    u32 b = rotate_right(a, 8), sum = a ^ b;
    u32 doubled = (sum << 1 & 0xFEFEFEFE) ^ (sum >> 7 & 0x01010101) * 0x1B;
    return doubled ^ b ^ rotate_right(a, 16) ^ rotate_right(a, 24);
}

template <u32 BITS, Pass PASS>
__device__ __forceinline__ void global_sbox(const Launch &launch) {
    for (u64 index = blockIdx.x; index < launch.tiles; index += gridDim.x) {
        Tile tile = tile_at(launch, index, blockDim.x * launch.option * 16);
        const u32 *keys = keys_of<BITS, false>(launch, tile);
        u32 first = threadIdx.x * launch.option;
        for (u32 block = first; block < first + launch.option && block < tile.blocks; block++) {
            Input input = input_of<PASS>(tile, block);
            u32 s[4] = {input.block.x ^ keys[0], input.block.y ^ keys[1], input.block.z ^ keys[2], input.block.w ^ keys[3]};
            for (u32 round = 1; round <= rounds(BITS); round++) {
                u32 t[4];
#pragma unroll
                for (u32 c = 0; c < 4; c++) {
                    t[c] = substituted(s[c], s[(c + 1) % 4], s[(c + 2) % 4], s[(c + 3) % 4]);
                    if (round < rounds(BITS)) t[c] = mixed(t[c]);
                }
#pragma unroll
                for (u32 c = 0; c < 4; c++) s[c] = t[c] ^ keys[4 * round + c];
            }
            TRACE(store, tile.to + 16 * block, 16);
            tile.store(block, u32x4{s[0], s[1], s[2], s[3]} ^ input.mask);
        }
    }
}

}  // namespace

KERNEL_BOUNDS(global_sbox_ecb_encrypt_128, 512, 0, (Launch launch)) { global_sbox<128, Pass::ecb>(launch); }
KERNEL_BOUNDS(global_sbox_ecb_encrypt_192, 512, 0, (Launch launch)) { global_sbox<192, Pass::ecb>(launch); }
KERNEL_BOUNDS(global_sbox_ecb_encrypt_256, 512, 0, (Launch launch)) { global_sbox<256, Pass::ecb>(launch); }
KERNEL_BOUNDS(global_sbox_ctr_128, 512, 0, (Launch launch)) { global_sbox<128, Pass::ctr>(launch); }
KERNEL_BOUNDS(global_sbox_ctr_192, 512, 0, (Launch launch)) { global_sbox<192, Pass::ctr>(launch); }
KERNEL_BOUNDS(global_sbox_ctr_256, 512, 0, (Launch launch)) { global_sbox<256, Pass::ctr>(launch); }
