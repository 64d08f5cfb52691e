use super::*;

#[test]
fn first_bytes_are_recognised() {
    assert!(is_age_file(b"age-encryption.or") && is_age_file(b"age-encryption.org/v1\n-> "));
    assert!(is_age_file(&AGE_ARMOR[..17]));
    assert!(
        !is_age_file(b"")
            && !is_age_file(b"age")
            && !is_age_file(b"lockstep.file/v1\n")
            && !is_age_file(&[0x55; 17])
    );
}

#[test]
fn unusual_headers_are_printable() {
    let found = Header::read(&b"age-encryption.org/v1\n-> \x1b[31m evil\xff\nbody\n---\n"[..]).unwrap();
    let (kind, details) = &found.stanzas[0];
    assert!(kind.chars().chain(details[0].chars()).all(|c| !c.is_control()));
    assert!(Header::read(&b""[..]).is_err());
    assert!(Header::read(&b"age-encryption.org/v1\n-> X25519"[..]).is_err());
}

/// A reader that counts the calls of `read_until`. The age crate parses the header once for each call.
struct Counted<R> {
    inner: R,
    calls: usize,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
    }

    fn read_until(&mut self, byte: u8, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.calls += 1;
        self.inner.read_until(byte, buffer)
    }
}

fn header_of(stanzas: usize) -> Vec<u8> {
    let mac = "A".repeat(43);
    format!("age-encryption.org/v1\n{}--- {mac}\n", "-> a\n\n".repeat(stanzas)).into_bytes()
}

#[test]
fn the_header_is_parsed_at_once() {
    const STANZAS: usize = 100;
    let header = Header::read(&header_of(STANZAS)[..]).unwrap();
    let rest = [1; 100];
    let mut reader = Counted { inner: AtOnce::new(header.bytes.clone(), &rest[..]), calls: 0 };
    Decryptor::new_buffered(&mut reader).unwrap();
    assert_eq!(reader.calls, 1);
    // The decryptor has also read the nonce, so only the data after the nonce are left.
    let mut left = Vec::new();
    reader.read_to_end(&mut left).unwrap();
    assert_eq!(left, rest[NONCE as usize..]);
    // For comparison: if the age crate reads the file without `AtOnce`, it parses the header once for each line.
    let file = [&header.bytes[..], &rest].concat();
    let mut reader = Counted { inner: &file[..], calls: 0 };
    Decryptor::new_buffered(&mut reader).unwrap();
    assert_eq!(reader.calls, 2 * STANZAS + 2);
    assert!(Header::read(&header_of(MAX_STANZAS)[..]).is_ok());
}

#[test]
fn too_many_stanzas_are_refused_before_the_header_ends() {
    let header = header_of(MAX_STANZAS + 1);
    let unread = || panic!("the rest of the header is not read");
    struct Unread<F>(F);
    impl<F: Fn() -> usize> Read for Unread<F> {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok((self.0)())
        }
    }
    let last_line = header.len() - "--- \n".len() - 43;
    let error = AgeFile::open(header[..last_line].to_vec(), Unread(unread)).err().unwrap();
    assert!(error.to_string().contains("more than 3000"), "{error}");
    assert_eq!(error.exit_code(), 2);
    assert!(Header::read(&header[..]).is_err());
}

#[test]
fn headers_without_end_are_refused() {
    let endless = io::repeat(b'x').chain(io::empty());
    let error = AgeFile::open(b"age-encryption.org/v1\n-> X25519 ".to_vec(), endless).err().unwrap();
    assert!(error.to_string().contains("256 KiB"), "{error}");
    let armored = [AGE_ARMOR, b"\n"].concat();
    let error = AgeFile::open(armored, io::repeat(b'x')).err().unwrap();
    assert_eq!(error.exit_code(), 1, "{error}");
}

#[test]
fn work_and_its_memory() {
    let header = |work: &str| {
        let text = format!("age-encryption.org/v1\n-> scrypt salt {work}\nbody\n--- mac\n");
        Header::read(text.as_bytes()).unwrap()
    };
    header("10").check_work(20).unwrap();
    let error = header("21").check_work(20).unwrap_err().to_string();
    assert!(error.contains("2.0 GiB") && error.contains("--max-work-factor 21"), "{error}");
    for work in ["50", "63", "200"] {
        let error = header(work).check_work(255).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
    }
}
