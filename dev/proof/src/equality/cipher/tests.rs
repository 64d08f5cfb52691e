use lockstep_reference::{Aes, cbc, cbc_mac, cfb, ctr, ecb, gcm, gcm_siv, ocb, ofb, pcbc, xts};

use super::*;
use crate::cases::modes::{CCM_COUNTER, ccm_data, ctr_little32};
use crate::equality::definition::{Aead, Sealed};

fn sample(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(167) ^ (i >> 3) as u8 ^ seed.wrapping_mul(91)).collect()
}

/// The values of public bytes.
fn values(bytes: &[Symbol]) -> Vec<u8> {
    bytes.iter().map(|byte| Symbols::value(*byte)).collect()
}

#[test]
fn the_definitions_have_the_results_of_the_reference() {
    for key_len in [16, 24, 32] {
        let (key, iv, data) = (sample(key_len, 1), sample(16, 2), sample(77, 3));
        let (aes, iv): (_, [u8; 16]) = (Aes::new(&key), iv.try_into().expect("16 bytes"));
        let whole = &data[..64];
        let cipher = Cipher::new(&Symbols::default(), &public(&key));
        let (register, symbols, blocks) = (block(&public(&iv)), public(&data), public(whole));
        assert_eq!(values(&cipher.ecb(&blocks, true)), ecb::encrypt(&aes, whole));
        assert_eq!(values(&cipher.ecb(&blocks, false)), ecb::decrypt(&aes, whole));
        for counter in [iv, [0xff; 16]] {
            let block = block(&public(&counter));
            assert_eq!(
                values(&cipher.ctr(&block, Counter::Whole, &symbols)),
                ctr::apply(&aes, &counter, &data)
            );
            assert_eq!(
                values(&cipher.ctr(&block, Counter::Last32, &symbols)),
                ctr::apply32(&aes, &counter, &data)
            );
        }
        assert_eq!(values(&cipher.cbc(&register, &blocks, true)), cbc::encrypt(&aes, &iv, whole));
        assert_eq!(values(&cipher.cbc(&register, &blocks, false)), cbc::decrypt(&aes, &iv, whole));
        assert_eq!(values(&cipher.cfb(&register, &symbols, 128, true)), cfb::encrypt128(&aes, &iv, &data));
        assert_eq!(values(&cipher.cfb(&register, &symbols, 128, false)), cfb::decrypt128(&aes, &iv, &data));
        assert_eq!(values(&cipher.cfb(&register, &symbols, 8, true)), cfb::encrypt8(&aes, &iv, &data));
        assert_eq!(values(&cipher.cfb(&register, &symbols, 8, false)), cfb::decrypt8(&aes, &iv, &data));
        let bits = 8 * data.len();
        assert_eq!(values(&cipher.cfb(&register, &symbols, 1, true)), cfb::encrypt1(&aes, &iv, &data, bits));
        assert_eq!(values(&cipher.cfb(&register, &symbols, 1, false)), cfb::decrypt1(&aes, &iv, &data, bits));
        assert_eq!(values(&cipher.cbc_mac(&register, &blocks)), cbc_mac::update(&aes, iv, whole));
        let counter = block(&public(&CCM_COUNTER));
        for encrypts in [true, false] {
            let result = cipher.ccm(&register, &counter, &symbols, encrypts);
            assert_eq!(values(&result), ccm_data(&aes, encrypts, &iv, &data));
        }
        let mut little = [7; 16];
        little[..4].copy_from_slice(&[0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(
            values(&cipher.ctr(&block(&public(&little)), Counter::First32, &symbols)),
            ctr_little32(&aes, &little, &data)
        );
        assert_eq!(values(&cipher.ofb(&register, &symbols)), ofb::apply(&aes, &iv, &data));
        assert_eq!(values(&cipher.pcbc(&register, &blocks, true)), pcbc::encrypt(&aes, &iv, whole));
        assert_eq!(values(&cipher.pcbc(&register, &blocks, false)), pcbc::decrypt(&aes, &iv, whole));
        let tweak = cipher.encrypt(&register);
        assert_eq!(values(&cipher.xts(&tweak, &blocks, true)), xts::encrypt(&aes, &aes, &iv, whole));
        assert_eq!(values(&cipher.xts(&tweak, &blocks, false)), xts::decrypt(&aes, &aes, &iv, whole));
    }
}

/// The differences between a message of the reference and the definition. The first byte of the output and the last byte of the
/// tag are changed by `changes`.
fn differences(
    (aead, is_opened): (Aead, bool),
    key: &[u8],
    iv: &[u8],
    len: usize,
    tag_len: usize,
    changes: [u8; 2],
) -> Vec<String> {
    let (aes, cipher) = (Aes::new(key), Cipher::new(&Symbols::default(), &public(key)));
    let (aad, mut plaintext) = (sample(len / 2, 6), sample(len, 7));
    let (mut ciphertext, mut tag) = match aead {
        Aead::Ocb => ocb::seal(&aes, iv, &aad, &plaintext, tag_len),
        Aead::Gcm => {
            let (ciphertext, tag) = gcm::seal(&aes, iv, &aad, &plaintext);
            (ciphertext, tag.to_vec())
        }
        Aead::GcmSiv => {
            let nonce = iv.try_into().expect("12 bytes");
            let (ciphertext, tag) = gcm_siv::seal(key, nonce, &aad, &plaintext);
            (ciphertext, tag.to_vec())
        }
    };
    let received = public(&tag);
    tag[tag_len - 1] ^= changes[1];
    let output = if is_opened { &mut plaintext } else { &mut ciphertext };
    output.iter_mut().take(1).for_each(|byte| *byte ^= changes[0]);
    let [iv, aad, plaintext, ciphertext, tag] = [iv, &aad, &plaintext, &ciphertext, &tag].map(public);
    Sealed {
        aead,
        is_opened,
        cipher: &cipher,
        key_len: key.len(),
        iv: &iv,
        aad: &aad,
        plaintext: &plaintext,
        ciphertext: &ciphertext,
        tag: &tag,
        received: &received,
    }
    .differences()
}

#[test]
fn the_definitions_of_aeads_are_those_of_the_reference() {
    for (aead, iv_len, len, tag_len) in [
        (Aead::Ocb, 12, 0, 16),
        (Aead::Ocb, 1, 50, 12),
        (Aead::Ocb, 15, 96, 8),
        (Aead::Gcm, 12, 0, 16),
        (Aead::Gcm, 12, 50, 16),
        (Aead::Gcm, 12, 96, 16),
        (Aead::GcmSiv, 12, 0, 16),
        (Aead::GcmSiv, 12, 50, 16),
        (Aead::GcmSiv, 12, 96, 16),
    ] {
        let key_lens: &[usize] = if aead == Aead::GcmSiv { &[16, 32] } else { &[16, 24, 32] };
        for key_len in key_lens {
            let (key, iv) = (sample(*key_len, 1), sample(iv_len, 5));
            for form in [(aead, false), (aead, true)] {
                let of = |changes| differences(form, &key, &iv, len, tag_len, changes);
                assert_eq!(of([0, 0]), Vec::<String>::new());
                assert_eq!(of([0, 0x40]), ["the tag differs"]);
                if len > 0 {
                    let what = if form.1 { "plaintext" } else { "ciphertext" };
                    assert_eq!(of([1, 0])[0], format!("1 of {len} bytes of the {what} differ, from byte 0"));
                }
            }
        }
    }
}
