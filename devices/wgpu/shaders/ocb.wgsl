// The masks and offsets of OCB3 (RFC 7253, section 4.1).
//
// The masks of key k start at launch.scratch + k * (launch.steps + 2): L_*, L_$, then launch.steps masks L_0, L_1, ... The
// numbers of blocks are public and have 64 bits, the lower word first. Masks and offsets are secret.

fn masks_of(key: u32) -> u32 { return launch.scratch + key * (launch.steps + 2u); }

fn plus(number: vec2<u32>, count: u32) -> vec2<u32> {
    let low = number.x + count;
    return vec2(low, number.y + select(0u, 1u, low < count));
}

// The number of zeros below the lowest bit that is set.
fn trailing_zeros(number: vec2<u32>) -> u32 {
    return select(countTrailingZeros(number.x), 32u + countTrailingZeros(number.y), number.x == 0u);
}

// The offset of block `number`, counted from 1: the offset before the first block plus L_i for each bit i that is set in the
// Gray code of the number. The Gray codes of n - 1 and n differ in bit ntz(n).
fn offset_of(masks: u32, first: vec4<u32>, number: vec2<u32>) -> vec4<u32> {
    let gray = number ^ vec2((number.x >> 1u) | (number.y << 31u), number.y >> 1u);
    var offset = first;
    for (var i = 0u; i < launch.steps; i++) {
        let bit = (select(gray.x, gray.y, i >= 32u) >> (i % 32u)) & 1u;
        offset ^= data[masks + 2u + i] & vec4(0u - bit);
    }
    return offset;
}
