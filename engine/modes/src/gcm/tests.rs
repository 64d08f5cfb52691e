use super::*;

/// Only the checks of the lengths are tested, because no machine has so much memory.
#[cfg(target_pointer_width = "64")]
#[test]
fn associated_data_and_nonces_have_less_than_2_to_the_64_bits() {
    use lockstep_core::Error;
    // SP 800-38D, 5.2.1.1.
    let most = (1 << 61) - 1;
    assert_eq!((check(most, 16, 0), check_aad(most as u64)), (Ok(()), Ok(())));
    assert!(matches!(check(most + 1, 16, 0), Err(Error::IvLength { got, .. }) if got == most + 1));
    let refused = check_aad(most as u64 + 1);
    assert!(matches!(refused, Err(Error::TooLong { limit, .. }) if limit == most as u64), "{refused:?}");
}
