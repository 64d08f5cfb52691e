//! Encryption and decryption of files. An output appears complete or not at all.

use std::fs::File;
use std::path::Path;

use lockstep::{Engine, FileMode, OutputFile, OutputOptions};

use crate::error::Result;
use crate::keys::KeySource;
use crate::read::{PlainView, ReadOptions};
use crate::write::{Policy, encrypt};

/// Encrypts a plain Parquet file by a policy. The output has the permission bits of the input under the umask, not
/// the mode of the options.
///
/// # Errors
/// The errors of [`encrypt`]; errors of files, such as an output that exists or is the input.
pub fn encrypt_file(
    engine: &Engine,
    from: &Path,
    to: &Path,
    policy: &Policy,
    options: OutputOptions,
) -> Result<()> {
    let input = open(from, to)?;
    let mode = FileMode::of_input(&input)?;
    let mut output = OutputFile::create(to, OutputOptions { mode, ..options })?;
    encrypt(engine, &input, &mut output, policy)?;
    Ok(output.commit()?)
}

/// Writes the plain form of an encrypted file. Only the owner can read the output, even if the options set another mode. The output
/// does not contain the plaintext of columns without a key.
///
/// # Errors
/// The errors of [`PlainView::open`] and [`PlainView::read_at`]; errors of files, such as an output that exists or is the input.
pub fn decrypt_file(
    engine: &Engine,
    from: &Path,
    to: &Path,
    keys: &dyn KeySource,
    read: ReadOptions<'_>,
    options: OutputOptions,
) -> Result<()> {
    let view = PlainView::open(engine, open(from, to)?, keys, read)?;
    let mut output = OutputFile::create(to, OutputOptions { mode: FileMode::PRIVATE, ..options })?;
    view.copy_to(&mut output)?;
    Ok(output.commit()?)
}

fn open(from: &Path, to: &Path) -> Result<File> {
    let input = lockstep::file::open_input(from)?;
    lockstep::file::check_not_same(&input, to)?;
    Ok(input)
}
