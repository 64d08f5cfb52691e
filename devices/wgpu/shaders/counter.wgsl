// Counter blocks. `option` is 0 if only the last 32 bits of the counter are incremented, and all ones if the whole
// counter is incremented.

// The counter after `count` increments. Both counters are numbers as `number_of` returns them.
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
