// Counter blocks: `option` is 0 where only the last 32 bits count, else all ones.

// The counter `count` later, as a number.
fn advance(counter: vec4<u32>, count: u32) -> vec4<u32> {
    var sum = counter;
    sum.x += count;
    var carry = select(0u, 1u, sum.x < count) & launch.option;
    sum.y += carry;
    carry &= select(0u, 1u, sum.y == 0u);
    sum.z += carry;
    carry &= select(0u, 1u, sum.z == 0u);
    sum.w += carry;
    return sum;
}
