//! Readers without a footer key, and names of groups.

use super::*;
use crate::KeySource;

/// A file with a plaintext footer. Column `a` has the footer key, `b` has a separate key, and `c` is plain.
fn signed_file(engine: &Engine) -> Vec<u8> {
    encrypted(engine, &Policy { plain_columns: vec!["c".into()], ..policy(Algorithm::GcmV1, true) })
}

const UNSIGNED: ReadOptions<'static> = ReadOptions {
    aad_prefix: None,
    allows_missing_aad: false,
    allows_unauthenticated_pages: false,
    allows_unauthenticated_footer: true,
};

/// The pages of a column by row groups, from a plain form. None if the view cannot be read, or does not have the column.
fn pages_of(view: &PlainView<Vec<u8>>, name: &str) -> Option<Vec<Vec<Vec<u8>>>> {
    let mut plain = vec![0; view.len() as usize];
    view.read_part(0, &mut plain, false).ok()?;
    let footer = Struct::read_whole(&plain[footer_range(&plain)], "footer").ok()?;
    let mut groups = Vec::new();
    for group in list(&footer, file::ROW_GROUPS) {
        for chunk in list(&group, row_group::COLUMNS) {
            let meta = chunk.structure(chunk::META_DATA).ok()??;
            if !meta.has_strings(column::PATH_IN_SCHEMA, &[name.into()]) {
                continue;
            }
            let start = meta.int(column::DICTIONARY_PAGE_OFFSET)? as usize;
            let end = start + meta.int(column::TOTAL_COMPRESSED_SIZE)? as usize;
            // The footer may be changed, so each offset and length may be wrong, and every read is checked.
            let (mut at, mut pages) = (start, Vec::new());
            while at < end {
                let (header, used) = Struct::read(plain.get(at..end)?).ok()??;
                let size = usize::try_from(header.int(page::COMPRESSED_SIZE)?).ok()?;
                pages.push(plain.get(at + used..at + used + size)?.to_vec());
                at += used + size;
            }
            groups.push(pages);
        }
    }
    Some(groups)
}

#[test]
fn plain_columns_are_read_without_a_footer_key_if_the_caller_allows_it() {
    let engine = Engine::new().unwrap();
    let file = signed_file(&engine);
    let open = |keys: &Keys, options| PlainView::open(&engine, file.clone(), keys, options);
    let expected = |number| (0..GROUPS).map(|group| bodies(group, number)).collect::<Vec<_>>();
    let column = Keys::new().column("b", COLUMN);
    for keys in [&Keys::new(), &column] {
        assert!(matches!(open(keys, ANY), Err(Error::UnauthenticatedFooter)));
        let view = open(keys, UNSIGNED).unwrap();
        assert_eq!(pages_of(&view, "c").unwrap(), expected(2));
        let of_b = pages_of(&view, "b");
        assert_eq!(
            of_b.is_some_and(|pages| pages == expected(1)),
            keys.key(Some("b"), None).unwrap().is_some()
        );
        // The other columns are hidden.
        let mut plain = vec![0; view.len() as usize];
        view.read_part(0, &mut plain, false).unwrap();
        let footer = Struct::read_whole(&plain[footer_range(&plain)], "footer").unwrap();
        let chunk = &list(&list(&footer, file::ROW_GROUPS)[1], row_group::COLUMNS)[0];
        let meta = chunk.structure(chunk::META_DATA).unwrap().unwrap();
        let offset = meta.int(column::DATA_PAGE_OFFSET).unwrap() as u64;
        let Err(Error::MissingKey(what)) = view.read_at(offset, &mut [0; 9]) else { panic!("no error") };
        assert_eq!(what, "column a, which is encrypted with the footer key");
    }
    // A column with a given key must not be plain.
    let refused = open(&Keys::new().column("c", COLUMN), UNSIGNED);
    assert!(matches!(refused, Err(Error::PlainColumn(column)) if column == "c"));
    // Without its key, an encrypted footer cannot be read.
    let file = encrypted(&engine, &policy(Algorithm::GcmV1, false));
    let refused = PlainView::open(&engine, file, &column, UNSIGNED);
    assert!(matches!(refused, Err(Error::MissingKey(what)) if what == "the footer"));
}

#[test]
fn a_signature_is_checked_whenever_there_is_a_footer_key() {
    let engine = Engine::new().unwrap();
    let file = signed_file(&engine);
    let footer = footer_range(&file);
    assert!(read_with(&engine, file.clone(), &keys(), UNSIGNED).is_ok());
    for at in footer {
        let mut changed = file.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(PlainView::open(&engine, changed, &keys(), UNSIGNED).is_err(), "byte {at}");
    }
}

/// If the footer is not authentic, a column with a key still has the values that the writer wrote, or it is refused.
#[test]
fn columns_with_keys_are_authentic_without_a_footer_key() {
    let engine = Engine::new().unwrap();
    let file = signed_file(&engine);
    let keys = Keys::new().column("b", COLUMN);
    let (mut same, mut missing) = (0, 0);
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1 << (at % 8);
        let Ok(view) = PlainView::open(&engine, changed, &keys, UNSIGNED) else { continue };
        match pages_of(&view, "b") {
            Some(pages) => {
                for (group, pages) in pages.iter().enumerate() {
                    assert_eq!(*pages, bodies(group, 1), "byte {at}");
                }
                same += 1;
            }
            None => missing += 1,
        }
    }
    assert!(same > 500 && missing > 0, "{same} {missing}");
}

/// The footer is not authentic. The plain column `c` gets the name of the column `b`, whose key the reader has.
#[test]
fn a_plain_column_cannot_take_the_name_of_a_column_with_a_key() {
    let engine = Engine::new().unwrap();
    let mut file = signed_file(&engine);
    // A list of one string of one byte: the path in the metadata of a column chunk.
    let is_path = |at: &usize| file[*at..].starts_with(&[0x18, 1, b'c']);
    let paths: Vec<usize> = footer_range(&file).filter(is_path).collect();
    assert_eq!(paths.len(), GROUPS);
    paths.iter().for_each(|at| file[at + 2] = b'b');
    let refused = PlainView::open(&engine, file, &Keys::new().column("b", COLUMN), UNSIGNED);
    assert!(matches!(refused, Err(Error::NotAuthentic(module)) if module == "name of column c"));
}

/// The columns `a` and `b` have one key, and the names or types of the schema are not those of the writer.
#[test]
fn names_and_types_of_columns_with_keys_are_authentic_without_a_footer_key() {
    let engine = Engine::new().unwrap();
    let column =
        |path: &str| ColumnKey { path: path.into(), key: COLUMN.to_vec().into(), key_metadata: None };
    let policy = Policy { columns: vec![column("a"), column("b")], ..policy(Algorithm::GcmV1, true) };
    let file = encrypted(&engine, &policy);
    let range = footer_range(&file);
    let keys = Keys::new().column("a", COLUMN).column("b", COLUMN);
    let read = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut footer = file[range.clone()].to_vec();
        change(&mut footer);
        let file = [&file[..range.start], &footer, &file[range.end..]].concat();
        read_with(&engine, file, &keys, UNSIGNED)
    };
    assert!(read(&|_| {}).is_ok());
    // Every name of a column is a string of one byte.
    let exchange = |footer: &mut Vec<u8>| {
        for at in 1..footer.len() {
            if footer[at - 1] == 1 && matches!(footer[at], b'a' | b'b') {
                footer[at] ^= b'a' ^ b'b';
            }
        }
    };
    assert!(
        matches!(read(&exchange), Err(Error::NotAuthentic(module)) if module == "name or type of column b")
    );
    // Changes the type of `a` in the schema. The type is immediately before the name.
    let other_type = |footer: &mut Vec<u8>| {
        let at = footer.windows(5).position(|window| window == [0x15, 2, 0x38, 1, b'a']).unwrap();
        footer[at + 1] = 4;
    };
    assert!(
        matches!(read(&other_type), Err(Error::NotAuthentic(module)) if module == "name or type of column a")
    );
}

/// `c` is a list, so that its column is `c.list.element`.
#[test]
fn names_of_groups_stand_for_their_columns() {
    let engine = Engine::new().unwrap();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let plain = std::fs::read(folder.join("plain.parquet")).unwrap();
    let encrypted = |name: &str| {
        let column = ColumnKey { path: name.into(), key: COLUMN.to_vec().into(), key_metadata: None };
        let policy = Policy { columns: vec![column], ..Policy::uniform(FOOTER) };
        let mut file = Vec::new();
        encrypt(&engine, &plain, &mut file, &policy).unwrap();
        file
    };
    let with = |names: &[&str]| {
        names.iter().fold(Keys::new().footer(FOOTER), |keys, name| keys.column(name, COLUMN))
    };
    let expected = read_all(&engine, encrypted("c.list.element"), &with(&["c.list.element"])).unwrap();
    for written in ["c", "c.list", "c.list.element"] {
        let file = encrypted(written);
        for name in ["c", "c.list", "c.list.element"] {
            let read = read_all(&engine, file.clone(), &with(&[name])).unwrap();
            assert_eq!(read.len(), expected.len(), "{written} {name}");
            let view = PlainView::open(&engine, file.clone(), &with(&[]), ReadOptions::default()).unwrap();
            assert_ne!(view.len(), expected.len() as u64, "the control: the column is hidden");
        }
        let two = read_all(&engine, file.clone(), &with(&["c", "c.list"]));
        assert!(matches!(two, Err(Error::Contradiction { column, .. }) if column == "c.list.element"));
        for unknown in ["c.list.x", "c.", "c.list.element.x", ""] {
            let refused = read_all(&engine, file.clone(), &with(&[unknown]));
            assert!(matches!(refused, Err(Error::UnknownColumn { .. })), "{unknown}");
        }
    }
    // The columns of the group are encrypted with the footer key, or are plain.
    let refused = read_all(&engine, encrypted("a"), &with(&["c"]));
    assert!(matches!(refused, Err(Error::Contradiction { column, .. }) if column == "c.list.element"));
    let mut file = Vec::new();
    let policy = Policy { plain_columns: vec!["c".into()], ..Policy::uniform(FOOTER) };
    encrypt(&engine, &plain, &mut file, &policy).unwrap();
    let refused = read_all(&engine, file, &with(&["c.list"]));
    assert!(matches!(refused, Err(Error::PlainColumn(column)) if column == "c.list.element"));
}
