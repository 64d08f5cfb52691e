//! FIPS 197, appendices A, B and C.

use crate::{block, hex};
use lockstep_reference::Aes;

/// Appendix A.1: the expansion of a key of 128 bits.
#[test]
fn key_expansion_128() {
    let round_keys = hex("2b7e1516 28aed2a6 abf71588 09cf4f3c
         a0fafe17 88542cb1 23a33939 2a6c7605
         f2c295f2 7a96b943 5935807a 7359f67f
         3d80477d 4716fe3e 1e237e44 6d7a883b
         ef44a541 a8525b7f b671253b db0bad00
         d4d1c6f8 7c839d87 caf2b8bc 11f915bc
         6d88a37a 110b3efd dbf98641 ca0093fd
         4e54f70e 5f5fc9f3 84a64fb2 4ea6dc4f
         ead27321 b58dbad2 312bf560 7f8d292f
         ac7766f3 19fadc21 28d12941 575c006e
         d014f9a8 c9ee2589 e13f0cc8 b6630ca6");
    let aes = Aes::new(&hex("2b7e151628aed2a6abf7158809cf4f3c"));
    assert_eq!(aes.round_keys().len(), 11);
    assert_eq!(aes.round_keys().as_flattened(), round_keys);
}

/// Appendix A.2: the expansion of a key of 192 bits.
#[test]
fn key_expansion_192() {
    let round_keys = hex("8e73b0f7 da0e6452 c810f32b 809079e5
         62f8ead2 522c6b7b fe0c91f7 2402f5a5
         ec12068e 6c827f6b 0e7a95b9 5c56fec2
         4db7b4bd 69b54118 85a74796 e92538fd
         e75fad44 bb095386 485af057 21efb14f
         a448f6d9 4d6dce24 aa326360 113b30e6
         a25e7ed5 83b1cf9a 27f93943 6a94f767
         c0a69407 d19da4e1 ec1786eb 6fa64971
         485f7032 22cb8755 e26d1352 33f0b7b3
         40beeb28 2f18a259 6747d26b 458c553e
         a7e1466c 9411f1df 821f750a ad07d753
         ca400538 8fcc5006 282d166a bc3ce7b5
         e98ba06f 448c773c 8ecc7204 01002202");
    let aes = Aes::new(&hex("8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b"));
    assert_eq!(aes.round_keys().len(), 13);
    assert_eq!(aes.round_keys().as_flattened(), round_keys);
}

/// Appendix A.3: the expansion of a key of 256 bits.
#[test]
fn key_expansion_256() {
    let round_keys = hex("603deb10 15ca71be 2b73aef0 857d7781
         1f352c07 3b6108d7 2d9810a3 0914dff4
         9ba35411 8e6925af a51a8b5f 2067fcde
         a8b09c1a 93d194cd be49846e b75d5b9a
         d59aecb8 5bf3c917 fee94248 de8ebe96
         b5a9328a 2678a647 98312229 2f6c79b3
         812c81ad dadf48ba 24360af2 fab8b464
         98c5bfc9 bebd198e 268c3ba7 09e04214
         68007bac b2df3316 96e939e4 6c518d80
         c814e204 76a9fb8a 5025c02d 59c58239
         de136967 6ccc5a71 fa256395 9674ee15
         5886ca5d 2e2f31d7 7e0af1fa 27cf73c3
         749c47ab 18501dda e2757e4f 7401905a
         cafaaae3 e4d59b34 9adf6ace bd10190d
         fe4890d1 e6188d0b 046df344 706c631e");
    let aes = Aes::new(&hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"));
    assert_eq!(aes.round_keys().len(), 15);
    assert_eq!(aes.round_keys().as_flattened(), round_keys);
}

fn check(key: &str, plaintext: &str, ciphertext: &str) {
    let aes = Aes::new(&hex(key));
    assert_eq!(aes.encrypt(block(plaintext)), block(ciphertext));
    assert_eq!(aes.decrypt(block(ciphertext)), block(plaintext));
}

/// Appendix B: the cipher example.
#[test]
fn cipher_example() {
    check(
        "2b7e151628aed2a6abf7158809cf4f3c",
        "3243f6a8885a308d313198a2e0370734",
        "3925841d02dc09fbdc118597196a0b32",
    );
}

/// Appendix C: one example for each size of key.
#[test]
fn example_vectors() {
    let plaintext = "00112233445566778899aabbccddeeff";
    check("000102030405060708090a0b0c0d0e0f", plaintext, "69c4e0d86a7b0430d8cdb78070b4c55a");
    check("000102030405060708090a0b0c0d0e0f1011121314151617", plaintext, "dda97ca4864cdfe06eaf70a0ec0d7191");
    check(
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        plaintext,
        "8ea2b7ca516745bfeafc49904b496089",
    );
}

#[test]
#[should_panic(expected = "16, 24 or 32 bytes, not 17")]
fn wrong_key_length() {
    Aes::new(&[0; 17]);
}
