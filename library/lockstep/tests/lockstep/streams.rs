//! Readers and writers with short transfers, interruptions, failures and limited space; order, memory, progress and
//! interruption.

use crate::common;

use std::io::{self, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::*;
use lockstep::{Error, Options, Suite, decrypt, encrypt};
use proptest::prelude::*;

const SUITE: Suite = Suite::Cobblestone256;

#[test]
fn short_and_interrupted_reads_and_writes_are_handled() {
    let plain = plaintext(100_000);
    for threads in [1, 2, 3] {
        for step in [1, 7, 16384, 16400, 1 << 20] {
            let mut reader = Hesitant::new(&plain, step);
            reader.interrupts = true;
            let mut writer = Narrow::new(step, usize::MAX);
            writer.interrupts = true;
            encrypt(engine(threads), &key(SUITE), b"", reader, &mut writer, Options::default()).unwrap();
            assert!(oracle_open(SUITE, b"", &writer.got).unwrap() == plain);

            let message = writer.got;
            let mut reader = Hesitant::new(&message, step);
            reader.interrupts = true;
            let mut writer = Narrow::new(step, usize::MAX);
            writer.interrupts = true;
            decrypt(engine(threads), &key(SUITE), b"", reader, &mut writer, Options::default()).unwrap();
            assert!(writer.got == plain);
        }
    }
}

#[test]
fn failing_readers_are_reported_after_the_previous_pieces() {
    let plain = plaintext(3 << 20);
    for threads in [1, 2, 8] {
        let mut reader = Hesitant::new(&plain, 100_000);
        reader.fails = true;
        let mut output = Vec::new();
        let error =
            encrypt(engine(threads), &key(SUITE), b"", reader, &mut output, Options::default()).unwrap_err();
        assert!(matches!(&error, Error::Read(source) if source.to_string().contains("on fire")), "{error}");
        assert!(!error.is_authentication_failure());
        // All full pieces before the failure have been written, for any number of threads. No reader accepts them as a
        // message.
        assert_eq!(output.len(), 56 + 6 * 32 * 16400);
        assert_eq!(oracle_open(SUITE, b"", &output), None);

        let message = oracle_seal(SUITE, b"", &plain);
        let mut reader = Hesitant::new(&message[..message.len() - 1], 100_000);
        reader.fails = true;
        let mut output = Vec::new();
        let error =
            decrypt(engine(threads), &key(SUITE), b"", reader, &mut output, Options::default()).unwrap_err();
        assert!(matches!(error, Error::Read(_)), "{error}");
        assert!(output == plain[..6 * 32 * 16384]);
    }
}

#[test]
fn full_writers_and_closed_pipes_stop_everything() {
    let plain = plaintext(5 << 20);
    let message = oracle_seal(SUITE, b"", &plain);
    for threads in [1, 2, 8] {
        for room in [0, 10, 56, 57, 1 << 20, (5 << 20) - 1] {
            let mut writer = Narrow::new(1 << 20, room);
            let error =
                encrypt(engine(threads), &key(SUITE), b"", &plain[..], &mut writer, Options::default())
                    .unwrap_err();
            assert!(matches!(&error, Error::Write(source) if source.kind() == io::ErrorKind::StorageFull));
            assert!(!error.is_broken_pipe() && !error.is_authentication_failure());
            assert_eq!(writer.got.len(), room);

            let mut writer = Narrow::new(1 << 20, room);
            writer.full = io::ErrorKind::BrokenPipe;
            let error =
                decrypt(engine(threads), &key(SUITE), b"", &message[..], &mut writer, Options::default())
                    .unwrap_err();
            assert!(error.is_broken_pipe(), "{error}");
            assert!(writer.got == plain[..room]);
        }
    }
}

#[test]
fn a_writer_that_accepts_nothing_is_an_error() {
    struct Stuck;
    impl Write for Stuck {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Ok(0)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let error = encrypt(engine(2), &key(SUITE), b"", &b"hello"[..], Stuck, Options::default()).unwrap_err();
    assert!(matches!(error, Error::Write(source) if source.kind() == io::ErrorKind::WriteZero));
}

#[test]
fn the_writer_is_flushed() {
    let mut output = io::BufWriter::with_capacity(1 << 20, Vec::new());
    encrypt(engine(1), &key(SUITE), b"", &b"hello"[..], &mut output, Options::default()).unwrap();
    assert_eq!(output.get_ref().len(), 56 + 5 + 16);
}

/// An endless stream of zeros. It counts the bytes that have been read.
struct Endless<'a>(&'a AtomicUsize);

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(0);
        self.0.fetch_add(buffer.len(), Ordering::SeqCst);
        Ok(buffer.len())
    }
}

#[test]
fn memory_is_bounded() {
    // The bytes that are read and not yet written are in memory.
    let (read, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    struct Sink<'a> {
        read: &'a AtomicUsize,
        most: &'a AtomicUsize,
        written: usize,
    }
    impl Write for Sink<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.written > 64 << 20 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            // This gives the other threads time to read as far ahead as possible.
            std::thread::sleep(std::time::Duration::from_millis(2));
            self.most
                .fetch_max(self.read.load(Ordering::SeqCst).saturating_sub(self.written), Ordering::SeqCst);
            self.written += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let sink = Sink { read: &read, most: &most, written: 0 };
    let error = encrypt(engine(8), &key(SUITE), b"", Endless(&read), sink, Options::default()).unwrap_err();
    assert!(matches!(error, Error::Write(_)));
    let most = most.into_inner();
    assert!(most <= 8 * 32 * 16384, "{most} bytes in flight: more than a piece a thread");
    assert!(most > 32 * 16384, "nothing ran in parallel");
}

#[test]
fn progress_only_grows_and_ends_at_the_length() {
    let plain = plaintext((3 << 20) + 77);
    let message = oracle_seal(SUITE, b"", &plain);
    for threads in [1, 3] {
        let seen = Mutex::new(Vec::new());
        let record = |bytes: u64| seen.lock().unwrap().push(bytes);
        let options = Options { progress: Some(&record), ..Options::default() };
        encrypt(engine(threads), &key(SUITE), b"", &plain[..], io::sink(), options).unwrap();
        decrypt(engine(threads), &key(SUITE), b"", &message[..], io::sink(), options).unwrap();
        let seen = seen.into_inner().unwrap();
        let (first, second) = seen.split_at(seen.len() / 2);
        for run in [first, second] {
            assert!(run.len() > 4 && run.is_sorted());
            assert_eq!(*run.last().unwrap(), plain.len() as u64);
        }
    }
}

#[test]
fn interruption_stops_an_endless_run() {
    for threads in [1, 2, 8] {
        let (flag, read) = (AtomicBool::new(false), AtomicUsize::new(0));
        let stop = |bytes: u64| flag.store(bytes >= 4 << 20, Ordering::SeqCst);
        let options = Options { progress: Some(&stop), interrupt: Some(&flag), ..Options::default() };
        let outcome = encrypt(engine(threads), &key(SUITE), b"", Endless(&read), io::sink(), options);
        assert!(matches!(outcome, Err(Error::Interrupted)));
        assert!(read.into_inner() < 16 << 20);
    }
    let flag = AtomicBool::new(true);
    let outcome = encrypt(
        engine(1),
        &key(SUITE),
        b"",
        &b"x"[..],
        io::sink(),
        Options { interrupt: Some(&flag), ..Options::default() },
    );
    assert!(matches!(outcome, Err(Error::Interrupted)));
}

#[test]
fn a_signal_during_a_read_is_an_interruption() {
    struct Signalled<'a>(&'a AtomicBool);
    impl Read for Signalled<'_> {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.0.store(true, Ordering::SeqCst);
            Err(io::ErrorKind::Interrupted.into())
        }
    }
    let flag = AtomicBool::new(false);
    let options = Options { interrupt: Some(&flag), ..Options::default() };
    let outcome = encrypt(engine(1), &key(SUITE), b"", Signalled(&flag), io::sink(), options);
    assert!(matches!(outcome, Err(Error::Interrupted)));
}

#[test]
fn a_panic_in_a_callback_does_not_hang() {
    let read = AtomicUsize::new(0);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let boom = |bytes: u64| assert!(bytes < 4 << 20, "boom");
        let options = Options { progress: Some(&boom), ..Options::default() };
        encrypt(engine(8), &key(SUITE), b"", Endless(&read), io::sink(), options)
    }));
    assert!(outcome.is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_length_by_any_steps(len in 0usize..2_000_000, read in 1usize..200_000, write in 1usize..200_000, threads in 1usize..9) {
        let plain = plaintext(len);
        let mut sealed = Narrow::new(write, usize::MAX);
        encrypt(engine(threads), &key(SUITE), b"p", Hesitant::new(&plain, read), &mut sealed, Options::default()).unwrap();
        prop_assert_eq!(sealed.got.len() as u64, lockstep::ciphertext_len(len as u64).unwrap());
        let mut opened = Narrow::new(read, usize::MAX);
        decrypt(engine(threads), &key(SUITE), b"p", Hesitant::new(&sealed.got, write), &mut opened, Options::default()).unwrap();
        prop_assert!(opened.got == plain);
    }
}

/// Reads the plaintext through a pipe, as the documentation of `decrypt` describes. If the message is damaged, the pipe ends early,
/// and the thread that decrypts returns the error.
#[test]
fn plaintext_is_read_from_a_pipe() {
    let plain = plaintext(700_000);
    let message = oracle_seal(SUITE, b"p", &plain);
    let mut damaged = message.clone();
    damaged[56 + 20 * 16400] ^= 1;
    for (message, is_whole) in [(message, true), (damaged, false)] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut output = Vec::new();
        let outcome = std::thread::scope(|scope| {
            let (engine, key) = (engine(2), key(SUITE));
            let thread =
                scope.spawn(move || decrypt(engine, &key, b"p", &message[..], writer, Options::default()));
            reader.read_to_end(&mut output).unwrap();
            thread.join().unwrap()
        });
        assert_eq!(outcome.is_ok(), is_whole);
        assert!(plain.starts_with(&output) && (output.len() == plain.len()) == is_whole);
    }
}
