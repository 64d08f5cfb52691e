
use super::*;

#[track_caller]
fn name(start: &[u8]) -> &'static str {
    recognise(start).unwrap().name
}

#[test]
fn formats_are_recognised() {
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"notes");
    tar[257..262].copy_from_slice(b"ustar");
    let utf16: Vec<u8> = "\u{feff}age-encryption.org/v1".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mail = b"From: me\nTo: you\n\n-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n";
    let cases: [(&[u8], &str); 16] = [
        (b"Salted__\x01\x02", "openssl enc"),
        (b"U2FsdGVkX1+abc", "openssl enc -a"),
        (b"lockstep.file/v1\nxxxx", "to recipients"),
        (b"lockstep.file/v1\r\nxx", "line breaks"),
        (b"lockstep.file/v2\nxxxx", "newer version"),
        (b"-----BEGIN PGP MESSAGE-----\n", "OpenPGP"),
        (&[0x85, 0x01, 0x8c, 0x03, 1, 2, 3, 4, 5, 6, 7, 8, 0x01], "OpenPGP"),
        (&[0x8c, 0x0d, 0x04, 0x09, 0x03, 0x0a], "OpenPGP"),
        (&[0x30, 0x80, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 3], "CMS"),
        (b"\x1f\x8b\x08\x00\x00", "gzip"),
        (b"BZh91AY&SY", "bzip2"),
        (&tar, "tar"),
        (&utf16, "converted"),
        (b"-----BEGIN AGE ENCRYPTED_FILE-----\nYWdl\n", "damaged first line"),
        (mail, "contains an armored age file"),
        (b"A letter that nobody encrypted.\n", "text"),
    ];
    for (start, expected) in cases {
        assert!(name(start).contains(expected), "{} for {expected}", name(start));
    }
}

#[test]
fn other_bytes_are_not_recognised() {
    for start in [&b""[..], b"short", b"Salted", &[0; 512], &[0xff; 512], b"binary \x00 data, not text"] {
        assert_eq!(recognise(start), None, "{start:x?}");
    }
    // Of texts that are cut within a character, the rest counts.
    assert_eq!(name("a text of some length \u{e9}".as_bytes().split_last().unwrap().1), "text");
}

#[test]
fn no_start_hides_a_longer_one() {
    let starts = FORMATS.iter().filter_map(|(mark, ..)| match mark {
        Start(bytes) => Some(bytes),
        Test(_) => None,
    });
    let starts: Vec<_> = starts.collect();
    for (at, long) in starts.iter().enumerate() {
        assert!(!starts[..at].iter().any(|short| long.starts_with(short)), "{long:?}");
    }
}
