// Computes the first offset of each message, and the block whose encryption is the pad of its partial block.
//
// A tile is a message:
//
// - `at` is the place of its encrypted nonce block (Ktop), which the first offset replaces,
// - `blocks` is the number of bits by which Ktop is shifted, which is public and below 64,
// - `extra` is the place of the pad,
// - `state` has the number of whole blocks in two words, and then the number of bytes of the partial block.

// The upper word of two words that are shifted to the left by `count` bits, which is below 32.
fn upper_word(high: u32, low: u32, count: u32) -> u32 { return (high << count) | ((low >> 1u) >> (31u - count)); }

// 128 bits of Ktop || (Ktop[1..64] xor Ktop[9..72]), starting with bit `bottom`.
fn first_offset(ktop: vec4<u32>, bottom: u32) -> vec4<u32> {
    let k = number_of(ktop).wzyx;
    let e = k.x ^ upper_word(k.x, k.y, 8u);
    let f = k.y ^ upper_word(k.y, k.z, 8u);
    var a = k;
    var next = e;
    if bottom >= 32u {
        a = vec4(k.yzw, e);
        next = f;
    }
    let count = bottom % 32u;
    return swap_bytes(vec4(upper_word(a.x, a.y, count), upper_word(a.y, a.z, count), upper_word(a.z, a.w, count),
                           upper_word(a.w, next, count)));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let first = first_offset(data[tile.at], tile.blocks);
    data[tile.at] = first;
    if tile.state.z == 0u { return; }
    let masks = masks_of(tile.key);
    data[tile.extra] = offset_of(masks, first, tile.state.xy) ^ data[masks];
}
