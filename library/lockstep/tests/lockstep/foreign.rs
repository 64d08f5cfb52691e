//! Input that is not a message: errors name its format. Messages that begin like another format by chance are decrypted.

use lockstep::{Error, Options, Reader, Suite, decrypt, file, open};
use lockstep_reference::cobblestone as oracle;

use crate::common::*;

/// The errors of the four functions that decrypt: from a buffer, a stream, a source with random access, and a file.
fn errors(input: &[u8]) -> [Error; 4] {
    let key = key(Suite::Cobblestone256);
    let engine = engine(2);
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::write(&from, input).unwrap();
    let errors = [
        open(engine, &key, b"", input).unwrap_err(),
        decrypt(engine, &key, b"", input, Vec::new(), Options::default()).unwrap_err(),
        Reader::open(engine, &key, b"", input).unwrap_err(),
        file::decrypt_file(engine, &key, b"", &from, &to, Default::default()).unwrap_err(),
    ];
    assert!(!to.exists());
    errors
}

#[test]
fn other_formats_are_named() {
    let mut tar = vec![0; 1024];
    tar[..5].copy_from_slice(b"notes");
    tar[257..262].copy_from_slice(b"ustar");
    let envelope = lockstep::Envelope::new(&[1; 100]).unwrap();
    let cases: [(&[u8], &str); 5] = [
        (&[b"Salted__", &[7; 100][..]].concat(), "openssl enc"),
        (b"Salted__ short", "openssl enc"),
        (&[b"PK\x03\x04", &[7; 100][..]].concat(), "a zip archive"),
        (&[envelope.as_bytes(), &[7; 100]].concat(), "to recipients or with a passphrase"),
        (&tar, "a tar archive"),
    ];
    for (input, name) in cases {
        for (number, error) in errors(input).into_iter().enumerate() {
            // A stream reads only the header before it reports an error. The mark of a tar archive comes after the
            // header, so a stream does not recognise the archive.
            if input == tar && number == 1 {
                assert!(matches!(error, Error::WrongKeyOrContext), "{error}");
                continue;
            }
            assert!(matches!(&error, Error::OtherFormat(format) if format.name().contains(name)), "{error}");
            assert!(error.is_authentication_failure() && error.to_string().contains(name), "{error}");
        }
    }
    for input in [&[0xa5; 200][..], b"", &[0xa5; 20]] {
        for error in errors(input) {
            assert!(matches!(error, Error::WrongKeyOrContext | Error::Truncated { .. }), "{error}");
        }
    }
}

#[test]
fn messages_that_begin_like_another_format_are_decrypted() {
    let key = key(Suite::Cobblestone256);
    for start in [&b"Salted__"[..], b"\x1f\x8b\x08\x00", b"PK\x03\x04", b"lockstep-key-256 "] {
        let mut salt = [0x5a; 24];
        salt[..start.len()].copy_from_slice(start);
        let message = oracle::seal(aead(Suite::Cobblestone256), key.as_bytes(), &salt, b"", b"hello");
        assert_eq!(open(engine(2), &key, b"", &message).unwrap(), b"hello");
        let mut plain = Vec::new();
        decrypt(engine(2), &key, b"", &message[..], &mut plain, Options::default()).unwrap();
        assert_eq!(plain, b"hello");
        assert_eq!(Reader::open(engine(2), &key, b"", &message[..]).unwrap().len(), 5);
        // If the header is valid and later bytes are damaged, the error does not name another format.
        let mut damaged = message;
        damaged[60] ^= 1;
        assert!(matches!(open(engine(2), &key, b"", &damaged), Err(Error::Damaged { chunk: 0 })));
    }
}
