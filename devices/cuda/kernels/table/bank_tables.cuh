// T-boxes in dynamic shared memory with a copy for each of the 32 banks: lane i of a warp reads only from bank i, so that
// lookups never conflict, for any data.
//
// With COUNT = 4, there are all four T-boxes (128 KiB). An entry has 256 bytes: T0 (or T2) for the 32 banks, then T1 (or
// T3). So the lowest byte of the address is the lane's bank, and the second byte is the index. One byte permutation makes
// this address. The choice of the T-box is in the immediate offset of the load.
//
// With COUNT = 1, there is only T0 (32 KiB), for devices with little shared memory. The other T-boxes are rotations of T0.
#pragma once
#include "rounds.cuh"

namespace aes {

constexpr u32 BANKS = 32;

template <u32 COUNT, bool INVERSE_>
struct BankTables {
    static_assert(COUNT == 4 || COUNT == 1, "see above");
    static constexpr bool INVERSE = INVERSE_;
    static constexpr u32 BYTES = COUNT * 256 * BANKS * 4;

    const u8 *shared;
    u32 bank;  // of this lane, in bytes

    __device__ static constexpr u32 offset(u32 row) { return row / 2 * 65536 + row % 2 * 128; }

    // All threads of the block fill the tables from a T0.
    __device__ static BankTables load(u8 *shared, const Words &t0) {
        u32 lane = threadIdx.x % BANKS, warp = threadIdx.x / BANKS, warps = blockDim.x / BANKS;
        for (u32 entry = warp; entry < 256; entry += warps) {
            u32 word = t0.of[entry];
            u32 *copies = reinterpret_cast<u32 *>(shared + entry * (COUNT == 4 ? 256 : 128) + lane * 4);
            copies[0] = word;
            if (COUNT == 1) continue;
            copies[offset(1) / 4] = rotate_right(word, 24);
            copies[offset(2) / 4] = rotate_right(word, 16);
            copies[offset(3) / 4] = rotate_right(word, 8);
        }
        __syncthreads();
        return BankTables{shared, lane * 4};
    }

    template <u32 Row, u32 Byte>
    __device__ __forceinline__ u32 get(u32 word) const {
        if (COUNT == 4) {
            // Digits 4 and 5 select bytes 0 and 1 of `bank`: its value, and zero.
            u32 address = permute<0x5504 | Byte << 4>(word, bank);
            return *reinterpret_cast<const u32 *>(shared + address + offset(Row));
        }
        // Moves the byte to bits 7 to 14. The multiplier performs the left shift.
        u32 shifted = Byte == 0 ? shift_left<7>(word) : word >> (Byte == 0 ? 0 : 8 * Byte - 7);
        u32 address = lop3<0xF8>(bank, shifted, 0x7F80);
        u32 entry = *reinterpret_cast<const u32 *>(shared + address);
        constexpr u32 ROTATED = Row == 0 ? 0x3210 : Row == 1 ? 0x2103 : Row == 2 ? 0x1032 : 0x0321;
        return Row == 0 ? entry : permute<ROTATED>(entry, entry);
    }
};

}  // namespace aes
