//! Encryption and decryption from the position of an open file to its end.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};

use super::chunks::Piece;
use super::decrypt::decrypt_stream;
use super::encrypt::{encrypt_stream, summary};
use super::format::{CHUNK, check_full_chunks, ciphertext_len};
use super::header::{self, MessageKey};
use super::io::{Sink, piece_chunks, workers, write_all};
use super::key::FileKey;
use super::options::{Options, Summary};
use super::pipeline::{self, ReadState, Stage};
use super::random_access::{Reader, Tail};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Regular files of at least this length are read by all workers at the same time. Shorter files are read sequentially,
/// since parallel reads would not be faster. Sequential reads also avoid errors for the files of `/sys`, which report a
/// wrong length below this limit.
const POSITIONED: u64 = 1 << 20;

/// Encrypts like [`crate::encrypt`], from the position of an open file to its end. Regular files of at least 1 MiB are
/// read by all threads at the same time. The position of the file after the call is unspecified. Data that are appended
/// during the call are encrypted too.
///
/// # Errors
/// The errors of [`crate::encrypt`], [`Error::InputChanged`] if the file becomes shorter.
pub fn encrypt_open_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    file: &File,
    mut output: impl Write + Send,
    options: Options<'_>,
) -> Result<Summary> {
    let rest = rest_of_file(file)?;
    let Some((start, len)) = rest.filter(|(_, len)| *len >= POSITIONED) else {
        // The length is used only to choose small buffers for a short file, since each buffer is wiped after use. The
        // file may become longer than `len`.
        let len = rest.map(|(_, len)| len);
        return encrypt_stream(engine, key, context, &mut WholeFile::new(file)?, len, &mut output, options);
    };
    ciphertext_len(len)?;
    let (header, key) = header::create(key, context)?;
    write_all(&mut output, &mut [IoSlice::new(&header)], &options)?;
    let workers = workers(engine, &options);
    let chunks = piece_chunks(workers, Some(len / CHUNK as u64 + 1));
    let stage = EncryptAt { engine, key, options, chunks, file, start, len };
    let mut sink = Sink { writer: &mut output, plaintext: 0 };
    pipeline::run(&stage, workers, &mut 0, &mut sink)?;
    summary(sink)
}

/// Decrypts like [`crate::decrypt`], from the position of an open file to its end. Regular files are read by all
/// threads at the same time, and a truncated regular file is refused before any plaintext is written, unless
/// [`Options::partial`] is set. The position of the file after the call is unspecified.
///
/// # Errors
/// The errors of [`crate::decrypt`], [`Error::InputChanged`] if the length of the file changes.
pub fn decrypt_open_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    mut file: &File,
    mut output: impl Write + Send,
    options: Options<'_>,
) -> Result<Summary> {
    let rest = rest_of_file(file)?;
    let Some((start, ciphertext_len)) = rest.filter(|_| !options.is_partial()) else {
        // `Reader::open` below refuses a truncated message as a whole.
        let len = rest.map(|(_, len)| len);
        return decrypt_stream(engine, key, context, &mut file, len, &mut output, options);
    };
    let reader = Reader::open(engine, key, context, Tail::new(file, start))?;
    let plaintext_len = reader.copy_range(0, reader.len(), &mut output, options)?;
    reader.check_unchanged()?;
    Ok(Summary { plaintext_len, ciphertext_len })
}

/// Encrypts a file of known length. All workers read at the same time, up to this length. If the file has grown, the
/// rest is read sequentially.
struct EncryptAt<'a> {
    engine: &'a Engine,
    key: MessageKey,
    options: Options<'a>,
    /// Number of chunks in a piece.
    chunks: usize,
    file: &'a File,
    /// Offset of the plaintext in the file.
    start: u64,
    /// Length of the plaintext when the file was opened.
    len: u64,
}

impl EncryptAt<'_> {
    /// The error for a file that ends early.
    fn ended(&self) -> Error {
        match check_not_shrunk(self.file, self.start + self.len) {
            Err(shrunk) => shrunk,
            Ok(()) => Error::Read(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<'a> Stage for EncryptAt<'a> {
    /// Number of the next chunk.
    type Source = u64;
    /// The piece, and whether its plaintext has been read.
    type Slot = (Piece, bool);
    type Sink = Sink<'a>;

    fn slot(&self) -> (Piece, bool) {
        (Piece::new(self.chunks), false)
    }

    fn read(&self, next: &mut u64, (piece, is_read): &mut (Piece, bool)) -> Result<ReadState> {
        self.options.check_interrupt()?;
        let room = self.chunks * CHUNK;
        let at = *next * CHUNK as u64;
        piece.first = *next;
        if at + room as u64 <= self.len {
            *is_read = false;
            piece.set_plain(room, false);
            *next += self.chunks as u64;
            return Ok(ReadState::More);
        }
        let len = read_full_at(self.file, &mut piece.plain_slots(room), self.start + at, &self.options)?;
        if at + (len as u64) < self.len {
            return Err(self.ended());
        }
        *is_read = true;
        piece.set_plain(len, len < room);
        *next += (len / CHUNK) as u64;
        check_full_chunks(*next)?;
        Ok(if len < room { ReadState::Last } else { ReadState::More })
    }

    fn process(&self, (piece, is_read): &mut (Piece, bool)) -> Result<()> {
        if !*is_read {
            let (at, len) = (self.start + piece.first * CHUNK as u64, piece.plain_len());
            if read_full_at(self.file, &mut piece.plain_slots(len), at, &self.options)? < len {
                return Err(self.ended());
            }
        }
        piece.seal(self.engine, &self.key)
    }

    fn write(&self, sink: &mut Sink<'a>, (piece, _): &mut (Piece, bool)) -> Result<()> {
        sink.put(&mut [IoSlice::new(piece.ciphertext())], piece.plain_len(), &self.options)
    }
}

/// The position of a regular file and the number of bytes after it; `None` for files without a reliable length.
fn rest_of_file(mut file: &File) -> Result<Option<(u64, u64)>> {
    let metadata = file.metadata().map_err(Error::Read)?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(None);
    }
    let start = file.stream_position().map_err(Error::Read)?;
    Ok(Some((start, metadata.len().saturating_sub(start))))
}

/// Returns an error if a file is now shorter than `before`. Call this function after a read has reached the end of the
/// file. The function returns no error for files of `/sys`, whose reported length is too large but does not change.
///
/// # Errors
/// [`Error::InputChanged`], [`Error::Read`].
pub fn check_not_shrunk(input: &File, before: u64) -> Result<()> {
    let now = input.metadata().map_err(Error::Read)?.len();
    if now < before { Err(Error::InputChanged { before, now }) } else { Ok(()) }
}

/// Reads a file from its position on, and fails at its end if the file has become shorter.
struct WholeFile<'f> {
    file: &'f File,
    before: u64,
}

impl WholeFile<'_> {
    fn new(file: &File) -> Result<WholeFile<'_>> {
        let metadata = file.metadata().map_err(Error::Read)?;
        Ok(WholeFile { file, before: if metadata.is_file() { metadata.len() } else { 0 } })
    }

    fn check(&self, read: usize) -> io::Result<usize> {
        if read == 0 {
            check_not_shrunk(self.file, self.before)?;
        }
        Ok(read)
    }
}

impl Read for WholeFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if buffer.is_empty() { Ok(read) } else { self.check(read) }
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let read = self.file.read_vectored(slices)?;
        if slices.iter().all(|slice| slice.is_empty()) { Ok(read) } else { self.check(read) }
    }
}

/// Reads from an offset until the slices are full or the file ends; returns the number of bytes. Each system call reads
/// into as many slices as the system permits: 1024 on Linux and macOS.
fn read_full_at(
    file: &File,
    mut slices: &mut [IoSliceMut<'_>],
    offset: u64,
    options: &Options<'_>,
) -> Result<usize> {
    let mut done = 0;
    while !slices.is_empty() {
        match rustix::io::preadv(file, slices, offset + done as u64) {
            Ok(0) => break,
            Ok(n) => {
                done += n;
                IoSliceMut::advance_slices(&mut slices, n);
            }
            Err(rustix::io::Errno::INTR) => options.check_interrupt()?,
            Err(error) => return Err(Error::Read(error.into())),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::super::io::read_full;
    use super::*;

    #[test]
    fn a_file_that_shrinks_has_no_end() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 1000]).unwrap();
        file.rewind().unwrap();
        let mut reader = WholeFile::new(&file).unwrap();
        let mut some = [0; 100];
        reader.read_exact(&mut some).unwrap();
        file.set_len(500).unwrap();
        let mut rest = vec![0; 2000];
        let failed = read_full(&mut reader, &mut [IoSliceMut::new(&mut rest)], &Options::new()).unwrap_err();
        assert!(matches!(failed, Error::InputChanged { before: 1000, now: 500 }), "{failed}");
        assert!(failed.to_string().contains("shorter"), "{failed}");
        file.set_len(1500).unwrap();
        let mut reader = WholeFile::new(&file).unwrap();
        let read = read_full(&mut reader, &mut [IoSliceMut::new(&mut rest)], &Options::new()).unwrap();
        assert_eq!(read, 1000, "from 500 on");
    }
}
