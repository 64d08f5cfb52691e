//! The raw modes: the native part of `lockstep.hazmat`.

mod array;

use lockstep::aead::INLINE_LIMIT;
use lockstep::hazmat::data::{Data, HostData};
use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use lockstep::hazmat::mode::cmac::CmacMessage;
use lockstep::hazmat::mode::hctr2::{Hctr2Key, run as run_hctr2};
use lockstep::hazmat::mode::key_wrap::{self, Icv};
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction, gcm};
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::shown;
use lockstep::hazmat::{Block, Error as CoreError, Key, Result as CoreResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::buffer::{Export, Memory, is_apart, new_bytes, overlap, slice, slice_mut};
use crate::engine;
use crate::error::from_core;
use crate::forks::detached;
use crate::tensor::is_tensor;
use crate::text;
use array::{raw_array, raw_array_into};

/// A raw mode by its name in Python.
#[derive(Clone, Copy)]
enum Mode {
    Cipher(Cipher),
    CbcCts(Variant),
}

const MODES: [(&str, Mode); 12] = [
    ("ECB", Mode::Cipher(Cipher::Ecb)),
    ("CBC", Mode::Cipher(Cipher::Cbc)),
    ("PCBC", Mode::Cipher(Cipher::Pcbc)),
    ("CFB", Mode::Cipher(Cipher::Cfb128)),
    ("CFB8", Mode::Cipher(Cipher::Cfb8)),
    ("CFB1", Mode::Cipher(Cipher::Cfb1)),
    ("OFB", Mode::Cipher(Cipher::Ofb)),
    ("CTR", Mode::Cipher(Cipher::Ctr)),
    ("XTS", Mode::Cipher(Cipher::Xts)),
    ("CBC-CS1", Mode::CbcCts(Variant::Cs1)),
    ("CBC-CS2", Mode::CbcCts(Variant::Cs2)),
    ("CBC-CS3", Mode::CbcCts(Variant::Cs3)),
];

/// Calls a function that processes `len` bytes with the planner, detached from the interpreter unless it is short.
fn run<T: Send>(
    py: Python<'_>,
    len: usize,
    work: impl FnOnce(&Planner) -> CoreResult<T> + Send,
) -> PyResult<T> {
    let engine = engine::current(py)?;
    let work = || work(engine.planner());
    let outcome = if len <= INLINE_LIMIT { work() } else { detached(py, work) };
    outcome.map_err(from_core)
}

/// A message of a raw mode, whose arguments are checked.
struct Call<'a> {
    mode: Mode,
    direction: Direction,
    key: &'a [u8],
    /// The memory of the argument with the key. The slice can be a copy.
    key_place: Memory,
    iv: Block,
}

impl<'a> Call<'a> {
    fn new(
        mode: &str,
        encrypts: bool,
        (key, key_place): (&'a [u8], Memory),
        iv: Option<&[u8]>,
    ) -> PyResult<Call<'a>> {
        let direction = if encrypts { Direction::Encrypt } else { Direction::Decrypt };
        let found = MODES.iter().find(|(name, _)| *name == mode);
        let Some((_, found)) = found else {
            let known: Vec<_> = MODES.iter().map(|(name, _)| *name).collect();
            return Err(PyValueError::new_err(format!(
                "no mode '{}': the modes are {}",
                shown::name(mode),
                known.join(", ")
            )));
        };
        let iv = match (found, iv) {
            (Mode::Cipher(Cipher::Ecb), None) => Block::default(),
            (Mode::Cipher(Cipher::Ecb), Some(_)) => return Err(PyValueError::new_err("ECB has no iv")),
            (_, Some(iv)) if iv.len() == 16 => iv.try_into().unwrap_or_default(),
            _ => return Err(PyValueError::new_err(format!("{mode} needs an iv of 16 bytes"))),
        };
        Ok(Call { mode: *found, direction, key, key_place, iv })
    }

    /// Checks that the output is apart from the key. The initialization vector was copied.
    ///
    /// # Errors
    /// `ValueError` for an overlap.
    fn check_output(&self, output: Memory) -> PyResult<()> {
        if self.key_place.overlaps(output) { Err(overlap()) } else { Ok(()) }
    }

    /// The cipher, the direction, the key and the initialization vector, for data on a device.
    ///
    /// # Errors
    /// `ValueError` for a mode that does not process data on a device, and for a wrong length of the key.
    fn on_device(&self) -> PyResult<(Cipher, Direction, CipherKey, Block)> {
        let Mode::Cipher(cipher) = self.mode else {
            return Err(PyValueError::new_err(
                "CBC with ciphertext stealing does not process data on a device: copy the array to the host",
            ));
        };
        let key = CipherKey::new(cipher, self.key).map_err(from_core)?;
        Ok((cipher, self.direction, key, self.iv))
    }

    /// Processes data on the host.
    ///
    /// # Errors
    /// Those of the mode.
    fn run(mut self, py: Python<'_>, data: HostData<'_>) -> PyResult<()> {
        run(py, data.len(), move |planner| {
            let iv = &mut self.iv;
            let variant = match self.mode {
                Mode::Cipher(cipher) => {
                    let key = CipherKey::new(cipher, self.key)?;
                    return cipher.one(planner, self.direction, &key, iv, Data::Host(data));
                }
                Mode::CbcCts(variant) => variant,
            };
            let key = Key::new(self.key)?;
            let mut data = data;
            if let HostData::Copy { from, to, .. } = &mut data {
                to.copy_from_slice(from);
            }
            cbc_cts::run_in_place(planner, self.direction, &key, variant, iv, data.output())
        })
    }
}

/// Encrypts or decrypts data with a raw mode into new `bytes`, or an array of another library into a new array of that library.
#[pyfunction]
pub(crate) fn raw<'py>(
    py: Python<'py>,
    mode: &Bound<'_, PyString>,
    encrypts: bool,
    key: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
    iv: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (mut key_export, mut data_export, mut iv_export) = (Export::new(), Export::new(), Export::new());
    let key = key_export.read_and_locate(key)?;
    let iv = iv.map(|iv| iv_export.read(iv)).transpose()?;
    let call = Call::new(text::utf8(mode)?, encrypts, key, iv)?;
    if is_tensor(data) {
        return raw_array(py, call, data);
    }
    let data = data_export.read(data)?;
    let bytes =
        new_bytes(py, data.len(), |output| call.run(py, HostData::copy(data, output).map_err(from_core)?));
    Ok(bytes?.into_any())
}

/// Encrypts or decrypts data with a raw mode into a buffer of the same length, which may be the memory of the data.
#[pyfunction]
pub(crate) fn raw_into(
    py: Python<'_>,
    mode: &Bound<'_, PyString>,
    encrypts: bool,
    key: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    iv: Option<&Bound<'_, PyAny>>,
    buf: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    let (mut key_export, mut data_export, mut iv_export) = (Export::new(), Export::new(), Export::new());
    let key = key_export.read_and_locate(key)?;
    let iv = iv.map(|iv| iv_export.read(iv)).transpose()?;
    if is_tensor(data) || is_tensor(buf) {
        return raw_array_into(py, Call::new(text::utf8(mode)?, encrypts, key, iv)?, data, buf);
    }
    let data = data_export.locate(data)?;
    let mut output = Export::new();
    let output = output.write(buf)?;
    if output.len != data.len {
        return Err(PyValueError::new_err(format!("buffer must be {} bytes", data.len)));
    }
    let call = Call::new(text::utf8(mode)?, encrypts, key, iv)?;
    call.check_output(output)?;
    // SAFETY: both buffers are exported until the end of this function, and the output is writable. No slice of the output exists, since
    // the key is apart from it and the initialization vector was copied.
    let data_and_output = unsafe { host_data(data, output) };
    call.run(py, data_and_output?)?;
    Ok(data.len)
}

/// Data and their output in memory of the host, which has the same length.
///
/// # Errors
/// `ValueError` if they overlap in part.
///
/// # Safety
/// During `'a`, the data are valid for reads, and the output is initialised and valid for reads and writes. Apart from the data, nothing
/// else in this crate refers to the output. The documentation of `buffer` states what holds for other threads.
unsafe fn host_data<'a>(data: Memory, output: Memory) -> PyResult<HostData<'a>> {
    let is_apart = is_apart(data, output)?;
    // SAFETY: guaranteed by the caller. The output either does not overlap the data, or is the memory of the whole data. In the second
    // case, no slice of the data is made.
    unsafe {
        match is_apart {
            true => HostData::copy(slice(data), slice_mut(output)).map_err(from_core),
            false => Ok(HostData::InPlace(slice_mut(output))),
        }
    }
}

/// Encrypts or decrypts data of at least 16 bytes with HCTR2.
#[pyfunction]
pub(crate) fn hctr2<'py>(
    py: Python<'py>,
    encrypts: bool,
    key: &Bound<'py, PyAny>,
    tweak: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (mut key_export, mut tweak_export, mut data_export) = (Export::new(), Export::new(), Export::new());
    let key = key_export.read(key)?;
    let tweak = tweak_export.read(tweak)?;
    let data = data_export.read(data)?;
    let direction = if encrypts { Direction::Encrypt } else { Direction::Decrypt };
    new_bytes(py, data.len(), |output| {
        run(py, data.len(), |planner| {
            let key = Hctr2Key::new(planner, Key::new(key)?)?;
            run_hctr2(planner, direction, &key, tweak, Data::copy(data, output)?)
        })
    })
}

/// The CMAC of data, 16 bytes.
#[pyfunction]
pub(crate) fn cmac<'py>(
    py: Python<'py>,
    key: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (mut key_export, mut data_export) = (Export::new(), Export::new());
    let key = Key::new(key_export.read(key)?).map_err(from_core)?;
    let data = data_export.read(data)?;
    let mut mac = Block::default();
    let messages = &mut [CmacMessage { key: &key, data, mac: &mut mac }];
    run(py, data.len(), |planner| lockstep::hazmat::mode::cmac::cmac(planner, messages))?;
    Ok(PyBytes::new(py, &mac))
}

/// The GMAC of data, 16 bytes.
#[pyfunction]
pub(crate) fn gmac<'py>(
    py: Python<'py>,
    key: &Bound<'py, PyAny>,
    nonce: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (mut key_export, mut nonce_export, mut data_export) = (Export::new(), Export::new(), Export::new());
    let key = Key::new(key_export.read(key)?).map_err(from_core)?;
    let nonce = nonce_export.read(nonce)?;
    let data = data_export.read(data)?;
    let mut mac = Block::default();
    run(py, data.len(), |planner| gcm::gmac(planner, &key, nonce, data, &mut mac))?;
    Ok(PyBytes::new(py, &mac))
}

/// Wraps a key with KW, or with KWP if `padded`.
#[pyfunction]
pub(crate) fn wrap<'py>(
    py: Python<'py>,
    padded: bool,
    wrapping_key: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (mut kek, mut key_export) = (Export::new(), Export::new());
    let kek = Key::new(kek.read(wrapping_key)?).map_err(from_core)?;
    let key = key_export.read(key)?;
    let icv = if padded { Icv::KWP } else { Icv::KW };
    let wrapped = run(py, 0, |planner| key_wrap::wrap(planner, &kek, icv, key))?;
    Ok(PyBytes::new(py, &wrapped))
}

/// Unwraps a key with KW, or with KWP if `padded`. None if the wrapped key is not authentic.
#[pyfunction]
pub(crate) fn unwrap<'py>(
    py: Python<'py>,
    padded: bool,
    wrapping_key: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let (mut kek, mut key_export) = (Export::new(), Export::new());
    let kek = Key::new(kek.read(wrapping_key)?).map_err(from_core)?;
    let key = key_export.read(key)?;
    let engine = engine::current(py)?;
    let icv = if padded { Icv::KWP } else { Icv::KW };
    match key_wrap::unwrap(engine.planner(), &kek, icv, key) {
        Ok(key) => Ok(Some(PyBytes::new(py, &key))),
        Err(CoreError::AuthenticationFailed) => Ok(None),
        Err(error) => Err(from_core(error)),
    }
}
