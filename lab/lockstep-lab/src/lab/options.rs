//! Options that give data to programs.

use std::path::Path;

use lockstep_cli::program::Result;
use lockstep_papers::round_keys;

use super::{failure, read_data};

/// Reads files of data, and files of AES keys, whose round keys it computes. Appends each result to `into`, with its address or name. The
/// owner of `into` wipes it, also after an error.
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

/// Returns a parser of options that have two parts, such as `NAME=FILE`. `form` is shown in the error message.
pub(super) fn pair(form: &'static str) -> impl Fn(&str) -> Parsed<(String, String)> + Clone {
    move |text| {
        let parts = text.split_once('=').filter(|(left, right)| !left.is_empty() && !right.is_empty());
        let (left, right) = parts.ok_or_else(|| format!("expected {form}"))?;
        Ok((left.into(), right.into()))
    }
}

/// Parses `ADDRESS:BYTES=FILE`.
pub(super) fn dump(text: &str) -> Parsed<(String, usize, String)> {
    const FORM: &str = "ADDRESS:BYTES=FILE";
    match with_bytes(text, FORM)? {
        (address, Some(bytes), file) => Ok((address, bytes, file)),
        _ => Err(format!("expected {FORM}")),
    }
}

/// Parses `NAME=FILE` or `NAME:BYTES=FILE`.
pub(super) fn output(text: &str) -> Parsed<(String, Option<usize>, String)> {
    with_bytes(text, "NAME=FILE or NAME:BYTES=FILE")
}

fn with_bytes(text: &str, form: &'static str) -> Parsed<(String, Option<usize>, String)> {
    let (left, file) = pair(form)(text)?;
    match left.split_once(':') {
        None => Ok((left, None, file)),
        Some((left, bytes)) => match bytes.parse() {
            Ok(bytes) if !left.is_empty() => Ok((left.into(), Some(bytes), file)),
            _ => Err(format!("expected {form}, where BYTES is a number")),
        },
    }
}
