//! Recognises the contexts of OpenSSL's random generator CTR_DRBG (SP 800-90A), which fetches its AES ciphers from the
//! providers, as programs do.
//!
//! The generator (`drbg_ctr_init` and `drbg_ctr_instantiate` in providers/implementations/rands/drbg_ctr.c, OpenSSL 3.0 to 4.0)
//! inits these contexts, one after the other:
//!
//! 1. a context of ECB, without key and IV;
//! 2. a context of CTR, without key and IV;
//! 3. if the generator has a derivation function: another context of ECB, with the constant key 00 01 02 and so on;
//! 4. the first context again, with a key of zeros.
//!
//! Between these inits, the thread inits no other contexts except those of the parent generator. No program is known that makes
//! the same sequence of inits.

use std::cell::Cell;

use subtle::ConstantTimeEq;

use crate::algorithm::Mode;

/// The inits that have been observed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// No generator is being created.
    None,
    /// A context of ECB was initialised without key and IV.
    Ecb,
    /// Contexts of ECB and CTR were initialised without key and IV.
    Both,
    /// As `Both`, and then a context of ECB with the key of the derivation function.
    Derivation,
}

thread_local! {
    static STEP: Cell<Step> = const { Cell::new(Step::None) };
}

/// The largest update of a generator in bytes (`max_request` in drbg_ctr.c).
pub(super) const MAX_DRAW: usize = 1 << 16;

/// Called at each init of a context on this thread that does not belong to a generator yet. Returns true if the context
/// belongs to a generator.
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

#[cfg(test)]
mod tests;
