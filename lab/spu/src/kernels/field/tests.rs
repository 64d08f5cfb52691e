
use super::*;

#[test]
fn fields() {
    assert_eq!((sbox(0), sbox(0x53), mul(0x57, 0x83)), (0x63, 0xed, 0xc1));
    for a in 1..16 {
        assert_eq!(mul4(a, inverse4(a)), 1);
    }
    let tower = Tower::new();
    for (a, b) in [(0x57, 0x83), (0xff, 0x02), (0x1b, 0xc9)] {
        let product = Tower::product(tower.a, tower.from_aes.apply(a), tower.from_aes.apply(b));
        assert_eq!(product, tower.from_aes.apply(mul(a, b)));
    }
}
