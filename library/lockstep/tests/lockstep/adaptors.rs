//! `EncryptWriter` and `DecryptReader`: any splits, flushes, and errors that persist.

use crate::common;

use std::io::{self, Read, Write};

use common::*;
use lockstep::{DecryptReader, EncryptWriter, Error, Suite};
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

            let message = oracle_seal(suite, b"ctx", &plain);
            let mut output = Vec::new();
            DecryptReader::new(engine(1), &key(suite), b"ctx", &message[..])
                .unwrap()
                .read_to_end(&mut output)
                .unwrap();
            assert!(output == plain, "{len}");
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

        let mut hesitant = Hesitant::new(&message, step);
        hesitant.interrupts = interrupts;
        let mut output = Vec::new();
        let mut reader = DecryptReader::new(engine(1), &key(SUITE), b"", hesitant).unwrap();
        reader.read_to_end(&mut output).unwrap();
        prop_assert!(output == plain);
        prop_assert_eq!(reader.read(&mut [0; 10]).unwrap(), 0, "another read at the end returns 0");
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

#[test]
fn errors_of_a_reader_persist() {
    let plain = plaintext(50 * 16384);
    let mut message = oracle_seal(SUITE, b"", &plain);
    message[56 + 20 * 16400] ^= 1;
    let mut reader = DecryptReader::new(engine(1), &key(SUITE), b"", &message[..]).unwrap();
    let mut output = Vec::new();
    let error = reader.read_to_end(&mut output).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(matches!(inner(error), Error::Damaged { chunk: 20 }));
    assert!(plain.starts_with(&output) && output.len() <= 20 * 16384);
    for _ in 0..3 {
        let mut buffer = [7; 100];
        assert!(matches!(inner(reader.read(&mut buffer).unwrap_err()), Error::FailedBefore { .. }));
        assert_eq!(buffer, [7; 100]);
    }
}

#[test]
fn headers_are_checked_at_once() {
    let message = oracle_seal(SUITE, b"", b"hello");
    let new = |context, message| DecryptReader::new(engine(1), &key(SUITE), context, message).map(drop);
    assert!(matches!(new(b"other", &message[..]), Err(Error::WrongKeyOrContext)));
    assert!(matches!(new(b"", &message[..55]), Err(Error::Truncated { got: 55 })));
    assert!(matches!(new(b"", &message[..0]), Err(Error::Truncated { got: 0 })));
}

#[test]
fn chunks_are_returned_as_soon_as_they_are_complete() {
    // The reader must not wait for a second chunk when the first is complete.
    struct OnlyOne<'a>(&'a [u8]);
    impl Read for OnlyOne<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.0.read(buffer)
        }
    }
    let plain = plaintext(40_000);
    let message = oracle_seal(SUITE, b"", &plain);
    let mut reader =
        DecryptReader::new(engine(1), &key(SUITE), b"", OnlyOne(&message[..56 + 16400 + 100])).unwrap();
    let mut first = vec![0; 16384];
    reader.read_exact(&mut first).unwrap();
    assert!(first == plain[..16384]);
    // The reader would block, repeatedly, but has not failed.
    for _ in 0..2 {
        assert_eq!(reader.read(&mut first).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
