//! Associated data: which identifiers and prefixes are accepted, and that no two modules have equal associated data.

use std::collections::HashMap;

use super::*;
use crate::aad::Place;
use crate::format::file_crypto;
use crate::modules::{self, Kind};
use crate::{FILE_UNIQUE, Module, module_aad};

/// Ordinals whose bytes also occur as types of modules and in other ordinals.
const ORDINALS: [i16; 7] = [0, 1, 2, 9, 0x100, 0x0203, i16::MAX];
const IDENTIFIERS: [[u8; FILE_UNIQUE]; 4] =
    [[0; 8], [2; 8], [0, 0, 0, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 0, 0, 0]];

/// All combinations of [`ORDINALS`] for the row group, column and page of a module of this type. Ordinals that the type does not
/// use are 0.
fn places(module: Module) -> Vec<[i16; 3]> {
    let all = |count| if count { &ORDINALS[..] } else { &[0] };
    let (in_group, in_page) =
        (module != Module::Footer, matches!(module, Module::DataPage | Module::DataPageHeader));
    let mut places = Vec::new();
    for row_group in all(in_group) {
        for column in all(in_group) {
            places.extend(all(in_page).iter().map(|page| [*row_group, *column, *page]));
        }
    }
    places
}

/// The associated data of all modules with these prefixes. Fails if two of them are equal.
fn check_all_differ(prefixes: &[&[u8]]) {
    let mut found = HashMap::new();
    for prefix in prefixes {
        for identifier in &IDENTIFIERS {
            for module in Module::all() {
                for place @ [row_group, column, page] in places(module) {
                    let aad = module_aad(prefix, identifier, module, row_group, column, page).unwrap();
                    let this = (prefix, identifier, module, place);
                    if let Some(other) = found.insert(aad, this) {
                        panic!("{this:?} and {other:?} have equal associated data");
                    }
                }
            }
        }
    }
    let modules: usize = Module::all().iter().map(|module| places(*module).len()).sum();
    assert_eq!(modules, 1 + 7 * 7 * 7 + 2 * 7 * 7 * 7);
    assert_eq!(found.len(), prefixes.len() * IDENTIFIERS.len() * modules);
}

#[test]
fn modules_under_one_prefix_have_different_associated_data() {
    for len in 0..=20 {
        check_all_differ(&[&vec![0; len]]);
        check_all_differ(&[&vec![2; len]]);
    }
}

/// No prefix in these lists is the beginning of another prefix.
#[test]
fn modules_under_prefixes_of_the_rule_have_different_associated_data() {
    let byte = |byte| [byte];
    for one in 0..=3 {
        for other in 0..=3 {
            if one != other {
                check_all_differ(&[&byte(one), &byte(other)]);
                for len in 0..=8 {
                    check_all_differ(&[&byte(one), &[&byte(other)[..], &vec![one; len]].concat()]);
                }
            }
        }
    }
}

/// Checks the layout of the associated data, and which ordinals each type of module has.
#[test]
fn types_have_their_ordinals() {
    let unique = b"12345678";
    let aad = |module, row_group, column, page| module_aad(b"p", unique, module, row_group, column, page);
    assert_eq!(aad(Module::Footer, 0, 0, 0).unwrap(), b"p12345678\0");
    assert_eq!(aad(Module::ColumnIndex, 0x102, 3, 0).unwrap(), b"p12345678\x06\x02\x01\x03\0");
    assert_eq!(aad(Module::DataPage, 1, 2, 3).unwrap(), b"p12345678\x02\x01\0\x02\0\x03\0");
    for (number, module) in Module::all().into_iter().enumerate() {
        assert_eq!(module as usize, number);
        let count = match module {
            Module::Footer => 0,
            Module::DataPage | Module::DataPageHeader => 3,
            _ => 2,
        };
        assert_eq!(aad(module, 0, 0, 0).unwrap().len(), 1 + FILE_UNIQUE + 1 + 2 * count);
        for index in 0..3 {
            let mut place = [0; 3];
            for (ordinal, is_valid) in [(0, true), (1, index < count), (i16::MAX, index < count), (-1, false)]
            {
                place[index] = ordinal;
                let [row_group, column, page] = place;
                assert_eq!(aad(module, row_group, column, page).is_ok(), is_valid, "{module:?} {place:?}");
            }
        }
    }
}

/// The file after a change of the structure that describes the encryption. If the change has an effect, the footer is
/// not authentic any more.
fn with_encryption(file: &[u8], change: impl FnOnce(&mut Struct)) -> Vec<u8> {
    let range = footer_range(file);
    let is_encrypted = file.ends_with(b"PARE");
    let id = if is_encrypted { file_crypto::ENCRYPTION_ALGORITHM } else { file::ENCRYPTION_ALGORITHM };
    let (mut holder, used) = Struct::read(&file[range.clone()]).unwrap().unwrap();
    let mut algorithm = encryption(file, id);
    change(&mut algorithm);
    holder.set(id, thrift::structure(&fields(&[(1, thrift::structure(&algorithm))])));
    let footer = [&holder.encode(), &file[range.start + used..range.end]].concat();
    [&file[..range.start], &footer, &(footer.len() as u32).to_le_bytes(), &file[file.len() - 4..]].concat()
}

#[test]
fn only_identifiers_of_8_bytes_are_accepted() {
    let engine = Engine::new().unwrap();
    let any = ReadOptions { allows_missing_aad: true, allows_unauthenticated_footer: true, ..ANY };
    for plaintext_footer in [false, true] {
        let file = encrypted(&engine, &policy(Algorithm::GcmV1, plaintext_footer));
        let same = with_encryption(&file, |_| {});
        assert!(read_all(&engine, same, &keys()).is_ok());
        for len in (0..=20).filter(|len| *len != FILE_UNIQUE) {
            let changed = with_encryption(&file, |algorithm| algorithm.set(2, Value::binary(&vec![1; len])));
            for keys in [keys(), Keys::new(), Keys::new().column("b", COLUMN)] {
                let Err(Error::Malformed(what)) = read_with(&engine, changed.clone(), &keys, any) else {
                    panic!("an identifier of {len} bytes is accepted");
                };
                assert!(what.contains(&format!("(aad_file_unique) has {len} bytes instead of 8")), "{what}");
            }
        }
        // A file without an identifier has no associated data.
        let changed = with_encryption(&file, |algorithm| algorithm.remove(2));
        assert!(matches!(read_with(&engine, changed, &keys(), ANY), Err(Error::MissingAad)));
    }
}

/// A source of keys that panics, because no key may be requested before the prefix has been checked.
struct NoKeys;

impl crate::KeySource for NoKeys {
    fn key(&self, _: Option<&str>, _: Option<&[u8]>) -> crate::Result<Option<Zeroizing<Vec<u8>>>> {
        panic!("a key is requested");
    }
}

#[test]
fn a_stored_prefix_is_not_used() {
    let engine = Engine::new().unwrap();
    for (plaintext_footer, stores_aad_prefix) in [(false, true), (true, true), (false, false), (true, false)]
    {
        let prefix = b"table \"1\"\xff";
        let policy = Policy {
            aad_prefix: Some(prefix.to_vec()),
            stores_aad_prefix,
            ..policy(Algorithm::GcmV1, plaintext_footer)
        };
        let file = encrypted(&engine, &policy);
        let options = |aad_prefix| ReadOptions { aad_prefix, ..ReadOptions::default() };
        let refused = |file: &[u8], aad_prefix| {
            let Err(Error::Argument(what)) = PlainView::open(&engine, file, &NoKeys, options(aad_prefix))
            else {
                panic!("the prefix is accepted");
            };
            what
        };
        let what = refused(&file, None);
        assert!(what.contains("as aad_prefix"), "{what}");
        assert_eq!(what.contains(r#" "table \"1\"\xff", which is not used"#), stores_aad_prefix, "{what}");
        assert!(refused(&file, Some(b"")).contains("empty"));
        match stores_aad_prefix {
            true => assert!(refused(&file, Some(b"table 2")).contains("another AAD prefix")),
            false => {
                let other = read_with(&engine, file.clone(), &keys(), options(Some(b"table 2")));
                assert!(matches!(other, Err(Error::NotAuthentic(_))));
            }
        }
        check(&read_with(&engine, file.clone(), &keys(), options(Some(prefix))).unwrap(), None);
        // A long prefix is shortened in the error message.
        let long = with_encryption(&file, |algorithm| algorithm.set(1, Value::binary(&vec![b'x'; 10_000])));
        let what = refused(&long, None);
        assert!(what.contains("xxx...\" (10000 bytes)") && what.len() < 400, "{what}");
        // Without associated data, a prefix cannot be checked.
        let missing = with_encryption(&file, |algorithm| algorithm.remove(2));
        let read = ReadOptions { allows_missing_aad: true, ..options(Some(prefix)) };
        let Err(Error::Argument(what)) = PlainView::open(&engine, &missing, &NoKeys, read) else {
            panic!("a prefix that is not checked is accepted");
        };
        assert!(what.contains("cannot be checked"), "{what}");
    }
    // An empty prefix in the file counts as no prefix.
    let file = encrypted(&engine, &policy(Algorithm::GcmV1, false));
    let empty = with_encryption(&file, |algorithm| algorithm.set(1, Value::binary(&[])));
    assert!(read_all(&engine, empty, &keys()).is_ok());
}

/// Tests every ordinal of 17 bits, for row groups and for columns. The format allows 0 to 32767.
#[test]
fn ordinals_have_15_bits() {
    for ordinal in -0x1_0000..=0x1_0000i64 {
        let is_valid = (0..=0x7FFF).contains(&ordinal);
        assert_eq!(
            Place::new(ordinal, 0).map(|place| i64::from(place.row_group)),
            is_valid.then_some(ordinal)
        );
        let Ok(column) = usize::try_from(ordinal) else { continue };
        assert_eq!(Place::new(0, column).map(|place| i64::from(place.column)), is_valid.then_some(ordinal));
    }
    for row_group in [i64::MIN, i64::MAX, 1 << 32] {
        assert!(Place::new(row_group, 0).is_none());
    }
    assert!(Place::new(0, usize::MAX).is_none() && Place::new(0, 1 << 16).is_none());
}

/// Tests every length of a module up to 100 bytes. The length of its plaintext is the rest after the length field, the nonce and
/// the tag.
#[test]
fn modules_of_every_length() {
    for (kind, overhead) in [(Kind::Gcm, 4 + 12 + 16), (Kind::Ctr, 4 + 12)] {
        for len in 0..100 {
            let expected = (len >= overhead).then(|| 16..16 + len - overhead);
            assert_eq!(modules::ciphertext(kind, len).ok(), expected, "{kind:?}, {len} bytes");
        }
    }
}
