// GF(2^128) as in XTS (IEEE 1619, 5.2): bit i of a block, counted from the lowest bit of byte 0, is the coefficient of x^i,
// and the modulus is x^128 + x^7 + x^2 + x + 1. Branches may depend on powers of x, which are public, but not on tweaks,
// which are secret.

fn times_x(a: vec4<u32>) -> vec4<u32> {
    let carry = vec4(bitcast<u32>(bitcast<i32>(a.w) >> 31u) & 0x87u, a.xyz >> vec3(31u));
    return (a << vec4(1u)) ^ carry;
}

// Reduces the 32 bits that a shift has moved beyond x^127: multiplies them by x^128 = x^7 + x^2 + x + 1. The product has up
// to 39 bits.
fn folded(top: u32) -> vec4<u32> {
    return vec4(top ^ (top << 1u) ^ (top << 2u) ^ (top << 7u), (top >> 31u) ^ (top >> 30u) ^ (top >> 25u), 0u, 0u);
}

fn times_x32(a: vec4<u32>) -> vec4<u32> { return vec4(0u, a.xyz) ^ folded(a.w); }

// Multiplies by x^count; `count` is from 1 to 31.
fn times_below_x32(a: vec4<u32>, count: u32) -> vec4<u32> {
    let back = 32u - count;
    return ((a << vec4(count)) | vec4(0u, a.xyz >> vec3(back))) ^ folded(a.w >> back);
}

// The product of a secret and a public element, by Horner's rule from the highest bit of the public element down.
fn times_public(secret: vec4<u32>, known: vec4<u32>) -> vec4<u32> {
    if all(known == vec4(1u, 0u, 0u, 0u)) { return secret; }
    var product = vec4(0u);
    var bits = known;
    for (var i = 0u; i < 128u; i++) {
        product = times_x(product) ^ (secret & vec4(bitcast<u32>(bitcast<i32>(bits.w) >> 31u)));
        bits = (bits << vec4(1u)) | vec4(0u, bits.xyz >> vec3(31u));
    }
    return product;
}

// The tweak of the first row of an invocation; `next_tweak` computes the tweak of each further row.
fn first_tweak(tile: Tile, lane: u32) -> vec4<u32> {
    let tweak = times_public(data[tile.extra], tile.state);
    if lane == 0u { return tweak; }
    return times_below_x32(tweak, lane);
}

fn next_tweak(tweak: vec4<u32>) -> vec4<u32> {
    if LANES == 32u { return times_x32(tweak); }
    return times_x(tweak);
}
