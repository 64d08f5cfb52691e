use lockstep_reference::{Aes, cbc, cfb, ctr, ecb, ocb, ofb, pcbc, xts};

use super::*;
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
        assert_eq!(values(&cipher.cfb(&register, &symbols, 16, true)), cfb::encrypt128(&aes, &iv, &data));
        assert_eq!(values(&cipher.cfb(&register, &symbols, 16, false)), cfb::decrypt128(&aes, &iv, &data));
        assert_eq!(values(&cipher.cfb(&register, &symbols, 1, true)), cfb::encrypt8(&aes, &iv, &data));
        assert_eq!(values(&cipher.cfb(&register, &symbols, 1, false)), cfb::decrypt8(&aes, &iv, &data));
        assert_eq!(values(&cipher.ofb(&register, &symbols)), ofb::apply(&aes, &iv, &data));
        assert_eq!(values(&cipher.pcbc(&register, &blocks, true)), pcbc::encrypt(&aes, &iv, whole));
        assert_eq!(values(&cipher.pcbc(&register, &blocks, false)), pcbc::decrypt(&aes, &iv, whole));
        let tweak = cipher.encrypt(&register);
        assert_eq!(values(&cipher.xts(&tweak, &blocks, true)), xts::encrypt(&aes, &aes, &iv, whole));
        assert_eq!(values(&cipher.xts(&tweak, &blocks, false)), xts::decrypt(&aes, &aes, &iv, whole));
    }
}

#[test]
fn the_definition_of_ocb_is_that_of_the_reference() {
    let key = sample(16, 1);
    let (aes, cipher) = (Aes::new(&key), Cipher::new(&Symbols::default(), &public(&key)));
    for (len, nonce_len, tag_len) in [(0, 12, 16), (50, 1, 12), (96, 15, 8)] {
        let (nonce, aad, plaintext) = (sample(nonce_len, 5), sample(len / 2, 6), sample(len, 7));
        let (ciphertext, tag) = ocb::seal(&aes, &nonce, &aad, &plaintext, tag_len);
        let [iv, aad, plaintext, ciphertext, mut tag] =
            [nonce, aad, plaintext, ciphertext, tag].map(|part| public(&part));
        let differences = |tag: &[Symbol]| {
            Sealed {
                aead: Aead::Ocb,
                cipher: &cipher,
                key_len: 16,
                iv: &iv,
                aad: &aad,
                plaintext: &plaintext,
                ciphertext: &ciphertext,
                tag,
            }
            .differences()
        };
        assert_eq!(differences(&tag), Vec::<String>::new());
        tag[0] = public(&[!Symbols::value(tag[0])])[0];
        assert_eq!(differences(&tag), ["the tag differs"]);
    }
}
