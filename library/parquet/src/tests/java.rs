//! Files of parquet-java, which encrypts structures that are followed by further bytes. `interfaces/python/tests/test_parquet.py`
//! compares the tables of these files.

use std::path::Path;

use super::*;

/// 31 consecutive digits that start with `first`, followed by `last`.
fn key(first: u8, last: u8) -> Vec<u8> {
    let digits = (0..31).map(|i| (first + i) % 10).chain([last]);
    digits.map(|digit| b'0' + digit).collect()
}

#[test]
fn files_of_parquet_java_are_read() {
    let engine = Engine::new().unwrap();
    let columns = [
        "double_field",
        "float_field",
        "boolean_field",
        "int32_field",
        "ba_field",
        "flba_field",
        "int64_field.list.element",
        "int96_field",
    ];
    for (name, prefix) in [
        ("uniform_encryption", None),
        ("encrypt_columns_and_footer", None),
        ("encrypt_columns_and_footer_ctr", None),
        ("encrypt_columns_and_footer_disable_aad_storage", Some(&b"tester"[..])),
        ("encrypt_columns_plaintext_footer", None),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let file = std::fs::read(folder.join(name).with_extension("parquet.encrypted")).unwrap();
        let mut keys = Keys::new().footer(&key(0, 1));
        if name != "uniform_encryption" {
            keys =
                columns.iter().zip(2..).fold(keys, |keys, (column, last)| keys.column(column, &key(1, last)));
        }
        let options = ReadOptions {
            aad_prefix: prefix,
            allows_unauthenticated_pages: name.ends_with("ctr"),
            ..ReadOptions::default()
        };
        let view = PlainView::open(&engine, &file, &keys, options).unwrap();
        let mut plain = vec![0; view.len() as usize];
        view.read_at(0, &mut plain).unwrap();
        let mut again = Vec::new();
        encrypt(&engine, &plain, &mut again, &Policy::uniform(FOOTER)).unwrap();
        read_all(&engine, again, &Keys::new().footer(FOOTER)).unwrap();
        for at in (0..file.len()).step_by(41) {
            let mut changed = file.clone();
            changed[at] ^= 1;
            let view = PlainView::open(&engine, &changed, &keys, options);
            let read = view.and_then(|view| view.read_at(0, &mut vec![0; view.len() as usize]));
            assert!(read.is_err() || name.ends_with("ctr"), "{name}, byte {at}");
        }
    }
}
