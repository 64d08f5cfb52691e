// A fragment processes two blocks of a tile: block `index` of its first half and the same block of its second half. Each
// half is in a separate texture, and the fragment has the same position in both textures.

uniform highp usampler2D first_blocks;
uniform highp usampler2D second_blocks;
// Each tile has two texels: the chaining state before the tile, and the number of its key.
uniform highp usampler2D tiles;
uniform int width;       // of all textures, in texels
uniform int tile_count;
uniform int half_shift;  // a tile has 2^half_shift fragments

layout(location = 0) out highp uvec4 first_result;
layout(location = 1) out highp uvec4 second_result;

ivec2 place(int index) { return ivec2(index % width, index / width); }

#if ONE_KEY
// Each round key has two vectors, of four bit planes each.
uniform uvec4 round_keys[2 * (ROUNDS + 1)];
State key_at(int round) { return State(round_keys[2 * round], round_keys[2 * round + 1]); }
#else
uniform highp usampler2D round_keys;
int first_key;
State key_at(int round) {
    int at = first_key + 2 * round;
    return State(texelFetch(round_keys, place(at), 0), texelFetch(round_keys, place(at + 1), 0));
}
#endif

uvec4 swap_bytes(uvec4 a) {
    uvec4 halves = (a << 16u) | (a >> 16u);
    return ((halves & 0x00ff00ffu) << 8u) | ((halves >> 8u) & 0x00ff00ffu);
}

// Adds a number to a counter block. The counter is the whole block of 128 bits, or its last 32 bits.
uvec4 counter_after(uvec4 block, uint count) {
    uvec4 n = swap_bytes(block);
    uint w = n.w + count;
#if COUNTER_BITS == 128
    uint carry = w < count ? 1u : 0u;
    uint z = n.z + carry;
    carry = z < carry ? 1u : 0u;
    uint y = n.y + carry;
    carry = y < carry ? 1u : 0u;
    n = uvec4(n.x + carry, y, z, w);
#else
    n.w = w;
#endif
    return swap_bytes(n);
}

// A tweak times x^count, for `count` below 64 (IEEE 1619, 5.2: bit 0 of the first byte is the coefficient of x^0).
uvec4 tweak_after(uvec4 a, uint count) {
    uvec4 low = count >= 32u ? uvec4(0u, a.xyz) : a;
    uvec2 high = count >= 32u ? uvec2(a.w, 0u) : uvec2(0u);
    uint left = count & 31u;
    // The shift to the right is done in two steps, because a shift by 32 is undefined.
    uint right = 31u - left;
    uvec2 top = (high << left) | ((uvec2(low.w, high.x) >> 1u) >> right);
    low = (low << left) | ((uvec4(0u, low.xyz) >> 1u) >> right);
    // x^128 = x^7 + x^2 + x + 1.
    uvec3 t = uvec3(top, 0u);
    uvec3 below = uvec3(0u, top);
    uvec3 folded = t ^ ((t << 1u) | (below >> 31u)) ^ ((t << 2u) | (below >> 30u)) ^ ((t << 7u) | (below >> 25u));
    return low ^ uvec4(folded, 0u);
}

void main() {
    int fragment = int(gl_FragCoord.y) * width + int(gl_FragCoord.x);
    int tile = min(fragment >> half_shift, tile_count - 1);
    int last = (1 << half_shift) - 1;
    int index = fragment & last;
    uvec4 state = texelFetch(tiles, place(2 * tile), 0);
#if !ONE_KEY
    first_key = int(texelFetch(tiles, place(2 * tile + 1), 0).x) * 2 * (ROUNDS + 1);
#endif
    uvec4 first = texelFetch(first_blocks, place(fragment), 0);
    uvec4 second = texelFetch(second_blocks, place(fragment), 0);
#if CHAINS
    uvec4 before_first = index == 0 ? state : texelFetch(first_blocks, place(max(fragment, 1) - 1), 0);
    uvec4 before_second = index == 0 ? texelFetch(first_blocks, place(fragment + last), 0)
                                     : texelFetch(second_blocks, place(max(fragment, 1) - 1), 0);
#endif
#if MODE == ECB
    cipher(first, second);
#elif MODE == CTR
    uvec4 first_pad = counter_after(state, uint(index));
    uvec4 second_pad = counter_after(state, uint(index + last + 1));
    cipher(first_pad, second_pad);
    first ^= first_pad;
    second ^= second_pad;
#elif MODE == CBC
    cipher(first, second);
    first ^= before_first;
    second ^= before_second;
#elif MODE == CFB
    cipher(before_first, before_second);
    first ^= before_first;
    second ^= before_second;
#elif MODE == XTS
    uvec4 first_tweak = tweak_after(state, uint(index));
    uvec4 second_tweak = tweak_after(state, uint(index + last + 1));
    first ^= first_tweak;
    second ^= second_tweak;
    cipher(first, second);
    first ^= first_tweak;
    second ^= second_tweak;
#endif
    first_result = first;
    second_result = second;
}
