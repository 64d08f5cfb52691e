//! RFC 3394, section 4 (KW), RFC 5649, section 6 (KWP), and vectors of NIST's `kwtestvectors`.

use crate::hex;
use lockstep_reference::Aes;
use lockstep_reference::key_wrap::{Direction, ICV1, ICV2, unwrap, unwrap_padded, wrap, wrap_padded};

/// The first `len` bytes of the keys that RFC 3394 uses.
fn counting(len: u8) -> Vec<u8> {
    (0..len).collect()
}

fn check_kw(direction: Direction, key: &[u8], plaintext: &str, ciphertext: &str) {
    let (aes, plaintext, ciphertext) = (Aes::new(key), hex(plaintext), hex(ciphertext));
    assert_eq!(wrap(&aes, direction, &ICV1, &plaintext), ciphertext);
    assert_eq!(unwrap(&aes, direction, &ICV1, &ciphertext), Some(plaintext));

    assert_eq!(unwrap(&aes, direction, &[0xa5; 8], &ciphertext), None, "another integrity check value");
    for i in [0, 8, ciphertext.len() - 1] {
        let mut changed = ciphertext.clone();
        changed[i] ^= 1;
        assert_eq!(unwrap(&aes, direction, &ICV1, &changed), None, "byte {i} changed");
    }
}

fn check_kwp(direction: Direction, key: &str, plaintext: &str, ciphertext: &str) {
    let (aes, plaintext, ciphertext) = (Aes::new(&hex(key)), hex(plaintext), hex(ciphertext));
    assert_eq!(wrap_padded(&aes, direction, &ICV2, &plaintext), ciphertext);
    assert_eq!(unwrap_padded(&aes, direction, &ICV2, &ciphertext), Some(plaintext));

    assert_eq!(
        unwrap_padded(&aes, direction, &[0xa6; 4], &ciphertext),
        None,
        "another integrity check value"
    );
    for i in [0, 8, ciphertext.len() - 1] {
        let mut changed = ciphertext.clone();
        changed[i] ^= 1;
        assert_eq!(unwrap_padded(&aes, direction, &ICV2, &changed), None, "byte {i} changed");
    }
}

/// RFC 3394, sections 4.1 to 4.6.
#[test]
fn rfc_3394() {
    let data = "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f";
    for (key_len, data_len, ciphertext) in [
        (16, 16, "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"),
        (24, 16, "96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d"),
        (32, 16, "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7"),
        (24, 24, "031d33264e15d33268f24ec260743edce1c6c7ddee725a936ba814915c6762d2"),
        (32, 24, "a8f9bc1612c68b3ff6e6f4fbe30e71e4769c8b80a32cb8958cd5d17d6b254da1"),
        (32, 32, "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"),
    ] {
        check_kw(Direction::Forward, &counting(key_len), &data[..2 * data_len], ciphertext);
    }
}

/// RFC 5649, section 6: 20 bytes, and 7 bytes, which are wrapped by one block encryption.
#[test]
fn rfc_5649() {
    let key = "5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8";
    check_kwp(
        Direction::Forward,
        key,
        "c37b7e6492584340bed12207808941155068f738",
        "138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a",
    );
    check_kwp(Direction::Forward, key, "466f7250617369", "afbeb0f07dfbf5419200f2ccb50bb24f");
}

/// NIST's files KW_AE_128_inv to KW_AE_256_inv, and KW_AD_128_inv. In these vectors, AES decryption wraps and AES encryption unwraps.
#[test]
fn inverse_kw() {
    for (key, plaintext, ciphertext) in [
        (
            "e88ba734ea243480a6129366753b58eb",
            "d140ac16a44c1c2b3f47037ea8898a3e",
            "600861ee14320006f0ae55c46d5e1ebf3303751df7f038df",
        ),
        (
            "370c715135b44eb3773b1aff833bcd28b59aee866d4a36b3",
            "eae0f60f1cf33d5b75869e84c764a04e",
            "ea4ba4add8add19950ca491d109ffa08f90312693055677a",
        ),
        (
            "de982f7c871f78e37462e2f48a62eecb2da81a10799c6ebf2bee8c786b624b0e",
            "ecafc437d9f1643c7645c2416c14c003",
            "aec02ddb3f6de1f99103c6042dfc9001eb3cf56d9c2a11f7",
        ),
        (
            "f8f94a07506f4d1728f6bed6c89a9c5d",
            "c248842911a3dbc5562b1fe0f3955c4da3fd74471062d074d9b972ce3a840f0cb63a768ed1c432b7",
            "85fe9d64465db07ec63062aeb4c9161558fabb01d6b9e787850831f9b3414a5cbd35023c63fd5962
             6c64cb3c470d9b7d",
        ),
    ] {
        check_kw(Direction::Inverse, &hex(key), plaintext, ciphertext);
    }
    let aes = Aes::new(&hex("accc4b014123f9e95d3c6f92d07da9fd"));
    let wrong = hex("020cc7c82b6b7cd2ff4d28186930305edce13d65cc36d8d1");
    assert_eq!(unwrap(&aes, Direction::Inverse, &ICV1, &wrong), None);
}

/// NIST's files KWP_AE_128_inv to KWP_AE_256_inv, and KWP_AD_256_inv. In these vectors, AES decryption wraps and AES encryption unwraps.
#[test]
fn inverse_kwp() {
    for (key, plaintext, ciphertext) in [
        ("1c321a356b0ee25e30de2d618c1facbe", "42", "3ddf22da3080a1a5252574c76f833790"),
        (
            "fe3fe235bb36dcf03f01cbf32cc98a3abf10ab3d608d3b30",
            "1d2b7fc29991bafaf7",
            "c11afb3c0de263dfb9b672a5f81fe0b9acfe9c407691f332",
        ),
        (
            "148a3fa618a6998c30b9f0f67922354a3747f2fa2e4d2e0b7af9582d6f548fee",
            "441125592acf9e5208dcd558a7ac0034d15530dbad7a2913963da0cbf60aa3",
            "23f26a9476829885055694062c89b86399e8d6125509c9e88bb0a5b5113f4bfc8d34a62cba3c9eee",
        ),
        (
            "48658f36aa5e24621f86fa6db06487bd635b18ff87704431a1c42cd145115c51",
            "16700199665ff161",
            "6990b3b115563ef6a0884a110a393ee4",
        ),
    ] {
        check_kwp(Direction::Inverse, key, plaintext, ciphertext);
    }
}

/// Unwrapping inverts wrapping for every length and for given integrity check values.
#[test]
fn every_length() {
    let aes = Aes::new(&counting(16));
    for direction in [Direction::Forward, Direction::Inverse] {
        for len in 1..=72 {
            let plaintext = counting(len);
            let padded = wrap_padded(&aes, direction, b"KWP!", &plaintext);
            assert_eq!(padded.len(), plaintext.len().next_multiple_of(8) + 8);
            assert_eq!(unwrap_padded(&aes, direction, b"KWP!", &padded), Some(plaintext.clone()));
            if len >= 16 && len % 8 == 0 {
                let wrapped = wrap(&aes, direction, b"another!", &plaintext);
                assert_eq!(unwrap(&aes, direction, b"another!", &wrapped), Some(plaintext));
            }
        }
    }
}

/// KWP is KW with the integrity check value ICV2 || length, and zero bytes as padding (RFC 5649, section 4.1). Values that
/// KWP cannot produce are rejected: wrong lengths, and padding that is not zero.
#[test]
fn lengths_and_padding() {
    let aes = Aes::new(&counting(16));
    let open = |len: u32, padded: &[u8]| {
        let icv = [ICV2, len.to_be_bytes()].concat().try_into().expect("8 bytes");
        let wrapped = wrap(&aes, Direction::Forward, &icv, padded);
        unwrap_padded(&aes, Direction::Forward, &ICV2, &wrapped)
    };
    let padded = [counting(20), vec![0; 4]].concat();
    assert_eq!(open(20, &padded), Some(counting(20)));
    assert_eq!(open(24, &padded), Some(padded.clone()));
    assert_eq!(open(19, &padded), None, "the padding contains the last byte");
    for wrong_len in [0, 1, 8, 15, 16, 25, 32, u32::MAX] {
        assert_eq!(open(wrong_len, &[0; 24]), None, "{wrong_len} bytes in 24");
    }

    // A ciphertext of one block holds one semiblock of plaintext, so the lengths 0 and 9 are refused.
    for (len, expected) in [(0, None), (1, Some(vec![0; 1])), (8, Some(vec![0; 8])), (9, None)] {
        let mut block = [0; 16];
        block[..4].copy_from_slice(&ICV2);
        block[7] = len;
        assert_eq!(unwrap_padded(&aes, Direction::Forward, &ICV2, &aes.encrypt(block)), expected, "{len}");
    }
}

/// Ciphertexts whose lengths wrapping cannot produce are refused.
#[test]
fn wrong_ciphertext_lengths() {
    let aes = Aes::new(&counting(16));
    for len in [0, 8, 16, 23, 25] {
        assert_eq!(unwrap(&aes, Direction::Forward, &ICV1, &vec![0; len]), None, "KW of {len} bytes");
    }
    for len in [0, 8, 15, 17, 23] {
        assert_eq!(unwrap_padded(&aes, Direction::Forward, &ICV2, &vec![0; len]), None, "KWP of {len} bytes");
    }
}

#[test]
#[should_panic(expected = "at least 16 bytes, not 8")]
fn one_semiblock() {
    wrap(&Aes::new(&[0; 16]), Direction::Forward, &ICV1, &[0; 8]);
}

#[test]
#[should_panic(expected = "20 bytes are not whole semiblocks")]
fn partial_semiblock() {
    wrap(&Aes::new(&[0; 16]), Direction::Forward, &ICV1, &[0; 20]);
}

#[test]
#[should_panic(expected = "at least one byte")]
fn empty_plaintext() {
    wrap_padded(&Aes::new(&[0; 16]), Direction::Forward, &ICV2, &[]);
}
