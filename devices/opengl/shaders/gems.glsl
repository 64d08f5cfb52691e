// AES (FIPS 197) on one block: four columns, each a word whose low byte is row 0. There are two tables of 256 words: the
// S-box, and the contribution of a byte in row 0 to its column in MixColumns. The inverse cipher uses the inverses of both.
// The design is that of GPU Gems 3, chapter 36.
//
// DIRECTION is ENCRYPTS, DECRYPTS or BY_MODE. A program for one direction has the tables of this direction only. A program
// with BY_MODE has the tables of both directions, and selects the direction by the uniform `mode`, as in the chapter.

#define ENCRYPTS 0
#define DECRYPTS 1
#define BY_MODE 2

uniform int rounds;
uniform uvec4 round_keys[15];

#ifdef UNIFORMS
// Each vector has four entries.
#define TABLE(NAME) uniform uvec4 NAME[64]
#define ENTRY(NAME, I) NAME[(I) >> 2u][(I) & 3u]
#elif defined(BUFFERS)
#define TABLE(NAME) uniform highp usamplerBuffer NAME
#define ENTRY(NAME, I) texelFetch(NAME, int(I)).x
#else
#define TABLE(NAME) uniform highp usampler2D NAME
#define ENTRY(NAME, I) texelFetch(NAME, ivec2(int(I), 0), 0).x
#endif

TABLE(sbox_table);
TABLE(mix_table);
#if DIRECTION == BY_MODE
// 0: encryption; 1: decryption.
uniform int mode;
TABLE(inverse_sbox_table);
TABLE(inverse_mix_table);
uint entry_of_sbox(uint i, const bool inverse) { return inverse ? ENTRY(inverse_sbox_table, i) : ENTRY(sbox_table, i); }
uint entry_of_mix(uint i, const bool inverse) { return inverse ? ENTRY(inverse_mix_table, i) : ENTRY(mix_table, i); }
#else
uint entry_of_sbox(uint i, const bool inverse) { return ENTRY(sbox_table, i); }
uint entry_of_mix(uint i, const bool inverse) { return ENTRY(mix_table, i); }
#endif

// SubBytes of the bytes of a column. Each byte comes from the column from which ShiftRows takes it.
uint substituted(uint row0, uint row1, uint row2, uint row3, const bool inverse) {
    return entry_of_sbox(row0 & 255u, inverse) | (entry_of_sbox((row1 >> 8u) & 255u, inverse) << 8u)
        | (entry_of_sbox((row2 >> 16u) & 255u, inverse) << 16u) | (entry_of_sbox(row3 >> 24u, inverse) << 24u);
}

uvec4 sub_bytes_and_shift_rows(uvec4 s) {
    return uvec4(substituted(s.x, s.y, s.z, s.w, false), substituted(s.y, s.z, s.w, s.x, false),
                 substituted(s.z, s.w, s.x, s.y, false), substituted(s.w, s.x, s.y, s.z, false));
}

// InvShiftRows: row r is taken from r columns before.
uvec4 inverse_sub_bytes_and_shift_rows(uvec4 s) {
    return uvec4(substituted(s.x, s.w, s.z, s.y, true), substituted(s.y, s.x, s.w, s.z, true),
                 substituted(s.z, s.y, s.x, s.w, true), substituted(s.w, s.z, s.y, s.x, true));
}

uint mixed(uint column, const bool inverse) {
    uint a = entry_of_mix(column & 255u, inverse);
    uint b = entry_of_mix((column >> 8u) & 255u, inverse);
    uint c = entry_of_mix((column >> 16u) & 255u, inverse);
    uint d = entry_of_mix(column >> 24u, inverse);
    return a ^ ((b << 8u) | (b >> 24u)) ^ ((c << 16u) | (c >> 16u)) ^ ((d << 24u) | (d >> 8u));
}

uvec4 mix_columns(uvec4 s, const bool inverse) {
    return uvec4(mixed(s.x, inverse), mixed(s.y, inverse), mixed(s.z, inverse), mixed(s.w, inverse));
}

uvec4 encrypted(uvec4 block) {
    uvec4 s = block ^ round_keys[0];
    for (int round = 1; round < rounds; round++) {
        s = mix_columns(sub_bytes_and_shift_rows(s), false) ^ round_keys[round];
    }
    return sub_bytes_and_shift_rows(s) ^ round_keys[rounds];
}

uvec4 decrypted(uvec4 block) {
    uvec4 s = block ^ round_keys[rounds];
    for (int round = rounds - 1; round > 0; round--) {
        s = mix_columns(inverse_sub_bytes_and_shift_rows(s) ^ round_keys[round], true);
    }
    return inverse_sub_bytes_and_shift_rows(s) ^ round_keys[0];
}

uvec4 cipher(uvec4 block) {
#if DIRECTION == BY_MODE
    if (mode == 1) {
        return decrypted(block);
    }
    return encrypted(block);
#elif DIRECTION == DECRYPTS
    return decrypted(block);
#else
    return encrypted(block);
#endif
}
