
use super::*;

#[test]
fn keys_are_recognised() {
    let keys: [&[u8]; 16] = [
        b"lockstep-key-256 000102030405060708090a0b0c0d0e0f",
        b"folder/AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS",
        b"age-secret-key-pq-1qqqsyqcyq5rqwzqfpg9scrg",
        b"AGE-PLUGIN-YUBIKEY-1QQQSYQCYQ5RQWZQFPG",
        b"-----BEGIN OPENSSH PRIVATE KEY-----",
        b"000102030405060708090a0b0c0d0e0f",
        b"000102030405060708090A0B0C0D0E0F1",
        b"--key=000102030405060708090a0b0c0d0e0f",
        b"-k000102030405060708090a0b0c0d0e0f",
        b"AAECAwQFBgcICQoLDA0ODw==",
        b"xkQzPbWfYhTgRmNjLcVvSd",
        b"cpu/jxtsKtlOcFOx5vipLEfTDlqbxNHn8gg2QZreXLcPI9g=",
        b"b'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='",
        b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f",
        &[0xfe; 32],
        "\u{80}\u{81}abcdefghijklmn".as_bytes(),
    ];
    for key in keys {
        assert!(may_be_key(key), "{}", key.escape_ascii());
    }
}

#[test]
fn names_are_not_keys() {
    for name in [
        "",
        "auto",
        "cuda:0",
        "cuda/coarse-shared",
        "opengl/gems-two-channels",
        "person.addresses.list.element.postal_code",
        "XAES-256-GCM",
        "a long name of a column, with words and 3 numbers: 1234567890",
        "deadbeef",
        "caf\u{e9}",
        "Customer_Address_Line_1_Type",
        "addressLine1OfTheCustomerRecord",
        "addressLine1OfCustomer",
        "VGG16_block5_conv3_kernel_M",
        "feature-Vector-Embedding-768",
        "conv_1_a_2_b_3_c_4_d_5",
        "lockstep-key-laptop.txt",
        "age-plugin-yubikey/README-1.md",
        "-----begin",
    ] {
        assert!(!may_be_key(name.as_bytes()), "{name}");
        assert_eq!(super::name(name), name);
    }
}

#[test]
fn names_of_files_can_be_checksums() {
    let sum = Path::new("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
    assert_eq!(path(sum, true), sum);
    assert_eq!(path(sum, false), Path::new(KEY_AS_PATH));
    let identity = Path::new("AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS");
    assert_eq!(path(identity, true), Path::new(KEY_AS_PATH));
    assert_eq!(path(Path::new("lockstep-key-2026"), false), Path::new("lockstep-key-2026"));
    let in_a_folder = Path::new("objects").join(sum);
    assert_eq!(path(&in_a_folder, false), in_a_folder);
    let words = Path::new("a-name-of-more-than-22-characters");
    assert_eq!(path(words, false), words);
}
