//! Encrypted Parquet files: the native part of `lockstep.parquet`.

use std::path::PathBuf;

use lockstep::{FileMode, OutputFile, OutputOptions, ReadAt};
use lockstep_parquet::{Algorithm, ColumnKey, Error, KeySource, PlainView, Policy, ReadOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::buffer::{Export, Input, new_bytes, slice_mut};
use crate::engine;
use crate::error::from_parquet;
use crate::forks::{Origin, detached};
use crate::source::{Source, attached};
use crate::text::Text;

/// A function of Python that finds keys: it is called with a name (see [`KeySource::key`]), or None for the footer, and with
/// the key metadata or None, and returns bytes, or None if there is no key.
struct Resolver {
    function: Py<PyAny>,
    expected: Vec<String>,
}

impl KeySource for Resolver {
    fn key(
        &self,
        column: Option<&str>,
        metadata: Option<&[u8]>,
    ) -> lockstep_parquet::Result<Option<Zeroizing<Vec<u8>>>> {
        let found = attached(|py| {
            let metadata = metadata.map(|metadata| PyBytes::new(py, metadata));
            let found = self.function.bind(py).call1((column, metadata))?;
            if found.is_none() {
                return Ok(None);
            }
            Ok(Some(Zeroizing::new(Input::owned(found)?.to_vec())))
        });
        found.map_err(Error::KeySource)
    }

    fn expected_columns(&self) -> Vec<String> {
        self.expected.clone()
    }
}

/// The plain form of an encrypted Parquet file.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct NativeParquet {
    view: PlainView<Source>,
    origin: Origin,
}

#[pymethods]
impl NativeParquet {
    /// Opens a file: a path, or a binary file object that can seek.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "the settings of a file")]
    fn new(
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        resolve: Py<PyAny>,
        expected: Vec<Text>,
        aad_prefix: Option<Vec<u8>>,
        allows_missing_aad: bool,
        allows_unauthenticated_pages: bool,
        allows_unauthenticated_footer: bool,
    ) -> PyResult<NativeParquet> {
        let engine = engine::current(py)?;
        let source = Source::open(file)?;
        let names = expected.iter().map(|name| name.to_string());
        let keys = Resolver { function: resolve, expected: names.collect() };
        let options = ReadOptions {
            aad_prefix: aad_prefix.as_deref(),
            allows_missing_aad,
            allows_unauthenticated_pages,
            allows_unauthenticated_footer,
        };
        let open = || PlainView::open(&engine, source, &keys, options);
        let view = detached(py, open).map_err(from_parquet)?;
        Ok(NativeParquet { view, origin: Origin::new() })
    }

    /// The length of the plain form in bytes.
    fn size(&self) -> u64 {
        self.view.len()
    }

    /// Reads `count` bytes from an offset, or fewer bytes at the end of the plain form.
    fn read<'py>(&self, py: Python<'py>, offset: u64, count: u64) -> PyResult<Bound<'py, PyBytes>> {
        let count = self.view.len().saturating_sub(offset).min(count) as usize;
        new_bytes(py, count, |bytes| self.read_at(py, offset, bytes).map(|_| ()))
    }

    /// Reads into a buffer; returns the number of bytes. The buffer is zeroed if this fails.
    fn readinto(&self, py: Python<'_>, offset: u64, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut export = Export::new();
        let memory = export.write(buffer)?;
        // SAFETY: an exported writable buffer, to which nothing else of this call refers.
        let buffer = unsafe { slice_mut(memory) };
        self.read_at(py, offset, buffer)
    }

    /// Writes the plain form to a path. The file appears complete or not at all.
    fn save(&self, py: Python<'_>, destination: PathBuf, overwrite: bool) -> PyResult<()> {
        let save = || {
            let options =
                OutputOptions { force: overwrite, mode: FileMode::PRIVATE, ..OutputOptions::default() };
            let mut output = OutputFile::create(&destination, options)?;
            self.view.copy_to(&mut output)?;
            Ok(output.commit()?)
        };
        self.check()?;
        detached(py, save).map_err(from_parquet)
    }
}

impl NativeParquet {
    fn read_at(&self, py: Python<'_>, offset: u64, buffer: &mut [u8]) -> PyResult<usize> {
        self.check()?;
        detached(py, || self.view.read_at(offset, buffer)).map_err(from_parquet)
    }

    /// Checks that the file can be read in this process, and that the call does not come from a method of its file object.
    fn check(&self) -> PyResult<()> {
        self.origin.check()?;
        self.view.get_ref().check_not_reentrant()
    }
}

/// Encrypts a plain Parquet file. The output is a path; it appears complete or not at all.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the settings of a file")]
pub(crate) fn parquet_encrypt(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    destination: PathBuf,
    footer_key: Input<'_>,
    columns: Vec<(Text, Input<'_>, Option<Vec<u8>>)>,
    plain_columns: Vec<Text>,
    is_ctr: bool,
    plaintext_footer: bool,
    aad_prefix: Option<Vec<u8>>,
    stores_aad_prefix: bool,
    footer_key_metadata: Option<Vec<u8>>,
    overwrite: bool,
) -> PyResult<()> {
    let algorithm = if is_ctr { Algorithm::GcmCtrV1 } else { Algorithm::GcmV1 };
    let columns = columns.into_iter().map(|(path, key, key_metadata)| ColumnKey {
        path: path.to_string(),
        key: Zeroizing::new(key.to_vec()),
        key_metadata,
    });
    let policy = Policy {
        algorithm,
        footer_key: Zeroizing::new(footer_key.to_vec()),
        footer_key_metadata,
        columns: columns.collect(),
        plain_columns: plain_columns.iter().map(|name| name.to_string()).collect(),
        plaintext_footer,
        aad_prefix,
        stores_aad_prefix,
    };
    let engine = engine::current(py)?;
    let source = Source::open(source)?;
    let encrypt = || -> lockstep_parquet::Result<()> {
        let mut mode = FileMode::default();
        if let Source::File(file) = &source {
            lockstep::file::check_not_same(file, &destination)?;
            mode = FileMode::of_input(file)?;
        }
        source.size().map_err(lockstep::Error::read)?;
        let options = OutputOptions { force: overwrite, mode, ..OutputOptions::default() };
        // The policy is checked after the output was created under a temporary name. If the policy is invalid, this temporary file
        // is removed.
        let mut output = OutputFile::create(&destination, options)?;
        lockstep_parquet::encrypt(&engine, &source, &mut output, &policy)?;
        Ok(output.commit()?)
    };
    detached(py, encrypt).map_err(from_parquet)
}
