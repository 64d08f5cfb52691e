//! RFC 7253, appendix A, and vectors for longer nonces.

use crate::hex;
use lockstep_reference::{Aes, ocb};

/// The first `len` bytes of 00 01 02 ..., which are the key, the additional data and the plaintext of the samples.
fn counting(len: usize) -> Vec<u8> {
    (0..len).map(|i| i as u8).collect()
}

/// `result` is the ciphertext and the tag of `tag_len` bytes, as in RFC 7253.
fn check(key: &[u8], nonce: &str, aad_len: usize, plaintext_len: usize, result: &str, tag_len: usize) {
    let (aes, nonce, result) = (Aes::new(key), hex(nonce), hex(result));
    let (aad, plaintext) = (counting(aad_len), counting(plaintext_len));
    let (ciphertext, tag) = result.split_at(result.len() - tag_len);

    assert_eq!(ocb::seal(&aes, &nonce, &aad, &plaintext, tag_len), (ciphertext.to_vec(), tag.to_vec()));
    assert_eq!(ocb::open(&aes, &nonce, &aad, ciphertext, tag), Some(plaintext));

    // After any change the tag does not match.
    for i in [0, tag_len - 1] {
        let mut changed = tag.to_vec();
        changed[i] ^= 1;
        assert_eq!(ocb::open(&aes, &nonce, &aad, ciphertext, &changed), None, "byte {i} of the tag");
    }
    assert_eq!(ocb::open(&aes, &nonce, &[&aad[..], &[0]].concat(), ciphertext, tag), None);
    assert_eq!(ocb::open(&aes, &nonce, &aad, &[ciphertext, &[0]].concat(), tag), None);
    assert_eq!(ocb::open(&aes, &nonce[1..], &aad, ciphertext, tag), None, "a shorter nonce");
    assert_eq!(ocb::open(&aes, &nonce, &aad, ciphertext, &tag[..tag_len - 1]), None, "a shorter tag");
    assert_eq!(ocb::open(&aes, &nonce, &aad, ciphertext, &[]), None, "an empty tag is invalid");
    assert_eq!(ocb::open(&aes, &nonce, &aad, ciphertext, &[0; 17]), None, "a tag of 17 bytes is invalid");
}

/// RFC 7253, appendix A: AEAD_AES_128_OCB_TAGLEN128. The nonces count from BBAA99887766554433221100.
#[test]
fn samples() {
    let results = [
        (0, 0, "785407bfffc8ad9edcc5520ac9111ee6"),
        (8, 8, "6820b3657b6f615a5725bda0d3b4eb3a257c9af1f8f03009"),
        (8, 0, "81017f8203f081277152fade694a0a00"),
        (0, 8, "45dd69f8f5aae72414054cd1f35d82760b2cd00d2f99bfa9"),
        (16, 16, "571d535b60b277188be5147170a9a22c3ad7a4ff3835b8c5701c1ccec8fc3358"),
        (16, 0, "8cf761b6902ef764462ad86498ca6b97"),
        (0, 16, "5ce88ec2e0692706a915c00aeb8b2396f40e1c743f52436bdf06d8fa1eca343d"),
        (24, 24, "1ca2207308c87c010756104d8840ce1952f09673a448a122c92c62241051f57356d7f3c90bb0e07f"),
        (24, 0, "6dc225a071fc1b9f7c69f93b0f1e10de"),
        (0, 24, "221bd0de7fa6fe993eccd769460a0af2d6cded0c395b1c3ce725f32494b9f914d85c0b1eb38357ff"),
        (
            32,
            32,
            "bd6f6c496201c69296c11efd138a467abd3c707924b964deaffc40319af5a48540fbba186c5553c68ad9f592a79a4240",
        ),
        (32, 0, "fe80690bee8a485d11f32965bc9d2a32"),
        (
            0,
            32,
            "2942bfc773bda23cabc6acfd9bfd5835bd300f0973792ef46040c53f1432bcdfb5e1dde3bc18a5f840b52e653444d5df",
        ),
        (
            40,
            40,
            "d5ca91748410c1751ff8a2f618255b68a0a12e093ff454606e59f9c1d0ddc54b65e8628e568bad7aed07ba06a4a69483a7035490c5769e60",
        ),
        (40, 0, "c5cd9d1850c141e358649994ee701b68"),
        (
            0,
            40,
            "4412923493c57d5de0d700f753cce0d1d2d95060122e9f15a5ddbfc5787e50b5cc55ee507bcb084e479ad363ac366b95a98ca5f3000b1479",
        ),
    ];
    for (i, (aad_len, plaintext_len, result)) in results.into_iter().enumerate() {
        check(&counting(16), &format!("bbaa998877665544332211{i:02x}"), aad_len, plaintext_len, result, 16);
    }
}

/// RFC 7253, appendix A: AEAD_AES_128_OCB_TAGLEN96.
#[test]
fn sample_with_12_bytes_of_tag() {
    let result = "1792a4e31e0755fb03e31b22116e6c2ddf9efd6e33d536f1a0124b0a55bae884
                  ed93481529c76b6ad0c515f4d1cdd4fdac4f02aa";
    check(&hex("0f0e0d0c0b0a09080706050403020100"), "bbaa9988776655443322110d", 40, 40, result, 12);
}

/// RFC 7253, appendix A: 384 messages of 0 to 127 bytes for each parameter set.
#[test]
fn iterated() {
    for (key_len, output) in [
        (16, "67e944d23256c5e0b6c61fa22fdf1ea2"),
        (24, "f673f2c3e7174aae7bae986ca9f29e17"),
        (32, "d90eb8e9c977c88b79dd793d7ffa161c"),
        (16, "77a3d8e73589158d25d01209"),
        (24, "05d56ead2752c86be6932c5e"),
        (32, "5458359ac23b0cba9e6330dd"),
        (16, "192c9b7bd90ba06a"),
        (24, "0066bc6e0ef34e24"),
        (32, "7d4ea5d445501cbe"),
    ] {
        let output = hex(output);
        let mut key = vec![0; key_len];
        key[key_len - 1] = 8 * output.len() as u8;
        let aes = Aes::new(&key);
        let encrypt = |number: u32, aad: &[u8], plaintext: &[u8]| {
            let nonce = [&[0; 8][..], &number.to_be_bytes()].concat();
            let (ciphertext, tag) = ocb::seal(&aes, &nonce, aad, plaintext, output.len());
            [ciphertext, tag].concat()
        };
        let mut c = vec![];
        for i in 0..128 {
            let s = vec![0; i as usize];
            c.extend(encrypt(3 * i + 1, &s, &s));
            c.extend(encrypt(3 * i + 2, &[], &s));
            c.extend(encrypt(3 * i + 3, &s, &[]));
        }
        assert_eq!(encrypt(385, &c, &[]), output, "{key_len} bytes of key, {} bytes of tag", output.len());
    }
}

/// Nonces of 13, 14 and 15 bytes: samples of RFC 7253 with longer nonces, from the collection `ocb-test-vectors` of D. K.
/// Gillmor.
#[test]
fn longer_nonces() {
    for (nonce, aad_len, plaintext_len, result) in [
        ("ccbbaa99887766554433221100", 0, 0, "1af957957b85c3d7f6ca08c7c5fc8f4a"),
        (
            "ccbbaa99887766554433221107",
            24,
            24,
            "0c0299bee2d5b65cbc82a6ee119543b7b89de85561d149bfc1cbe6ec8749065c6068e046fb2ba7f7",
        ),
        ("ddccbbaa99887766554433221100", 0, 0, "b22774052013981c3038da65757a55e4"),
        (
            "ddccbbaa99887766554433221107",
            24,
            24,
            "98b9d538e13a8d12ce94c53f7c36675c77c0a8c9bde234fdb02e92506483a49976ae5585f1777360",
        ),
        ("eeddccbbaa99887766554433221100", 0, 0, "752acd2132c41e020e41fb223efd77b6"),
        (
            "eeddccbbaa99887766554433221107",
            24,
            24,
            "1c4b6777b7f137c30971a93de3c56cc735686a6f7703142fab8acc987c1406dff96273c5376e6210",
        ),
    ] {
        check(&counting(16), nonce, aad_len, plaintext_len, result, 16);
    }
}

/// Checks nonces and tags of every length, with and without a partial block.
#[test]
fn every_nonce_and_tag_length() {
    let aes = Aes::new(&counting(32));
    for nonce_len in 1..=15 {
        for tag_len in 1..=16 {
            for len in [0, 15, 16, 33] {
                let (nonce, data) = (counting(nonce_len), counting(len));
                let (ciphertext, tag) = ocb::seal(&aes, &nonce, &data, &data, tag_len);
                assert_eq!((ciphertext.len(), tag.len()), (len, tag_len));
                assert_eq!(ocb::open(&aes, &nonce, &data, &ciphertext, &tag), Some(data));
            }
        }
    }
}

#[test]
#[should_panic(expected = "1 to 15 bytes, not 16")]
fn nonce_too_long() {
    ocb::seal(&Aes::new(&[0; 16]), &[0; 16], &[], &[], 16);
}

#[test]
#[should_panic(expected = "1 to 15 bytes, not 0")]
fn empty_nonce() {
    ocb::seal(&Aes::new(&[0; 16]), &[], &[], &[], 16);
}

#[test]
#[should_panic(expected = "1 to 16 bytes, not 0")]
fn no_tag() {
    ocb::seal(&Aes::new(&[0; 16]), &[0; 12], &[], &[], 0);
}
