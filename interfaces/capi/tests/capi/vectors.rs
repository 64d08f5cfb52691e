//! The results of the reference implementation. They are compared with the results that the test program prints: see
//! `print_vectors` in tests/c/aead.c.

use lockstep_reference as reference;
use reference::Aes;
use reference::cbc_cts::Variant;
use reference::key_wrap::Direction;

/// Returns `len` bytes: `first`, `first + step`, `first + 2 step`, and so on.
fn count_up(len: usize, first: u8, step: u8) -> Vec<u8> {
    (0..len).map(|i| first.wrapping_add(step.wrapping_mul(i as u8))).collect()
}

/// The lines that the program prints.
pub(crate) fn expected() -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |name: &str, number: usize, bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        lines.push(format!("{name} {number} {hex}"));
    };
    for (number, (sealed, tag)) in aeads().into_iter().enumerate() {
        add("aead", number, &[sealed, tag].concat());
    }
    for (number, (encrypted, decrypted)) in (1..).zip(ciphers()) {
        add("encrypt", number, &encrypted);
        add("decrypt", number, &decrypted);
    }
    let (aes, data, nonce) = (Aes::new(&count_up(16, 0, 1)), count_up(100, 1, 7), count_up(32, 64, 1));
    add("cmac", 0, &reference::cmac::cmac(&aes, &data));
    add("gmac", 0, &reference::gcm::gmac(&aes, &nonce[..12], &data));
    add("wrap", 0, &reference::key_wrap::wrap(&aes, Direction::Forward, &[0xa6; 8], &data[..32]));
    let icv = [0xa6, 0x59, 0x59, 0xa6];
    add("wrap_padded", 0, &reference::key_wrap::wrap_padded(&aes, Direction::Forward, &icv, &data[..29]));
    add("hctr2", 0, &reference::hctr2::encrypt(&aes, &count_up(20, 128, 1), &data));
    let iv = nonce[..16].try_into().unwrap();
    for (number, variant) in (1..).zip([Variant::Cs1, Variant::Cs2, Variant::Cs3]) {
        add("cts", number, &reference::cbc_cts::encrypt(&aes, variant, iv, &data));
    }
    lines
}

/// Ciphertexts and tags in the order of `MODES` in tests/c/aead.c.
fn aeads() -> Vec<(Vec<u8>, Vec<u8>)> {
    let (nonce, aad, data) = (count_up(32, 64, 1), count_up(20, 128, 1), count_up(100, 1, 7));
    let (key, aes) = (|len| count_up(len, 0, 1), |len| Aes::new(&count_up(len, 0, 1)));
    let fixed = |(sealed, tag): (Vec<u8>, [u8; 16])| (sealed, tag.to_vec());
    vec![
        fixed(reference::gcm::seal(&aes(16), &nonce[..12], &aad, &data)),
        fixed(reference::gcm::seal(&aes(24), &nonce[..7], &aad, &data)),
        fixed(reference::gcm_siv::seal(&key(32), nonce[..12].try_into().unwrap(), &aad, &data)),
        reference::ocb::seal(&aes(16), &nonce[..15], &aad, &data, 16),
        fixed(reference::siv::seal(&key(64), &[&aad], &data)),
        fixed(reference::siv::seal(&key(32), &[&aad, &nonce[..16]], &data)),
        reference::ccm::seal(&aes(16), &nonce[..13], &aad, &data, 16),
        fixed(reference::xaes::seal(
            &key(32).try_into().unwrap(),
            nonce[..24].try_into().unwrap(),
            &aad,
            &data,
        )),
        reference::eax::seal(&aes(16), &nonce[..16], &aad, &data, 16),
        reference::eax::seal(&aes(32), &nonce[..21], &aad, &data, 16),
    ]
}

/// Results of encryption and decryption of the same data, in the order of the numbers LOCKSTEP_CIPHER_.
fn ciphers() -> Vec<(Vec<u8>, Vec<u8>)> {
    use reference::{cbc, cfb, ctr, ecb, ofb, pcbc, xts};
    let (key, data) = (count_up(32, 0, 1), count_up(96, 1, 7));
    let (aes, first, second) = (Aes::new(&key), Aes::new(&key[..16]), Aes::new(&key[16..]));
    let (aes, data) = (&aes, &data[..]);
    let iv = &count_up(16, 64, 1).try_into().unwrap();
    vec![
        (ecb::encrypt(aes, data), ecb::decrypt(aes, data)),
        (cbc::encrypt(aes, iv, data), cbc::decrypt(aes, iv, data)),
        (pcbc::encrypt(aes, iv, data), pcbc::decrypt(aes, iv, data)),
        (cfb::encrypt128(aes, iv, data), cfb::decrypt128(aes, iv, data)),
        (cfb::encrypt8(aes, iv, data), cfb::decrypt8(aes, iv, data)),
        (cfb::encrypt1(aes, iv, data, 8 * 96), cfb::decrypt1(aes, iv, data, 8 * 96)),
        (ofb::apply(aes, iv, data), ofb::apply(aes, iv, data)),
        (ctr::apply(aes, iv, data), ctr::apply(aes, iv, data)),
        (xts::encrypt(&first, &second, iv, data), xts::decrypt(&first, &second, iv, data)),
    ]
}
