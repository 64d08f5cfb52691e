//! Reads the recipients of files in the age format (<https://age-encryption.org/v1>), and decrypts these files. The envelope of
//! Lockstep's own files contains an age file, and the command `decrypt` also accepts age files without an envelope.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use age::armor::ArmoredReader;
use age::stream::StreamReader;
use age::{DecryptError, Decryptor, Identity};
use lockstep::foreign::{AGE_ARMOR, AGE_MAGIC};
use lockstep::text::{Encoding, to_utf8};

use crate::error::{Error, Result, failed};
use crate::{memory, text};

/// Maximum length of a header in bytes.
const MAX_HEADER: usize = 256 << 10;
/// Maximum number of recipients in a header. Each recipient is one stanza of the header. The limit bounds the time of decryption,
/// because each identity is tried on each stanza of its type, and each trial takes about 50 us. Age keys and SSH keys do not reach
/// the limit: their stanzas are so long that a header of the maximum length contains fewer of them.
const MAX_STANZAS: usize = 3000;
/// Maximum number of types of recipients that an error message names. Further types are only counted.
const MAX_KINDS: usize = 8;
/// Maximum length of a line of an armored file. Valid lines have 64 characters, but the age crate reads the whole line
/// into memory before it checks the length.
const MAX_LINE: usize = 4096;
/// Size of a plaintext chunk in bytes. The size of an encrypted chunk includes the tag.
pub(crate) const CHUNK: usize = 64 << 10;
const ENCRYPTED_CHUNK: usize = CHUNK + 16;
const NONCE: u64 = 16;

/// True if `first_bytes` match the start of an age file. They must be at least 16 bytes, but may be fewer bytes than the magic of
/// the format has. An armored file may be in UTF-16, and may have a byte order mark.
pub(crate) fn is_age_file(first_bytes: &[u8]) -> bool {
    let begins_with = |bytes: &[u8], magic: &[u8]| bytes.iter().zip(magic).all(|(a, b)| a == b);
    first_bytes.len() >= 16 && (begins_with(first_bytes, AGE_MAGIC) || is_armor(first_bytes))
}

/// True if `first_bytes` match the start of an armored file in any encoding. They may be fewer bytes than the first line has.
fn is_armor(first_bytes: &[u8]) -> bool {
    // An odd number of bytes of UTF-16 ends within a character, so the last byte is left out.
    let mark = Encoding::of(first_bytes).1;
    let whole = if mark == 2 { first_bytes.len() & !1 } else { first_bytes.len() };
    to_utf8(&first_bytes[..whole]).is_some_and(|text| text.iter().zip(AGE_ARMOR).all(|(a, b)| a == b))
}

/// An age file whose header has been read.
pub(crate) struct AgeFile<'r> {
    pub(crate) header: Header,
    pub(crate) is_armored: bool,
    pub(crate) rest: Box<dyn BufRead + 'r>,
}

impl<'r> AgeFile<'r> {
    /// Reads the header. `first_bytes` are the bytes of the file that have already been read.
    pub(crate) fn open(first_bytes: Vec<u8>, reader: impl Read + 'r) -> Result<AgeFile<'r>> {
        let is_armored = is_armor(&first_bytes);
        let (encoding, mark) = Encoding::of(&first_bytes);
        let mut first_bytes = Cursor::new(first_bytes);
        let mut rest: Box<dyn BufRead + 'r> = if is_armored {
            first_bytes.set_position(mark as u64);
            let inner = BufReader::new(first_bytes.chain(reader));
            Box::new(ArmoredReader::new(Armor { inner, encoding, length: 0 }))
        } else {
            Box::new(BufReader::with_capacity(ENCRYPTED_CHUNK, first_bytes.chain(reader)))
        };
        let header = Header::read(&mut rest)?;
        Ok(AgeFile { header, is_armored, rest })
    }

    /// Reads a file without armor to its end, and returns its length in bytes.
    pub(crate) fn count(&mut self) -> Result<u64> {
        let rest = io::copy(&mut self.rest, &mut io::sink()).map_err(lockstep::Error::Read)?;
        Ok(self.header.bytes.len() as u64 + rest)
    }

    /// Length in bytes of the plaintext of a file with `file_len` bytes. `None` if no file can have this length, or if the file is
    /// armored.
    pub(crate) fn plaintext_len(&self, file_len: u64) -> Option<u64> {
        let payload = file_len.checked_sub(self.header.bytes.len() as u64 + NONCE)?;
        let chunks = payload.div_ceil(ENCRYPTED_CHUNK as u64);
        payload.checked_sub(16 * chunks).filter(|_| !self.is_armored && chunks > 0)
    }
}

/// Converts an error of reading an age file.
pub(crate) fn read_error(error: io::Error) -> lockstep::Error {
    // An error without an OS error number and without a `lockstep::Error` in it comes from the age crate itself.
    let is_ours = error.get_ref().is_some_and(|inner| inner.is::<lockstep::Error>());
    let damaged = "the age file was damaged, changed or cut off: get an intact copy";
    match error.raw_os_error() {
        None if !is_ours => lockstep::Error::NotAuthentic(damaged.into()),
        _ => lockstep::Error::read(error),
    }
}

/// The header of an age file: its recipients.
pub(crate) struct Header {
    pub(crate) bytes: Vec<u8>,
    /// The recipient stanzas: the type of each stanza and its arguments. All characters are printable.
    stanzas: Vec<(String, Vec<String>)>,
}

impl Header {
    /// Reads the header at the start of a file, in a time that is proportional to the length of the header.
    ///
    /// # Errors
    /// If the bytes are not an age file, or if the header has more than [`MAX_STANZAS`] recipients.
    pub(crate) fn read(mut reader: impl BufRead) -> Result<Header> {
        let damaged = || Error::from(read_error(io::ErrorKind::InvalidData.into()));
        let (mut bytes, mut stanzas) = (Vec::new(), Vec::new());
        loop {
            let begin = bytes.len();
            let mut line = reader.by_ref().take((MAX_HEADER + 1 - begin) as u64);
            line.read_until(b'\n', &mut bytes).map_err(read_error)?;
            if bytes.len() > MAX_HEADER {
                return Err(failed("the header of this age file is longer than 256 KiB, and is not read"));
            }
            let line = &bytes[begin..];
            if line.is_empty() || begin == 0 && line != b"age-encryption.org/v1\n" {
                return Err(damaged());
            }
            if line.starts_with(b"---") {
                return Ok(Header { bytes, stanzas });
            }
            let Some(stanza) = line.strip_prefix(b"-> ") else { continue };
            if stanzas.len() == MAX_STANZAS {
                return Err(failed(format!(
                    "the header of this file has more than {MAX_STANZAS} recipients, and is not read: if you trust the file, \
                     let its writer encrypt it to fewer recipients"
                )));
            }
            let words = stanza.strip_suffix(b"\n").unwrap_or(stanza).split(|&byte| byte == b' ');
            let mut words = words.map(|word| text::printable(&String::from_utf8_lossy(word)));
            stanzas.push((words.next().ok_or_else(damaged)?, words.collect()));
        }
    }

    /// Returns a reader of the plaintext of the file that consists of this header and of `rest`.
    pub(crate) fn decrypt<'i, R: BufRead>(
        &self,
        rest: R,
        identities: impl Iterator<Item = &'i dyn Identity>,
    ) -> std::result::Result<StreamReader<AtOnce<Vec<u8>, R>>, DecryptError> {
        Decryptor::new_buffered(AtOnce::new(self.bytes.clone(), rest))?.decrypt(identities)
    }

    /// True if only a passphrase can open the file.
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
                "the passphrase of this file requires {} of memory (scrypt work factor {work}, at most {most} is \
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
        let kinds: BTreeSet<_> = self.kinds().collect();
        let others = kinds.len().saturating_sub(MAX_KINDS);
        let kinds: Vec<_> = kinds.into_iter().take(MAX_KINDS).collect();
        let and_others = if others > 0 { format!(" and {others} other types") } else { String::new() };
        format!("to recipients ({}{and_others})", kinds.join(", "))
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

/// A reader of a text and of the input after the text. It returns the whole text when a parser asks for one line. The parsers of the
/// age crate parse all previous lines again after each line that they read; if they read the text line by line, their time would be
/// quadratic in its length.
pub(crate) struct AtOnce<B, R>(Chain<Cursor<B>, R>);

impl<B: AsRef<[u8]>, R: BufRead> AtOnce<B, R> {
    pub(crate) fn new(text: B, rest: R) -> AtOnce<B, R> {
        AtOnce(Cursor::new(text).chain(rest))
    }
}

impl<B: AsRef<[u8]>, R: BufRead> Read for AtOnce<B, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<B: AsRef<[u8]>, R: BufRead> BufRead for AtOnce<B, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }

    fn read_until(&mut self, byte: u8, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self.0.get_mut().0.read_to_end(buffer)? {
            0 => self.0.read_until(byte, buffer),
            got => Ok(got),
        }
    }

    fn read_line(&mut self, line: &mut String) -> io::Result<usize> {
        match self.0.get_mut().0.read_to_string(line)? {
            0 => self.0.read_line(line),
            got => Ok(got),
        }
    }
}

/// A reader of the armor of an age file. It refuses lines that are too long, and converts UTF-16 to ASCII. Valid armor contains only
/// ASCII characters and no question mark. The reader therefore replaces other characters by question marks, and the parser then
/// refuses the armor.
struct Armor<R> {
    inner: R,
    encoding: Encoding,
    /// Length of the current line.
    length: usize,
}

impl<R: BufRead> Armor<R> {
    fn read_utf16(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for (done, byte) in buffer.iter_mut().enumerate() {
            let mut pair = [0; 2];
            match self.inner.read_exact(&mut pair) {
                Ok(()) => {}
                Err(error) if done == 0 && error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
                Err(_) => return Ok(done),
            }
            let unit = self.encoding.unit(pair);
            *byte = u8::try_from(unit).ok().filter(u8::is_ascii).unwrap_or(b'?');
        }
        Ok(buffer.len())
    }
}

impl<R: BufRead> Read for Armor<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = match self.encoding {
            Encoding::Utf8 => self.inner.read(buffer)?,
            _ => self.read_utf16(buffer)?,
        };
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
mod tests;
