//! The test vectors of the authors of HCTR2 (<https://github.com/google/hctr2>, `test_vectors/ours/HCTR2`).

use crate::hex;
use lockstep_reference::{Aes, hctr2};

fn check(key: &str, tweak: &str, plaintext: &str, ciphertext: &str) {
    let (aes, tweak, plaintext, ciphertext) =
        (Aes::new(&hex(key)), hex(tweak), hex(plaintext), hex(ciphertext));
    assert_eq!(hctr2::encrypt(&aes, &tweak, &plaintext), ciphertext);
    assert_eq!(hctr2::decrypt(&aes, &tweak, &ciphertext), plaintext);
}

/// Messages of 16, 31 and 255 bytes, with tweaks of 0 to 47 bytes.
#[test]
fn aes_128() {
    check(
        "74f98f60786abfa85b0bbba059e0f91e",
        "",
        "6b26837bdc1c583dc142c6ab7b3f43b0",
        "dd05a8ae51f1e8212fd6c33b9467036d",
    );
    check(
        "8d36a6f8fe0ad10effbdf374ea1a5919",
        "",
        "99d5cbe30b34037f655f60fad017667f7a331e941c3ae9eebae09458e6a136",
        "99b50bd965c89e8976d3ce7215c795daff048c8fe6050b2b44a290fa2bf3fe",
    );
    check(
        "8171c4d67e21d6a250235be986da8e3f",
        "10",
        "5477797774f15a78b691d443b14be3560b88f5b95977549508e85ebd7f31bb",
        "0a999af4e64b89473ae7ce0c1e06a03275e74f5640af8f15af291e04a097cd",
    );
    check(
        "1bb314eb8e12c8b5eb543f56c5eba8e1",
        "318cc4fbb58e8e1c71d66de69a916ba6",
        "ca19cbcea68945e4dc7fbd24723028f4d360ef75d6bc0e1bde1c27a4c5ca80",
        "6cda4aff0713541390daedc3657c523338c8c366cb0f75487403e35b1c6b0a",
    );
    check(
        "e115663c8dc63affef41d747a2cc8aba",
        "c3be2acbb53986f191ad6cf4de7445635c7ad5cc8b76ef0ecf2c606937fd0796",
        "6575aed3e2bc435cb31ad805c3d05629",
        "1191ea7458ccd5a2d0559e3dfe7fc8fe",
    );
    check(
        "dad90119f0c36f95acd1f0c8c1b30f68",
        "6167ceef5044b88b1afcf7a7c71009cf94db81856c775dfb7d891c7605209a0d7fa2865d482da42871bafa13b4331c",
        "2f7ed37d838ed2da67e129d0deeb941d34c4581f2c1184b35041a34bb1a672910b84ce184f9321aaa307322ef935e6ec
         38878ee446193cc41d2839a48fce0b1ebff1b79af0653e233b5cc8850c84daeb6112d98f6d68ef00be4362bf3de3da99
         aae44343cebe057b8cc325337f41c10f4f7243beead616d1e7969eaf7d138e592bd36e8985443bbb332ac57bda155ee1
         94c63ac85903ab8a9dcd603bf0e05cd895063c0c34f458934c5f7aba6f3252ed78859be39f43c7e8832a5adc420b7b9a
         d24140e7dbfdf0ef4e22dfbb1994116a075432fb8b600892046f60a6dcdca66438d0d08235b2c3babb9bf58dda0d85ef
         4e793247164f8b126f7b83c40f91c2",
        "c9703a105c74f6921336695745118add3ecd61b3ad4abf16be8940a17abe46d76f391cdb9e6f6e0c15b3e882f0bf6adf
         97eb156e70e0062f07ef7e8a0f3efef05d846d6a96300956fe003fb871b66261185564520108d7f5acc082343ee632a0
         0734cd195fd0e7eab789348be8950e64dadf49bbb02d932885e6b51b0a1bdfdc94106e441184cfe6f84bcf176f201286
         3e22c7e7ef77a227c6eb241fcae9b8ea59c47a8f6cc311d6980eee886c77d6bd7f64b8165530733b96f3db5f11bd7ac8
         ad387f212c54620a1e7c7b56015aa4082e1214e611f69da39588158cd18f9dc78f624a4ef0cef68fd2cef8ca1d2450ef
         3ed07c78e3e4c637f9e991d813f83a",
    );
}

/// Messages of 17 and 48 bytes, with tweaks of 0 to 47 bytes.
#[test]
fn aes_192() {
    check(
        "e86753cfcd932cb05a2d3cd10a25cf2c6c7df60c8b985ab0",
        "",
        "2339f0c4f569905813875194737d973ac6",
        "ee74412fc99386c4672fd9b3c6640381a3",
    );
    check(
        "3498da1c5535bf1b6fd81e9c8e994c4cd378c3f84c599ba1",
        "2f586b086c99a3957fb5189ee2847a44",
        "3f494288823421fe85e12f6d736f7f35ede23cf3c9e126ea856b7646e27a3b99bded35b941509fc60bf6343323b06ef8",
        "fbfd26eecf0f04436281daf3ea22c1aac1cf4166cf5e7e8cb7f24d80622fa8320d282c3ddc2257d26eb4f4768cfc6b52",
    );
    check(
        "bfafd7678c47cf218aa5dd322547be4ff13a0ba6aa2dcf09",
        "d9e8f0924efc1df281377c8ff1590920f44651864f548b3258d1998b8c03eb5d",
        "cd6490f97ce50e5a75e78e3986ec20438a49091547f43c8921ebcf4ecf91b540cde54d5c6ff2d280faabb3769f7f840a",
        "44986415b70b80a3b9ca23ff3b0b6874bb3e20199f28712a483c7ce2efb510ac829fcd088f6b166fc3bb07fb3cb01b27",
    );
    check(
        "0fadf663f6e39e31a6b2e187c33491ca46b19ae3ad448003",
        "5fc3f640b8113f0c7d8d3f9e7b4ba377227508d7685dae9b25eee7cbbc1c1c088a84ad7f71094b76a6224a2e20bba1",
        "ad82eb7b2b414d15595ee3b1ceaa0a76c58835a7ac39ed05a77159d7b06744c0f7329684371798152c33f1d7153c6155",
        "bbb3a2313eef222dcdb453a503443eb6b0ddd27fa61658c4f03eab502be9a2df4b7194d8d194813f85d16ee290afac1d",
    );
}

/// Messages of 16, 17, 31 and 48 bytes, with tweaks of 0 to 47 bytes.
#[test]
fn aes_256() {
    check(
        "7fc7152ae1f5fda4176769aec92bba82a314e7cfadfd8540da7b7d24bdf17d07",
        "",
        "9be382c65ac19fad4659b80bacc857a0",
        "596a76ff906fbe9b792767778fed2361",
    );
    check(
        "47e2f3dfa5a87a963653d82bcf0620f15775bef19703bd40cf1b2954d74eb21b",
        "05",
        "0fc263fdd3f258ecff861d3f0a4b2e20c33a3355a03391c05e2416aa5cafc3",
        "b8f992baa84335f10fe745e8b7ccc1bfd9841bac54ca241c16efd4d5d7a467",
    );
    check(
        "af78fd378503404216ce5cc1e142491f6e05e19833a974cd847580e9796005f8",
        "5af1d993908473577cc5c5510fae6a37",
        "84b4f4cd1bcd2a869ba4cb77d93f08b1efbd639ec59304b1be22b828cf7897e1834d27e7c973ce257503b235e2809e55",
        "96c8ee2482382f2f33c939d9b6b5f1aff6c06b5a3a4ebebee71f960be32f001b160cdcc11241772343e052801d094303",
    );
    check(
        "93fa7ee20e67c439e7ca4795689d5e5a7c2619abc6ca6a4c45a69642ae6cffe7",
        "ea8247953b22a13a6aca244c507e23cd0e50e541b66529d8302300d254a7d656",
        "db1f1fecad836e5d19a5f63bb4935a576f",
        "f1466e9db301f06bc2ac5788486d407268",
    );
    check(
        "89c83d9ad210aa20754b41a6ca0218a6baaf4f7d7e60d1c2b2a312cc21a636e4",
        "6691e8770febf8a0bd3130c46eeebcd59d78a0dfede2acdf7ea3a4b325d81d04dc29a4499ed0d016a2a2456f418d97",
        "75c05d8f995fe8ed82785888fddf894f71ae115c8bc1b6d94c5525cbc6de2278d393776ed36e61ec62f9652c82711535",
        "a80e56fe5a2e8abc21cb17053444fd153467e5832efd3091e83f7ec91c1d4d6870fb432cd50b2b33eac474b07d98ad1b",
    );
}

/// Decryption inverts encryption for every length of message and tweak, and every length of tweak gives another ciphertext,
/// even if the padded tweaks are equal.
#[test]
fn every_length() {
    let aes = Aes::new(&[9; 32]);
    let message: Vec<u8> = (0..80).collect();
    for len in 16..=80 {
        let ciphertexts: Vec<Vec<u8>> = (0..=33)
            .map(|tweak_len| {
                let tweak = vec![0; tweak_len];
                let ciphertext = hctr2::encrypt(&aes, &tweak, &message[..len]);
                assert_eq!(hctr2::decrypt(&aes, &tweak, &ciphertext), message[..len]);
                ciphertext
            })
            .collect();
        for (i, a) in ciphertexts.iter().enumerate() {
            assert!(!ciphertexts[..i].contains(a), "{len} bytes, tweak of {i} bytes");
        }
    }
}

/// A change of any byte changes the first and the last block of the result in both directions.
#[test]
fn diffusion() {
    let aes = Aes::new(&[9; 16]);
    let message: Vec<u8> = (0..50).collect();
    for operation in [hctr2::encrypt, hctr2::decrypt] {
        let result = operation(&aes, b"tweak", &message);
        for i in 0..message.len() {
            let mut changed = message.clone();
            changed[i] ^= 1;
            let other = operation(&aes, b"tweak", &changed);
            assert_ne!(other[..16], result[..16], "byte {i}");
            assert_ne!(other[34..], result[34..], "byte {i}");
        }
    }
}

#[test]
#[should_panic(expected = "at least 16 bytes, not 15")]
fn too_short() {
    hctr2::encrypt(&Aes::new(&[1; 16]), &[], &[0; 15]);
}
