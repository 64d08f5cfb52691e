// Round keys: the layout of a schedule in memory, key expansion, and the forms in which rounds read the keys.
#pragma once
#include "../circuit/aes.cuh"
#include "../common/block.cuh"

template <u32 Bits>
struct Size {
    static constexpr u32 key_words = Bits / 32, rounds = key_words + 6;
    // The schedule for encryption, followed by the schedule for decryption. The latter is in the order of use.
    // InvMixColumns has been applied to its round keys except the first and the last (FIPS 197, 5.3.5).
    static constexpr u32 half_bytes = 16 * (rounds + 1), schedule_bytes = 2 * half_bytes;
};

// MixColumns and its inverse on the four bytes of a word. The lowest byte is in row 0.

__device__ inline u32 double_bytes(u32 a) { return (a & 0x7F7F7F7F) << 1 ^ (a >> 7 & 0x01010101) * 0x1B; }

__device__ inline u32 mix_column(u32 a) {
    u32 next = permute<0x0321>(a, 0);
    return double_bytes(a ^ next) ^ xor3(next, permute<0x1032>(a, 0), permute<0x2103>(a, 0));
}

__device__ inline u32 inverse_mix_column(u32 a) {
    return mix_column(a ^ double_bytes(double_bytes(a ^ permute<0x1032>(a, 0))));
}

// SubBytes on a word, without table lookups. planes[i] has bit i of each byte.
__device__ inline u32 substitute_word(u32 a) {
    u32 planes[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) planes[i] = a >> i;
    sbox(planes);
    u32 result = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) result |= (planes[i] & 0x01010101) << i;
    return result;
}

// KeyExpansion (FIPS 197, 5.2) by one thread, for both schedules.
template <u32 Bits>
__device__ inline void expand(const u8 *key, u8 *schedule) {
    constexpr u32 key_words = Size<Bits>::key_words, rounds = Size<Bits>::rounds, words = 4 * (rounds + 1);
    u32 w[key_words];
#pragma unroll
    for (u32 i = 0; i < key_words; i++)
        w[i] = key[4 * i] | key[4 * i + 1] << 8 | key[4 * i + 2] << 16 | (u32)key[4 * i + 3] << 24;
    u32 round_constant = 1;
#pragma unroll 1
    for (u32 start = 0; start < words; start += key_words) {
        if (start != 0) {
            w[0] ^= substitute_word(permute<0x0321>(w[key_words - 1], 0)) ^ round_constant;
            round_constant = double_bytes(round_constant);
#pragma unroll
            for (u32 i = 1; i < key_words; i++) w[i] ^= key_words == 8 && i == 4 ? substitute_word(w[i - 1]) : w[i - 1];
        }
#pragma unroll
        for (u32 i = 0; i < key_words; i++) {
            u32 round = (start + i) / 4, column = (start + i) % 4;
            if (round > rounds) break;
            bool is_end = round == 0 || round == rounds;
            ((u32 *)schedule)[4 * round + column] = w[i];
            ((u32 *)(schedule + Size<Bits>::half_bytes))[4 * (rounds - round) + column] =
                is_end ? w[i] : inverse_mix_column(w[i]);
        }
    }
}

// The bits of round keys as masks of 32 equal bits. One load reads four masks. All threads read the same address, which
// takes one access.
struct Masks {
    const u32x4 *quads;
    __device__ Masks round(u32 round) const { return {quads + 32 * (round - 1)}; }
    __device__ Masks column(u32 column) const { return {quads + 8 * column}; }
    __device__ u32x4 quad(u32 index) const { return quads[index]; }
};

// A column of a round key. Each thread makes the masks of its column by 7 multiplications and 32 permutations.
struct ColumnWord {
    u32 word;
    __device__ u32x4 quad(u32 index) const {
        u32 bit = 4 * index;
        return {mask_of(word, bit), mask_of(word, bit + 1), mask_of(word, bit + 2), mask_of(word, bit + 3)};
    }
};

// Round keys in the form of a schedule, for threads that each have their own key.
struct Words {
    const u8 *schedule;
    struct Round {
        u32x4 words;
        __device__ ColumnWord column(u32 column) const {
            return {column == 0 ? words.x : column == 1 ? words.y : column == 2 ? words.z : words.w};
        }
    };
    __device__ Round round(u32 round) const { return {load_aligned(schedule + 16 * round)}; }
};
