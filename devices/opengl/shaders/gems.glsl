// AES (FIPS 197) on one block: four columns, each a word whose low byte is row 0. There are two tables of 256 words: the
// S-box, and the contribution of a byte in row 0 to its column in MixColumns. The inverse cipher uses the inverses of both.
// The design is that of GPU Gems 3, chapter 36.

uniform int rounds;
uniform uvec4 round_keys[15];

#ifdef UNIFORMS
// Each vector has four entries.
uniform uvec4 sbox_table[64];
uniform uvec4 mix_table[64];
uint entry_of_sbox(uint i) { return sbox_table[i >> 2u][i & 3u]; }
uint entry_of_mix(uint i) { return mix_table[i >> 2u][i & 3u]; }
#else
#ifdef BUFFERS
#define TABLE highp usamplerBuffer
#define ENTRY(T, I) texelFetch(T, int(I)).x
#else
#define TABLE highp usampler2D
#define ENTRY(T, I) texelFetch(T, ivec2(int(I), 0), 0).x
#endif
uniform TABLE sbox_table;
uniform TABLE mix_table;
uint entry_of_sbox(uint i) { return ENTRY(sbox_table, i); }
uint entry_of_mix(uint i) { return ENTRY(mix_table, i); }
#endif

// SubBytes of the bytes of a column. Each byte comes from the column from which ShiftRows takes it.
uint substituted(uint row0, uint row1, uint row2, uint row3) {
    return entry_of_sbox(row0 & 255u) | (entry_of_sbox((row1 >> 8u) & 255u) << 8u)
        | (entry_of_sbox((row2 >> 16u) & 255u) << 16u) | (entry_of_sbox(row3 >> 24u) << 24u);
}

uvec4 sub_bytes_and_shift_rows(uvec4 s) {
#if DECRYPTS
    // InvShiftRows: row r is taken from r columns before.
    return uvec4(substituted(s.x, s.w, s.z, s.y), substituted(s.y, s.x, s.w, s.z),
                 substituted(s.z, s.y, s.x, s.w), substituted(s.w, s.z, s.y, s.x));
#else
    return uvec4(substituted(s.x, s.y, s.z, s.w), substituted(s.y, s.z, s.w, s.x),
                 substituted(s.z, s.w, s.x, s.y), substituted(s.w, s.x, s.y, s.z));
#endif
}

uint mixed(uint column) {
    uint a = entry_of_mix(column & 255u);
    uint b = entry_of_mix((column >> 8u) & 255u);
    uint c = entry_of_mix((column >> 16u) & 255u);
    uint d = entry_of_mix(column >> 24u);
    return a ^ ((b << 8u) | (b >> 24u)) ^ ((c << 16u) | (c >> 16u)) ^ ((d << 24u) | (d >> 8u));
}

uvec4 mix_columns(uvec4 s) { return uvec4(mixed(s.x), mixed(s.y), mixed(s.z), mixed(s.w)); }

uvec4 cipher(uvec4 block) {
#if DECRYPTS
    uvec4 s = block ^ round_keys[rounds];
    for (int round = rounds - 1; round > 0; round--) {
        s = mix_columns(sub_bytes_and_shift_rows(s) ^ round_keys[round]);
    }
    return sub_bytes_and_shift_rows(s) ^ round_keys[0];
#else
    uvec4 s = block ^ round_keys[0];
    for (int round = 1; round < rounds; round++) {
        s = mix_columns(sub_bytes_and_shift_rows(s)) ^ round_keys[round];
    }
    return sub_bytes_and_shift_rows(s) ^ round_keys[rounds];
#endif
}
