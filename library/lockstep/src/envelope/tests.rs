use super::*;

/// The envelope at the start of the bytes, if there is one.
fn parse(bytes: &[u8]) -> Result<Option<Envelope>> {
    Ok(match Envelope::read(&mut &*bytes)? {
        Start::Envelope(envelope) => Some(envelope),
        Start::Bare(_) => None,
    })
}

#[test]
fn round_trip() {
    for payload in [&b""[..], b"age-encryption.org/v1 ...", &[7; MAX_PAYLOAD]] {
        let envelope = Envelope::new(payload).unwrap();
        let mut bytes = Vec::new();
        envelope.write(&mut bytes).unwrap();
        assert_eq!(bytes, envelope.as_bytes());
        bytes.extend(b"message");
        assert_eq!(parse(&bytes).unwrap().unwrap(), envelope);
        assert_eq!(envelope.payload(), payload);

        let mut reader = &bytes[..];
        assert_eq!(Envelope::read(&mut reader).unwrap(), Start::Envelope(envelope));
        assert_eq!(reader, b"message");
    }
}

#[test]
fn the_layout_is_the_documented_one() {
    let envelope = Envelope::new(b"abc").unwrap();
    assert_eq!(envelope.as_bytes(), b"lockstep.file/v1\n\x03\0\0\0abc");
}

#[test]
fn bare_messages_are_returned_completely() {
    for bytes in [&b""[..], b"lockstep.fil", b"lockstep.file/v2\nand more", &[0xff; 100]] {
        assert_eq!(parse(bytes).unwrap(), None);
        let mut reader = bytes;
        let Start::Bare(first) = Envelope::read(&mut reader).unwrap() else { panic!("{bytes:?}") };
        assert_eq!([&first, reader].concat(), bytes);
    }
}

#[test]
fn damaged_envelopes_are_errors() {
    let whole = Envelope::new(&[1; 50]).unwrap();
    for cut in MAGIC.len()..whole.as_bytes().len() {
        assert!(matches!(parse(&whole.as_bytes()[..cut]), Err(Error::Envelope { .. })), "{cut}");
    }
    let mut long = whole.as_bytes().to_vec();
    long[17..21].copy_from_slice(&65537u32.to_le_bytes());
    assert!(matches!(parse(&long), Err(Error::Envelope { .. })));
    long[17..21].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(parse(&long), Err(Error::Envelope { .. })));
    assert!(Envelope::new(&[0; MAX_PAYLOAD + 1]).is_err());
}
