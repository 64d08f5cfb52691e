// GHASH (SP 800-38D, 6.4) and POLYVAL (RFC 8452, 3) in constant time, by integer multiplication of 32 bits. `launch.step` is 1
// for POLYVAL, otherwise 0.
//
// The hash of n blocks is the sum of the products of block i and H^(n + 1 - i). A message is divided into runs of RUN
// blocks, counted from the end, so that only the first run may be shorter. On level 0, Horner's rule hashes each run to one
// block. On each further level, Horner's rule combines the results of the previous level in the same way, with a higher
// power of H. The last level has one run.
//
// For GHASH, a block is converted to a big-endian number, whose bits are the coefficients of the polynomial in reverse. A
// product of two such numbers lacks one factor x, so the hash key is multiplied by x beforehand. Reduction works from the low
// end (RFC 8452, appendix A). For POLYVAL, a block is a little-endian number, and the hash key is used as it is.

// Maximum number of levels. From `launch.scratch` on, `data` has for each key one power of H for each level, as numbers.
const LEVELS = 4u;

// Converts a block to a number, and a number to a block.
fn to_number(block: vec4<u32>) -> vec4<u32> {
    if launch.step == 1u { return block; }
    return number_of(block);
}

fn to_block(number: vec4<u32>) -> vec4<u32> {
    if launch.step == 1u { return number; }
    return swap_bytes(number.wzyx);
}

// A second factor for Karatsuba's rule: its four words and five sums of words. In `p`, each of them is split into four
// parts, and each part has every fourth bit. `q` has the same after the bits of each word have been reversed. In the lower
// half of a product of two parts, at most 8 ones are added at each place, and their sum fits in 4 bits, so no carry reaches
// the next place of the same part.
struct Factor { p: array<vec4<u32>, 9>, q: array<vec4<u32>, 9>, }

const EVERY_FOURTH = vec4(0x11111111u, 0x22222222u, 0x44444444u, 0x88888888u);

fn parts(a: u32) -> vec4<u32> { return vec4(a) & EVERY_FOURTH; }

fn factor_of(w: vec4<u32>) -> Factor {
    let sums = array<u32, 9>(w.x, w.y, w.x ^ w.y, w.z, w.w, w.z ^ w.w, w.x ^ w.z, w.y ^ w.w, w.x ^ w.y ^ w.z ^ w.w);
    let r = array<u32, 9>(reverseBits(sums[0]), reverseBits(sums[1]), reverseBits(sums[2]), reverseBits(sums[3]),
                          reverseBits(sums[4]), reverseBits(sums[5]), reverseBits(sums[6]), reverseBits(sums[7]),
                          reverseBits(sums[8]));
    return Factor(
        array<vec4<u32>, 9>(parts(sums[0]), parts(sums[1]), parts(sums[2]), parts(sums[3]), parts(sums[4]),
                            parts(sums[5]), parts(sums[6]), parts(sums[7]), parts(sums[8])),
        array<vec4<u32>, 9>(parts(r[0]), parts(r[1]), parts(r[2]), parts(r[3]), parts(r[4]), parts(r[5]), parts(r[6]),
                            parts(r[7]), parts(r[8])));
}

// The lower half of the carry-less product of a word and a word in parts.
fn low_product(a: u32, b: vec4<u32>) -> u32 {
    let p = parts(a);
    let sum = (p.x * b) ^ (p.y * b.wxyz) ^ (p.z * b.zwxy) ^ (p.w * b.yzwx);
    let kept = sum & EVERY_FOURTH;
    return kept.x | kept.y | kept.z | kept.w;
}

// The whole product: the lower half in x, the upper half in y. The upper half is computed as the lower half of the product
// of the reversed words.
fn product(a: u32, p: vec4<u32>, q: vec4<u32>) -> vec2<u32> {
    return vec2(low_product(a, p), reverseBits(low_product(reverseBits(a), q)) >> 1u);
}

// The product of two numbers of two words each, by Karatsuba's rule: `lower` is the product of the lower words, `upper` the
// product of the upper words, and `whole` the product of the sums of both words.
fn joined(lower: vec2<u32>, upper: vec2<u32>, whole: vec2<u32>) -> vec4<u32> {
    let middle = whole ^ lower ^ upper;
    return vec4(lower.x, lower.y ^ middle.x, upper.x ^ middle.y, upper.y);
}

// The product of a, b and x^-128, reduced.
fn times(a: vec4<u32>, b: Factor) -> vec4<u32> {
    let low = joined(product(a.x, b.p[0], b.q[0]), product(a.y, b.p[1], b.q[1]), product(a.x ^ a.y, b.p[2], b.q[2]));
    let high = joined(product(a.z, b.p[3], b.q[3]), product(a.w, b.p[4], b.q[4]), product(a.z ^ a.w, b.p[5], b.q[5]));
    let sums = a.xy ^ a.zw;
    let both = joined(product(sums.x, b.p[6], b.q[6]), product(sums.y, b.p[7], b.q[7]),
                      product(sums.x ^ sums.y, b.p[8], b.q[8]));
    let middle = both ^ low ^ high;
    // Modulo the polynomial, 1 = x^121 + x^126 + x^127 + x^128. Each of the four low words is therefore added three words
    // higher (`moved_up`) and four words higher (`moved_down`).
    let s0 = low.x;
    let s1 = low.y;
    let s2 = low.z ^ middle.x;
    let s3 = low.w ^ middle.y ^ moved_up(s0);
    let s4 = high.x ^ middle.z ^ moved_up(s1) ^ moved_down(s0);
    let s5 = high.y ^ middle.w ^ moved_up(s2) ^ moved_down(s1);
    let s6 = high.z ^ moved_up(s3) ^ moved_down(s2);
    let s7 = high.w ^ moved_down(s3);
    return vec4(s4, s5, s6, s7);
}

fn moved_up(word: u32) -> u32 { return (word << 25u) ^ (word << 30u) ^ (word << 31u); }
fn moved_down(word: u32) -> u32 { return word ^ (word >> 1u) ^ (word >> 2u) ^ (word >> 7u); }
