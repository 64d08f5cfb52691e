// Defines in C++17 the parts of the CUDA language that kernels/common/platform.cuh needs, for compilers that are not CUDA compilers.
//
// The code uses no exceptions and no C++ runtime library, so a program that contains it is linked dynamically only to libc.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <utility>

#include "block.h"
#include "registry.h"

#define __device__
#define __host__
#define __constant__ static __attribute__((unused))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) alignas(n)

#define threadIdx (::emulator::here->index)
#define blockIdx (::emulator::here->block->index)
#define blockDim (::emulator::here->block->size)
#define gridDim (::emulator::here->block->grid)
#define warpSize 32

// Barriers of a thread block. All its threads must wait at the same place, so each barrier passes the place of its call.
#define EMULATOR_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(EMULATOR_PLACE) { emulator::meet_block({file, line}, 0); }
inline int __syncthreads_or(int predicate, EMULATOR_PLACE) { return emulator::meet_block({file, line}, predicate) != 0; }
inline int __syncthreads_count(int predicate, EMULATOR_PLACE) {
    return static_cast<int>(emulator::meet_block({file, line}, predicate));
}
inline int __syncthreads_and(int predicate, EMULATOR_PLACE) {
    return emulator::meet_block({file, line}, predicate) == emulator::here->block->size.x;
}

inline void __syncwarp(uint32_t mask = 0xFFFFFFFF, EMULATOR_PLACE) {
    emulator::meet_warp({file, line}, emulator::Exchange::none, mask, 0, 0);
}
inline uint32_t __ballot_sync(uint32_t mask, int predicate, EMULATOR_PLACE) {
    uint64_t bits = emulator::meet_warp({file, line}, emulator::Exchange::ballot, mask, predicate != 0, 0);
    return static_cast<uint32_t>(bits);
}
inline int __any_sync(uint32_t mask, int predicate, EMULATOR_PLACE) {
    return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(uint32_t mask, int predicate, EMULATOR_PLACE) {
    return __ballot_sync(mask, !predicate, file, line) == 0;
}

namespace emulator {

template <class T>
T shuffle(Place place, uint32_t mask, T value, uint32_t source) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA shuffles words and pairs of words");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = meet_warp(place, Exchange::shuffle, mask, bits, source);
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint32_t lane() { return here->index.x % 32; }

// The lower or upper half of the product of polynomials over GF(2).
inline uint64_t carry_less_product(uint64_t a, uint64_t b, bool upper) {
    uint64_t low = 0, high = 0;
    for (int i = 0; i < 64; i++) {
        uint64_t mask = 0 - (b >> i & 1);
        low ^= (a << i) & mask;
        if (i > 0) high ^= (a >> (64 - i)) & mask;
    }
    return upper ? high : low;
}

// The instruction mma.m16n8k256 for bits, with AND and population count.
inline void add_product_of_bits(uint32_t (&sums)[4], const uint32_t (&left)[4], const uint32_t (&right)[2], EMULATOR_PLACE) {
    ProductOfBits own = {sums, left, right};
    meet_warp({file, line}, Exchange::product, 0xFFFFFFFF, reinterpret_cast<uintptr_t>(&own), 0);
}

}  // namespace emulator

// A warp may be divided into parts of `width` lanes, a power of 2. If the source is outside the part, a lane gets its own
// value.
template <class T>
T __shfl_sync(uint32_t mask, T value, int source, int width = 32, EMULATOR_PLACE) {
    uint32_t part = emulator::lane() & ~static_cast<uint32_t>(width - 1);
    return emulator::shuffle({file, line}, mask, value, part + (static_cast<uint32_t>(source) & (width - 1)));
}
template <class T>
T __shfl_xor_sync(uint32_t mask, T value, int flip, int width = 32, EMULATOR_PLACE) {
    uint32_t lane = emulator::lane(), source = lane ^ static_cast<uint32_t>(flip);
    bool outside = source / width > lane / width;
    return emulator::shuffle({file, line}, mask, value, outside ? lane : source);
}
template <class T>
T __shfl_up_sync(uint32_t mask, T value, uint32_t delta, int width = 32, EMULATOR_PLACE) {
    uint32_t lane = emulator::lane();
    return emulator::shuffle({file, line}, mask, value, lane % width < delta ? lane : lane - delta);
}
template <class T>
T __shfl_down_sync(uint32_t mask, T value, uint32_t delta, int width = 32, EMULATOR_PLACE) {
    uint32_t lane = emulator::lane();
    return emulator::shuffle({file, line}, mask, value, lane % width + delta >= static_cast<uint32_t>(width) ? lane : lane + delta);
}

// Bits and bytes.
inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector) {
    uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t nibble = selector >> 4 * i & 15;
        uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (nibble & 7)) & 0xFF;
        // The high bit of the nibble requests copies of the sign bit of the byte.
        if (nibble & 8) byte = byte & 0x80 ? 0xFF : 0;
        result |= byte << 8 * i;
    }
    return result;
}
inline uint32_t __brev(uint32_t x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0F0F0F0F) | (x & 0x0F0F0F0F) << 4;
    return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
    return static_cast<unsigned long long>(__brev(static_cast<uint32_t>(x))) << 32 | __brev(static_cast<uint32_t>(x >> 32));
}
inline int __popc(uint32_t x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<uint32_t>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline uint32_t __umulhi(uint32_t x, uint32_t y) { return static_cast<uint32_t>(static_cast<uint64_t>(x) * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
// Shift high:low as one number of 64 bits. The shift is taken modulo 32 or, in the variants ending in c (clamped), limited
// to 32.
inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t shift) {
    uint64_t both = static_cast<uint64_t>(high) << 32 | low;
    return static_cast<uint32_t>(both << (shift & 31) >> 32);
}
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
    uint64_t both = static_cast<uint64_t>(high) << 32 | low;
    return static_cast<uint32_t>(both >> (shift & 31));
}
inline uint32_t __funnelshift_lc(uint32_t low, uint32_t high, uint32_t shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

// Loads and stores with a hint for the cache. The emulator ignores the hint.
template <class T> T __ldg(const T *from) { return *from; }
template <class T> T __ldcg(const T *from) { return *from; }
template <class T> T __ldcs(const T *from) { return *from; }
template <class T> void __stcs(T *to, T value) { *to = value; }
template <class T> void __stcg(T *to, T value) { *to = value; }

// Atomic operations. All return the previous value.
template <class T> T atomicAdd(T *at, T value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
template <class T> T atomicSub(T *at, T value) { return __atomic_fetch_sub(at, value, __ATOMIC_RELAXED); }
template <class T> T atomicAnd(T *at, T value) { return __atomic_fetch_and(at, value, __ATOMIC_RELAXED); }
template <class T> T atomicOr(T *at, T value) { return __atomic_fetch_or(at, value, __ATOMIC_RELAXED); }
template <class T> T atomicXor(T *at, T value) { return __atomic_fetch_xor(at, value, __ATOMIC_RELAXED); }
template <class T> T atomicExch(T *at, T value) { return __atomic_exchange_n(at, value, __ATOMIC_RELAXED); }
template <class T> T atomicCAS(T *at, T expected, T value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
