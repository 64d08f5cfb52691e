//! `EncryptWriter`: any split of the data, flushes, and errors that later calls return again.

use crate::common;

use std::io::{self, Write};

use common::*;
use lockstep::{EncryptWriter, Error, Suite};
use proptest::prelude::*;

const SUITE: Suite = Suite::Cobblestone256;

/// The error of this crate inside an `io::Error`.
fn inner(error: io::Error) -> Error {
    error.downcast().unwrap()
}

#[test]
fn round_trips_of_every_length() {
    for suite in SUITES {
        for len in LENGTHS {
            let plain = plaintext(len);
            let mut writer = EncryptWriter::new(engine(1), &key(suite), b"ctx", Vec::new()).unwrap();
            writer.write_all(&plain).unwrap();
            let message = writer.finish().unwrap();
            assert!(oracle_open(suite, b"ctx", &message).unwrap() == plain, "{len}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_splits_and_flushes(
        writes in prop::collection::vec((0usize..60_000, any::<bool>()), 0..20),
        step in 1usize..50_000,
        interrupts: bool,
    ) {
        let plain = plaintext(writes.iter().map(|(len, _)| len).sum());
        let mut rest = &plain[..];
        let mut narrow = Narrow::new(step, usize::MAX);
        narrow.interrupts = interrupts;
        let mut writer = EncryptWriter::new(engine(1), &key(SUITE), b"", narrow).unwrap();
        for (len, flush) in writes {
            let (now, later) = rest.split_at(len);
            writer.write_all(now).unwrap();
            rest = later;
            if flush {
                writer.flush().unwrap();
                let done = plain.len() - rest.len();
                // All full chunks are written.
                prop_assert_eq!(writer.get_ref().got.len(), 56 + done / 16384 * 16400);
            }
        }
        let message = writer.finish().unwrap().got;
        prop_assert!(oracle_open(SUITE, b"", &message).unwrap() == plain);
    }
}

#[test]
fn a_message_without_finish_is_refused() {
    let mut bytes = Vec::new();
    let mut writer = EncryptWriter::new(engine(1), &key(SUITE), b"", &mut bytes).unwrap();
    writer.write_all(&plaintext(40_000)).unwrap();
    writer.flush().unwrap();
    drop(writer);
    assert_eq!(bytes.len(), 56 + 2 * 16400);
    let error = lockstep::open(engine(1), &key(SUITE), b"", &bytes).unwrap_err();
    assert!(matches!(error, Error::Truncated { .. }));
}

#[test]
fn errors_of_a_writer_persist() {
    let narrow = Narrow::new(1 << 20, 20_000);
    let mut writer = EncryptWriter::new(engine(1), &key(SUITE), b"", narrow).unwrap();
    writer.write_all(&plaintext(40_000)).unwrap();
    let error = writer.flush().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(matches!(inner(error), Error::Write(_)));
    assert!(matches!(inner(writer.write(b"x").unwrap_err()), Error::FailedBefore { .. }));
    assert!(matches!(inner(writer.flush().unwrap_err()), Error::FailedBefore { .. }));
    assert!(matches!(writer.finish(), Err(Error::FailedBefore { .. })));
}
