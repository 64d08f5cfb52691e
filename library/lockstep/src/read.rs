//! Reading of short inputs.

use std::io::{self, Read};

/// Reads until the buffer is full or the input ends; returns the number of bytes.
///
/// # Errors
/// Those of the reader, except for interruptions.
pub fn full(reader: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match reader.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
