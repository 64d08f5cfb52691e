//! No output of `Debug` and no error contains a key, whichever function receives the key.

use super::*;
use crate::FILE_UNIQUE;
use crate::keys::module_key;
use crate::modules::{EncryptedModule, Kind, Protection};

const MARKED: [u8; 16] =
    [0x8f, 0x1b, 0x6c, 0x2a, 0xd9, 0x4e, 0x70, 0x53, 0xb1, 0xe6, 0xf8, 0xa9, 0x2c, 0x47, 0xd3, 0x0e];
const HEX: &str = "8f1b6c2ad94e7053b1e6f8a92c47d30e";

/// True if a text contains eight digits of the key, or three bytes of it as `Debug` prints a list.
fn shows_key(text: &str) -> bool {
    let lists = MARKED.windows(3).map(|bytes| format!("{bytes:?}"));
    (0..=HEX.len() - 8).any(|at| text.contains(&HEX[at..at + 8]))
        || lists.into_iter().any(|list| text.contains(list.trim_matches(['[', ']'])))
}

#[track_caller]
fn assert_hidden(value: &dyn std::fmt::Debug) {
    let text = format!("{value:?}");
    assert!(!shows_key(&text), "{text}");
}

fn column_key(path: &str, key: &[u8]) -> ColumnKey {
    ColumnKey { path: path.into(), key: key.to_vec().into(), key_metadata: None }
}

#[test]
fn debug_does_not_show_keys() {
    assert!(shows_key(&format!("{MARKED:?}")) && shows_key(HEX) && !shows_key("Keys { columns: 2 }"));
    let engine = Engine::new().unwrap();
    let keys = Keys::new().footer(&MARKED).column("b", &MARKED).column(HEX, &MARKED);
    assert_hidden(&keys);
    let policy = Policy {
        columns: vec![column_key("b", &MARKED), column_key(HEX, &MARKED)],
        plain_columns: vec![HEX.into()],
        ..Policy::uniform(&MARKED)
    };
    assert_hidden(&policy);
    let file = encrypted(&engine, &Policy::uniform(&MARKED));
    assert_hidden(
        &PlainView::open(&engine, file, &Keys::new().footer(&MARKED), ReadOptions::default()).unwrap(),
    );
    let key = module_key(&MARKED, "the footer").unwrap();
    let protection = Protection { key: &key, kind: Kind::Gcm, aad: [0; FILE_UNIQUE].into() };
    assert_hidden(&protection);
    let (module, mut plain) = ([0; 100], vec![0; 100 - Kind::Gcm.overhead()]);
    assert_hidden(&EncryptedModule::on_host(protection, &module, &mut plain).unwrap());
}

#[test]
fn errors_do_not_show_keys() {
    let engine = Engine::new().unwrap();
    let file = encrypted(&engine, &policy(Algorithm::GcmV1, false));
    let long = [MARKED, MARKED, MARKED].concat();
    let reading = [
        Keys::new().footer(&MARKED),
        Keys::new().footer(&long),
        keys().column("b", &MARKED),
        keys().column("b", &long),
        keys().column(HEX, &MARKED),
    ];
    let read = reading.map(|keys| read_all(&engine, file.clone(), &keys).unwrap_err());
    let with_columns = |columns| Policy { columns, ..Policy::uniform(FOOTER) };
    let writing = [
        Policy::uniform(&long),
        with_columns(vec![column_key(HEX, &MARKED)]),
        with_columns(vec![column_key("b", &long)]),
        with_columns(vec![column_key("b", &MARKED), column_key("b", COLUMN)]),
        Policy { plain_columns: vec![HEX.into()], ..Policy::uniform(FOOTER) },
    ];
    let plain = plain_file();
    let written = writing.map(|policy| encrypt(&engine, &plain, Vec::new(), &policy).unwrap_err());
    for error in read.iter().chain(&written) {
        assert_hidden(error);
        assert!(!shows_key(&error.to_string()), "{error}");
    }
}
