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

/// Lengths of the pieces of the text in bytes. After the incomplete block of the first piece, the second piece is long enough for the fused
/// loops of every kernel. In GCM, kernels process the other pieces by their functions for short data.
const PIECES: [usize; 7] = [FIRST, 11 + 2048, 64, 80, 16, 16, 32 + 3];
const FIRST: usize = 2048 + 5;
const LEN: usize = FIRST + 11 + 2048 + 64 + 80 + 16 + 16 + 32 + 3;
/// Number of bytes of text for CCM.
const CCM: usize = 5 * 16 + 3;
/// Number of bytes of additional data.
const AAD: usize = 37;

/// The tags of [`text`] with its first bytes as key, IV and additional data, for each key size: of GCM with an IV of 12 bytes, of GCM
/// with an IV of 16 bytes, of OCB3 with a nonce of 12 bytes, and of the ciphertext of CCM (see `ccm_passes`). They were computed by the
/// reference implementation. A right tag of GCM or OCB3 proves the ciphertext, because the ciphertext is opened.
pub const TAGS: [u128; 12] = [
    0x5c5e_4165_4d57_4eac_3cde_8d22_3e27_9fe0,
    0x6206_f7ca_4273_1937_bc75_5ac3_c803_d36d,
    0x6666_4bcd_e2df_ad67_7149_4d1b_9324_1952,
    0x1dd7_fc7f_07d0_367a_0883_9fea_ea27_29b1,
    0xb454_124c_0773_5e49_bb50_bad1_7629_74f0,
    0xc77b_b237_01c3_fcd5_62fe_9c28_0c21_82c9,
    0x3b15_b8e6_4f51_ad12_463f_2271_61fa_a67e,
    0xe783_96ae_42d0_1b4d_6e5c_e0db_f441_5103,
    0x3f77_694c_f006_3115_4374_9e35_da17_4680,
    0x6100_d03f_a5d4_d01e_2ae6_5281_db74_6720,
    0x341f_4e3e_af85_617f_2e3b_7d79_38bc_5ecb,
    0xb160_070f_7b3e_a379_3dda_efcf_1f91_af06,
];

/// The plaintext.
pub fn text() -> [u8; LEN] {
    std::array::from_fn(|i| (i * i / 7) as u8)
}

/// Seals the text in pieces, and opens it in pieces, with the right tag and with a wrong tag.
fn gcm_passes(gcm: &mut InlineGcm, iv: &[u8], text: &[u8; LEN], tag: &[u8; 16]) -> bool {
    let pieces = |gcm: &mut InlineGcm, encrypts, data: &mut [u8; LEN]| {
        let mut rest = &mut data[..];
        gcm.start(encrypts, iv)
            && gcm.aad(&text[..AAD])
            && PIECES
                .iter()
                .all(|&len| rest.split_off_mut(..len).is_some_and(|piece| gcm.update(Span::in_place(piece))))
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
