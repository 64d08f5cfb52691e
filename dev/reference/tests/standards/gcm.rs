//! The test cases 1 to 18 of McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", appendix B, and
//! GMAC.

use crate::{block, hex};
use lockstep_reference::{Aes, gcm, ghash};

/// The plaintext of cases 3, 9 and 15. The cases after each of these use its first 60 bytes.
const PLAINTEXT: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
                         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
const AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";

const IV_0: &str = "000000000000000000000000";
const IV_12: &str = "cafebabefacedbaddecaf888";
const IV_8: &str = "cafebabefacedbad";
const IV_60: &str = "9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318
                       a728c3c0c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b";

/// Checks a test case. Its plaintext is the first `plaintext_len` bytes of [`PLAINTEXT`], or zeros if `plaintext_len` is 16. The last three
/// cases of each key size have additional data.
fn check(key: &str, iv: &str, plaintext_len: usize, ciphertext: &str, tag: &str) {
    let aes = Aes::new(&hex(key));
    let iv = hex(iv);
    let plaintext = if plaintext_len == 16 { vec![0; 16] } else { hex(PLAINTEXT)[..plaintext_len].to_vec() };
    let aad = if plaintext_len == 60 { hex(AAD) } else { vec![] };
    let (ciphertext, tag) = (hex(ciphertext), block(tag));

    assert_eq!(gcm::seal(&aes, &iv, &aad, &plaintext), (ciphertext.clone(), tag));
    for len in [16, 15, 14, 13, 12, 8, 4] {
        assert_eq!(gcm::open(&aes, &iv, &aad, &ciphertext, &tag[..len]), Some(plaintext.clone()));
    }

    // After any change the tag does not match.
    for len in [0, 1, 5, 11] {
        assert_eq!(
            gcm::open(&aes, &iv, &aad, &ciphertext, &tag[..len]),
            None,
            "a tag of {len} bytes is invalid"
        );
    }
    let mut changed = tag;
    changed[15] ^= 1;
    assert_eq!(gcm::open(&aes, &iv, &aad, &ciphertext, &changed), None);
    assert_eq!(gcm::open(&aes, &iv, &[&aad[..], &[0]].concat(), &ciphertext, &tag), None);
    assert_eq!(gcm::open(&aes, &iv, &aad, &[&ciphertext[..], &[0]].concat(), &tag), None);
}

/// Test cases 1 to 6.
#[test]
fn aes_128() {
    let zeros = "00000000000000000000000000000000";
    let key = "feffe9928665731c6d6a8f9467308308";
    check(zeros, IV_0, 0, "", "58e2fccefa7e3061367f1d57a4e7455a");
    check(zeros, IV_0, 16, "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf");
    check(
        key,
        IV_12,
        64,
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
         21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985",
        "4d5c2af327cd64a62cf35abd2ba6fab4",
    );
    check(
        key,
        IV_12,
        60,
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
         21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
        "5bc94fbc3221a5db94fae95ae7121a47",
    );
    check(
        key,
        IV_8,
        60,
        "61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c7423
         73806900e49f24b22b097544d4896b424989b5e1ebac0f07c23f4598",
        "3612d2e79e3b0785561be14aaca2fccb",
    );
    check(
        key,
        IV_60,
        60,
        "8ce24998625615b603a033aca13fb894be9112a5c3a211a8ba262a3cca7e2ca7
         01e4a9a4fba43c90ccdcb281d48c7c6fd62875d2aca417034c34aee5",
        "619cc5aefffe0bfa462af43c1699d050",
    );
}

/// Test cases 7 to 12.
#[test]
fn aes_192() {
    let zeros = "000000000000000000000000000000000000000000000000";
    let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c";
    check(zeros, IV_0, 0, "", "cd33b28ac773f74ba00ed1f312572435");
    check(zeros, IV_0, 16, "98e7247c07f0fe411c267e4384b0f600", "2ff58d80033927ab8ef4d4587514f0fb");
    check(
        key,
        IV_12,
        64,
        "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c
         7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710acade256",
        "9924a7c8587336bfb118024db8674a14",
    );
    check(
        key,
        IV_12,
        60,
        "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c
         7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
        "2519498e80f1478f37ba55bd6d27618c",
    );
    check(
        key,
        IV_8,
        60,
        "0f10f599ae14a154ed24b36e25324db8c566632ef2bbb34f8347280fc4507057
         fddc29df9a471f75c66541d4d4dad1c9e93a19a58e8b473fa0f062f7",
        "65dcc57fcf623a24094fcca40d3533f8",
    );
    check(
        key,
        IV_60,
        60,
        "d27e88681ce3243c4830165a8fdcf9ff1de9a1d8e6b447ef6ef7b79828666e45
         81e79012af34ddd9e2f037589b292db3e67c036745fa22e7e9b7373b",
        "dcf566ff291c25bbb8568fc3d376a6d9",
    );
}

/// Test cases 13 to 18.
#[test]
fn aes_256() {
    let zeros = "0000000000000000000000000000000000000000000000000000000000000000";
    let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
    check(zeros, IV_0, 0, "", "530f8afbc74536b9a963b4f1c4cb738b");
    check(zeros, IV_0, 16, "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919");
    check(
        key,
        IV_12,
        64,
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
         8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad",
        "b094dac5d93471bdec1a502270e3cc6c",
    );
    check(
        key,
        IV_12,
        60,
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
         8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
        "76fc6ece0f4e1768cddf8853bb2d551b",
    );
    check(
        key,
        IV_8,
        60,
        "c3762df1ca787d32ae47c13bf19844cbaf1ae14d0b976afac52ff7d79bba9de0
         feb582d33934a4f0954cc2363bc73f7862ac430e64abe499f47c9b1f",
        "3a337dbf46a792c45e454913fe2ea8f2",
    );
    check(
        key,
        IV_60,
        60,
        "5a8def2f0c9e53f1f75d7853659e2a20eeb2b22aafde6419a058ab4f6f746bf4
         0fc0c3b780f244452da3ebf1c5d82cdea2418997200ef82e44ae7e3f",
        "a44a8266ee1c8eb0c8b5d4cf5ae9f19a",
    );
}

/// The intermediate values of test case 2: H, X_1 and GHASH(H, {}, C).
#[test]
fn ghash_of_case_2() {
    let h = Aes::new(&[0; 16]).encrypt([0; 16]);
    assert_eq!(h, block("66e94bd4ef8a2c3b884cfa59ca342b2e"));
    let c = block("0388dace60b6a392f328c2b971b2fe78");
    let lengths = block("00000000000000000000000000000080");
    let x_1 = block("5e2ec746917062882c85b0685353deb7");
    let expected = block("f38cbb1ad69223dcc3457ae5b6b0f885");
    assert_eq!(ghash::mul(c, h), x_1);
    assert_eq!(ghash::ghash(&h, &[c, lengths].concat()), expected);
    assert_eq!(ghash::update(&h, x_1, &lengths), expected);
}

/// GMAC: the 54-byte packet authentication of IEEE 802.1AE as its working group published it (Randall,
/// "MACsec GCM-AES Test Vectors", 2011, 2.1.1 and 2.1.2).
#[test]
fn gmac_of_a_packet() {
    let iv = hex("12153524c0895e81b2c28465");
    let aad = hex("d609b1f056637a0d46df998d88e5222ab2c2846512153524c0895e8108000f10
         1112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f30
         313233340001");
    for (key, tag) in [
        ("ad7a2bd03eac835a6f620fdcb506b345", "f09478a9b09007d06f46e9b6a1da25dd"),
        (
            "e3c08a8f06c6e3ad95a70557b23f75483ce33021a9c72b7025666204c69c0b72",
            "2f0bc5af409e06d609ea8b7d0fa5ea50",
        ),
    ] {
        assert_eq!(gcm::gmac(&Aes::new(&hex(key)), &iv, &aad), block(tag));
    }
}

#[test]
#[should_panic(expected = "an IV of at least one byte")]
fn empty_iv() {
    gcm::seal(&Aes::new(&[0; 16]), &[], &[], &[]);
}
