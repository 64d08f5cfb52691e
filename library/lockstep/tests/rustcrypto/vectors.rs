//! RustCrypto's tests of its traits with the vectors that it publishes: `data/README.md`.

use cipher::consts::{U4, U7, U8, U10, U12, U13, U16};
use lockstep::rustcrypto::aead::array::Array;
use lockstep::rustcrypto::aead::{AeadInOut, KeyInit};
use lockstep::rustcrypto::cbc::{Decryptor, Encryptor};
use lockstep::rustcrypto::ctr::{Ctr32BE, Ctr64BE, Ctr128BE, CtrCore};
use lockstep::rustcrypto::{
    Aes128, Aes128Gcm, Aes128GcmSiv, Aes128SivAead, Aes192, Aes256, Aes256Gcm, Aes256GcmSiv, Ccm, Eax, Ocb3,
};

aead::new_pass_test!(gcm_128_pass, "gcm-128_pass", Aes128Gcm);
aead::new_fail_test!(gcm_128_fail, "gcm-128_fail", Aes128Gcm);
aead::new_pass_test!(gcm_256_pass, "gcm-256_pass", Aes256Gcm);
aead::new_fail_test!(gcm_256_fail, "gcm-256_fail", Aes256Gcm);
aead::new_pass_test!(gcm_siv_128_pass, "gcm-siv-128_pass", Aes128GcmSiv);
aead::new_fail_test!(gcm_siv_128_fail, "gcm-siv-128_fail", Aes128GcmSiv);
aead::new_pass_test!(gcm_siv_256_pass, "gcm-siv-256_pass", Aes256GcmSiv);
aead::new_fail_test!(gcm_siv_256_fail, "gcm-siv-256_fail", Aes256GcmSiv);
aead::new_pass_test!(ocb3_pass, "ocb3_pass", Ocb3<Aes128>);
aead::new_pass_test!(eax_pass, "eax_pass", Eax<Aes128>);
aead::new_pass_test!(ccm_128_pass, "rfc3610_ccm_aes128_10_13_pass", Ccm<Aes128, U10, U13>);
aead::new_pass_test!(ccm_192_pass, "cavp_ccm_aes192_4_7_pass", Ccm<Aes192, U4, U7>);
aead::new_fail_test!(ccm_192_fail, "cavp_ccm_aes192_4_7_fail", Ccm<Aes192, U4, U7>);
aead::new_pass_test!(ccm_256_pass, "cavp_ccm_aes256_16_7_pass", Ccm<Aes256, U16, U7>);
aead::new_fail_test!(ccm_256_fail, "cavp_ccm_aes256_16_7_fail", Ccm<Aes256, U16, U7>);

cipher::block_cipher_test!(aes_128, "aes-128", Aes128);
cipher::block_cipher_test!(aes_192, "aes-192", Aes192);
cipher::block_cipher_test!(aes_256, "aes-256", Aes256);

cipher::block_mode_test!(cbc_128_encryption, "cbc-128", Encryptor<Aes128>, encrypt);
cipher::block_mode_test!(cbc_128_decryption, "cbc-128", Decryptor<Aes128>, decrypt);
cipher::block_mode_test!(cbc_192_encryption, "cbc-192", Encryptor<Aes192>, encrypt);
cipher::block_mode_test!(cbc_192_decryption, "cbc-192", Decryptor<Aes192>, decrypt);
cipher::block_mode_test!(cbc_256_encryption, "cbc-256", Encryptor<Aes256>, encrypt);
cipher::block_mode_test!(cbc_256_decryption, "cbc-256", Decryptor<Aes256>, decrypt);
cipher::iv_state_test!(cbc_encryption_iv_state, Encryptor<Aes128>, encrypt);
cipher::iv_state_test!(cbc_decryption_iv_state, Decryptor<Aes256>, decrypt);

cipher::stream_cipher_test!(ctr_128, "ctr-128", Ctr128BE<Aes128>);
cipher::stream_cipher_test!(ctr_256, "ctr-256", Ctr128BE<Aes256>);
cipher::stream_cipher_seek_test!(ctr_128_seek, Ctr128BE<Aes128>);
cipher::stream_cipher_seek_test!(ctr_64_seek, Ctr64BE<Aes192>);
cipher::stream_cipher_seek_test!(ctr_32_seek, Ctr32BE<Aes256>);
cipher::iv_state_test!(ctr_128_iv_state, CtrCore<Aes128, u128>, apply_ks);
cipher::iv_state_test!(ctr_64_iv_state, CtrCore<Aes192, u64>, apply_ks);
cipher::iv_state_test!(ctr_32_iv_state, CtrCore<Aes256, u32>, apply_ks);

/// RFC 5297, appendix A.2, with one string of associated data, as in the tests of the crate `aes-siv`.
#[test]
fn siv() {
    let vector = aead::dev::TestVector {
        key: b"\x7f\x7e\x7d\x7c\x7b\x7a\x79\x78\x77\x76\x75\x74\x73\x72\x71\x70@ABCDEFGHIJKLMNO",
        nonce: b"\x09\xf9\x11\x02\x9d\x74\xe3\x5b\xd8\x41\x56\xc5\x63\x56\x88\xc0",
        aad: b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\xde\xad\xda\xda\
            \xde\xad\xda\xda\xff\xee\xdd\xcc\xbb\xaa\x99\x88\x77\x66\x55\x44\x33\x22\x11\x00",
        plaintext: b"this is some plaintext to encrypt using SIV-AES",
        ciphertext: b"\x85\x82\x5e\x22\xe9\x0c\xf2\xdd\xda\x2c\x54\x8d\xc7\xc1\xb6\x31\
            \x0d\xcd\xac\xa0\xce\xbf\x9d\xc6\xcb\x90\x58\x3f\x5b\xf1\x50\x6e\x02\xcd\x48\x83\x2b\x00\xe4\xe5\
            \x98\xb2\xb2\x2a\x53\xe6\x19\x9d\x4d\xf0\xc1\x66\x6a\x35\xa0\x43\x3b\x25\x0d\xc1\x34\xd7\x76",
    };
    assert_eq!(aead::dev::pass_test::<Aes128SivAead>(&vector), Ok(()));
    let wrong = aead::dev::TestVector { aad: b"", ..vector };
    assert_eq!(aead::dev::fail_test::<Aes128SivAead>(&wrong), Ok(()));
}

/// The sample results on page 18 of RFC 7253: many messages under one key, and the tag of all their ciphertexts.
#[test]
fn ocb3_of_many_messages() {
    assert_eq!(many_messages::<Ocb3<Aes128>>(), 0x67e9_44d2_3256_c5e0_b6c6_1fa2_2fdf_1ea2);
    assert_eq!(many_messages::<Ocb3<Aes192>>(), 0xf673_f2c3_e717_4aae_7bae_986c_a9f2_9e17);
    assert_eq!(many_messages::<Ocb3<Aes256>>(), 0xd90e_b8e9_c977_c88b_79dd_793d_7ffa_161c);
    assert_eq!(many_messages::<Ocb3<Aes192, U12, U12>>(), 0x05d5_6ead_2752_c86b_e693_2c5e);
    assert_eq!(many_messages::<Ocb3<Aes256, U12, U8>>(), 0x7d4e_a5d4_4550_1cbe);
}

fn many_messages<C: AeadInOut<NonceSize = U12> + KeyInit>() -> u128 {
    use lockstep::rustcrypto::aead::array::typenum::Unsigned;
    let mut key = lockstep::rustcrypto::aead::Key::<C>::default();
    *key.last_mut().unwrap() = 8 * C::TagSize::U8;
    let cipher = C::new(&key);
    let nonce = |number: u32| -> Array<u8, U12> {
        let mut nonce = [0; 12];
        nonce[8..].copy_from_slice(&number.to_be_bytes());
        nonce.into()
    };
    let mut all = Vec::new();
    let mut seal = |number, aad: &[u8], plain: &[u8]| {
        let mut data = plain.to_vec();
        let tag = cipher.encrypt_inout_detached(&nonce(number), aad, data.as_mut_slice().into()).unwrap();
        all.extend([&data, &*tag].concat());
    };
    for i in 0..128 {
        let zeros = vec![0; i as usize];
        seal(3 * i + 1, &zeros, &zeros);
        seal(3 * i + 2, &[], &zeros);
        seal(3 * i + 3, &zeros, &[]);
    }
    let tag = cipher.encrypt_inout_detached(&nonce(385), &all, (&mut [][..]).into()).unwrap();
    tag.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}
