// The first `count` bytes of a block, followed by zeros.
fn first_bytes(block: vec4<u32>, count: u32) -> vec4<u32> {
    let here = vec4<u32>(clamp(vec4(i32(count)) - vec4(0, 4, 8, 12), vec4(0), vec4(4)));
    // WGSL cannot shift a word by 32 bits, so whole words have a separate mask.
    return block & select((vec4(1u) << (vec4(8u) * here)) - vec4(1u), vec4(0xffffffffu), here == vec4(4u));
}
