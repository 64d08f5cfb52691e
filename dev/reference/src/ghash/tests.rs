use super::*;

/// Checks laws of a field, which follow from the definition. The element 1 is the block in which only the first bit is set.
#[test]
fn field_laws() {
    let one = (1u128 << 127).to_be_bytes();
    let [a, b, c]: [Block; 3] = [3u8, 29, 101].map(|s| std::array::from_fn(|i| s.wrapping_mul(i as u8 + 7)));
    assert_eq!(mul(a, one), a);
    assert_eq!(mul(a, b), mul(b, a));
    assert_eq!(mul(mul(a, b), c), mul(a, mul(b, c)));
    assert_eq!(mul(xor(a, b), c), xor(mul(a, c), mul(b, c)));
}

#[test]
fn update_continues() {
    let h: Block = std::array::from_fn(|i| 5 * i as u8 + 1);
    let data: Vec<u8> = (0..80).collect();
    assert_eq!(update(&h, ghash(&h, &data[..32]), &data[32..]), ghash(&h, &data));
}
