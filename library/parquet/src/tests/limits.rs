//! Tests of the limits of the memory that a file can make this crate allocate.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A file that records the length of the longest read, for which a buffer was allocated.
struct Recording {
    bytes: Vec<u8>,
    longest: AtomicUsize,
}

impl Recording {
    fn new(bytes: Vec<u8>) -> Recording {
        Recording { bytes, longest: AtomicUsize::new(0) }
    }

    fn check(&self) {
        let longest = self.longest.load(Ordering::Relaxed);
        assert!(longest <= self.bytes.len(), "a read of {longest} bytes of a file of {}", self.bytes.len());
    }
}

impl ReadAt for Recording {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.longest.fetch_max(buffer.len(), Ordering::Relaxed);
        ReadAt::read_exact_at(&self.bytes, buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        ReadAt::size(&self.bytes)
    }
}

/// Writes a length of almost 2^31 at every place of a file. No buffer may be longer than the file.
#[test]
fn stated_lengths_do_not_determine_buffers() {
    let engine = Engine::new().unwrap();
    let read = |file: &Recording, keys: &Keys| {
        let view = PlainView::open(&engine, file, keys, ANY)?;
        let mut plain = vec![0; view.len() as usize];
        view.read_at(0, &mut plain)?;
        for offset in (0..view.len()).step_by(97) {
            view.read_at(offset, &mut [0; 5])?;
        }
        crate::Result::Ok(plain)
    };
    for algorithm in [Algorithm::GcmV1, Algorithm::GcmCtrV1] {
        let file = encrypted(&engine, &policy(algorithm, false));
        for at in 0..file.len() - 3 {
            let mut changed = file.clone();
            changed[at..at + 4].copy_from_slice(&i32::MAX.to_le_bytes());
            let changed = Recording::new(changed);
            let _ = read(&changed, &keys());
            changed.check();
        }
        // The control: the unchanged file is read, with buffers of more than 100 bytes.
        let intact = Recording::new(file);
        read(&intact, &keys()).unwrap();
        assert!(intact.longest.load(Ordering::Relaxed) > 100);
    }
    let plain = plain_file();
    for at in 0..plain.len() - 4 {
        for number in [&i32::MAX.to_le_bytes()[..], &[0xfe, 0xff, 0xff, 0xff, 0x0f]] {
            let mut changed = plain.clone();
            changed[at..at + number.len()].copy_from_slice(number);
            let changed = Recording::new(changed);
            let _ = encrypt(&engine, &changed, Vec::new(), &policy(Algorithm::GcmV1, false));
            changed.check();
        }
    }
}

/// A file with this schema and no rows.
fn file_with_schema(elements: Vec<Struct>) -> Vec<u8> {
    let footer = fields(&[
        (1, Value::i32(1)),
        (file::SCHEMA, structs(elements)),
        (file::ROW_GROUPS, structs(Vec::new())),
    ]);
    let footer = footer.encode();
    let mut out = b"PAR1".to_vec();
    out.extend(&footer);
    out.extend((footer.len() as u32).to_le_bytes());
    out.extend(b"PAR1");
    out
}

/// If each column is in a group with a long name, the name is in each path, so that paths take much more memory than the
/// file.
#[test]
fn paths_of_columns_are_limited() {
    let engine = Engine::new().unwrap();
    let schema = |name_len: usize, leaves: usize| {
        let group = |name: &str, children: usize| {
            fields(&[
                (schema::NAME, Value::binary(name.as_bytes())),
                (schema::NUM_CHILDREN, Value::i32(children as i32)),
            ])
        };
        let leaf = fields(&[(schema::TYPE, Value::i32(1)), (schema::NAME, Value::binary(b"x"))]);
        let mut elements = vec![group("root", 1), group(&"g".repeat(name_len), leaves)];
        elements.resize(leaves + 2, leaf);
        file_with_schema(elements)
    };
    // Columns are refused if the total length of their paths is too large, or if there are too many columns.
    for (name_len, leaves) in [(40_000, 40_000), (10, 32_769)] {
        let refused = encrypt(&engine, &schema(name_len, leaves), Vec::new(), &Policy::uniform(FOOTER));
        assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
    }
    for (name_len, leaves) in [(40_000, 10), (10, 32_768)] {
        let mut out = Vec::new();
        encrypt(&engine, &schema(name_len, leaves), &mut out, &Policy::uniform(FOOTER)).unwrap();
        read_all(&engine, out, &Keys::new().footer(FOOTER)).unwrap();
    }
}
