//! No output of `Debug` and no error contains a key.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use lockstep::hazmat::Key;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{self, Aead, AeadKey, Cipher, CipherKey, aead, cmac};
use lockstep::hazmat::work::{AeadMessage, Segment, Status, Tag, Tweak};
use lockstep::{EncryptWriter, Engine, FileKey, Options, Reader, keyfile};

const MARKED: [u8; 32] = [
    0x8f, 0x1b, 0x6c, 0x2a, 0xd9, 0x4e, 0x70, 0x53, 0xb1, 0xe6, 0xf8, 0xa9, 0x2c, 0x47, 0xd3, 0x0e, 0x5a,
    0x9b, 0xc4, 0xd1, 0xe7, 0xf2, 0x08, 0x36, 0x41, 0x9a, 0xde, 0x5c, 0xb7, 0x0f, 0x23, 0xd8,
];
const AGE: &str = "AGE-SECRET-KEY-13UD3C2KEFECJ5V0XLR9FVG76V8T2HXG8E7JPQRX4M5D6W2STFL9S";

fn hex() -> String {
    MARKED.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// True if a text contains three bytes of the key in decimal digits, eight digits in hex, or a part of the age identity.
fn shows_key(text: &str) -> bool {
    let words: Vec<_> =
        text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let decimal: Vec<_> = MARKED.iter().map(u8::to_string).collect();
    let has_run = decimal.windows(3).any(|run| words.windows(3).any(|words| words == run));
    let (text, hex) = (text.to_ascii_lowercase(), hex());
    has_run
        || [&hex[..], &AGE[16..].to_ascii_lowercase()]
            .iter()
            .any(|key| (0..key.len() - 8).any(|at| text.contains(&key[at..at + 8])))
}

#[track_caller]
fn assert_hidden(value: &dyn Debug) {
    let text = format!("{value:?} {value:#?} {value:x?}");
    assert!(!shows_key(&text), "{text}");
}

#[test]
fn the_search_finds_keys() {
    assert!(shows_key(&format!("{:?}", &MARKED[4..9])) && shows_key(&format!("{MARKED:#?}")));
    assert!(shows_key(&hex()[7..20].to_uppercase()) && shows_key(AGE));
    assert!(!shows_key("Key(256 bits)"));
}

#[test]
fn debug_does_not_show_keys() {
    let engine = Engine::builder().device("cpu").threads(1).build().unwrap();
    let key = FileKey::from_bytes(&MARKED).unwrap();
    assert_hidden(&key);
    assert_hidden(&key.clone());
    assert_hidden(&engine);
    assert_hidden(&Options::default());
    let sealed = lockstep::seal(&engine, &key, &MARKED, &MARKED).unwrap();
    assert_hidden(&Reader::open(&engine, &key, &MARKED, &sealed[..]).unwrap());
    let mut writer = EncryptWriter::new(&engine, &key, &MARKED, Vec::new()).unwrap();
    std::io::Write::write_all(&mut writer, &MARKED).unwrap();
    assert_hidden(&writer);
}

#[test]
fn debug_of_raw_modes_does_not_show_keys_or_data() {
    let key = Key::new(&MARKED).unwrap();
    key.round_keys();
    assert_hidden(&key);
    for mode in Aead::ALL {
        assert_hidden(&AeadKey::new(mode, &MARKED).unwrap());
    }
    let cipher_key = CipherKey::new(Cipher::Xts, &MARKED).unwrap();
    let siv_key = AeadKey::new(Aead::Siv, &MARKED).unwrap();
    let gcm_key = AeadKey::new(Aead::Gcm, &MARKED).unwrap();
    assert_hidden(&cipher_key);
    assert_hidden(&siv_key);
    let block: [u8; 16] = *MARKED.first_chunk().unwrap();
    let (mut state, mut mac, mut tag, mut data) = (block, block, MARKED, MARKED);
    let tweak = Some(Tweak { key: &key, position: 0 });
    assert_hidden(&Segment { key: &key, tweak, state: &mut state, data: Data::in_place(&mut data) });
    assert_hidden(&cmac::CmacMessage { key: &key, data: &MARKED, mac: &mut mac });
    assert_hidden(&mode::Message { key: &cipher_key, iv: &mut state, data: Data::in_place(&mut data) });
    let strings = [&MARKED[..]];
    let (nonce, aad, status) = (&MARKED[..], &MARKED[..], Status::Pending);
    let tag = Tag::Write(&mut tag);
    assert_hidden(&tag);
    let message = AeadMessage { key: &key, nonce, aad, data: Data::in_place(&mut data), tag, status };
    assert_hidden(&message);
    let tag = || Tag::Expect(&MARKED);
    let (data, aad) = (Data::in_place(&mut data), &strings[..]);
    assert_hidden(&aead::Message { key: &gcm_key, nonce, aad, data, tag: tag(), status });
    let mut data = MARKED;
    let data = Data::in_place(&mut data);
    assert_hidden(&aead::Message { key: &siv_key, nonce, aad, data, tag: tag(), status });
}

#[test]
fn errors_do_not_show_keys() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::builder().device("cpu").threads(1).build().unwrap();
    let key = FileKey::from_bytes(&[7; 32]).unwrap();
    for text in [hex(), AGE.into(), keyfile::to_text(&FileKey::from_bytes(&MARKED).unwrap()).to_string()] {
        let errors = [
            Engine::builder().device(&text).build().unwrap_err(),
            Engine::builder().kernel(&text).build().unwrap_err(),
            keyfile::read(Path::new(&text)).unwrap_err(),
            keyfile::parse(format!("{text}x").as_bytes()).unwrap_err(),
            lockstep::encrypt_file(
                &engine,
                &key,
                &MARKED,
                Path::new(&text),
                Path::new(&text),
                Default::default(),
            )
            .unwrap_err(),
            lockstep::decrypt_file(
                &engine,
                &key,
                &MARKED,
                Path::new(&text),
                folder.path(),
                Default::default(),
            )
            .unwrap_err(),
        ];
        for error in errors {
            assert_hidden(&error);
            assert!(!shows_key(&error.to_string()), "{error}");
            assert_hidden(&std::io::Error::from(error));
        }
        assert!(!shows_key(&lockstep::quoted(&text).to_string()) || text == hex());
    }
    // The bytes of a key in place of a path. No file has a name with a zero byte.
    for last in [0, 1] {
        let bytes = [&MARKED[..31], &[last]].concat();
        let error = keyfile::read(Path::new(OsStr::from_bytes(&bytes))).unwrap_err();
        assert!(error.to_string().contains("(a key in place of a path, not shown)"), "{error}");
    }
}
