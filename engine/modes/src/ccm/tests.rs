use super::*;

/// Every length of nonce and tag up to 20 bytes, with data around the limit: SP 800-38C, A.1, allows nonces of 7 to 13 bytes, even tags of
/// 4 to 16 bytes, and data whose length fits into the 15 - n bytes after a nonce of n bytes.
#[test]
fn lengths_are_those_of_the_standard() {
    for nonce in 0..=20 {
        for tag in 0..=20 {
            let is_valid = (7..=13).contains(&nonce) && (4..=16).contains(&tag) && tag % 2 == 0;
            let limit = if is_valid { (1u128 << (8 * (15 - nonce))) - 1 } else { 0 };
            for data in [0, 1, limit - limit.min(1), limit, limit + 1, u128::from(u64::MAX)] {
                let Ok(data) = u64::try_from(data) else { continue };
                let is_allowed = is_valid && u128::from(data) <= limit;
                assert_eq!(
                    check(nonce, tag, data).is_ok(),
                    is_allowed,
                    "nonce {nonce}, tag {tag}, {data} bytes"
                );
            }
        }
    }
}
