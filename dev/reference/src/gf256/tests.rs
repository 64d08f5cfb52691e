
use super::*;

/// The worked examples of FIPS 197, section 4.2.
#[test]
fn products() {
    assert_eq!(mul(0x57, 0x83), 0xc1);
    assert_eq!(mul(0x57, 0x13), 0xfe);
    assert_eq!([0x57, 0xae, 0x47, 0x8e].map(xtime), [0xae, 0x47, 0x8e, 0x07]);
}

#[test]
fn inverses() {
    assert_eq!(inverse(0), 0);
    for b in 1..=255 {
        assert_eq!(mul(b, inverse(b)), 1);
    }
}
