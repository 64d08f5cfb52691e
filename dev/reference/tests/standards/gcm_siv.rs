//! RFC 8452, section 7 and appendices A and C, and OpenSSL's vectors for AES-192 (`evpciph_aes_gcm_siv.txt`).

use crate::{block, hex};
use lockstep_reference::{gcm_siv, polyval};

/// The digits of 01 and zeros, `len` bytes in all: the keys and nonces of the first vectors of appendices C.1 and C.2.
fn one(len: usize) -> String {
    format!("01{}", "00".repeat(len - 1))
}
const NONCE_3: &str = "030000000000000000000000";

/// `result` is the ciphertext and the tag, as in RFC 8452.
fn check(key: &str, nonce: &str, aad: &str, plaintext: &str, result: &str) {
    let [key, aad, plaintext, result] = [key, aad, plaintext, result].map(hex);
    let nonce = hex(nonce).try_into().expect("12 bytes");
    let (ciphertext, tag) = result.split_last_chunk().expect("a tag");

    assert_eq!(gcm_siv::seal(&key, &nonce, &aad, &plaintext), (ciphertext.to_vec(), *tag));
    assert_eq!(gcm_siv::open(&key, &nonce, &aad, ciphertext, tag), Some(plaintext));

    // After any change the tag does not match.
    for i in [0, 7, 15] {
        let mut changed = *tag;
        changed[i] ^= 0x80;
        assert_eq!(gcm_siv::open(&key, &nonce, &aad, ciphertext, &changed), None, "byte {i} of the tag");
    }
    assert_eq!(gcm_siv::open(&key, &nonce, &[&aad[..], &[0]].concat(), ciphertext, tag), None);
    assert_eq!(gcm_siv::open(&key, &nonce, &aad, &[ciphertext, &[0]].concat(), tag), None);
    let mut changed = nonce;
    changed[11] ^= 1;
    assert_eq!(gcm_siv::open(&key, &changed, &aad, ciphertext, tag), None, "another nonce");
    assert_eq!(
        gcm_siv::open(&key, &nonce, &aad, ciphertext, &tag[..15]),
        None,
        "a tag of 15 bytes is invalid"
    );
}

/// RFC 8452, section 7: the product and dot().
#[test]
fn field() {
    let a = block("66e94bd4ef8a2c3b884cfa59ca342b2e");
    let b = block("ff000000000000000000000000000000");
    assert_eq!(polyval::mul(a, b), block("37856175e9dc9df26ebc6d6171aa0ae9"));
    assert_eq!(polyval::dot(a, b), block("ebe563401e7e91ea3ad6426b8140c394"));
}

/// RFC 8452, appendix A.
#[test]
fn polyval_example() {
    let h = block("25629347589242761d31f826ba4b757b");
    let [x_1, x_2] = [block("4f4f95668c83dfb6401762bb2d01a262"), block("d1a24ddd2721d006bbe45f20d3c9f362")];
    let expected = block("f7a3b47b846119fae5b7866cf5e5b77e");
    assert_eq!(polyval::polyval(&h, &[x_1, x_2].concat()), expected);
    let s_1 = polyval::polyval(&h, &x_1);
    assert_eq!(s_1, block("cedac64537ff50989c16011551086d77"));
    assert_eq!(polyval::update(&h, s_1, &x_2), expected);
    assert_eq!(polyval::polyval(&h, &[]), [0; 16]);
}

/// Field laws that follow from the definition: x^-128 is the inverse of x^128, so x^128 is the neutral element of dot().
#[test]
fn dot_laws() {
    let one = (1u128 << 127 | 1 << 126 | 1 << 121 | 1).to_le_bytes();
    let [a, b, c]: [[u8; 16]; 3] =
        [3u8, 29, 101].map(|s| std::array::from_fn(|i| s.wrapping_mul(i as u8 + 7)));
    assert_eq!(polyval::dot(a, one), a);
    assert_eq!(polyval::dot(a, b), polyval::dot(b, a));
    assert_eq!(polyval::dot(polyval::dot(a, b), c), polyval::dot(a, polyval::dot(b, c)));
}

/// The record keys of appendices C.1 and C.2, and the hash of the second vector of C.1.
#[test]
fn intermediate_values() {
    let nonce = hex(NONCE_3).try_into().expect("12 bytes");
    let keys = gcm_siv::derive_keys(&hex(&one(16)), &nonce);
    assert_eq!(keys.authentication, block("d9b360279694941ac5dbc6987ada7377"));
    assert_eq!(keys.encryption, hex("4004a0dcd862f2a57360219d2d44ef6c"));
    let hashed = hex("0100000000000000000000000000000000000000000000004000000000000000");
    assert_eq!(polyval::polyval(&keys.authentication, &hashed), block("eb93b7740962c5e49d2a90a7dc5cec74"));

    let keys = gcm_siv::derive_keys(&hex(&one(32)), &nonce);
    assert_eq!(keys.authentication, block("b5d3c529dfafac43136d2d11be284d7f"));
    assert_eq!(keys.encryption, hex("b914f4742be9e1d7a2f84addbf96dec3456e3c6c05ecc157cdbf0700fedad222"));
}

/// RFC 8452, appendix C.1.
#[test]
fn aes_128() {
    let key = one(16);
    check(&key, NONCE_3, "", "", "dc20e2d83f25705bb49e439eca56de25");
    for (aad, plaintext, result) in [
        ("", "0100000000000000", "b5d839330ac7b786578782fff6013b815b287c22493a364c"),
        ("", "010000000000000000000000", "7323ea61d05932260047d942a4978db357391a0bc4fdec8b0d106639"),
        (
            "",
            "01000000000000000000000000000000",
            "743f7c8077ab25f8624e2e948579cf77303aaf90f6fe21199c6068577437a0c4",
        ),
        (
            "",
            "010000000000000000000000000000000200000000000000000000000000000003000000000000000000000000000000",
            "3fd24ce1f5a67b75bf2351f181a475c7b800a5b4d3dcf70106b1eea82fa1d64df42bf7226122fa92e17a40eeaac1201b
             5e6e311dbf395d35b0fe39c2714388f8",
        ),
        ("01", "0200000000000000", "1e6daba35669f4273b0a1a2560969cdf790d99759abd1508"),
        (
            "01",
            "02000000000000000000000000000000",
            "e2b0c5da79a901c1745f700525cb335b8f8936ec039e4e4bb97ebd8c4457441f",
        ),
        ("010000000000000000000000", "02000000", "a8fe3e8707eb1f84fb28f8cb73de8e99e2f48a14"),
        (
            "010000000000000000000000000000000200",
            "0300000000000000000000000000000004000000",
            "6bb0fecf5ded9b77f902c7d5da236a4391dd029724afc9805e976f451e6d87f6fe106514",
        ),
        (
            "0100000000000000000000000000000002000000",
            "030000000000000000000000000000000400",
            "44d0aaf6fb2f1f34add5e8064e83e12a2adabff9b2ef00fb47920cc72a0c0f13b9fd",
        ),
    ] {
        check(&key, NONCE_3, aad, plaintext, result);
    }
    check(
        "36864200e0eaf5284d884a0e77d31646",
        "bae8e37fc83441b16034566b",
        "46bb91c3c5",
        "7a806c",
        "af60eb711bd85bc1e4d3e0a462e074eea428a8",
    );
    check(
        "f901cfe8a69615a93fdf7a98cad48179",
        "6245709fb18853f68d833640",
        "7576f7028ec6eb5ea7e298342a94d4b202b370ef9768ec6561c4fe6b7e7296fa859c21",
        "e42a3c02c25b64869e146d7b233987bddfc240871d",
        "391cc328d484a4f46406181bcd62efd9b3ee197d052d15506c84a9edd65e13e9d24a2a6e70",
    );
}

/// RFC 8452, appendix C.2.
#[test]
fn aes_256() {
    let key = one(32);
    check(&key, NONCE_3, "", "", "07f5f4169bbf55a8400cd47ea6fd400f");
    for (aad, plaintext, result) in [
        ("", "0100000000000000", "c2ef328e5c71c83b843122130f7364b761e0b97427e3df28"),
        (
            "",
            "01000000000000000000000000000000",
            "85a01b63025ba19b7fd3ddfc033b3e76c9eac6fa700942702e90862383c6c366",
        ),
        (
            "",
            "01000000000000000000000000000000020000000000000000000000000000000300000000000000000000000000000004
             000000000000000000000000000000",
            "c2d5160a1f8683834910acdafc41fbb1632d4a353e8b905ec9a5499ac34f96c7e1049eb080883891a4db8caaa1f99dd0
             04d80487540735234e3744512c6f90ce112864c269fc0d9d88c61fa47e39aa08",
        ),
        ("01", "02000000000000000000000000000000", "c91545823cc24f17dbb0e9e807d5ec17b292d28ff61189e8e49f3875ef91aff7"),
    ] {
        check(&key, NONCE_3, aad, plaintext, result);
    }
    check(
        "bae8e37fc83441b16034566b7a806c46bb91c3c5aedb64a6c590bc84d1a5e269",
        "e4b47801afc0577e34699b9e",
        "4fbdc66f14",
        "671fdd",
        "0eaccb93da9bb81333aee0c785b240d319719d",
    );
    check(
        "3c535de192eaed3822a2fbbe2ca9dfc88255e14a661b8aa82cc54236093bbc23",
        "688089e55540db1872504e1c",
        "734320ccc9d9bbbb19cb81b2af4ecbc3e72834321f7aa0f70b7282b4f33df23f167541",
        "ced532ce4159b035277d4dfbb7db62968b13cd4eec",
        "626660c26ea6612fb17ad91e8e767639edd6c9faee9d6c7029675b89eaf4ba1ded1a286594",
    );
}

/// RFC 8452, appendix C.3: the counter of the first block is 2^32 - 1.
#[test]
fn counter_wrap() {
    let key = "00".repeat(32);
    let nonce = "00".repeat(12);
    check(
        &key,
        &nonce,
        "",
        "000000000000000000000000000000004db923dc793ee6497c76dcc03a98e108",
        "f3f80f2cf0cb2dd9c5984fcda908456cc537703b5ba70324a6793a7bf218d3eaffffffff000000000000000000000000",
    );
    check(
        &key,
        &nonce,
        "",
        "eb3640277c7ffd1303c7a542d02d3e4c0000000000000000",
        "18ce4f0b8cb4d0cac65fea8f79257b20888e53e72299e56dffffffff000000000000000000000000",
    );
}

/// OpenSSL's vectors for AES-192, which RFC 8452 does not define.
#[test]
fn aes_192() {
    let key = one(24);
    for (aad, plaintext, result) in [
        ("", "0100000000000000", "0e49fb119666c8ae6b0606875a845eec145f44ae5b92e834"),
        ("", "010000000000000000000000", "3938f3fe1dad8464114dc42a9f2131df8b794bc6d9af9e5a8a96318e"),
        (
            "01",
            "0200000000000000000000000000000003000000000000000000000000000000",
            "abc2b17cc5a7a89745b684844b1699757528f3a008090cdb0dd6bfbdfea9550e03902234c1db8adcc4b6a2bc09c28401",
        ),
    ] {
        check(&key, NONCE_3, aad, plaintext, result);
    }
    check(
        "bde3b2f204d1e9f8b06bc47f9745b3d10000000000000000",
        "ae06556fb6aa7890bebc18fe",
        "7576f7028ec6eb5ea7e298342a94d4b202b370ef9768ec6561c4fe6b7e7296fa859c21",
        "6b3db4da3d57aa94842b9803a96e07fb6de7",
        "2cf3f09fe425322a2780ec29ddb7223157e2052d42f547b265c1c3df2ef3825e98f9",
    );
}

#[test]
#[should_panic(expected = "16, 24 or 32 bytes, not 17")]
fn wrong_key_length() {
    gcm_siv::seal(&[0; 17], &[0; 12], &[], &[]);
}
