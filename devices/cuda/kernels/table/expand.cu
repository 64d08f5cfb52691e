// Key expansion by table for all families of table/ and papers/: one thread expands one key. The kernels are not constant
// time.
#include "../common/block.cuh"
#include "tables.cuh"

namespace {

using namespace aes;

__constant__ const Bytes SBOX = sbox();
__constant__ const RoundConstants CONSTANTS = round_constants();

// The S-box of each byte.
__device__ inline u32 substituted(u32 word) {
    return SBOX.of[word & 0xFF] | SBOX.of[word >> 8 & 0xFF] << 8 | SBOX.of[word >> 16 & 0xFF] << 16 |
           static_cast<u32>(SBOX.of[word >> 24]) << 24;
}

// Multiplies each of the four bytes by x.
__device__ inline u32 doubled(u32 word) { return (word << 1 & 0xFEFEFEFE) ^ (word >> 7 & 0x01010101) * 0x1B; }

// FIPS 197, 5.3.3: 14, 11, 13, 9 = 2 (2 (2 + 1) + 1) + ..., by Horner's rule on rotated columns.
__device__ inline u32 inverse_mixed(u32 word) {
    u32 two = doubled(word), four = doubled(two), eight = doubled(four);
    u32 nine = word ^ eight;
    return (two ^ four ^ eight) ^ rotate_right(two ^ nine, 8) ^ rotate_right(four ^ nine, 16) ^ rotate_right(nine, 24);
}

template <u32 BITS>
__device__ inline void expand(const u8 *keys, u8 *schedules, u32 count) {
    constexpr u32 KEY_WORDS = BITS / 32, WORDS = schedule_words(BITS);
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    const u8 *key = keys + static_cast<u64>(index) * (BITS / 8);
    // Schedules are aligned: their size is a multiple of 16.
    u32 *words = reinterpret_cast<u32 *>(schedules + static_cast<u64>(index) * schedule_bytes(BITS));
    for (u32 i = 0; i < KEY_WORDS; i++)
        words[i] = key[4 * i] | key[4 * i + 1] << 8 | key[4 * i + 2] << 16 | static_cast<u32>(key[4 * i + 3]) << 24;
    // FIPS 197, 5.2.
    for (u32 i = KEY_WORDS; i < WORDS; i++) {
        u32 word = words[i - 1];
        if (i % KEY_WORDS == 0) word = substituted(rotate_right(word, 8)) ^ CONSTANTS.of[i / KEY_WORDS - 1];
        else if (KEY_WORDS > 6 && i % KEY_WORDS == 4) word = substituted(word);
        words[i] = words[i - KEY_WORDS] ^ word;
    }
    for (u32 i = 0; i < WORDS; i++) {
        bool outermost = i < 4 || i >= WORDS - 4;
        u32 word = words[WORDS - 4 - i / 4 * 4 + i % 4];
        words[WORDS + i] = outermost ? word : inverse_mixed(word);
    }
}

}  // namespace

KERNEL(table_expand_128, (const u8 *keys, u8 *schedules, u32 count)) { expand<128>(keys, schedules, count); }
KERNEL(table_expand_192, (const u8 *keys, u8 *schedules, u32 count)) { expand<192>(keys, schedules, count); }
KERNEL(table_expand_256, (const u8 *keys, u8 *schedules, u32 count)) { expand<256>(keys, schedules, count); }

EXPORT(table_schedule_bytes_128, schedule_bytes(128));
EXPORT(table_schedule_bytes_192, schedule_bytes(192));
EXPORT(table_schedule_bytes_256, schedule_bytes(256));
