// 32 blocks as bit planes, and the transposition of blocks to planes and back. Block 4 * group + place is bit
// 8 * place + group of each plane. This order needs the fewest operations: one transposition of bytes, and one of
// the bits within bytes. src/shader.rs generates the other functions.

struct Group { b0: vec4<u32>, b1: vec4<u32>, b2: vec4<u32>, b3: vec4<u32>, }

// `lower` combines the bits of `a` in the mask, unmoved, with the corresponding bits of `b`, moved up. `upper` combines the
// other bits of `a`, moved down, with the other bits of `b`, unmoved.
fn lower(a: u32, b: u32, distance: u32, mask: u32) -> u32 { return (a & mask) | ((b << distance) & ~mask); }
fn upper(a: u32, b: u32, distance: u32, mask: u32) -> u32 { return ((a >> distance) & mask) | (b & ~mask); }

fn lower4(a: vec4<u32>, b: vec4<u32>, distance: u32, mask: u32) -> vec4<u32> {
    return (a & vec4(mask)) | ((b << vec4(distance)) & vec4(~mask));
}
fn upper4(a: vec4<u32>, b: vec4<u32>, distance: u32, mask: u32) -> vec4<u32> {
    return ((a >> vec4(distance)) & vec4(mask)) | (b & vec4(~mask));
}

// Transposes the 4 by 4 bytes of four words, in each component. A second call restores the words.
fn transpose_bytes(g: Group) -> Group {
    let a0 = lower4(g.b0, g.b2, 16u, 0x0000ffffu);
    let a1 = lower4(g.b1, g.b3, 16u, 0x0000ffffu);
    let a2 = upper4(g.b0, g.b2, 16u, 0x0000ffffu);
    let a3 = upper4(g.b1, g.b3, 16u, 0x0000ffffu);
    return Group(lower4(a0, a1, 8u, 0x00ff00ffu), upper4(a0, a1, 8u, 0x00ff00ffu), lower4(a2, a3, 8u, 0x00ff00ffu),
                 upper4(a2, a3, 8u, 0x00ff00ffu));
}

fn add_bytes(a: Byte, b: Byte) -> Byte {
    return Byte(a.b0 ^ b.b0, a.b1 ^ b.b1, a.b2 ^ b.b2, a.b3 ^ b.b3, a.b4 ^ b.b4, a.b5 ^ b.b5, a.b6 ^ b.b6,
                a.b7 ^ b.b7);
}

// Moves each word to the next lower place and puts `word` in the last place.
fn pushed(b: Byte, word: u32) -> Byte { return Byte(b.b1, b.b2, b.b3, b.b4, b.b5, b.b6, b.b7, word); }
