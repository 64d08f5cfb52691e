
use sha2::{Digest, Sha512};

use super::*;

const KEY_128: &[u8] = b"YELLOW SUBMARINE";
const KEY_256: &[u8] = b"YELLOW SUBMARINE YELLOW SUBMARIN";

fn hex(digits: &str) -> Vec<u8> {
    let digits: String = digits.split_whitespace().collect();
    let byte = |i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn check(aead: Aead, key: &[u8], context: &[u8], message: &[u8]) -> Vec<u8> {
    let plaintext = open(aead, key, context, message).expect("a valid message");
    let salt = message.first_chunk().expect("it has been opened");
    assert_eq!(seal(aead, key, salt, context, &plaintext), message);
    plaintext
}

// The vectors are C2SP's, from Wycheproof's c2sp_chunked_encryption_aes_{128,256}_gcm_test.json.

/// Cobblestone-128: tests 1, 2 and 9.
#[test]
fn short_128() {
    let empty = hex("187cab8e8e163c24b527dc7cb554eca847e5d7dc592714ea7d7b5967607c6a68
                 302fb25b26e0b032a6d39a239914ea2dc86aa17ec6d0beb1fdb011c7ad45ed10
                 89aeffe3465fdf59");
    assert_eq!(check(Aead::Cobblestone128, KEY_128, b"", &empty), b"");
    let message = hex("99ef5b6b98795b7b37a41d6321d8dd472347c76185f40027e921542dd7e4305b
                 b67a175e5088a8a4db92ef4d3419bda917dd5099085be2f35cf32165613d4fe5
                 8db45dd4619b454586232f2661a2bf");
    assert_eq!(check(Aead::Cobblestone128, KEY_128, b"", &message), b"chunked");
    let message = hex("de2ff42cb103e3c5583e1f39bfe368e9b2a83996fd28804927145e3dde6a611e
                 df2fbb2ab7afc10f4f6e0426d2e4a9aebc7349ea5cda426488c91fd589e9d8d6
                 da8759c7be16d0abf726266ee340e6");
    assert_eq!(check(Aead::Cobblestone128, KEY_128, b"test context", &message), b"chunked");
}

/// Cobblestone-256: tests 2 and 10.
#[test]
fn short_256() {
    let message = hex("a1a1b56f6db58cd1ede0c5c9db62aef20d3f96a6c594bb9252bb38122de91236
                 502b42a1d7fcab820ffa292940d2f86add212cfa42c38df19d3cc9139ee61a59
                 90d3db57433514229beea49a8a72bd");
    assert_eq!(check(Aead::Cobblestone256, KEY_256, b"", &message), b"chunked");
    let message = hex("12ede102c3ef730da4f3d4dbfaf11003683238315befe73b21ebb2246ac19f3a
                 7d50abd2a5a365f7652bda670814dbc883ce618256d2d513bd238c2c0dded761
                 4d52bef77bc04273656df97a294323");
    assert_eq!(check(Aead::Cobblestone256, KEY_256, b"test\0context", &message), b"chunked");
}

/// Cobblestone-128, test 3, and Cobblestone-256, test 6: a full chunk, whose ciphertext is all zeros, then a chunk of
/// one byte or an empty chunk.
#[test]
fn full_chunk() {
    let header = hex("433dca859c8f2397b5f72a85fc0222f38c532ee84e00dc61f91a804bbb981018
                 bfbd6b63680a6204d7d607e2f5c6394a046fe20c5f714063");
    let end = hex("35e379cb0613e732499b3593c23c8e4c00ca01e3e2afabc06c0a762a99d5e539
                 48");
    let message = [&header[..], &[0; CHUNK], &end].concat();
    let digest = hex("72b0c82119222070adf3117d445bbf53d7ffb70b75be4809ecaf8939f058fcb6
                 caceeece412a1f0d8c90f8c4db8fe9d199edf3e5007c2005d486c2e09d97ae45");
    assert_eq!(Sha512::digest(check(Aead::Cobblestone128, KEY_128, b"", &message))[..], digest);

    let header = hex("aa61a95ab04aa5eac4ecd9e83ef47f88dd07fdc07e38b6c9d77ec3c07801fc40
                 bec0e07020a0d36d3e6e6354833c21301d52a32cffe087df");
    let end = hex("31454358e7e1032d5bb622de82a8bf9b3dca8e38cc0b8942d7eb1f5ef9a56d7b");
    let message = [&header[..], &[0; CHUNK], &end].concat();
    let digest = hex("d787e0bf39e0d2e9a707b94bc77329f665286160744507f0fac9608e33a98994
                 b6d9dd4a43a6326287d32b2e15d76e0de6a8818689698bee2ca419bf9bbedc02");
    assert_eq!(Sha512::digest(check(Aead::Cobblestone256, KEY_256, b"", &message))[..], digest);
}

/// The index is XORed into the end of the nonce, in big-endian order.
#[test]
fn nonces() {
    let derived = Derived { aes: Aes::new(KEY_128), base_nonce: [0xf0; NONCE], commitment: [0; COMMITMENT] };
    assert_eq!(derived.nonce(0), [0xf0; NONCE]);
    assert_eq!(derived.nonce(0x0102)[..10], [0xf0; 10]);
    assert_eq!(derived.nonce(0x0102)[10..], [0xf1, 0xf2]);
}

/// A message that was changed, truncated or extended cannot be opened.
#[test]
fn rejected() {
    let (aead, salt) = (Aead::Cobblestone128, &[7; SALT]);
    let message = seal(aead, KEY_128, salt, b"context", &[1; 2 * CHUNK]);
    assert_eq!(message.len(), SALT + COMMITMENT + 2 * (CHUNK + TAG) + TAG);
    let opens = |message: &[u8]| open(aead, KEY_128, b"context", message).is_some();
    assert!(opens(&message));
    assert_eq!(open(aead, KEY_128, b"another", &message), None);
    assert_eq!(open(aead, &KEY_128[1..], b"context", &message), None);
    assert_eq!(open(Aead::Cobblestone256, KEY_256, b"context", &message), None);
    // Bytes of the salt, the commitment, the first chunk, its tag, the second chunk and the last tag.
    for i in [0, SALT, SALT + COMMITMENT, 56 + CHUNK, 56 + CHUNK + TAG, message.len() - 1] {
        let mut changed = message.clone();
        changed[i] ^= 1;
        assert!(!opens(&changed), "byte {i}");
    }
    for len in [0, SALT, 55, 56, 56 + CHUNK + TAG, 56 + 2 * (CHUNK + TAG), message.len() - 1] {
        assert!(!opens(&message[..len]), "cut to {len} bytes");
    }
    assert!(!opens(&[&message[..], &[0]].concat()));
    let mut swapped = message.clone();
    swapped[56..56 + 2 * (CHUNK + TAG)].rotate_left(CHUNK + TAG);
    assert!(!opens(&swapped));
}
