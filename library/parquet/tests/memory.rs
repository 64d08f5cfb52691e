//! Tests of the memory that footers with many small values take, by counting allocated bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use lockstep::Engine;
use lockstep_parquet::{ColumnKey, Keys, PlainView, Policy, ReadOptions, encrypt};

/// Counts the bytes that are allocated.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn add(len: usize) {
    MOST.fetch_max(NOW.fetch_add(len, Relaxed) + len, Relaxed);
}

// SAFETY: the calls are passed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were allocated at the same time during a call.
fn most<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = call();
    (result, MOST.load(Relaxed) - before)
}

/// Bytes of each footer. The difference of the two measurements does not contain what every call allocates.
const LENS: [usize; 2] = [1 << 16, 1 << 18];
/// Limits of allocated bytes: the factor for each byte of the footer, the number of additional bytes, and the number
/// by which the difference of the two measurements may exceed the factor.
type Limits = (usize, usize, usize);
const BEFORE_AUTHENTICATION: Limits = (2, 256 << 10, 64 << 10);
const AFTERWARDS: Limits = (32, 4 << 20, 1 << 20);

fn varint(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// A field that is a list: `header` is the header of the field, `kind` the type of the elements, and `count` the
/// number of elements.
fn list(header: u8, kind: u8, element: &[u8], count: usize) -> Vec<u8> {
    [&[header, 0xf0 | kind][..], &varint(count), &element.repeat(count)].concat()
}

/// For each kind of small elements, `FileMetaData` of about `full` bytes, most of which are a list of these elements.
fn footers(full: usize) -> Vec<(String, Vec<u8>)> {
    // The schema has a root and a column `a`. The list of row groups follows.
    let schema = [0x29, 0x2c, 0x48, 1, b'r', 0x15, 2, 0, 0x15, 2, 0x38, 1, b'a', 0];
    let elements: [(&str, &[u8]); 6] = [
        ("empty structures", &[0]),
        ("structures with a Boolean", &[0x11, 0]),
        ("structures with Booleans", &[0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0]),
        ("structures with an empty string", &[0x18, 0, 0]),
        ("structures within structures", &[0x1c, 0x1c, 0x1c, 0, 0, 0, 0]),
        ("lists within structures", &[0x19, 0x1c, 0, 0]),
    ];
    // A row group, a chunk and its metadata: the path, the size 0, and the offset of the data pages.
    let meta = [0x3c, 0x39, 0x18, 1, b'a', 0x46, 0, 0x26, 8, 0];
    let no_column = [0x19, 0x0c, 0x26, 0, 0];
    let group = [&[0x19, 0x1c][..], &meta, &[0, 0x26, 0, 0]].concat();
    // The same chunk, encrypted with the footer key.
    let encrypted = [&[0x19, 0x1c][..], &meta, &[0x5c, 0x1c, 0, 0, 0, 0x26, 0, 0]].concat();
    let mut footers = Vec::new();
    for (name, element) in elements {
        let count = full / element.len();
        footers
            .push((format!("row groups: {name}"), [&schema[..], &list(0x29, 12, element, count)].concat()));
        footers.push((
            format!("an unknown field: {name}"),
            [&list(0x19, 12, element, count)[..], &schema].concat(),
        ));
        footers.push((format!("the schema: {name}"), list(0x29, 12, element, count)));
    }
    for (name, group) in [("chunks", &group[..]), ("encrypted", &encrypted), ("no columns", &no_column)] {
        // There are fewer row groups than 32768, which is the number of ordinals.
        let groups = list(0x29, 12, group, full / group.len());
        footers.push((format!("row groups: {name}"), [&schema[..], &groups].concat()));
    }
    let chunks = list(0x19, 12, &[&meta[..], &[0]].concat(), full / 11);
    footers.push(("chunks of a row group".into(), [&schema[..], &[0x29, 0x1c], &chunks, &[0]].concat()));
    let leaf = [0x15, 2, 0x38, 0, 0];
    let count = (full / leaf.len()).min(32_767);
    let root = [&[0x48, 0, 0x15][..], &varint(2 * count), &[0]].concat();
    let leaves = [&[0x29, 0xfc][..], &varint(count + 1), &root, &leaf.repeat(count), &[0x29, 0x0c]].concat();
    footers.push(("columns".into(), leaves));
    // A group with a long name and with columns, for whose paths there is just enough room.
    for (kind, name_len, count) in
        [("all bytes", full, 8), ("10,000 bytes", 10_000, 120), ("100 bytes", 100, 30_000)]
    {
        let root = [0x48, 0, 0x15, 2, 0];
        let group =
            [&[0x48][..], &varint(name_len), &vec![b'g'; name_len], &[0x15], &varint(2 * count), &[0]];
        let leaves = [&group.concat(), &leaf.repeat(count)[..]].concat();
        let schema = [&[0x29, 0xfc][..], &varint(count + 2), &root, &leaves, &[0x29, 0x0c]].concat();
        footers.push((format!("columns in a group with a name of {kind}"), schema));
    }
    footers.push(("Booleans".into(), vec![0x11; full]));
    footers.push(("a string".into(), [&[0x18][..], &varint(full), &vec![1; full]].concat()));
    footers.push(("nested structures".into(), vec![0x1c; full]));
    footers.push(("nested lists".into(), [&[0x19][..], &vec![0x19; full]].concat()));
    footers
}

/// A file with this footer. If `is_encrypted` is true, the footer also contains the fields that state the encryption,
/// followed by 28 bytes in place of a signature.
fn file(footer: &[u8], magic: &[u8; 4], is_encrypted: bool) -> Vec<u8> {
    // Field 8, which follows all other fields: the algorithm AES_GCM_V1 with an identifier.
    let algorithm = [&[0x0c, 16, 0x1c, 0x28, 8][..], &[7; 8], &[0, 0]].concat();
    let mut footer = footer.to_vec();
    if is_encrypted {
        footer.extend(algorithm);
    }
    footer.push(0);
    if is_encrypted {
        footer.extend([0; 28]);
    }
    [magic, &footer[..], &(footer.len() as u32).to_le_bytes(), magic].concat()
}

/// Makes each call for each footer. Returns their names, the largest number of bytes that the call had allocated at one time, the length
/// of the footer, and the limits.
fn measure(full: usize) -> Vec<(String, usize, usize, Limits)> {
    let engine = Engine::builder().threads(1).build().unwrap();
    let keys = Keys::new().footer(&[7; 32]);
    let unsigned = ReadOptions { allows_unauthenticated_footer: true, ..ReadOptions::default() };
    // The kernels are tested and the buffers of the engine are made at the first call.
    let _ = PlainView::open(&engine, file(&[], b"PAR1", true), &keys, ReadOptions::default());
    let mut measured = Vec::new();
    for (name, footer) in footers(full) {
        let len = footer.len();
        for magic in [b"PAR1", b"PARE"] {
            let signed = file(&footer, magic, true);
            let (view, bytes) = most(|| PlainView::open(&engine, &signed, &keys, ReadOptions::default()));
            assert!(view.is_err(), "{name}");
            measured.push((format!("{name}, before authentication"), len, bytes, BEFORE_AUTHENTICATION));
        }
        let signed = file(&footer, b"PAR1", true);
        let (_, bytes) = most(|| PlainView::open(&engine, &signed, &Keys::new(), unsigned).map(drop));
        measured.push((format!("{name}, without a key"), len, bytes, AFTERWARDS));
        let plain = file(&footer, b"PAR1", false);
        let key = ColumnKey { path: "a".into(), key: vec![9; 16].into(), key_metadata: None };
        for columns in [vec![], vec![key]] {
            let policy = Policy { columns, ..Policy::uniform(&[7; 32]) };
            let (_, bytes) = most(|| encrypt(&engine, &plain, std::io::sink(), &policy));
            measured.push((format!("{name}, encryption"), len, bytes, AFTERWARDS));
        }
    }
    measured
}

/// There is only one test, because the allocations of other test threads would be counted too.
#[test]
fn footers_take_memory_in_proportion_to_their_length() {
    let [short, long] = LENS.map(measure);
    for ((name, len, bytes, (factor, base, excess)), (_, long_len, long_bytes, _)) in
        short.into_iter().zip(long)
    {
        for (len, bytes) in [(len, bytes), (long_len, long_bytes)] {
            assert!(
                bytes <= factor * len + base,
                "{name}: {bytes} bytes, {:.1} for each of {len}",
                bytes as f64 / len as f64
            );
        }
        let (more, more_len) = (long_bytes.saturating_sub(bytes), long_len.saturating_sub(len));
        assert!(
            more <= factor * more_len + excess,
            "{name}: {more} more bytes for {more_len} more bytes of the footer"
        );
    }
}
