use super::*;

fn masks() -> Masks {
    let mut masks = Masks::default();
    masks.fill(&[0xA5; 16]);
    masks
}

#[test]
fn offsets_can_be_computed_directly() {
    let masks = masks();
    let first = [7; 16];
    let mut offset = first;
    assert_eq!(masks.offset(&first, 0), first);
    for number in 1..1000 {
        masks.advance(&mut offset, number);
        assert_eq!(masks.offset(&first, number), offset, "block {number}");
    }
}

/// Doubles a block bit by bit (RFC 7253, section 2).
fn doubled_by_bits(block: &Block) -> Block {
    let mut result: Block =
        std::array::from_fn(|i| block[i] << 1 | block.get(i + 1).map_or(0, |next| next >> 7));
    if block[0] >> 7 == 1 {
        result[15] ^= 0b1000_0111;
    }
    result
}

#[test]
fn masks_up_to_the_last_are_doubled() {
    let masks = masks();
    let first = [7; 16];
    let mut expected = doubled_by_bits(&masks.dollar);
    assert_eq!(masks.dollar, doubled_by_bits(&masks.star));
    for i in 0..48 {
        assert_eq!(*masks.l(i), expected, "L_{i}");
        let mut offset = masks.offset(&first, (1 << i) - 1);
        masks.advance(&mut offset, 1 << i);
        assert_eq!(masks.offset(&first, 1 << i), offset, "block 2^{i}");
        expected = doubled_by_bits(&expected);
    }
}

/// The nonce of RFC 7253, section 4.2, starts with the length of the tag in bits modulo 128. Zeros, a one and the caller's nonce follow.
#[test]
fn nonces_of_all_lengths() {
    assert_eq!(
        nonce_block(&[0x7F], 8),
        ([[0x80, 0].as_slice(), &[0; 12], &[1, 0x40]].concat()[..].try_into().unwrap(), 0x3F)
    );
    let nonce: [u8; 15] = std::array::from_fn(|i| i as u8 + 0x11);
    let mut expected = [[0x01].as_slice(), &nonce].concat();
    expected[15] &= 0xC0;
    assert_eq!(nonce_block(&nonce, 16), (expected[..].try_into().unwrap(), 0x1F));
    expected[0] = 0x81;
    assert_eq!(nonce_block(&nonce, 8), (expected[..].try_into().unwrap(), 0x1F));
}

/// Every length of nonce and tag, as in RFC 7253, section 4.2: `num2str(TAGLEN mod 128, 7) || zeros(120 - bitlen(N)) || 1 || N`.
#[test]
fn nonce_blocks_have_the_bits_of_the_definition() {
    let nonce: [u8; 15] = std::array::from_fn(|i| 0xB7 ^ (i as u8).wrapping_mul(43));
    for len in 1..=15 {
        for tag in 1..=16 {
            let bits_of = |number: usize, count: usize| (0..count).rev().map(move |bit| number >> bit & 1);
            let mut bits: Vec<usize> = bits_of(8 * tag % 128, 7).collect();
            bits.resize(127 - 8 * len, 0);
            bits.push(1);
            bits.extend(nonce[..len].iter().flat_map(|byte| bits_of((*byte).into(), 8)));
            let block = bits.chunks(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | *bit as u8));
            let mut block: Block = block.collect::<Vec<u8>>().try_into().unwrap();
            let bottom = block[15] & 0x3F;
            block[15] &= 0xC0;
            assert_eq!(nonce_block(&nonce[..len], tag), (block, bottom.into()), "{len} bytes, tag {tag}");
        }
    }
}
