// AES encryption (FIPS 197) for a GPU without integers: a byte is a float from 0 to 255, and a column is a vector of four rows.
// Exclusive or, the S-box and the multiplication by x are lookups in textures of bytes, or arithmetic. A fragment processes a
// block: it reads four texels, one for each column, and writes to four targets.

uniform sampler2D column0;
uniform sampler2D column1;
uniform sampler2D column2;
uniform sampler2D column3;
// The round keys, with four texels each, in one row.
uniform sampler2D round_keys;
uniform sampler2D sbox_table;
uniform sampler2D xtime_table;
uniform sampler2D xor_table;
// The number of texels in a row of the textures of the columns and of the keys.
uniform float width;
// The number of rows of the texture of each column.
uniform vec4 heights;

layout(location = 0) out vec4 result0;
layout(location = 1) out vec4 result1;
layout(location = 2) out vec4 result2;
layout(location = 3) out vec4 result3;

struct State {
    vec4 a;
    vec4 b;
    vec4 c;
    vec4 d;
};

// The values of textures and targets are from 0 to 1.
vec4 decoded(vec4 value) { return floor(value * 255.0 + 0.5); }

// The entry of a table of 256 bytes. The coordinate is increased by half a texel, to the centre of the texel.
float entry(sampler2D table, float byte) { return texture(table, vec2((byte + 0.5) / 256.0, 0.5)).r; }
vec4 entries(sampler2D table, vec4 bytes) {
    return decoded(vec4(entry(table, bytes.x), entry(table, bytes.y), entry(table, bytes.z), entry(table, bytes.w)));
}

#ifdef XOR_ARITHMETIC
// Exclusive or: adds the weights of the bits that differ, from bit 0 up. All values are small whole numbers, which floats
// represent exactly.
vec4 sum(vec4 a, vec4 b) {
    vec4 differing = vec4(0.0);
    for (float weight = 1.0; weight < 256.0; weight *= 2.0) {
        vec4 half_a = floor(a * 0.5);
        vec4 half_b = floor(b * 0.5);
        differing += weight * abs((a - 2.0 * half_a) - (b - 2.0 * half_b));
        a = half_a;
        b = half_b;
    }
    return differing;
}
#else
float sum_entry(float a, float b) { return texture(xor_table, (vec2(a, b) + 0.5) / 256.0).r; }
vec4 sum(vec4 a, vec4 b) {
    return decoded(vec4(sum_entry(a.x, b.x), sum_entry(a.y, b.y), sum_entry(a.z, b.z), sum_entry(a.w, b.w)));
}
#endif

#ifdef XTIME_ARITHMETIC
// Bit `weight` of a byte.
vec4 bit(vec4 byte, float weight) { return mod(floor(byte / weight), 2.0); }
// Doubles the byte. If the result exceeds a byte, bits 0, 1, 3 and 4 are inverted (x^8 = x^4 + x^3 + x + 1). Before that,
// bit 0 is 0.
vec4 xtime(vec4 byte) {
    vec4 top = bit(byte, 128.0);
    vec4 twice = 2.0 * byte - 256.0 * top;
    vec4 inverted = 1.0 + 2.0 * (1.0 - 2.0 * bit(twice, 2.0)) + 8.0 * (1.0 - 2.0 * bit(twice, 8.0))
        + 16.0 * (1.0 - 2.0 * bit(twice, 16.0));
    return twice + top * inverted;
}
#else
vec4 xtime(vec4 bytes) { return entries(xtime_table, bytes); }
#endif

// Adds round key number `round`.
State add_key(State s, float round) {
    vec4 at = (round * 4.0 + vec4(0.5, 1.5, 2.5, 3.5)) / width;
    return State(sum(s.a, decoded(texture(round_keys, vec2(at.x, 0.5)))),
                 sum(s.b, decoded(texture(round_keys, vec2(at.y, 0.5)))),
                 sum(s.c, decoded(texture(round_keys, vec2(at.z, 0.5)))),
                 sum(s.d, decoded(texture(round_keys, vec2(at.w, 0.5)))));
}

State sub_bytes_and_shift_rows(State s) {
    s = State(entries(sbox_table, s.a), entries(sbox_table, s.b), entries(sbox_table, s.c), entries(sbox_table, s.d));
    return State(vec4(s.a.x, s.b.y, s.c.z, s.d.w), vec4(s.b.x, s.c.y, s.d.z, s.a.w), vec4(s.c.x, s.d.y, s.a.z, s.b.w),
                 vec4(s.d.x, s.a.y, s.b.z, s.c.w));
}

// MixColumns: the sum of twice the row, three times the next row, and the other two rows. A byte needs four sums, in the
// same order as in the engine.
vec4 mixed(vec4 column) {
    vec4 twice = xtime(column);
    return sum(sum(sum(sum(twice, column.wxyz), column.zwxy), twice.yzwx), column.yzwx);
}

void main() {
    float x = gl_FragCoord.x / width;
    vec4 y = gl_FragCoord.y / heights;
    State s = State(decoded(texture(column0, vec2(x, y.x))), decoded(texture(column1, vec2(x, y.y))),
                    decoded(texture(column2, vec2(x, y.z))), decoded(texture(column3, vec2(x, y.w))));
    s = add_key(s, 0.0);
    for (float round = 1.0; round < ROUNDS; round += 1.0) {
        s = sub_bytes_and_shift_rows(s);
        s = add_key(State(mixed(s.a), mixed(s.b), mixed(s.c), mixed(s.d)), round);
    }
    s = add_key(sub_bytes_and_shift_rows(s), ROUNDS);
    result0 = s.a / 255.0;
    result1 = s.b / 255.0;
    result2 = s.c / 255.0;
    result3 = s.d / 255.0;
}
