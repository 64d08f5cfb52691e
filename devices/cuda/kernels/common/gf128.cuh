// GF(2^128) of XTS: bit i of a block, counted from the lowest bit of byte 0, is the coefficient of x^i, modulo x^128 + x^7
// + x^2 + x + 1 (IEEE 1619, 5.2). Tweaks are secret. Powers of x are public, and branches depend only on them.
#pragma once
#include "block.cuh"

// `element` times x.
__device__ inline u32x4 times_x(u32x4 element) {
    u32 carry = mask_of_bit(element.w, 31) & 0x87;
    return u32x4{element.x << 1 ^ carry, funnel_right(element.x, element.y, 31), funnel_right(element.y, element.z, 31),
                 funnel_right(element.z, element.w, 31)};
}

// Reduce 32 bits that are above x^127: their product with x^7 + x^2 + x + 1 has up to 39 bits. folded_low returns the lower
// 32 bits of the product, and folded_high the others.
__device__ inline u32 folded_low(u32 top) {
    return xor3(top, shift_left<1>(top), shift_left<2>(top)) ^ shift_left<7>(top);
}
__device__ inline u32 folded_high(u32 top) { return xor3(top >> 31, top >> 30, top >> 25); }

// `element` times x^32.
__device__ inline u32x4 times_x32(u32x4 element) {
    return {folded_low(element.w), element.x ^ folded_high(element.w), element.y, element.z};
}

// `element` times x^count, for counts below 32.
__device__ inline u32x4 times_below_x32(u32x4 element, u32 count) {
    u32 top = funnel_left(element.w, 0, count);
    return {element.x << count ^ folded_low(top), funnel_left(element.x, element.y, count) ^ folded_high(top),
            funnel_left(element.y, element.z, count), funnel_left(element.z, element.w, count)};
}

// The product of a secret and a public element, by Horner's rule from the highest bit down. Branches depend only on
// `known`.
__device__ inline u32x4 times_public(u32x4 secret, u32x4 known) {
    u32x4 product = {0, 0, 0, 0};
#pragma unroll 1
    for (u32 i = 0; i < 128; i++) {
        product = times_x(product);
        if (known.w >> 31) product = product ^ secret;
        known = {known.x << 1, funnel_right(known.x, known.y, 31), funnel_right(known.y, known.z, 31),
                 funnel_right(known.z, known.w, 31)};
    }
    return product;
}

// The 32 bits of a, each followed by a zero bit.
__device__ inline u64 spread(u32 a) {
    u64 b = a;
    b = (b | b << 16) & 0x0000FFFF0000FFFF;
    b = (b | b << 8) & 0x00FF00FF00FF00FF;
    b = (b | b << 4) & 0x0F0F0F0F0F0F0F0F;
    b = (b | b << 2) & 0x3333333333333333;
    return (b | b << 1) & 0x5555555555555555;
}

// The square of an element. Squaring inserts a zero after each bit. The bits above x^127 are then reduced.
__device__ inline u32x4 square(u32x4 a) {
    u64 x = spread(a.x), y = spread(a.y), z = spread(a.z), w = spread(a.w);
    // Reduces w x^192 + z x^128. w is reduced first, because its upper bits are added to z.
    z ^= w >> 63 ^ w >> 62 ^ w >> 57;
    y ^= w ^ w << 1 ^ w << 2 ^ w << 7;
    y ^= z >> 63 ^ z >> 62 ^ z >> 57;
    x ^= z ^ z << 1 ^ z << 2 ^ z << 7;
    return {(u32)x, (u32)(x >> 32), (u32)y, (u32)(y >> 32)};
}

// `element` times x^exponent. The exponent is public.
__device__ inline u32x4 times_power(u32x4 element, u64 exponent) {
    if (exponent >= 1024) {
        // Computes the power of x first, by squaring and multiplication by x.
        u32x4 power = {1, 0, 0, 0};
        bool begun = false;
#pragma unroll 1
        for (u32 i = 64; i-- > 0;) {
            if (begun) power = square(power);
            if (exponent >> i & 1) {
                power = times_x(power);
                begun = true;
            }
        }
        return times_public(element, power);
    }
#pragma unroll 1
    for (u32 i = (u32)exponent / 32; i > 0; i--) element = times_x32(element);
    return times_below_x32(element, (u32)exponent % 32);
}
