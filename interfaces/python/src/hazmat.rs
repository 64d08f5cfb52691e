//! The raw modes: the native part of `lockstep.hazmat`.

use lockstep::aead::INLINE_LIMIT;
use lockstep::hazmat::data::{Data, DeviceSlice, HostData};
use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use lockstep::hazmat::mode::cmac::CmacMessage;
use lockstep::hazmat::mode::hctr2::{Hctr2Key, run as run_hctr2};
use lockstep::hazmat::mode::key_wrap::{self, Icv};
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction, gcm};
use lockstep::hazmat::planner::{OnStream, Planner};
use lockstep::hazmat::shown;
use lockstep::hazmat::work::Stream;
use lockstep::hazmat::{Block, Key, Result as CoreResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use zeroize::Zeroizing;

use crate::buffer::{Input, Memory, host_data, new_bytes, overlap};
use crate::engine;
use crate::error::from_core;
use crate::forks::detached;
use crate::tensor::{Transform, is_tensor};
use crate::text;

/// The raw modes by their names. CBC can have ciphertext stealing.
fn modes() -> impl Iterator<Item = (&'static str, Cipher, Option<Variant>)> {
    let stealing = ["CBC-CS1", "CBC-CS2", "CBC-CS3"].into_iter().zip(Variant::ALL);
    let stealing = stealing.map(|(name, variant)| (name, Cipher::Cbc, Some(variant)));
    Cipher::ALL.into_iter().map(|cipher| (cipher.name(), cipher, None)).chain(stealing)
}

/// Calls a function that processes `len` bytes with the planner. The thread is detached from the interpreter unless the data are
/// short.
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

/// The direction of a call.
pub(crate) fn direction(encrypts: bool) -> Direction {
    if encrypts { Direction::Encrypt } else { Direction::Decrypt }
}

/// A message of a raw mode, whose arguments are checked.
struct Call<'a> {
    cipher: Cipher,
    stealing: Option<Variant>,
    direction: Direction,
    key: Input<'a>,
    iv: Block,
}

impl<'a> Call<'a> {
    fn new(
        mode: &Bound<'_, PyString>,
        encrypts: bool,
        key: Input<'a>,
        iv: Option<Input<'_>>,
    ) -> PyResult<Call<'a>> {
        let mode = text::utf8(mode)?;
        let Some((_, cipher, stealing)) = modes().find(|(name, ..)| *name == mode) else {
            let known: Vec<_> = modes().map(|(name, ..)| name).collect();
            let (name, known) = (shown::name(mode), known.join(", "));
            return Err(PyValueError::new_err(format!("no mode '{name}': the modes are {known}")));
        };
        let iv = match (cipher, iv.as_deref()) {
            (Cipher::Ecb, None) => Block::default(),
            (Cipher::Ecb, Some(_)) => return Err(PyValueError::new_err("ECB has no iv")),
            (_, Some(iv)) if iv.len() == 16 => iv.try_into().unwrap_or_default(),
            _ => return Err(PyValueError::new_err(format!("{mode} needs an iv of 16 bytes"))),
        };
        Ok(Call { cipher, stealing, direction: direction(encrypts), key, iv })
    }

    /// Processes data on the host.
    fn run(&self, py: Python<'_>, mut data: HostData<'_>) -> PyResult<()> {
        let &Call { cipher, stealing, direction, ref key, mut iv } = self;
        run(py, data.len(), |planner| {
            let Some(variant) = stealing else {
                let key = CipherKey::new(cipher, key)?;
                return cipher.one(planner, direction, &key, &mut iv, Data::Host(data));
            };
            let key = Key::new(key)?;
            if let HostData::Copy { from, to, .. } = &mut data {
                to.copy_from_slice(from);
            }
            cbc_cts::run_in_place(planner, direction, &key, variant, &mut iv, data.output())
        })
    }
}

impl Transform for Call<'_> {
    fn output_len(&self, len: usize) -> PyResult<usize> {
        Ok(len)
    }

    fn on_host(&self, py: Python<'_>, data: Memory, output: Memory) -> PyResult<()> {
        if self.key.memory().overlaps(output) {
            return Err(overlap());
        }
        // SAFETY: the caller keeps the data and the output, which is writable. No slice of the output exists, since the key does not
        // overlap the output and the initialization vector was copied.
        let data_and_output = unsafe { host_data(data, output) };
        self.run(py, data_and_output?)
    }

    fn on_device(
        &self,
        py: Python<'_>,
        data: &DeviceSlice,
        output: &DeviceSlice,
        stream: Stream,
    ) -> PyResult<()> {
        let &Call { cipher, stealing: None, direction, ref key, mut iv } = self else {
            return Err(PyValueError::new_err(
                "CBC with ciphertext stealing does not process data on a device: copy the array to the host",
            ));
        };
        let engine = engine::current(py)?;
        let work = || {
            let key = CipherKey::new(cipher, key)?;
            let executor = OnStream::new(engine.planner(), output.device(), stream)?;
            let data = Data::on_device(data.clone(), output.clone())?;
            cipher.one(&executor, direction, &key, &mut iv, data)
        };
        detached(py, work).map_err(from_core)
    }
}

/// Encrypts or decrypts data with a raw mode. The result is a new `bytes` object. If the data are an array of another library, the
/// result is a new array of bytes of that library, on the same device.
#[pyfunction]
pub(crate) fn raw<'py>(
    py: Python<'py>,
    mode: &Bound<'_, PyString>,
    encrypts: bool,
    key: Input<'_>,
    data: &Bound<'py, PyAny>,
    iv: Option<Input<'_>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = Call::new(mode, encrypts, key, iv)?;
    if is_tensor(data)? {
        return call.to_array(data);
    }
    let data = Input::new(data)?;
    let bytes =
        new_bytes(py, data.len(), |output| call.run(py, HostData::copy(&data, output).map_err(from_core)?));
    Ok(bytes?.into_any())
}

/// Encrypts or decrypts data with a raw mode into a buffer or an array of the same length, which may be the memory of the data.
#[pyfunction]
pub(crate) fn raw_into(
    mode: &Bound<'_, PyString>,
    encrypts: bool,
    key: Input<'_>,
    data: &Bound<'_, PyAny>,
    iv: Option<Input<'_>>,
    buf: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    Call::new(mode, encrypts, key, iv)?.write_to(data, buf)
}

/// Encrypts or decrypts data of at least 16 bytes with HCTR2.
#[pyfunction]
pub(crate) fn hctr2<'py>(
    py: Python<'py>,
    encrypts: bool,
    key: Input<'_>,
    tweak: Input<'_>,
    data: Input<'_>,
) -> PyResult<Bound<'py, PyBytes>> {
    new_bytes(py, data.len(), |output| {
        run(py, data.len(), |planner| {
            let key = Hctr2Key::new(planner, Key::new(&key)?)?;
            run_hctr2(planner, direction(encrypts), &key, &tweak, Data::copy(&data, output)?)
        })
    })
}

/// The CMAC of data, 16 bytes.
#[pyfunction]
pub(crate) fn cmac(py: Python<'_>, key: Input<'_>, data: Input<'_>) -> PyResult<Block> {
    let key = Key::new(&key).map_err(from_core)?;
    let mut mac = Block::default();
    let messages = &mut [CmacMessage { key: &key, data: &data, mac: &mut mac }];
    run(py, data.len(), |planner| lockstep::hazmat::mode::cmac::cmac(planner, messages))?;
    Ok(mac)
}

/// The GMAC of data, 16 bytes.
#[pyfunction]
pub(crate) fn gmac(py: Python<'_>, key: Input<'_>, nonce: Input<'_>, data: Input<'_>) -> PyResult<Block> {
    let key = Key::new(&key).map_err(from_core)?;
    let mut mac = Block::default();
    run(py, data.len(), |planner| gcm::gmac(planner, &key, &nonce, &data, &mut mac))?;
    Ok(mac)
}

/// Wraps a key with KW, or with KWP if `padded`, or unwraps it. `InvalidTag` if a wrapped key is not authentic.
#[pyfunction]
pub(crate) fn wrap<'py>(
    py: Python<'py>,
    encrypts: bool,
    padded: bool,
    wrapping_key: Input<'_>,
    key: Input<'_>,
) -> PyResult<Bound<'py, PyBytes>> {
    let kek = Key::new(&wrapping_key).map_err(from_core)?;
    let icv = if padded { Icv::KWP } else { Icv::KW };
    let result = run(py, 0, |planner| match direction(encrypts) {
        Direction::Encrypt => key_wrap::wrap(planner, &kek, icv, &key).map(Zeroizing::new),
        Direction::Decrypt => key_wrap::unwrap(planner, &kek, icv, &key),
    });
    Ok(PyBytes::new(py, &result?))
}
