use super::*;

/// Two blocks of output are chained: the second block depends on the first.
#[test]
fn blocks_are_chained() {
    let okm = expand(b"key", b"info", 100);
    assert_eq!(okm[..64], hmac(b"key", b"info\x01"));
    assert_eq!(okm[64..], hmac(b"key", &[&okm[..64], b"info\x02"].concat())[..36]);
}
