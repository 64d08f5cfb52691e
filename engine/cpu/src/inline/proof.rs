//! The self-test of inline kernels on this processor.

use std::sync::atomic::Ordering::Relaxed;

use lockstep_core::{KeySize, selftest};

use super::{InlineGcm, InlineKernel, InlineKey, InlineOcb, Span};
use crate::kernels::{Member, with_kernel};

const UNKNOWN: u8 = 0;
const PASSED: u8 = 1;
const FAILED: u8 = 2;

/// True if the kernel has passed its self-test: the first known-answer test of every operation, and known-answer tests of
/// [`InlineGcm`], [`InlineOcb`] and [`InlineKey::ccm`]. The first call runs the self-test, which takes 0.6 ms, or 3 ms for the portable
/// kernel. False if memory for the self-test cannot be allocated or if it panics; the next call runs it again.
#[inline]
pub fn is_proven(kernel: InlineKernel) -> bool {
    // There is no lock, because a fork during a self-test could leave a lock held. Running a self-test twice is harmless.
    let outcome = with_kernel!(kernel.0, kernel => kernel.outcome());
    match outcome.load(Relaxed) {
        UNKNOWN => {
            // Panics are caught here, because the provider calls this function without a guard against panics.
            let Ok(Some(passed)) = std::panic::catch_unwind(|| passes(kernel)) else { return false };
            outcome.store(if passed { PASSED } else { FAILED }, Relaxed);
            passed
        }
        known => known == PASSED,
    }
}

/// Runs the self-test; `None` if memory cannot be allocated.
fn passes(kernel: InlineKernel) -> Option<bool> {
    if selftest::passes_first_tests(&|task| kernel.run(task)) != Ok(true) {
        return Some(false);
    }
    for (size, tags) in KeySize::ALL.into_iter().zip(TAGS.as_chunks().0) {
        if !passes_known_answers(kernel, &text()[..size.bytes()], tags)? {
            return Some(false);
        }
    }
    Some(true)
}

/// True if GCM, OCB3 and CCM with this key have these tags of the text; `None` if memory cannot be allocated. Public for tests, which give
/// it wrong tags.
pub fn passes_known_answers(kernel: InlineKernel, key: &[u8], tags: &[u128; 4]) -> Option<bool> {
    let text = text();
    let [gcm, gcm_long_iv, ocb, ccm] = tags.map(u128::to_be_bytes);
    let both_pass = |context: &mut InlineGcm| {
        gcm_passes(context, &text[..12], &text, &gcm) && gcm_passes(context, &text[..16], &text, &gcm_long_iv)
    };
    // The original computes powers of H when they are needed. The copy has all powers.
    let mut original = InlineGcm::new(kernel, key)?;
    let is_right = both_pass(&mut original)
        && both_pass(&mut original.duplicate()?)
        && ocb_passes(InlineOcb::new(kernel, key)?, &text, &ocb)?
        && ccm_passes(&InlineKey::new(kernel, key)?, &text, &ccm);
    Some(is_right)
}

/// Length of the first of two pieces, in bytes, and of the text. After the incomplete block of the first piece, the second piece is
/// long enough for the fused loops of every kernel.
const FIRST: usize = 2048 + 5;
const LEN: usize = FIRST + 11 + 2048 + 3;
/// Number of bytes of text for CCM.
const CCM: usize = 5 * 16 + 3;
/// Number of bytes of additional data.
const AAD: usize = 37;

/// The tags of [`text`] with its first bytes as key, IV and additional data, for each key size: of GCM with an IV of 12 bytes, of GCM
/// with an IV of 16 bytes, of OCB3 with a nonce of 12 bytes, and of the ciphertext of CCM (see `ccm_passes`). They were computed by the
/// reference implementation. A right tag of GCM or OCB3 proves the ciphertext, because the ciphertext is opened.
pub const TAGS: [u128; 12] = [
    0xe0fe_1f20_a93f_4818_2e96_658b_95fe_baab,
    0x6176_9a32_8c5a_de58_f0e9_7e51_878f_d4a0,
    0xf00e_d318_0c2a_1b19_aa13_1bad_9500_71ea,
    0x1dd7_fc7f_07d0_367a_0883_9fea_ea27_29b1,
    0x7da6_54c5_61b0_0735_7efd_eea0_5920_e42f,
    0x784a_c750_c1e2_644b_9ab4_fc3a_cdeb_7ecd,
    0xe465_1644_1e3a_8979_49e0_687b_5d76_e461,
    0xe783_96ae_42d0_1b4d_6e5c_e0db_f441_5103,
    0x4786_8ed6_afb6_274f_2b2e_a88d_d6ee_eda9,
    0xeb5e_5769_0c00_3ed7_e33c_c09c_f24d_53f9,
    0x5ba9_1dd4_bc43_e157_f036_f1f5_efb3_c14e,
    0xb160_070f_7b3e_a379_3dda_efcf_1f91_af06,
];

/// The plaintext.
pub fn text() -> [u8; LEN] {
    std::array::from_fn(|i| (i * i / 7) as u8)
}

/// Seals the text in two pieces, and opens it in two pieces, with the right tag and with a wrong tag.
fn gcm_passes(gcm: &mut InlineGcm, iv: &[u8], text: &[u8; LEN], tag: &[u8; 16]) -> bool {
    let pieces = |gcm: &mut InlineGcm, encrypts, data: &mut [u8; LEN]| {
        let (first, second) = data.split_at_mut(FIRST);
        gcm.start(encrypts, iv)
            && gcm.aad(&text[..AAD])
            && gcm.update(Span::in_place(first))
            && gcm.update(Span::in_place(second))
    };
    let mut data = *text;
    if !pieces(gcm, true, &mut data) || gcm.finish_seal() != Some(*tag) {
        return false;
    }
    let mut again = data;
    pieces(gcm, false, &mut data)
        && data == *text
        && gcm.finish_open(tag)
        && pieces(gcm, false, &mut again)
        && !gcm.finish_open(&changed(tag))
}

/// Seals the text in two pieces, and opens it by a copy, with a wrong tag and with the right tag; `None` if memory cannot be
/// allocated.
fn ocb_passes(mut ocb: InlineOcb, text: &[u8; LEN], tag: &[u8; 16]) -> Option<bool> {
    let pieces = |ocb: &mut InlineOcb, encrypts, data: &mut [u8; LEN]| {
        let (blocks, last) = data.split_at_mut(LEN & !15);
        let (first, second) = blocks.split_at_mut(FIRST & !15);
        ocb.start(encrypts, &text[..12], 16);
        ocb.aad(&text[..AAD]);
        ocb.blocks(Span::in_place(first));
        ocb.blocks(Span::in_place(second));
        ocb.last(Span::in_place(last));
    };
    let mut data = *text;
    let mut copy = ocb.duplicate()?;
    pieces(&mut ocb, true, &mut data);
    let sealed = ocb.finish_seal();
    pieces(&mut copy, false, &mut data);
    Some(sealed == *tag && data == *text && !copy.finish_open(&changed(tag)) && copy.finish_open(tag))
}

/// Encrypts the beginning of the text twice, which gives the plaintext again: the second MAC is that of the ciphertext, and so proves the
/// ciphertext. The decryption of the plaintext writes the ciphertext, and has the same MAC.
fn ccm_passes(key: &InlineKey, text: &[u8; LEN], tag: &[u8; 16]) -> bool {
    let (blocks, mut data) = (text.as_chunks().0, *text);
    let [(_, ciphertext), second, opened] = [true, true, false].map(|encrypts| {
        let mut mac = blocks[0];
        key.ccm(encrypts, &mut mac, &blocks[1], Span::in_place(&mut data[..CCM]));
        (mac, data)
    });
    second == (*tag, *text) && opened == (*tag, ciphertext)
}

/// A wrong tag.
fn changed(tag: &[u8; 16]) -> [u8; 16] {
    let mut wrong = *tag;
    wrong[7] ^= 1;
    wrong
}

#[cfg(test)]
mod tests;
