use lockstep_reference::{Aes, gcm, ocb};

use super::*;
use crate::kernel::Kernel;
use crate::message::gcm::SHORTEST_FUSED;

#[test]
fn the_tags_are_those_of_the_reference_implementation() {
    let text = text();
    let expected = KeySize::ALL.map(|size| {
        let (aes, aad) = (Aes::new(&text[..size.bytes()]), &text[..AAD]);
        let tags = [
            gcm::seal(&aes, &text[..12], aad, &text).1,
            gcm::seal(&aes, &text[..16], aad, &text).1,
            ocb::seal(&aes, &text[..12], aad, &text, 16).1.try_into().unwrap(),
        ];
        tags.map(u128::from_be_bytes)
    });
    assert_eq!(TAGS.as_chunks().0, expected, "{expected:#034x?}");
}

#[test]
fn both_pieces_run_the_fused_loops_of_gcm() {
    /// The compiler makes this check, so it also covers kernels that this processor cannot run.
    fn check<K: Kernel>(_: K) {
        // The second piece first completes the partial block at the end of the first piece. The number of its remaining bytes is
        // `SHORTER`.
        const SHORTER: usize = LEN - FIRST.next_multiple_of(16);
        const { assert!(SHORTER <= FIRST) };
        const { assert!(SHORTER >= SHORTEST_FUSED * K::GCM_STEP && SHORTER >= K::GCM_FROM) };
    }
    for kernel in InlineKernel::all() {
        with_kernel!(kernel.0, kernel => check(kernel));
    }
}
