//! Recognises the contexts of OpenSSL's random generator CTR_DRBG (SP 800-90A), which fetches AES like any program.
//!
//! The generator (`drbg_ctr_init` and `drbg_ctr_instantiate` in providers/implementations/rands/drbg_ctr.c, OpenSSL 3.0 to 4.0) first
//! inits a context of ECB and then a context of CTR without key and IV. If it has a derivation function, it then inits a third
//! context, of ECB, with the constant key 00 01 02 and so on. The next init sets the key of the first context, to zeros. Between these
//! inits, this thread inits no other contexts than those of the parent generator. No program is known that makes the same inits.

use std::cell::Cell;

use subtle::ConstantTimeEq;

use crate::algorithm::Mode;

/// The inits so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// No context of a generator is being made.
    None,
    /// ECB without key and IV.
    Ecb,
    /// ECB and CTR without key and IV.
    Both,
    /// These two, and the derivation function.
    Derivation,
}

thread_local! {
    static STEP: Cell<Step> = const { Cell::new(Step::None) };
}

/// Called at each init of a context of this thread that does not belong to a generator yet. Returns true if the context belongs to a
/// generator.
pub(super) fn observe(mode: Mode, key: Option<&[u8]>, sets_iv: bool) -> bool {
    let is_key_of_derivation =
        |key: &[u8]| (0u8..).zip(key).fold(0, |sum, (at, byte)| sum | (at ^ byte)).ct_eq(&0);
    let is_zero = |key: &[u8]| key.ct_eq(&[0; 32][..key.len()]);
    let (next, belongs) = match (STEP.get(), mode, key) {
        _ if sets_iv => (Step::None, false),
        (_, Mode::Ecb, None) => (Step::Ecb, false),
        (Step::Ecb, Mode::Ctr, None) => (Step::Both, true),
        (Step::Both, Mode::Ecb, Some(key)) if is_key_of_derivation(key).into() => (Step::Derivation, true),
        (Step::Both | Step::Derivation, Mode::Ecb, Some(key)) if is_zero(key).into() => (Step::None, true),
        _ => (Step::None, false),
    };
    STEP.set(next);
    belongs
}

/// Called at each init of a context that cannot belong to a generator.
pub(super) fn end() {
    STEP.set(Step::None);
}

#[cfg(test)]
mod tests {
    use super::*;

    const DERIVATION: &[u8] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    const ZEROS: &[u8] = &[0; 16];
    const ECB: (Mode, Option<&[u8]>, bool) = (Mode::Ecb, None, false);
    const CTR: (Mode, Option<&[u8]>, bool) = (Mode::Ctr, None, false);

    /// The results of a sequence of inits on this thread, which belongs to this test.
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
        // The sequence ends at each init that is not the expected one, also of another mode.
        for other in [key, (Mode::Cbc, Some(ZEROS), true), (Mode::Ctr, Some(ZEROS), false)] {
            assert_eq!(observed([ECB, CTR, other, keyed(ZEROS)]), [false, true, false, false]);
        }
        observed([ECB, CTR]);
        end();
        assert_eq!(observed([keyed(DERIVATION), keyed(ZEROS)]), [false; 2]);
    }
}
