//! Files in the age format (<https://age-encryption.org/v1>): recipients and decryption. The envelope of Lockstep's own
//! files contains an age file, and `decrypt` also accepts plain age files.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use age::armor::ArmoredReader;

use crate::error::{Error, Result, failed};
use crate::unlock::Unlock;
use crate::{memory, text};

const MAGIC: &[u8] = b"age-encryption.org/";
const ARMOR: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";
/// Maximum length of a header, about 2500 recipients. Longer headers take too long, since the age crate parses the
/// header again from its start for each line that it reads.
const MAX_HEADER: usize = 256 << 10;
/// Maximum length of a line of an armored file. Valid lines have 64 characters, but the age crate reads the whole line
/// into memory before it checks the length.
const MAX_LINE: usize = 4096;
/// Size of a plaintext chunk in bytes, without and with its tag.
const CHUNK: u64 = 64 << 10;
const ENCRYPTED_CHUNK: u64 = CHUNK + 16;
const NONCE: u64 = 16;

/// True if `first_bytes` match the start of an age file. At least 16 bytes are needed; the magic of the format may be
/// longer.
pub(crate) fn is_age_file(first_bytes: &[u8]) -> bool {
    let begins_with =
        |magic: &[u8]| first_bytes.len() >= 16 && first_bytes.iter().zip(magic).all(|(a, b)| a == b);
    begins_with(MAGIC) || begins_with(ARMOR)
}

/// An age file whose header has been read.
pub(crate) struct AgeFile<'r> {
    pub(crate) header: Header,
    pub(crate) is_armored: bool,
    rest: Box<dyn BufRead + 'r>,
}

impl<'r> AgeFile<'r> {
    /// Reads the header. `first_bytes` are the bytes of the file that have already been read.
    pub(crate) fn open(first_bytes: Vec<u8>, reader: impl Read + 'r) -> Result<AgeFile<'r>> {
        let is_armored = first_bytes.iter().zip(ARMOR).all(|(a, b)| a == b);
        let reader = Cursor::new(first_bytes).chain(reader);
        let mut rest: Box<dyn BufRead + 'r> = if is_armored {
            Box::new(ArmoredReader::new(ShortLines { inner: reader, length: 0 }))
        } else {
            Box::new(BufReader::with_capacity(ENCRYPTED_CHUNK as usize, reader))
        };
        let header = Header::read(&mut rest)?;
        Ok(AgeFile { header, is_armored, rest })
    }

    /// Returns a reader of the plaintext. Each chunk is verified before any of its bytes are returned. [`read_error`]
    /// converts an error of the reader.
    pub(crate) fn decrypt(self, unlock: &Unlock) -> Result<impl Read + 'r> {
        let whole = Cursor::new(self.header.bytes.clone()).chain(self.rest);
        unlock.open(&self.header, whole)
    }

    /// The length of the file in bytes, determined by reading it to its end; only for files without armor.
    pub(crate) fn count(&mut self) -> Result<u64> {
        let rest = io::copy(&mut self.rest, &mut io::sink()).map_err(lockstep::Error::Read)?;
        Ok(self.header.bytes.len() as u64 + rest)
    }

    /// Length of the plaintext for a file of this length, in bytes; `None` for an impossible length and for armored
    /// files.
    pub(crate) fn plaintext_len(&self, file_len: u64) -> Option<u64> {
        let payload = file_len.checked_sub(self.header.bytes.len() as u64 + NONCE)?;
        let chunks = payload.div_ceil(ENCRYPTED_CHUNK);
        payload.checked_sub(16 * chunks).filter(|_| !self.is_armored && chunks > 0)
    }
}

/// Converts an error of reading an age file.
pub(crate) fn read_error(error: io::Error) -> Error {
    // Errors of the age crate itself have no OS error number and wrap no `lockstep::Error`.
    let is_ours = error.get_ref().is_some_and(|inner| inner.is::<lockstep::Error>());
    match error.raw_os_error() {
        Some(_) => lockstep::Error::Read(error).into(),
        None if is_ours => lockstep::Error::read(error).into(),
        None => {
            Error::NotAuthentic("the age file was damaged, changed or cut off: get an intact copy".into())
        }
    }
}

/// The header of an age file: its recipients.
pub(crate) struct Header {
    bytes: Vec<u8>,
    /// The types of recipient stanzas, with their arguments; all characters are printable.
    stanzas: Vec<(String, Vec<String>)>,
}

impl Header {
    /// Parses the header at the start of these bytes; `None` if they are not an age file.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Header> {
        let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
        if lines.next()? != b"age-encryption.org/v1\n" {
            return None;
        }
        let mut stanzas = Vec::new();
        let mut len = b"age-encryption.org/v1\n".len();
        for line in lines {
            len += line.len();
            if line.starts_with(b"---") {
                return Some(Header { bytes: bytes[..len].to_vec(), stanzas });
            }
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if let Some(stanza) = line.strip_prefix(b"-> ") {
                let mut words = stanza
                    .split(|&byte| byte == b' ')
                    .map(|word| text::printable(&String::from_utf8_lossy(word)));
                stanzas.push((words.next()?, words.collect()));
            }
        }
        None
    }

    fn read(reader: &mut impl BufRead) -> Result<Header> {
        let mut bytes = Vec::new();
        loop {
            let begin = bytes.len();
            let mut line = reader.take((MAX_HEADER + 1 - begin) as u64);
            line.read_until(b'\n', &mut bytes).map_err(read_error)?;
            if bytes.len() > MAX_HEADER {
                return Err(failed("the header of this age file is longer than 256 KiB, and is not read"));
            }
            let is_last = bytes.len() == begin || bytes[begin..].starts_with(b"---");
            if is_last {
                let damaged = || read_error(io::ErrorKind::InvalidData.into());
                return Header::parse(&bytes).ok_or_else(damaged);
            }
        }
    }

    /// True if a passphrase, and nothing else, opens the file.
    pub(crate) fn is_passphrase(&self) -> bool {
        self.stanzas.iter().any(|(kind, _)| kind == "scrypt")
    }

    /// The scrypt work factor of the passphrase: log2 of N.
    pub(crate) fn work_factor(&self) -> Option<u8> {
        let (_, details) = self.stanzas.iter().find(|(kind, _)| kind == "scrypt")?;
        details.get(1)?.parse().ok()
    }

    /// Returns an error if the scrypt work factor exceeds `most`, or if scrypt needs more memory than is available.
    /// Otherwise the key derivation could take very long, or could end the process.
    pub(crate) fn check_work(&self, most: u8) -> Result<()> {
        let Some(work) = self.work_factor() else { return Ok(()) };
        if work > most {
            return Err(failed(format!(
                "the passphrase of this file asks for {} of memory (scrypt work factor {work}, at most {most} is \
                 accepted): if you trust the file, give --max-work-factor {work}",
                text::bytes(scrypt_memory(work))
            )));
        }
        check_memory(work)
    }

    /// The types of the recipients, without the meaningless "grease" stanzas that some programs add.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.stanzas.iter().map(|(kind, _)| kind.as_str()).filter(|kind| !kind.ends_with("-grease"))
    }

    /// A text for messages: "with a passphrase" or "to recipients (...)".
    pub(crate) fn recipients_text(&self) -> String {
        if self.is_passphrase() {
            return "with a passphrase".into();
        }
        let mut kinds: Vec<_> = self.kinds().collect();
        kinds.sort_unstable();
        kinds.dedup();
        format!("to recipients ({})", kinds.join(", "))
    }
}

/// Returns an error if there is too little memory for scrypt with this work factor. Without this check the scrypt crate
/// would abort the process.
pub(crate) fn check_memory(work: u8) -> Result<()> {
    memory::check(scrypt_memory(work), "to derive a key from the passphrase")
}

/// Number of bytes that scrypt needs: 128 * r * N, with r = 8 and N = 2^work.
fn scrypt_memory(work: u8) -> u64 {
    1u64.checked_shl(u32::from(work) + 10).unwrap_or(u64::MAX)
}

/// A reader that refuses lines that are too long.
struct ShortLines<R> {
    inner: R,
    /// Length of the current line.
    length: usize,
}

impl<R: Read> Read for ShortLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        for &byte in &buffer[..got] {
            self.length = if byte == b'\n' { 0 } else { self.length + 1 };
            if self.length > MAX_LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line of the armor is too long"));
            }
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_are_recognised() {
        assert!(is_age_file(b"age-encryption.or") && is_age_file(b"age-encryption.org/v1\n-> "));
        assert!(is_age_file(&ARMOR[..17]));
        assert!(
            !is_age_file(b"")
                && !is_age_file(b"age")
                && !is_age_file(b"lockstep.file/v1\n")
                && !is_age_file(&[0x55; 17])
        );
    }

    #[test]
    fn unusual_headers_are_printable() {
        let found = Header::parse(b"age-encryption.org/v1\n-> \x1b[31m evil\xff\nbody\n---\n").unwrap();
        let (kind, details) = &found.stanzas[0];
        assert!(kind.chars().chain(details[0].chars()).all(|c| !c.is_control()));
        assert!(Header::parse(b"").is_none());
        assert!(Header::parse(b"age-encryption.org/v1\n-> X25519").is_none());
    }

    #[test]
    fn headers_without_end_are_refused() {
        let endless = io::repeat(b'x').chain(io::empty());
        let error = AgeFile::open(b"age-encryption.org/v1\n-> X25519 ".to_vec(), endless).err().unwrap();
        assert!(error.to_string().contains("256 KiB"), "{error}");
        let armored = [ARMOR, b"\n"].concat();
        let error = AgeFile::open(armored, io::repeat(b'x')).err().unwrap();
        assert_eq!(error.exit_code(), 1, "{error}");
    }

    #[test]
    fn work_and_its_memory() {
        let header = |work: &str| {
            let text = format!("age-encryption.org/v1\n-> scrypt salt {work}\nbody\n--- mac\n");
            Header::parse(text.as_bytes()).unwrap()
        };
        header("10").check_work(20).unwrap();
        let error = header("21").check_work(20).unwrap_err().to_string();
        assert!(error.contains("2.0 GiB") && error.contains("--max-work-factor 21"), "{error}");
        for work in ["50", "63", "200"] {
            let error = header(work).check_work(255).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
        }
    }
}
