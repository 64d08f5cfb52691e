//! SP 800-38B, appendix D (CMAC), and SP 800-38C, appendix C (CCM): the modes based on CBC-MAC.

use crate::{block, hex};
use lockstep_reference::{Aes, cbc, cbc_mac, ccm, cmac};

/// SP 800-38B, D.1 to D.3: the empty message, 16, 40 and 64 bytes.
#[test]
fn cmac_examples() {
    let message = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51
         30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710");
    for (key, tags) in [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            [
                "bb1d6929e95937287fa37d129b756746",
                "070a16b46b4d4144f79bdd9dd04a287c",
                "dfa66747de9ae63030ca32611497c827",
                "51f0bebf7e3b9d92fc49741779363cfe",
            ],
        ),
        (
            "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            [
                "d17ddf46adaacde531cac483de7a9367",
                "9e99a7bf31e710900662f65e617c5184",
                "8a1de5be2eb31aad089a82e6ee908b0e",
                "a1d5df0eed790f794d77589659f39a11",
            ],
        ),
        (
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            [
                "028962f61b7bf89efc6b551f4667d983",
                "28a7023f452e8f82bd4bf28d8c37c35c",
                "aaf3d8f1de5640c232f5b169b9c911e6",
                "e1992190549f6ed5696a2c056c315410",
            ],
        ),
    ] {
        let aes = Aes::new(&hex(key));
        for (len, tag) in [0, 16, 40, 64].into_iter().zip(tags) {
            assert_eq!(cmac::cmac(&aes, &message[..len]), block(tag), "{len} bytes");
        }
    }
}

/// CBC-MAC is the last block of CBC with a zero IV, and can be continued.
#[test]
fn cbc_mac_is_the_end_of_cbc() {
    let aes = Aes::new(&hex("2b7e151628aed2a6abf7158809cf4f3c"));
    let data: Vec<u8> = (0..96).collect();
    let whole = cbc_mac::update(&aes, [0; 16], &data);
    assert_eq!(whole, cbc::encrypt(&aes, &[0; 16], &data)[80..]);
    assert_eq!(whole, cbc_mac::update(&aes, cbc_mac::update(&aes, [0; 16], &data[..32]), &data[32..]));
}

fn check_ccm(nonce: &str, aad: &[u8], plaintext: &str, ciphertext: &str, tag: &str) {
    let aes = Aes::new(&hex("404142434445464748494a4b4c4d4e4f"));
    let (nonce, tag) = (hex(nonce), hex(tag));
    let sealed = ccm::seal(&aes, &nonce, aad, &hex(plaintext), tag.len());
    assert_eq!(sealed, (hex(ciphertext), tag.clone()));
    assert_eq!(ccm::open(&aes, &nonce, aad, &sealed.0, &tag), Some(hex(plaintext)));

    // After any change the tag does not match.
    let mut changed = sealed.0.clone();
    changed[0] ^= 1;
    assert_eq!(ccm::open(&aes, &nonce, aad, &changed, &tag), None);
    let mut changed = tag.clone();
    *changed.last_mut().unwrap() ^= 0x80;
    assert_eq!(ccm::open(&aes, &nonce, aad, &sealed.0, &changed), None);
    assert_eq!(ccm::open(&aes, &nonce, &aad[1..], &sealed.0, &tag), None);
    assert_eq!(ccm::open(&aes, &nonce, aad, &sealed.0, &tag[..2]), None, "a tag of 2 bytes is invalid");
    assert_eq!(ccm::open(&aes, &nonce, aad, &sealed.0, &[]), None, "an empty tag is invalid");
}

/// SP 800-38C, example 1.
#[test]
fn ccm_example_1() {
    check_ccm("10111213141516", &hex("0001020304050607"), "20212223", "7162015b", "4dac255d");
}

/// SP 800-38C, example 2.
#[test]
fn ccm_example_2() {
    check_ccm(
        "1011121314151617",
        &hex("000102030405060708090a0b0c0d0e0f"),
        "202122232425262728292a2b2c2d2e2f",
        "d2a1f0e051ea5f62081a7792073d593d",
        "1fc64fbfaccd",
    );
}

/// SP 800-38C, example 3.
#[test]
fn ccm_example_3() {
    check_ccm(
        "101112131415161718191a1b",
        &hex("000102030405060708090a0b0c0d0e0f10111213"),
        "202122232425262728292a2b2c2d2e2f3031323334353637",
        "e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5",
        "484392fbc1b09951",
    );
}

/// SP 800-38C, example 4: the additional data have 65536 bytes, so their encoded length has six bytes.
#[test]
fn ccm_example_4() {
    check_ccm(
        "101112131415161718191a1b1c",
        &(0..65536).map(|i| i as u8).collect::<Vec<u8>>(),
        "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f",
        "69915dad1e84c6376a68c2967e4dab615ae0fd1faec44cc484828529463ccf72",
        "b4ac6bec93e8598e7f0dadbcea5b",
    );
}

#[test]
#[should_panic(expected = "7 to 13 bytes, not 14")]
fn ccm_wrong_nonce() {
    ccm::seal(&Aes::new(&[0; 16]), &[0; 14], &[], &[], 16);
}

#[test]
#[should_panic(expected = "not 5")]
fn ccm_wrong_tag_len() {
    ccm::seal(&Aes::new(&[0; 16]), &[0; 12], &[], &[], 5);
}

#[test]
#[should_panic(expected = "65536 bytes do not fit a length of 2 bytes")]
fn ccm_too_long_for_its_nonce() {
    ccm::seal(&Aes::new(&[0; 16]), &[0; 13], &[], &[0; 65536], 16);
}
