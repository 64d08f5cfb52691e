//! Tests of random access: any range, ranges at every boundary, and truncated and changed messages.

use crate::common;

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};

use common::*;
use lockstep::cobblestone::MAX_PLAINTEXT;
use lockstep::{Error, Options, ReadAt, Reader, Suite};
use proptest::prelude::*;

const SUITE: Suite = Suite::Cobblestone256;

fn reader(message: &[u8]) -> lockstep::Result<Reader<&[u8]>> {
    Reader::open(engine(2), &key(SUITE), b"", message)
}

#[test]
fn ranges_around_every_border() {
    for suite in SUITES {
        for len in [0, 1, 16383, 16384, 16385, 3 * 16384, 70 * 16384 + 9] {
            let plain = plaintext(len);
            let message = oracle_seal(suite, b"ctx", &plain);
            let reader = Reader::open(engine(2), &key(suite), b"ctx", &message[..]).unwrap();
            assert_eq!(reader.len(), len as u64);
            assert_eq!(reader.is_empty(), len == 0);
            let mut starts = vec![0, 1, 16383, 16384, 16385, 2 * 16384, len, len.saturating_sub(1), len + 1];
            starts.push(1 << 30);
            for &start in &starts {
                for count in [0, 1, 2, 16383, 16384, 16385, 40_000, 40 * 16384, usize::MAX] {
                    let from = start.min(len);
                    let expected = &plain[from..from.saturating_add(count).min(len)];
                    assert!(
                        reader.read_range(start as u64, count as u64).unwrap() == expected,
                        "{start} {count}"
                    );
                    let mut buffer = vec![7; count.min(100_000)];
                    let n = reader.read_at(start as u64, &mut buffer).unwrap();
                    let expected = &expected[..expected.len().min(buffer.len())];
                    assert!(buffer[..n] == *expected && buffer[n..].iter().all(|&byte| byte == 7));
                }
            }
            assert!(reader.read_range(u64::MAX, u64::MAX).unwrap().is_empty());
        }
    }
}

#[test]
fn a_range_fills_several_buffers() {
    let plain = plaintext(70 * 16384 + 9);
    let mut message = oracle_seal(SUITE, b"", &plain);
    let sizes = [0, 5, 16384, 1, 600_000, 0, 40_000, 16383];
    let total: usize = sizes.iter().sum();
    for threads in [1, 2, 5] {
        let reader = Reader::open(engine(threads), &key(SUITE), b"", &message[..]).unwrap();
        for start in [0, 1, 16384, 20_000, plain.len() - total, plain.len() - total + 10, plain.len()] {
            let mut buffers: Vec<_> = sizes.iter().map(|&size| vec![7; size]).collect();
            let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| &mut buffer[..]).collect();
            let n = reader.read_scattered(start as u64, &mut slices, Options::default()).unwrap() as usize;
            let got = buffers.concat();
            assert_eq!(n, total.min(plain.len() - start));
            assert!(got[..n] == plain[start..start + n] && got[n..].iter().all(|&byte| byte == 7), "{start}");
        }
    }
    message[56 + 40 * 16400 + 5] ^= 1;
    let mut buffers: Vec<_> = sizes.iter().map(|&size| vec![7; size]).collect();
    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| &mut buffer[..]).collect();
    let outcome = reader(&message).unwrap().read_scattered(1000, &mut slices, Options::default());
    assert!(matches!(outcome, Err(Error::Damaged { chunk: 40 })));
    assert!(buffers.concat().iter().all(|&byte| byte == 0));
}

#[test]
fn a_truncated_message_cannot_be_opened() {
    let message = oracle_seal(SUITE, b"", &plaintext(5 * 16384));
    for cut in [0, 1, 55, 56, 57, 56 + 16400, 56 + 2 * 16400, 56 + 5 * 16400, 56 + 5 * 16400 + 15] {
        assert!(
            matches!(reader(&message[..cut]), Err(Error::Truncated { got }) if got == cut as u64),
            "{cut}"
        );
    }
    for cut in [56 + 16400 + 16, 56 + 2 * 16400 - 1] {
        assert!(matches!(reader(&message[..cut]), Err(Error::Damaged { .. })), "{cut}");
    }
    let longer = [&message[..], &[0]].concat();
    assert!(matches!(reader(&longer), Err(Error::Damaged { chunk: 5 })));
    let wrong = Reader::open(engine(1), &key(SUITE), b"x", &message[..]);
    assert!(matches!(wrong, Err(Error::WrongKeyOrContext)));
}

#[test]
fn damage_is_detected_when_read_and_the_buffer_is_zeroed() {
    let plain = plaintext(70 * 16384);
    let mut message = oracle_seal(SUITE, b"", &plain);
    message[56 + 40 * 16400 + 5] ^= 1;
    let reader = reader(&message).unwrap();
    assert!(reader.read_range(0, 40 * 16384).unwrap() == plain[..40 * 16384]);
    assert!(reader.read_range(41 * 16384, u64::MAX).unwrap() == plain[41 * 16384..]);
    for (start, len) in [(40 * 16384, 1), (0, 70 * 16384), (41 * 16384 - 1, 2), (39 * 16384, 20_000)] {
        let mut buffer = vec![7; len];
        assert!(matches!(reader.read_at(start, &mut buffer), Err(Error::Damaged { chunk: 40 })));
        assert!(buffer.iter().all(|&byte| byte == 0));
    }
    let mut output = Vec::new();
    let outcome = reader.copy_range(10, u64::MAX, &mut output, Options::default());
    assert!(matches!(outcome, Err(Error::Damaged { chunk: 40 })));
    assert!(!output.is_empty() && plain[10..].starts_with(&output));
}

#[test]
fn only_the_required_bytes_are_read() {
    struct Counting<'a>(&'a [u8], AtomicU64);
    impl ReadAt for Counting<'_> {
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            self.1.fetch_add(buffer.len() as u64, Ordering::SeqCst);
            self.0.read_exact_at(buffer, offset)
        }
        fn size(&self) -> io::Result<u64> {
            self.0.size()
        }
    }
    let message = oracle_seal(SUITE, b"", &plaintext(100 * 16384));
    let reader = Reader::open(engine(2), &key(SUITE), b"", Counting(&message, AtomicU64::new(0))).unwrap();
    let count = || reader.get_ref().1.load(Ordering::SeqCst);
    assert_eq!(count(), 56 + 16);
    reader.read_range(50 * 16384 - 1, 2).unwrap();
    assert_eq!(count(), 56 + 16 + 2 * 16400);
}

#[test]
fn behind_an_envelope() {
    let plain = plaintext(20_000);
    let file = [b"envelope", &oracle_seal(SUITE, b"", &plain)[..]].concat();
    let reader = Reader::open_from(engine(1), &key(SUITE), b"", &file[..], 8).unwrap();
    assert!(reader.read_range(16_000, 1000).unwrap() == plain[16_000..17_000]);
    for start in [file.len() as u64, 1 << 40, u64::MAX] {
        let outcome = Reader::open_from(engine(1), &key(SUITE), b"", &file[..], start);
        assert!(matches!(outcome, Err(Error::Truncated { got: 0 })), "{start}");
    }
}

#[test]
fn lengths_over_the_limit_are_refused() {
    /// A source that reports a length beyond the limit.
    struct Huge(Vec<u8>, u64);
    impl ReadAt for Huge {
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            if offset == 0 {
                return self.0[..].read_exact_at(buffer, 0);
            }
            buffer.fill(0);
            Ok(())
        }
        fn size(&self) -> io::Result<u64> {
            Ok(self.1)
        }
    }
    let open = |size| {
        let header = oracle_seal(SUITE, b"", b"")[..56].to_vec();
        Reader::open(engine(1), &key(SUITE), b"", Huge(header, size)).map(drop).unwrap_err()
    };
    let longest = lockstep::ciphertext_len(MAX_PLAINTEXT).unwrap();
    assert!(matches!(open(longest), Error::Damaged { chunk } if chunk == (1 << 38) - 1));
    assert!(matches!(open(longest + 17), Error::TooLong));
    assert!(matches!(open(u64::MAX), Error::TooLong));
    assert!(!open(u64::MAX).is_authentication_failure());
}

#[test]
fn sources_that_fail() {
    struct Failing(Vec<u8>);
    impl ReadAt for Failing {
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            if offset == 56 {
                Err(io::Error::other("bad sector"))
            } else {
                self.0.read_exact_at(buffer, offset)
            }
        }
        fn size(&self) -> io::Result<u64> {
            self.0.size()
        }
    }
    let reader =
        Reader::open(engine(1), &key(SUITE), b"", Failing(oracle_seal(SUITE, b"", &plaintext(40_000))))
            .unwrap();
    let mut buffer = [7; 100];
    assert!(matches!(reader.read_at(0, &mut buffer), Err(Error::Read(_))));
    assert_eq!(buffer, [0; 100]);
    assert!(reader.read_at(20_000, &mut buffer).is_ok());
}

#[test]
fn seek_and_read() {
    let plain = plaintext(5 * 16384 + 100);
    let message = oracle_seal(SUITE, b"", &plain);
    let mut reader = reader(&message).unwrap();
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    assert!(all == plain);
    assert_eq!(reader.seek(SeekFrom::End(-50)).unwrap(), plain.len() as u64 - 50);
    let mut buffer = [0; 100];
    assert_eq!(reader.read(&mut buffer).unwrap(), 50);
    assert!(buffer[..50] == plain[plain.len() - 50..]);
    assert_eq!(reader.seek(SeekFrom::Start(16380)).unwrap(), 16380);
    let mut buffer = [0; 10];
    reader.read_exact(&mut buffer).unwrap();
    assert!(buffer == plain[16380..16390]);
    assert_eq!(reader.seek(SeekFrom::Current(-10)).unwrap(), 16380);
    assert!(reader.seek(SeekFrom::Current(-16381)).is_err());
    assert_eq!(reader.seek(SeekFrom::End(1000)).unwrap(), plain.len() as u64 + 1000);
    assert_eq!(reader.read(&mut buffer).unwrap(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_range(start in 0u64..1_400_000, len in 0u64..1_400_000, threads in 1usize..9) {
        static CASE: std::sync::OnceLock<(Vec<u8>, Vec<u8>)> = std::sync::OnceLock::new();
        let (plain, message) = CASE.get_or_init(|| {
            let plain = plaintext(1_300_000);
            let message = oracle_seal(SUITE, b"", &plain);
            (plain, message)
        });
        let reader = Reader::open(engine(threads), &key(SUITE), b"", &message[..]).unwrap();
        let from = (start as usize).min(plain.len());
        let to = (from + len as usize).min(plain.len());
        prop_assert!(reader.read_range(start, len).unwrap() == plain[from..to]);
    }
}
