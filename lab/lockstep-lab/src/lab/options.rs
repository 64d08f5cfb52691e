//! Options that give data to programs.

use std::path::Path;

use lockstep_cli::program::Result;
use lockstep_papers::round_keys;

use super::{failure, read_data};

/// Reads files of data, and files of AES keys, which are expanded to round keys. Each has an address or a name. The owner of `into`
/// wipes it, also after an error.
pub(super) fn read_contents(
    into: &mut Vec<(String, Vec<u8>)>,
    files: &[(String, String)],
    keys: &[(String, String)],
) -> Result<()> {
    for (place, file) in files {
        into.push((place.clone(), read_data(Path::new(file))?));
    }
    for (place, file) in keys {
        into.push((place.clone(), round_keys(read_data(Path::new(file))?).map_err(failure)?));
    }
    Ok(())
}

/// The result of a parser of an option: the value, or a message.
type Parsed<T> = std::result::Result<T, String>;

/// Parses `ADDRESS=FILE` or `NAME=FILE`.
pub(super) fn pair(text: &str) -> Parsed<(String, String)> {
    let (left, right) = text
        .split_once('=')
        .filter(|(left, right)| !left.is_empty() && !right.is_empty())
        .ok_or("expected ADDRESS=FILE or NAME=FILE")?;
    Ok((left.into(), right.into()))
}

/// Parses `ADDRESS:BYTES=FILE`.
pub(super) fn dump(text: &str) -> Parsed<(String, usize, String)> {
    match output(text)? {
        (address, Some(bytes), file) => Ok((address, bytes, file)),
        _ => Err("expected ADDRESS:BYTES=FILE".into()),
    }
}

/// Parses `NAME=FILE` or `NAME:BYTES=FILE`.
pub(super) fn output(text: &str) -> Parsed<(String, Option<usize>, String)> {
    let (left, file) = pair(text)?;
    match left.split_once(':') {
        None => Ok((left, None, file)),
        Some((name, bytes)) => match bytes.parse() {
            Ok(bytes) if !name.is_empty() => Ok((name.into(), Some(bytes), file)),
            _ => Err("expected NAME:BYTES=FILE with a number of bytes".into()),
        },
    }
}
