//! The keys of files: given as bytes or as key files, or wrapped by age for recipients or with a passphrase.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use lockstep::foreign::{self, Foreign};
use lockstep::{Envelope, FileKey, ReadAt, keyfile};
use lockstep_cli::file_keys;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::buffer::Input;
use crate::error::from_library;
use crate::forks::detached;
use crate::source::path;
use crate::task;
use crate::text::Text;

/// The key of a message, and its context.
pub(crate) struct MessageKey {
    pub(crate) key: FileKey,
    pub(crate) context: Vec<u8>,
    /// The envelope of the file, which precedes the message and is its context.
    pub(crate) envelope: Option<Envelope>,
}

impl MessageKey {
    fn wrapped(key: FileKey, envelope: Envelope) -> MessageKey {
        MessageKey { key, context: envelope.as_bytes().to_vec(), envelope: Some(envelope) }
    }
}

/// The elements of `Keys`: key, context, recipients, identities and passphrase.
type Arguments<'py> =
    (Option<Bound<'py, PyAny>>, Input<'py>, Option<Vec<Text>>, Option<Vec<PathBuf>>, Option<Text>);

/// The arguments of a user for the key of a file. Files with an envelope (`Age`) are written for recipients or with a passphrase, and
/// read with identities or a passphrase.
pub(crate) enum Given {
    Key { key: FileKey, context: Vec<u8> },
    Age { recipients: Vec<Text>, identities: Vec<PathBuf>, passphrase: Option<Text> },
}

impl Given {
    /// The arguments of a call that writes or reads a file, which are a checked `Keys` of `_file_keys.py`.
    pub(crate) fn new(keys: &Bound<'_, PyAny>) -> PyResult<Given> {
        let (key, context, recipients, identities, passphrase) = keys.extract::<Arguments<'_>>()?;
        match key {
            Some(key) => Ok(Given::Key { key: file_key(&key)?, context: context.to_vec() }),
            None => Ok(Given::Age {
                recipients: recipients.unwrap_or_default(),
                identities: identities.unwrap_or_default(),
                passphrase,
            }),
        }
    }

    /// The key of a new message. The call can take a second. Signal handlers run during this time.
    pub(crate) fn for_writing(self, py: Python<'_>) -> PyResult<MessageKey> {
        let file_key = FileKey::generate().map_err(from_library)?;
        let envelope = match self {
            Given::Key { key, context } => return Ok(MessageKey { key, context, envelope: None }),
            Given::Age { recipients, passphrase: None, .. } => {
                let recipients: Vec<&str> = recipients.iter().map(|text| &**text).collect();
                task::run(py, None, None, |_| file_keys::wrap(&file_key, &recipients))?
            }
            Given::Age { passphrase: Some(passphrase), .. } => {
                task::run(py, None, None, |_| file_keys::wrap_with_passphrase(&file_key, &passphrase))?
            }
        };
        Ok(MessageKey::wrapped(file_key, envelope))
    }

    /// The key of the message in a source. `envelope` is the envelope of the source, if it has one. The call can take several seconds.
    /// Signal handlers run during this time.
    pub(crate) fn for_reading(
        self,
        py: Python<'_>,
        envelope: Option<Envelope>,
        source: &impl ReadAt,
    ) -> PyResult<MessageKey> {
        match (self, envelope) {
            (Given::Key { key, context }, None) => Ok(MessageKey { key, context, envelope: None }),
            (Given::Key { .. }, Some(_)) => Err(PyValueError::new_err(
                "the file is encrypted for recipients or with a passphrase: give identities or passphrase",
            )),
            (Given::Age { .. }, None) => Err(PyValueError::new_err(match detached(py, || format_of(source)) {
                Some(format) => format!("the file begins like {format}"),
                None => "the file is not encrypted for recipients or with a passphrase: give its key; or it is not a Lockstep \
                         file, or was damaged at its start"
                    .into(),
            })),
            (Given::Age { identities, passphrase, .. }, Some(envelope)) => {
                let unwrap = move |stop: &AtomicBool| {
                    let passphrase = passphrase.as_deref();
                    let stop = || stop.load(Ordering::Relaxed);
                    (file_keys::unwrap(&envelope, &identities, passphrase, &stop), envelope)
                };
                let (key, envelope) = task::run_until_signal(py, unwrap)?;
                Ok(MessageKey::wrapped(key.map_err(from_library)?, envelope))
            }
        }
    }
}

/// A key: 16 or 32 raw bytes in any buffer, or the path of a key file.
pub(crate) fn file_key(given: &Bound<'_, PyAny>) -> PyResult<FileKey> {
    let Some(path) = path(given)? else {
        return FileKey::from_bytes(&Input::new(given)?).map_err(from_library);
    };
    let file = task::wait_for_fifo(given.py(), &path, keyfile::open)?;
    // A separate call reads the file: if a signal ends the call above while it opens a FIFO, no byte of the FIFO has been read.
    task::wait_for_fifo(given.py(), &path, |path| keyfile::read_open(file, path))
}

/// The format of a source that Lockstep has not encrypted, if it is known.
fn format_of(source: &impl ReadAt) -> Option<Foreign> {
    foreign::recognise(&start_of(source, source.size().ok()?, foreign::START).ok()?)
}

/// The first `len` bytes of a source that has `size` bytes, or all of its bytes if it is shorter.
pub(crate) fn start_of(source: &impl ReadAt, size: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut start = vec![0; size.min(len as u64) as usize];
    source.read_exact_at(&mut start, 0)?;
    Ok(start)
}
