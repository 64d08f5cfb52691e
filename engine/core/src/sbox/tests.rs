use super::*;

/// The S-box by its definition (FIPS 197, 5.1.1): x^254 in GF(2^8), then the affine map.
fn by_definition(x: u8) -> u8 {
    let product = |mut a: u8, mut b: u8| {
        let mut sum = 0;
        while b != 0 {
            if b & 1 == 1 {
                sum ^= a;
            }
            a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1b };
            b >>= 1;
        }
        sum
    };
    let inverse = (0..254).fold(1, |power, _| product(power, x));
    (1..5).fold(inverse ^ AFFINE, |sum, n| sum ^ inverse.rotate_left(n))
}

/// Splits a byte into its eight bits. Each bit is a plane with one lane.
fn spread(x: u8) -> [u8; 8] {
    std::array::from_fn(|bit| (x >> bit) & 1)
}

fn gather(planes: [u8; 8]) -> u8 {
    (0..8).fold(0, |byte, bit| byte | ((planes[bit] & 1) << bit))
}

#[test]
fn forward_is_the_s_box_without_its_constant() {
    for x in 0..=255 {
        assert_eq!(gather(forward(spread(x))) ^ AFFINE, by_definition(x), "S({x:#04x})");
    }
}

#[test]
fn inverse_undoes_forward() {
    for x in 0..=255 {
        assert_eq!(gather(inverse(spread(by_definition(x) ^ AFFINE))), x);
    }
}

#[test]
fn sub_word_is_four_s_boxes() {
    for x in 0..=255u8 {
        let word = [x, x.wrapping_add(1), !x, x ^ 0x5a];
        assert_eq!(sub_word(word), word.map(by_definition));
    }
}
