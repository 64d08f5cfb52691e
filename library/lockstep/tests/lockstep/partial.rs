//! Tests of the option `partial`: the verified beginning of damaged messages is written.
#![cfg(unix)]

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use lockstep::file::decrypt_open_file;
use lockstep::{Error, FileKey, FileOptions, Options, Suite, decrypt, decrypt_file, seal};

use crate::common::*;

const SUITE: Suite = Suite::Cobblestone256;
const HEADER: usize = 56;
const CHUNK: usize = 16384;
const ENCRYPTED: usize = CHUNK + 16;
/// A piece has at most 32 chunks, so these are more pieces than the tests have threads.
const CHUNKS: usize = 70;

/// A description of the damage, the damaged message, and the number of chunks before the damage.
type Damaged = (String, Vec<u8>, usize);

/// A plaintext, and damaged copies of its message.
fn damaged() -> (Vec<u8>, Vec<Damaged>) {
    let plain = plaintext(CHUNKS * CHUNK + 1000);
    let message = seal(engine(2), &key(SUITE), b"", &plain).unwrap();
    let mut copies = Vec::new();
    for chunk in [0, 1, 31, 32, 64, CHUNKS] {
        let start = HEADER + chunk * ENCRYPTED;
        for cut in [start, start + 15, start + 16, start + 500] {
            let chunks = (cut - HEADER) / ENCRYPTED;
            copies.push((format!("cut at {cut}"), message[..cut].to_vec(), chunks));
        }
        let mut changed = message.clone();
        changed[start + 7] ^= 0x20;
        copies.push((format!("changed in chunk {chunk}"), changed, chunk));
    }
    copies.push(("longer".into(), [&message[..], b"more"].concat(), CHUNKS));
    (plain, copies)
}

#[test]
fn all_chunks_before_the_damage_are_written() {
    let (plain, copies) = damaged();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged");
    for (what, message, chunks) in copies {
        fs::write(&path, &message).unwrap();
        for threads in [1, 3] {
            let (engine, options) = (engine(threads), Options { partial: true, ..Options::default() });
            let (mut piped, mut filed) = (Vec::new(), Vec::new());
            let outcomes = [
                decrypt(engine, &key(SUITE), b"", &message[..], &mut piped, options),
                decrypt_open_file(engine, &key(SUITE), b"", &File::open(&path).unwrap(), &mut filed, options),
            ];
            for (outcome, output) in outcomes.into_iter().zip([piped, filed]) {
                let error = outcome.unwrap_err();
                assert!(error.is_authentication_failure(), "{what}: {error}");
                let Error::Partial { verified, .. } = error else { panic!("{what}: {error}") };
                assert_eq!((verified, output.len()), ((chunks * CHUNK) as u64, chunks * CHUNK), "{what}");
                assert!(plain.starts_with(&output), "{what}");
            }
        }
    }
}

#[test]
fn a_complete_message_is_decrypted_as_without_the_option() {
    for len in LENGTHS {
        let (plain, mut output) = (plaintext(len), Vec::new());
        let message = seal(engine(2), &key(SUITE), b"", &plain).unwrap();
        let options = Options { partial: true, ..Options::default() };
        let summary = decrypt(engine(2), &key(SUITE), b"", &message[..], &mut output, options).unwrap();
        assert_eq!((summary.plaintext_len, summary.ciphertext_len), (len as u64, message.len() as u64));
        assert!(output == plain);
    }
}

#[test]
fn a_file_appears_only_with_the_option_and_with_content() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (plain, copies) = damaged();
    let run = |key: &FileKey, to: &Path, stream: Options<'_>, force| {
        let options = FileOptions { stream, force, ..Default::default() };
        decrypt_file(engine(2), key, b"", &at("in"), to, options).unwrap_err()
    };
    for (what, message, chunks) in copies {
        fs::write(at("in"), &message).unwrap();
        run(&key(SUITE), &at("out"), Options::default(), false);
        assert!(!at("out").exists(), "{what}");
        let error = run(&key(SUITE), &at("out"), Options { partial: true, ..Options::default() }, false);
        assert_eq!(error.keeps_output(), chunks > 0, "{what}");
        assert_eq!(at("out").exists(), chunks > 0, "{what}");
        if chunks > 0 {
            assert!(fs::read(at("out")).unwrap() == plain[..chunks * CHUNK], "{what}");
            fs::remove_file(at("out")).unwrap();
        }
    }
    // With another key, or with a header that is damaged or cut off, nothing can be verified.
    let partial = Options { partial: true, ..Options::default() };
    fs::write(at("out"), "precious").unwrap();
    let error = run(&FileKey::generate().unwrap(), &at("out"), partial, true);
    assert!(error.to_string().contains("none was written"), "{error}");
    let message = seal(engine(2), &key(SUITE), b"", &plain).unwrap();
    for bad in [&message[..0], &message[..HEADER - 1], &message[1..]] {
        fs::write(at("in"), bad).unwrap();
        let error = run(&key(SUITE), &at("out"), partial, true);
        assert!(matches!(error, Error::Partial { verified: 0, .. }), "{error}");
    }
    // An interrupted call and a full disk are not reported as damage of the message.
    fs::write(at("in"), &message[..message.len() - 1]).unwrap();
    let stop = AtomicBool::new(true);
    let error = run(&key(SUITE), &at("out"), Options { interrupt: Some(&stop), ..partial }, true);
    assert!(matches!(error, Error::Interrupted), "{error}");
    if cfg!(target_os = "linux") {
        let error = run(&key(SUITE), Path::new("/dev/full"), partial, true);
        assert!(matches!(error, Error::Write(_)), "{error}");
    }
    assert_eq!(fs::read(at("out")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_failed_read_keeps_the_beginning_too() {
    let message = seal(engine(2), &key(SUITE), b"", &plaintext(100 * CHUNK)).unwrap();
    let mut reader = Hesitant::new(&message[..HEADER + 70 * ENCRYPTED], 5000);
    reader.fails = true;
    let mut output = Vec::new();
    let options = Options { partial: true, ..Options::default() };
    let error = decrypt(engine(2), &key(SUITE), b"", reader, &mut output, options).unwrap_err();
    assert!(!error.is_authentication_failure());
    let Error::Partial { verified, source } = error else { panic!("{error}") };
    assert!(matches!(*source, Error::Read(_)), "{source}");
    assert_eq!(verified, output.len() as u64);
    assert!(output.len() >= 32 * CHUNK && plaintext(100 * CHUNK).starts_with(&output));
    let _: io::Error = Error::Partial { verified, source }.into();
}
