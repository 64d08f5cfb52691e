//! Recognises the contexts of OpenSSL's random generator CTR_DRBG (SP 800-90A), which fetches AES like any program.
//!
//! The generator (`drbg_ctr_init` in providers/implementations/rands/drbg_ctr.c, OpenSSL 3.0 to 4.0) first inits a context of ECB
//! and then a context of CTR without key and IV. No program is known that does this on one thread without an init between the two.
//! The next two contexts of ECB that get their first key are then that of the derivation function and the first of the two.

use std::cell::Cell;

use crate::algorithm::Mode;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// No context of a generator is being made.
    None,
    /// The last init was one of ECB without key and IV.
    Ecb,
    /// Both contexts have been made. This number of contexts of ECB will get their first key.
    Keys(u8),
}

thread_local! {
    static STEP: Cell<Step> = const { Cell::new(Step::None) };
}

/// Called at each init of a context of this thread. Returns true if the context belongs to a generator. `has_key` is true if the
/// context had a key before this init.
pub(super) fn observe(mode: Mode, sets_key: bool, sets_iv: bool, has_key: bool) -> bool {
    let (next, belongs) = match (STEP.get(), mode) {
        (_, Mode::Ecb) if !sets_key && !sets_iv => (Step::Ecb, false),
        (Step::Ecb, Mode::Ctr) if !sets_key && !sets_iv => (Step::Keys(2), true),
        (Step::Keys(left @ 1..), Mode::Ecb) if sets_key && !has_key => (Step::Keys(left - 1), true),
        (Step::Ecb, _) => (Step::None, false),
        (step, _) => (step, false),
    };
    STEP.set(next);
    belongs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inits of a generator, then those of a program.
    #[test]
    fn only_contexts_of_the_generator_are_recognised() {
        let inits = [
            // ECB and CTR without a key, the derivation function, and the first keys of both.
            (Mode::Ecb, false, false, false, false),
            (Mode::Ctr, false, false, false, true),
            (Mode::Ecb, true, false, false, true),
            (Mode::Ecb, true, false, false, true),
            (Mode::Ctr, true, false, false, false),
            // A program.
            (Mode::Ecb, true, false, false, false),
            (Mode::Ecb, false, false, false, false),
            (Mode::Ecb, true, false, false, false),
            (Mode::Ctr, false, false, false, false),
            (Mode::Ctr, true, true, false, false),
        ];
        for (number, (mode, sets_key, sets_iv, has_key, expected)) in inits.into_iter().enumerate() {
            assert_eq!(observe(mode, sets_key, sets_iv, has_key), expected, "init {number}");
        }
    }
}
