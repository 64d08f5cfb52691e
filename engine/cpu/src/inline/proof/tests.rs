use lockstep_reference::{Aes, cbc_mac, ctr, gcm, ocb};

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
            ccm_of_ciphertext(&aes, &text),
        ];
        tags.map(u128::from_be_bytes)
    });
    assert_eq!(TAGS.as_chunks().0, expected, "{expected:#034x?}");
}

/// The tag that [`ccm_passes`] expects.
fn ccm_of_ciphertext(aes: &Aes, text: &[u8]) -> [u8; 16] {
    let blocks = text.as_chunks().0;
    let data_counter = (u128::from_be_bytes(blocks[1]) + 1).to_be_bytes();
    let mut input = ctr::apply(aes, &data_counter, &text[..CCM]);
    input.resize(CCM.next_multiple_of(16), 0);
    let mac = cbc_mac::update(aes, [0; 16], &[&blocks[0][..], &input].concat());
    let mask = aes.encrypt(blocks[1]);
    std::array::from_fn(|i| mac[i] ^ mask[i])
}

#[test]
fn both_pieces_run_the_fused_loops_of_gcm() {
    /// The compiler makes this check, so it also covers kernels that this processor cannot run.
    fn check<K: Kernel>(_: K) {
        // The second piece first completes the partial block at the end of the first piece. The number of its remaining bytes is
        // `SHORTER`.
        const SHORTER: usize = FIRST + PIECES[1] - FIRST.next_multiple_of(16);
        const { assert!(SHORTER <= FIRST) };
        const { assert!(SHORTER >= SHORTEST_FUSED * K::GCM_STEP && SHORTER >= K::GCM_FROM) };
    }
    for kernel in InlineKernel::all() {
        with_kernel!(kernel.0, kernel => check(kernel));
    }
}
