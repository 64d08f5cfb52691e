//! Tests with small files that are made here: the content of a view of an encrypted file, and the refusal of every changed
//! file. Whole tables are compared with other implementations by the tests of `interfaces/python`.

mod aad;
mod batch;
mod damage;
mod java;
mod limits;
mod partial_keys;
mod secrets;

use lockstep::{Engine, ReadAt};
use zeroize::Zeroizing;

use crate::format::{bloom_filter, chunk, column, file, offset_index, page, row_group, schema};
use crate::thrift::{self, Struct, Value};
use crate::{Algorithm, ColumnKey, Error, Keys, PlainView, Policy, ReadOptions, encrypt};

const FOOTER: &[u8] = &[7; 32];
const COLUMN: &[u8] = &[9; 16];
const COLUMNS: [&str; 3] = ["a", "b", "c"];
const GROUPS: usize = 2;
/// Field numbers of `ColumnMetaData`. STATISTICS is a field of the format. UNKNOWN is a number that no version of the
/// format uses.
const STATISTICS: i16 = 12;
const UNKNOWN: i16 = 77;

fn fields(fields: &[(i16, Value)]) -> Struct {
    let mut value = Struct::default();
    fields.iter().for_each(|(id, field)| value.set(*id, field.clone()));
    value
}

/// A list of structures, with the long form of its header.
fn structs(values: impl IntoIterator<Item = Struct>) -> Value {
    const LIST_OF_STRUCTS: [u8; 2] = [9, 0xfc];
    let values: Vec<_> = values.into_iter().collect();
    let (mut out, mut count) = (vec![LIST_OF_STRUCTS[1]], values.len());
    while count >= 0x80 {
        out.push(count as u8 | 0x80);
        count >>= 7;
    }
    out.push(count as u8);
    out.extend(values.iter().flat_map(Struct::encode));
    Value::Encoded(LIST_OF_STRUCTS[0], out)
}

/// The pages of a column chunk: a dictionary, and data pages of some lengths, one of them empty.
fn bodies(group: usize, column: usize) -> Vec<Vec<u8>> {
    [30, 0, 100, 1]
        .iter()
        .enumerate()
        .map(|(i, len)| vec![(group * 50 + column * 10 + i) as u8 + 1; *len])
        .collect()
}

/// The bits of the Bloom filter of a column chunk.
fn bits(group: usize, column: usize) -> Vec<u8> {
    vec![200 + (group * 10 + column) as u8; 32]
}

/// A plain file with indexes and a Bloom filter for each chunk. The pages are not pages of a real table, because
/// encryption does not read their content.
fn plain_file() -> Vec<u8> {
    plain_file_with(COLUMNS, 0, &bodies)
}

/// The file of [`plain_file`] with other properties: `paths` are in the metadata of the column chunks, the header of
/// each dictionary page is longer by `header_bytes` bytes, and `bodies` returns the pages by row group and column.
fn plain_file_with(
    paths: [&str; 3],
    header_bytes: usize,
    bodies: &dyn Fn(usize, usize) -> Vec<Vec<u8>>,
) -> Vec<u8> {
    let mut out = b"PAR1".to_vec();
    let mut groups = Vec::new();
    for group in 0..GROUPS {
        let mut chunks = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let (start, mut starts) = (out.len(), Vec::new());
            for (index, body) in bodies(group, number).iter().enumerate() {
                starts.push(out.len());
                let kind = if index == 0 { page::DICTIONARY } else { page::DATA };
                let len = Value::i32(body.len() as i32);
                // Field 2 is the size before compression. Field 7 (of dictionary pages) or field 5 (of data pages) is
                // the header of the type.
                let of_type = if index == 0 { 7 } else { 5 };
                let inner = thrift::structure(&fields(&[(1, Value::i32(1)), (9, Value::TRUE)]));
                let crc = Value::i32(-5);
                let mut header = fields(&[
                    (1, Value::i32(kind as i32)),
                    (2, len.clone()),
                    (3, len),
                    (4, crc),
                    (of_type, inner),
                ]);
                if index == 0 && header_bytes > 0 {
                    header.set(UNKNOWN, Value::binary(&vec![7; header_bytes]));
                }
                out.extend(header.encode());
                out.extend(body);
            }
            let end = out.len();
            let size = end - start;
            let filter = fields(&[(bloom_filter::NUM_BYTES, Value::i32(bits(group, number).len() as i32))]);
            out.extend(filter.encode());
            out.extend(bits(group, number));
            let meta = fields(&[
                (column::BLOOM_FILTER_OFFSET, Value::i64(end as i64)),
                (column::BLOOM_FILTER_LENGTH, Value::i32((out.len() - end) as i32)),
                (column::TYPE, Value::i32(1)),
                (column::PATH_IN_SCHEMA, thrift::strings(&[*path])),
                (column::TOTAL_UNCOMPRESSED_SIZE, Value::i64(size as i64)),
                (column::TOTAL_COMPRESSED_SIZE, Value::i64(size as i64)),
                (column::DATA_PAGE_OFFSET, Value::i64(starts[1] as i64)),
                (column::DICTIONARY_PAGE_OFFSET, Value::i64(start as i64)),
                (STATISTICS, thrift::structure(&fields(&[(1, Value::binary(b"secret minimum"))]))),
                (UNKNOWN, Value::binary(b"unknown of column")),
            ]);
            let mut ends = starts[1..].to_vec();
            ends.push(end);
            let locations = ends.windows(2).map(|pair| {
                let size = (pair[1] - pair[0]) as i32;
                fields(&[(1, Value::i64(pair[0] as i64)), (2, Value::i32(size)), (3, Value::i64(0))])
            });
            let index = fields(&[(1, structs(locations))]).encode();
            let column_index = fields(&[(4, Value::i32(1))]).encode();
            out.extend(&column_index);
            chunks.push(fields(&[
                (chunk::COLUMN_INDEX_OFFSET, Value::i64((out.len() - column_index.len()) as i64)),
                (chunk::COLUMN_INDEX_LENGTH, Value::i32(column_index.len() as i32)),
                (chunk::FILE_OFFSET, Value::i64(0)),
                (chunk::META_DATA, thrift::structure(&meta)),
                (chunk::OFFSET_INDEX_OFFSET, Value::i64(out.len() as i64)),
                (chunk::OFFSET_INDEX_LENGTH, Value::i32(index.len() as i32)),
                (UNKNOWN, Value::binary(b"unknown of chunk")),
            ]));
            out.extend(index);
        }
        groups.push(fields(&[
            (row_group::COLUMNS, structs(chunks)),
            (2, Value::i64(1)),
            (row_group::NUM_ROWS, Value::i64(1)),
        ]));
    }
    let name = |name: &str| (schema::NAME, Value::binary(name.as_bytes()));
    let mut elements =
        vec![fields(&[name("root"), (schema::NUM_CHILDREN, Value::i32(COLUMNS.len() as i32))])];
    elements.extend(COLUMNS.iter().map(|column| fields(&[(schema::TYPE, Value::i32(1)), name(column)])));
    let footer = fields(&[
        (1, Value::i32(1)),
        (file::SCHEMA, structs(elements)),
        (3, Value::i64(2)),
        (file::ROW_GROUPS, structs(groups)),
        // An unknown field is kept.
        (99, Value::binary(b"unknown")),
    ]);
    let footer = footer.encode();
    out.extend(&footer);
    out.extend((footer.len() as u32).to_le_bytes());
    out.extend(b"PAR1");
    out
}

fn policy(algorithm: Algorithm, plaintext_footer: bool) -> Policy {
    let key = Zeroizing::new(COLUMN.to_vec());
    Policy {
        algorithm,
        plaintext_footer,
        columns: vec![ColumnKey { path: "b".into(), key, key_metadata: None }],
        ..Policy::uniform(FOOTER)
    }
}

fn keys() -> Keys {
    Keys::new().footer(FOOTER).column("b", COLUMN)
}

fn encrypted(engine: &Engine, policy: &Policy) -> Vec<u8> {
    let mut out = Vec::new();
    encrypt(engine, &plain_file(), &mut out, policy).unwrap();
    out
}

fn read_all(engine: &Engine, file: impl ReadAt, keys: &Keys) -> crate::Result<Vec<u8>> {
    read_with(engine, file, keys, ReadOptions::default())
}

/// Options that accept files of both algorithms.
const ANY: ReadOptions<'static> = ReadOptions {
    aad_prefix: None,
    allows_missing_aad: false,
    allows_unauthenticated_pages: true,
    allows_unauthenticated_footer: false,
};

fn read_with(
    engine: &Engine,
    file: impl ReadAt,
    keys: &Keys,
    options: ReadOptions<'_>,
) -> crate::Result<Vec<u8>> {
    let view = PlainView::open(engine, file, keys, options)?;
    let mut plain = vec![0; view.len() as usize];
    view.read_at(0, &mut plain)?;
    Ok(plain)
}

fn footer_range(file: &[u8]) -> std::ops::Range<usize> {
    let end = file.len() - 8;
    let len = u32::from_le_bytes(file[end..].first_chunk().copied().unwrap()) as usize;
    end - len..end
}

/// The structures of the list in field `id`.
fn list(of: &Struct, id: i16) -> Vec<Struct> {
    of.structs(id).unwrap().collect::<crate::Result<_>>().unwrap()
}

/// The structure of the encryption algorithm in field `id` of the footer. Its fields are the prefix (1) and the identifier (2).
fn encryption(file: &[u8], id: i16) -> Struct {
    let (holder, _) = Struct::read(&file[footer_range(file)]).unwrap().unwrap();
    let union = holder.structure(id).unwrap().unwrap();
    [1, 2].iter().find_map(|id| union.structure(*id).unwrap()).unwrap()
}

/// Checks that the pages, page locations and filters of a plain form equal those of the plain file.
fn check(plain: &[u8], plain_column: Option<usize>) {
    let footer = Struct::read_whole(&plain[footer_range(plain)], "footer").unwrap();
    assert_eq!(footer.binary(99), Some(&b"unknown"[..]));
    for (group, chunks) in list(&footer, file::ROW_GROUPS).iter().enumerate() {
        for (number, chunk) in list(chunks, row_group::COLUMNS).iter().enumerate() {
            let meta = chunk.structure(chunk::META_DATA).unwrap().unwrap();
            assert!(meta.has(STATISTICS));
            assert_eq!(meta.binary(UNKNOWN), Some(&b"unknown of column"[..]));
            let start = meta.int(column::DICTIONARY_PAGE_OFFSET).unwrap() as usize;
            let end = start + meta.int(column::TOTAL_COMPRESSED_SIZE).unwrap() as usize;
            let (mut at, mut found, mut starts) = (start, Vec::new(), Vec::new());
            while at < end {
                let (header, used) = Struct::read(&plain[at..end]).unwrap().unwrap();
                // A checksum of a page is kept only if the bytes of the page are unchanged.
                assert_eq!(header.has(page::CRC), plain_column == Some(number));
                let size = header.int(page::COMPRESSED_SIZE).unwrap() as usize;
                assert_eq!(header.int(2), Some(size as i64));
                starts.push((at as i64, (used + size) as i64));
                found.push(plain[at + used..at + used + size].to_vec());
                at += used + size;
            }
            assert_eq!(found, bodies(group, number));
            assert_eq!(meta.int(column::DATA_PAGE_OFFSET), Some(starts[1].0));
            let at = chunk.int(chunk::OFFSET_INDEX_OFFSET).unwrap() as usize;
            let len = chunk.int(chunk::OFFSET_INDEX_LENGTH).unwrap() as usize;
            let index = Struct::read_whole(&plain[at..at + len], "offset index").unwrap();
            let locations = list(&index, offset_index::PAGE_LOCATIONS);
            let locations: Vec<_> =
                locations.iter().map(|it| (it.int(1).unwrap(), it.int(2).unwrap())).collect();
            assert_eq!(locations, starts[1..]);
            let at = meta.int(column::BLOOM_FILTER_OFFSET).unwrap() as usize;
            let (_, used) = Struct::read(&plain[at..]).unwrap().unwrap();
            let bits = bits(group, number);
            assert_eq!(plain[at + used..at + used + bits.len()], bits);
        }
    }
}

#[test]
fn the_view_has_the_pages_of_the_plain_file() {
    let engine = Engine::new().unwrap();
    let secrets = [&b"secret minimum"[..], b"unknown of column", b"unknown of chunk", &bodies(1, 1)[2]];
    let has = |file: &[u8], secret: &[u8]| file.windows(secret.len()).any(|window| window == secret);
    for algorithm in [Algorithm::GcmV1, Algorithm::GcmCtrV1] {
        for plaintext_footer in [false, true] {
            let file = encrypted(&engine, &policy(algorithm, plaintext_footer));
            assert!(!secrets.iter().any(|secret| has(&file, secret)));
            let allows_unauthenticated_pages = algorithm == Algorithm::GcmCtrV1;
            let options = ReadOptions { allows_unauthenticated_pages, ..ReadOptions::default() };
            check(&read_with(&engine, file, &keys(), options).unwrap(), None);
        }
    }
    // The control: the search finds the secrets in the plain file.
    assert!(secrets.iter().all(|secret| has(&plain_file(), secret)));
}

/// The places of the offset indexes of a plain file or a plain form.
fn offset_indexes(plain: &[u8]) -> Vec<usize> {
    let footer = Struct::read_whole(&plain[footer_range(plain)], "footer").unwrap();
    let groups = list(&footer, file::ROW_GROUPS);
    let chunks = groups.iter().flat_map(|group| list(group, row_group::COLUMNS));
    chunks.map(|chunk| chunk.int(chunk::OFFSET_INDEX_OFFSET).unwrap() as usize).collect()
}

/// Some writers omit the list of page locations if a column chunk has no pages.
#[test]
fn an_offset_index_without_locations_is_kept() {
    const OTHER: i16 = 2;
    let (engine, mut plain, mut file) = (Engine::new().unwrap(), plain_file(), Vec::new());
    for at in offset_indexes(&plain) {
        // Field 1 of the index is a list. Its header is replaced by the header of field 2.
        assert_eq!(std::mem::replace(&mut plain[at], 0x29), 0x19);
    }
    encrypt(&engine, &plain, &mut file, &policy(Algorithm::GcmV1, false)).unwrap();
    let read = read_all(&engine, file, &keys()).unwrap();
    let indexes = offset_indexes(&read);
    assert_eq!(indexes.len(), GROUPS * COLUMNS.len());
    for at in indexes {
        let (index, _) = Struct::read(&read[at..]).unwrap().unwrap();
        assert!(!index.has(offset_index::PAGE_LOCATIONS));
        assert_eq!(list(&index, OTHER).len(), 3);
    }
}

/// Long parts of a chunk are read and decrypted by several threads.
#[test]
fn threads_share_long_chunks() {
    let engine = |threads| Engine::builder().threads(threads).build().unwrap();
    // A chunk has 3 MB, in pages that are shorter and longer than the number of bytes that a thread takes at once.
    let lengths = [30, 500_000, 700_000, 1, 1_200_000, 300_000, 0, 300_000];
    let page = |group: usize, column: usize, i: usize| {
        (0..lengths[i]).map(|at| (at / 7 + group * 50 + column * 10 + i) as u8).collect()
    };
    let plain = plain_file_with(COLUMNS, 0, &|group, column| {
        (0..lengths.len()).map(|i| page(group, column, i)).collect()
    });
    for algorithm in [Algorithm::GcmV1, Algorithm::GcmCtrV1] {
        let mut file = Vec::new();
        encrypt(&engine(3), &plain, &mut file, &policy(algorithm, false)).unwrap();
        let open =
            |threads, file: &[u8]| PlainView::open(&engine(threads), file.to_vec(), &keys(), ANY).unwrap();
        let one = open(1, &file);
        let mut expected = vec![0; one.len() as usize];
        for (part, offset) in expected.chunks_mut(123_457).zip((0..).step_by(123_457)) {
            assert_eq!(one.read_at(offset, part).unwrap(), part.len());
        }
        let view = open(3, &file);
        let mut whole = vec![0; expected.len()];
        assert_eq!(view.read_at(0, &mut whole).unwrap(), whole.len());
        assert!(whole == expected);
        // The range is from the middle of a page to the middle of another one. At the second time, both pages are in the
        // cache.
        let range = 400_000..2_500_000;
        for _ in 0..2 {
            let mut part = vec![0; range.len()];
            view.read_at(range.start as u64, &mut part).unwrap();
            assert!(part == expected[range.clone()]);
        }
        if algorithm == Algorithm::GcmV1 {
            // Changes a byte of the longest page of the first chunk.
            file[2_000_000] ^= 1;
            let error = open(3, &file).read_at(0, &mut whole).unwrap_err();
            assert!(matches!(error, Error::NotAuthentic(_)), "{error}");
            assert!(whole.iter().all(|byte| *byte == 0), "the buffer is zeroed");
        }
    }
}

/// The algorithm is not authenticated in a file with an encrypted footer.
#[test]
fn another_algorithm_is_refused() {
    let engine = Engine::new().unwrap();
    let mut file = encrypted(&engine, &policy(Algorithm::GcmV1, false));
    let union = footer_range(&file).start + 1;
    // The byte is the header of the first field of the union, which is a structure. It becomes the header of the second
    // field.
    assert_eq!(file[union], 0x1c);
    file[union] = 0x2c;
    assert!(matches!(read_all(&engine, file.clone(), &keys()), Err(Error::UnauthenticatedPages)));
    // The control: without the check, the pages are read with the mode that has no tags.
    assert!(read_with(&engine, file, &keys(), ANY).is_ok());
}

#[test]
fn plain_columns_are_plain_and_refused_where_encryption_is_expected() {
    let engine = Engine::new().unwrap();
    let policy = Policy { plain_columns: vec!["c".into()], ..policy(Algorithm::GcmV1, false) };
    let file = encrypted(&engine, &policy);
    let secret = &bodies(1, 2)[2];
    assert!(file.windows(secret.len()).any(|window| window == secret));
    check(&read_all(&engine, file.clone(), &keys()).unwrap(), Some(2));
    let refused = read_all(&engine, file, &keys().column("c", COLUMN));
    assert!(matches!(refused, Err(Error::PlainColumn(column)) if column == "c"));
}

#[test]
fn column_chunks_in_another_order_than_the_schema_are_refused() {
    let engine = Engine::new().unwrap();
    let encrypt =
        |paths| encrypt(&engine, &plain_file_with(paths, 0, &bodies), Vec::new(), &Policy::uniform(FOOTER));
    assert!(matches!(encrypt(["b", "a", "c"]), Err(Error::Malformed(_))));
    assert!(encrypt(COLUMNS).is_ok());
}

#[test]
fn a_page_header_can_be_longer_than_a_piece() {
    let engine = Engine::new().unwrap();
    let plain = plain_file_with(COLUMNS, 5 << 20, &bodies);
    let mut file = Vec::new();
    encrypt(&engine, &plain, &mut file, &Policy::uniform(FOOTER)).unwrap();
    check(&read_all(&engine, file, &Keys::new().footer(FOOTER)).unwrap(), None);
}

#[test]
fn a_column_without_a_key_is_hidden() {
    let engine = Engine::new().unwrap();
    let file = encrypted(&engine, &policy(Algorithm::GcmV1, false));
    let view = PlainView::open(&engine, file, &Keys::new().footer(FOOTER), ReadOptions::default()).unwrap();
    let mut plain = vec![0; view.len() as usize];
    view.read_at(0, &mut plain).unwrap();
    assert!(!plain.windows(5).any(|window| window == &bodies(0, 1)[2][..5]));
    let footer = Struct::read_whole(&plain[footer_range(&plain)], "footer").unwrap();
    let group = &list(&footer, file::ROW_GROUPS)[0];
    let meta = list(group, row_group::COLUMNS)[1].structure(chunk::META_DATA).unwrap().unwrap();
    let offset = meta.int(column::DATA_PAGE_OFFSET).unwrap() as u64;
    let refused = view.read_at(offset, &mut [0; 10]);
    assert!(matches!(refused, Err(Error::MissingKey(what)) if what == "column b"));
    // A copy of the whole view is made in parts, so `read_part` also starts within a column without a key and returns
    // zeros.
    let mut part = [1; 10];
    assert_eq!(view.read_part(offset, &mut part, false).unwrap(), 10);
    assert_eq!(part, [0; 10]);
}

#[test]
fn a_structure_of_thrift_survives_and_has_limits() {
    let plain = plain_file();
    let bytes = &plain[footer_range(&plain)];
    let footer = Struct::read_whole(bytes, "footer").unwrap();
    assert_eq!(footer.encode(), bytes);
    for len in 0..bytes.len() {
        assert!(Struct::read(&bytes[..len]).unwrap().is_none(), "{len}");
    }
    // Selected fields can be read alone.
    let (part, len) = Struct::read_only(bytes, |id| id == file::SCHEMA || id == 99).unwrap().unwrap();
    assert_eq!((part.has(file::SCHEMA), part.has(file::ROW_GROUPS), len), (true, false, bytes.len()));
    // Structures that are nested too deeply, lists that are nested too deeply, and a list that states more elements
    // than there are bytes.
    assert!(Struct::read(&vec![0x1c; 10_000]).is_err());
    assert!(Struct::read(&[&[0x19][..], &vec![0x19; 10_000]].concat()).is_err());
    assert!(Struct::read(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0]).unwrap().is_none());
    assert!(Struct::read(&[0x1e, 0]).is_err());
    // Fields may have any order, but only one value each: field 2, then field 1, then field 2 again.
    assert!(Struct::read(&[0x25, 0, 0x05, 2, 2, 0]).unwrap().is_some());
    assert!(Struct::read(&[0x25, 0, 0x05, 2, 2, 0x15, 4, 0]).is_err());
}

#[test]
fn padding_fills_any_length_that_a_header_needs() {
    let header =
        fields(&[(1, Value::i32(0)), (3, Value::i32(1000)), (8, thrift::structure(&Struct::default()))]);
    let len = header.encode().len();
    for padded in len..len + 120 {
        let bytes = header.encode_padded(padded);
        // A field takes at least two bytes, so a padding of one byte is impossible.
        let Some(bytes) = bytes else {
            assert_eq!(padded, len + 1);
            continue;
        };
        let (mut read, used) = Struct::read(&bytes).unwrap().unwrap();
        assert_eq!((bytes.len(), used), (padded, padded));
        read.remove(15);
        assert_eq!(read, header);
    }
}

/// The fields of a page header may have any order and any numbers. The padding at the end of the header must not extend into
/// the page.
#[test]
fn padding_ends_with_the_header() {
    let engine = Engine::new().unwrap();
    // The header has the type, the size and then a field with this number.
    for id in [-1, -300, 0, 14, 15, 16, 300, i16::MAX - 1, i16::MAX] {
        let body = [0x5a; 9];
        let mut header = vec![0x15, 0, 0x25, 2 * body.len() as u8, 0x05];
        let zigzag = (i32::from(id) << 1 ^ i32::from(id) >> 15) as u32;
        (0..3).for_each(|i| header.push((zigzag >> (7 * i)) as u8 & 0x7f | if i < 2 { 0x80 } else { 0 }));
        header.extend([8, 0]);
        let file = file_with_page(&[&header[..], &body].concat());
        let mut encrypted = Vec::new();
        let outcome = encrypt(&engine, &file, &mut encrypted, &Policy::uniform(FOOTER));
        assert_eq!(outcome.is_err(), id == i16::MAX);
        if outcome.is_err() {
            continue;
        }
        let plain = read_all(&engine, encrypted, &Keys::new().footer(FOOTER)).unwrap();
        let (header, used) = Struct::read(&plain[4..]).unwrap().unwrap();
        assert_eq!((header.int(id), &plain[4 + used..][..body.len()]), (Some(4), &body[..]), "field {id}");
        // The padding is a field whose number follows the last one. After the largest number there is no such field.
        let again = encrypt(&engine, &plain, Vec::new(), &Policy::uniform(FOOTER));
        assert_eq!(again.is_err(), id == i16::MAX - 1);
    }
}

/// A file of one column with this page.
fn file_with_page(page: &[u8]) -> Vec<u8> {
    let meta = fields(&[
        (column::TYPE, Value::i32(1)),
        (column::TOTAL_COMPRESSED_SIZE, Value::i64(page.len() as i64)),
        (column::DATA_PAGE_OFFSET, Value::i64(4)),
    ]);
    let chunk = fields(&[(chunk::FILE_OFFSET, Value::i64(0)), (chunk::META_DATA, thrift::structure(&meta))]);
    let group = fields(&[(row_group::COLUMNS, structs(vec![chunk])), (row_group::NUM_ROWS, Value::i64(1))]);
    let name = |name: &str| (schema::NAME, Value::binary(name.as_bytes()));
    let elements = vec![
        fields(&[name("root"), (schema::NUM_CHILDREN, Value::i32(1))]),
        fields(&[(schema::TYPE, Value::i32(1)), name("a")]),
    ];
    let footer = fields(&[
        (1, Value::i32(1)),
        (file::SCHEMA, structs(elements)),
        (file::ROW_GROUPS, structs(vec![group])),
    ]);
    let footer = footer.encode();
    [&b"PAR1"[..], page, &footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}
