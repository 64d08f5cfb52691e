use super::*;

const DERIVATION: &[u8] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const ZEROS: &[u8] = &[0; 16];
const ECB: (Mode, Option<&[u8]>, bool) = (Mode::Ecb, None, false);
const CTR: (Mode, Option<&[u8]>, bool) = (Mode::Ctr, None, false);

/// The results of `observe` for a sequence of inits. The sequence runs on the thread of the test, so no other test changes its state.
fn observed<const N: usize>(inits: [(Mode, Option<&[u8]>, bool); N]) -> [bool; N] {
    inits.map(|(mode, key, sets_iv)| observe(mode, key, sets_iv))
}

fn keyed(key: &[u8]) -> (Mode, Option<&[u8]>, bool) {
    (Mode::Ecb, Some(key), false)
}

#[test]
fn contexts_of_the_generator_are_recognised() {
    let with_derivation = observed([ECB, CTR, keyed(DERIVATION), keyed(ZEROS), keyed(ZEROS)]);
    assert_eq!(with_derivation, [false, true, true, true, false]);
    assert_eq!(observed([ECB, CTR, keyed(ZEROS), keyed(ZEROS)]), [false, true, true, false]);
}

#[test]
fn contexts_of_a_program_are_not_recognised() {
    let key = keyed(&[7; 16]);
    assert_eq!(observed([ECB, key, CTR, (Mode::Ctr, Some(ZEROS), true)]), [false; 4]);
    // An init other than the expected one ends the sequence, even if it is of another mode.
    for other in [key, (Mode::Cbc, Some(ZEROS), true), (Mode::Ctr, Some(ZEROS), false)] {
        assert_eq!(observed([ECB, CTR, other, keyed(ZEROS)]), [false, true, false, false]);
    }
}
