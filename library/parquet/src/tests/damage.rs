//! Changed and truncated files, and files that are authentic and invalid.

use super::*;
use crate::aad::{FileAad, Module, Place};
use crate::format::{ROW_GROUPS, file_crypto};
use crate::keys::module_key;
use crate::modules::{self, Kind, Protection, open_one, seal};

#[test]
fn every_changed_byte_is_refused() {
    let engine = Engine::new().unwrap();
    for plaintext_footer in [false, true] {
        let file = encrypted(&engine, &policy(Algorithm::GcmV1, plaintext_footer));
        // The control: the unchanged file is read.
        assert!(read_all(&engine, file.clone(), &keys()).is_ok());
        for at in 0..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(read_all(&engine, changed, &keys()).is_err(), "byte {at} of {}", file.len());
        }
        for len in 0..file.len() {
            assert!(read_all(&engine, file[..len].to_vec(), &keys()).is_err(), "cut off after {len}");
        }
    }
}

/// CTR does not detect changes of pages, but these do not harm the reader. All other changes are refused.
#[test]
fn changed_bytes_of_ctr_files_are_refused_outside_of_pages() {
    let engine = Engine::new().unwrap();
    let file = encrypted(&engine, &policy(Algorithm::GcmCtrV1, false));
    let plain = read_with(&engine, file.clone(), &keys(), ANY).unwrap();
    let mut accepted = 0;
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1 << (at % 8);
        if let Ok(read) = read_with(&engine, changed, &keys(), ANY) {
            assert_eq!(read.len(), plain.len());
            accepted += 1;
        }
    }
    let in_pages: usize = (0..GROUPS * COLUMNS.len())
        .map(|i| {
            // The length fields are not counted, because a page with another length is refused.
            bodies(i / COLUMNS.len(), i % COLUMNS.len())
                .iter()
                .map(|body| body.len() + modules::NONCE)
                .sum::<usize>()
        })
        .sum();
    assert_eq!(accepted, in_pages);
    for len in 0..file.len() {
        assert!(read_with(&engine, file[..len].to_vec(), &keys(), ANY).is_err(), "cut off after {len}");
    }
}

/// If the encryption accepts a damaged file, its output can be read again, also with plain columns.
#[test]
fn damaged_plain_files_are_refused_or_encrypted() {
    let engine = Engine::new().unwrap();
    let plain = plain_file();
    let mut accepted = 0;
    for at in 0..plain.len() {
        let mut changed = plain.clone();
        changed[at] ^= [1, 0x80, 0xff, 0x10][at % 4];
        let mut policy = policy(Algorithm::GcmV1, at % 2 == 0);
        if at % 3 == 0 {
            policy.plain_columns.push("c".into());
        }
        let mut out = Vec::new();
        if encrypt(&engine, &changed, &mut out, &policy).is_ok() {
            accepted += 1;
            read_all(&engine, out, &keys()).unwrap_or_else(|error| panic!("byte {at}: {error}"));
        }
    }
    // The control: changes of pages and filters are accepted, because the encryption does not read their content.
    assert!(accepted > GROUPS * COLUMNS.len() * (131 + 32));
    for len in 0..plain.len() {
        assert!(encrypt(&engine, &plain[..len].to_vec(), Vec::new(), &Policy::uniform(FOOTER)).is_err());
    }
}

/// Replaces the footer of a file by a changed footer that is authentic.
fn with_footer(engine: &Engine, file: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let range = footer_range(file);
    let (_, used) = Struct::read(&file[range.clone()]).unwrap().unwrap();
    let unique = encryption(file, file_crypto::ENCRYPTION_ALGORITHM).binary(2).unwrap().try_into().unwrap();
    let key = module_key(FOOTER, "the footer").unwrap();
    let aad = FileAad::new(b"", &unique).of(Module::Footer, Place::default());
    let sealed = &file[range.start + used..range.end];
    let mut plain = open_one(engine, &key, &aad, sealed, "footer").unwrap();
    change(&mut plain);
    let mut out = file[..range.start + used].to_vec();
    seal(engine, vec![(Protection { key: &key, kind: Kind::Gcm, aad }, &plain)], &mut out).unwrap();
    out.extend(((out.len() - range.start) as u32).to_le_bytes());
    out.extend(b"PARE");
    out
}

/// A writer with the footer key can put any bytes into the footer. They must not harm the reader.
#[test]
fn authentic_footers_may_have_any_content() {
    let engine = Engine::new().unwrap();
    let file = encrypted(&engine, &Policy::uniform(FOOTER));
    let keys = Keys::new().footer(FOOTER);
    let mut len = 0;
    let same = with_footer(&engine, &file, |footer| len = footer.len());
    let plain = read_all(&engine, same, &keys).unwrap();
    let (mut read, mut refused) = (0, 0);
    let mut attempt = |change: &dyn Fn(&mut Vec<u8>)| {
        let changed = with_footer(&engine, &file, |footer| change(footer));
        match read_all(&engine, changed, &keys) {
            Ok(other) => {
                assert!(other.len() < plain.len() + 100);
                read += 1;
            }
            Err(_) => refused += 1,
        }
    };
    for at in 0..len {
        attempt(&|footer| footer[at] ^= [1, 0x80, 0xff, 0x10][at % 4]);
        match at % 3 {
            0 => attempt(&|footer| footer.truncate(at)),
            1 => attempt(&|footer| drop(footer.splice(at..at, [0xff, 0xff, 0xff, 0xff, 7]))),
            _ => attempt(&|footer| drop(footer.splice(at..(at + 2).min(len), []))),
        }
    }
    assert!(read > 0 && refused > len / 2, "{read} read, {refused} refused");
}

#[test]
fn row_groups_have_different_ordinals() {
    let engine = Engine::new().unwrap();
    let file = encrypted(&engine, &Policy::uniform(FOOTER));
    for ordinal in 0..=2 {
        let changed = with_footer(&engine, &file, |footer| {
            let mut fields = Struct::read_whole(footer, "footer").unwrap();
            let change = |index, group: &mut Struct| {
                if index == 1 {
                    group.set(row_group::ORDINAL, Value::i16(ordinal));
                }
                Ok(())
            };
            fields.rewrite(file::ROW_GROUPS, ROW_GROUPS, change).unwrap();
            *footer = fields.encode();
        });
        let opened = PlainView::open(&engine, changed, &Keys::new().footer(FOOTER), ReadOptions::default());
        match opened {
            Ok(_) => assert!(ordinal > 0),
            Err(error) => assert!(ordinal == 0 && error.to_string().contains("same ordinal"), "{error}"),
        }
    }
}

/// arrow-rs leaves Bloom filters plain, so they are left out of the view of its files.
#[test]
fn bloom_filters_of_arrow_rs_are_left_out() {
    let engine = Engine::new().unwrap();
    let file = encrypted(&engine, &Policy::uniform(FOOTER));
    for (writer, has_filters) in [("parquet-rs version 60.1.0", false), ("parquet-cpp version 1", true)] {
        let changed = with_footer(&engine, &file, |footer| {
            let mut fields = Struct::read_whole(footer, "footer").unwrap();
            fields.set(file::CREATED_BY, Value::binary(writer.as_bytes()));
            *footer = fields.encode();
        });
        let plain = read_all(&engine, changed, &Keys::new().footer(FOOTER)).unwrap();
        let footer = Struct::read_whole(&plain[footer_range(&plain)], "footer").unwrap();
        let chunks = list(&list(&footer, file::ROW_GROUPS)[0], row_group::COLUMNS);
        for chunk in chunks {
            let meta = chunk.structure(chunk::META_DATA).unwrap().unwrap();
            assert_eq!(meta.has(column::BLOOM_FILTER_OFFSET), has_filters, "{writer}");
        }
        let filter = bits(0, 0);
        assert_eq!(plain.windows(filter.len()).any(|window| window == filter), has_filters, "{writer}");
    }
}
