// Two blocks as eight bit planes: bit 8 * row + 2 * column + block of a plane. ShiftRows is omitted: SubBytes does not
// depend on the order of the bytes, and MixColumns reads each byte of a column at its actual place (fixslicing, Adomnicai
// and Peyrin, CHES 2021). After round r, r ShiftRows (modulo 4) have been omitted. The host moves the bytes of the round
// keys accordingly.

uvec4 swapped(uvec4 a, uvec4 b, uint distance, uint mask) { return ((a >> distance) ^ b) & mask; }

// Converts words 2 * column + block to bit planes: transposes the 8 by 8 bits that the words have in each byte position.
// The function is its own inverse.
State transposed(State s) {
    // The first step exchanges bit 2 of the number of a word with bit 2 of the number of a bit.
    uvec4 t = swapped(s.low, s.high, 4u, 0x0f0f0f0fu);
    State a = State(s.low ^ (t << 4u), s.high ^ t);
    // The second step exchanges bit 1 of both numbers.
    uvec4 from = uvec4(a.low.xy, a.high.xy), to = uvec4(a.low.zw, a.high.zw);
    t = swapped(from, to, 2u, 0x33333333u);
    from ^= t << 2u;
    to ^= t;
    // The third step exchanges bit 0 of both numbers.
    uvec4 even = uvec4(from.xz, to.xz), odd = uvec4(from.yw, to.yw);
    t = swapped(even, odd, 1u, 0x55555555u);
    even ^= t << 1u;
    odd ^= t;
    return State(uvec4(even.x, odd.x, even.z, odd.z), uvec4(even.y, odd.y, even.w, odd.w));
}

State sum(State a, State b) { return State(a.low ^ b.low, a.high ^ b.high); }

// The byte one row below and `J` columns to the right.
#define ROTATED(NAME, J) \
uvec4 NAME(uvec4 a) { \
    uvec4 below = (a >> 8u) | (a << 24u); \
    const uint kept = 0x01010101u * (0xffu >> (2u * J)); \
    return ((below >> (2u * J)) & kept) | ((below << (8u - 2u * J)) & ~kept); \
}
uvec4 rotated0(uvec4 a) { return (a >> 8u) | (a << 24u); }
ROTATED(rotated1, 1u)
ROTATED(rotated2, 2u)
ROTATED(rotated3, 3u)

// The byte two rows below and, if `J` is odd, two columns to the right.
uvec4 halved_even(uvec4 a) { return (a >> 16u) | (a << 16u); }
uvec4 halved_odd(uvec4 a) {
    uvec4 below = (a >> 16u) | (a << 16u);
    return ((below >> 4u) & 0x0f0f0f0fu) | ((below << 4u) & 0xf0f0f0f0u);
}

// Doubles all bytes in GF(2^8): each plane moves up by one, and the top plane is added to planes 0, 1, 3 and 4.
State doubled(State s) {
    uint top = s.high.w;
    return State(uvec4(top, s.low.x ^ top, s.low.y, s.low.z ^ top), uvec4(s.low.w ^ top, s.high.xyz));
}

// MixColumns after J omitted ShiftRows, and its inverse.
#define MIXED(NAME, INVERSE, ROTATE, HALVE) \
State NAME(State s) { \
    State below = State(ROTATE(s.low), ROTATE(s.high)); \
    State both = sum(s, below); \
    State twice = doubled(both); \
    return State(twice.low ^ below.low ^ HALVE(both.low), twice.high ^ below.high ^ HALVE(both.high)); \
} \
State INVERSE(State s) { \
    State extra = doubled(doubled(State(s.low ^ HALVE(s.low), s.high ^ HALVE(s.high)))); \
    return NAME(sum(s, extra)); \
}
MIXED(mixed0, unmixed0, rotated0, halved_even)
MIXED(mixed1, unmixed1, rotated1, halved_odd)
MIXED(mixed2, unmixed2, rotated2, halved_even)
MIXED(mixed3, unmixed3, rotated3, halved_odd)

#if DECRYPTS
#define SUBSTITUTE inverse_sbox
// In round r of the inverse cipher, -r ShiftRows have been omitted.
#define MIX1 unmixed3
#define MIX2 unmixed2
#define MIX3 unmixed1
#define MIX0 unmixed0
#else
#define SUBSTITUTE sbox
#define MIX1 mixed1
#define MIX2 mixed2
#define MIX3 mixed3
#define MIX0 mixed0
#endif

// Performs the omitted ShiftRows. Their number is ROUNDS modulo 4, which is two or zero.
uvec4 shifted(uvec4 a) {
#if ROUNDS % 4 == 2
    // Moves rows 1 and 3 by two columns.
    return (a & 0x00ff00ffu) | ((a >> 4u) & 0x0f000f00u) | ((a << 4u) & 0xf000f000u);
#else
    return a;
#endif
}

#if DECRYPTS
#define ROUND(R, MIX) s = MIX(sum(SUBSTITUTE(s), key_at(R)));
#else
#define ROUND(R, MIX) s = sum(MIX(SUBSTITUTE(s)), key_at(R));
#endif

// Encrypts or decrypts two blocks.
void cipher(inout uvec4 first, inout uvec4 second) {
    State s = transposed(State(uvec4(first.x, second.x, first.y, second.y), uvec4(first.z, second.z, first.w, second.w)));
    s = sum(s, key_at(0));
    for (int r = 1; r < ROUNDS - 3; r += 4) {
        ROUND(r, MIX1)
        ROUND(r + 1, MIX2)
        ROUND(r + 2, MIX3)
        ROUND(r + 3, MIX0)
    }
    ROUND(4 * ((ROUNDS - 1) / 4) + 1, MIX1)
#if ROUNDS % 4 == 0
    ROUND(ROUNDS - 2, MIX2)
    ROUND(ROUNDS - 1, MIX3)
#endif
    s = SUBSTITUTE(s);
    s = transposed(sum(State(shifted(s.low), shifted(s.high)), key_at(ROUNDS)));
    first = uvec4(s.low.xz, s.high.xz);
    second = uvec4(s.low.yw, s.high.yw);
}
