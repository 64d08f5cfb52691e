//! Decryption of batches of modules, in host memory or in memory of a device: of the modules of the view, and of modules that the
//! caller has found. The latter are for readers with their own Parquet decoder, such as readers on GPUs.

use std::ops::Range;

use lockstep::Engine;
use lockstep::aead::{Aead, Data, Direction, Status, Tag};
use lockstep::hazmat::backend::DeviceMemory;
use lockstep::hazmat::data::DeviceSlice;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::work::{AeadMessage, Segment, Stream};
use lockstep::hazmat::{Block, Error as CoreError, Key};
use zeroize::Zeroize;

use crate::error::{Error, Result, malformed};
use crate::keys::ModuleKey;
use crate::modules::{HEAD, Kind, LENGTH, TAG, first_counter, module_len, run_ctr};

/// How a module is protected.
#[derive(Clone, Copy)]
pub struct Protection<'a> {
    /// The key of the column, or the footer key.
    pub key: &'a Key,
    /// GCM or CTR, as [`Kind::of`] returns it.
    pub kind: Kind,
    /// The associated data: [`crate::module_aad`]. CTR does not use them.
    pub aad: &'a [u8],
}

impl std::fmt::Debug for Protection<'_> {
    /// Prints no associated data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Protection").field("key", &self.key).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A module, with the place for its plaintext.
#[derive(Debug)]
pub struct EncryptedModule<'a> {
    protection: Protection<'a>,
    /// The length field and the nonce.
    head: [u8; HEAD],
    /// Not used for CTR.
    tag: [u8; TAG],
    /// The ciphertext is the input, and the plaintext is the output.
    data: Data<'a>,
    status: Status,
}

/// The range of the ciphertext in a module of `len` bytes with its length field.
///
/// # Errors
/// [`Error::Malformed`] if the module is too short.
pub fn ciphertext(kind: Kind, len: usize) -> Result<Range<usize>> {
    let end = len.checked_sub(kind.overhead()).ok_or_else(|| {
        malformed(format!("a module of {len} bytes is shorter than its length field, nonce and tag"))
    })?;
    Ok(HEAD..HEAD + end)
}

impl<'a> EncryptedModule<'a> {
    /// A module in host memory. The output has the length of the ciphertext.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the module is too short; [`Error::Library`] if the output has another length.
    pub fn on_host(protection: Protection<'a>, module: &'a [u8], output: &'a mut [u8]) -> Result<Self> {
        let body = ciphertext(protection.kind, module.len())?;
        let data = Data::copy(&module[body.clone()], output)?;
        Ok(EncryptedModule::new(protection, &module[..body.start], &module[body.end..], data))
    }

    /// Makes a module from its parts. `head` has the bytes before the ciphertext ([`HEAD`] bytes), and `tag` has the bytes
    /// after it (the tag of GCM). `data` has the ciphertext as the input and the place for the plaintext as the output.
    ///
    /// # Panics
    /// If `head` has more than [`HEAD`] bytes, or `tag` more bytes than a tag.
    pub fn new(protection: Protection<'a>, head: &[u8], tag: &[u8], data: Data<'a>) -> Self {
        let mut module =
            EncryptedModule { protection, head: [0; HEAD], tag: [0; TAG], data, status: Status::Pending };
        module.head[..head.len()].copy_from_slice(head);
        module.tag[..tag.len()].copy_from_slice(tag);
        module
    }

    /// The outcome of [`decrypt_modules`].
    pub fn status(&self) -> Status {
        self.status
    }

    /// True if the length field has the length of the module.
    fn has_right_length(&self) -> bool {
        let [a, b, c, d, ..] = self.head;
        let expected = self.data.len() + self.protection.kind.overhead() - LENGTH;
        u32::from_le_bytes([a, b, c, d]) as usize == expected
    }
}

/// Decrypts modules in one batch. The outputs of modules with a wrong length field or a wrong tag are zeroed; the other outputs are
/// valid. [`EncryptedModule::status`] has the outcome of each module. CTR has no tag: changes are not detected.
///
/// The executor is the planner, or [`lockstep::hazmat::planner::OnStream`] for memory of a device.
///
/// # Errors
/// [`Error::NotAuthentic`] if any module is not authentic. After other errors all outputs are zeroed as far as
/// the device permits it, and all statuses are pending.
pub fn decrypt_modules(executor: &dyn Executor, modules: &mut [EncryptedModule<'_>]) -> Result<()> {
    match open(executor, modules)? {
        None => Ok(()),
        Some(first) => Err(Error::NotAuthentic { module: format!("module {first} of the batch") }),
    }
}

/// Does the same as [`decrypt_modules`], but returns the index of the first module that is not authentic.
pub(crate) fn open(executor: &dyn Executor, modules: &mut [EncryptedModule<'_>]) -> Result<Option<usize>> {
    modules.iter_mut().for_each(|module| module.status = Status::Pending);
    if let Err(error) = open_all(executor, modules) {
        // This error matters more than a failure to zero.
        modules.iter_mut().for_each(|module| drop(zero(executor, &mut module.data)));
        return Err(error);
    }
    Ok(modules.iter().position(|module| module.status != Status::Done))
}

/// Decrypts one module of GCM in host memory. `what` names the module in errors.
pub(crate) fn open_one(
    engine: &Engine,
    key: &ModuleKey,
    aad: &[u8],
    module: &[u8],
    what: &str,
) -> Result<Vec<u8>> {
    let body = ciphertext(Kind::Gcm, module.len());
    let body = body.map_err(|_| malformed(format!("the {what} is too short to be encrypted")))?;
    if module_len(module)? != module.len() {
        return Err(malformed("the length of a module contradicts its place"));
    }
    let mut plain = vec![0; body.len()];
    let protection = Protection { key: key.aes(), kind: Kind::Gcm, aad };
    let mut modules = [EncryptedModule::on_host(protection, module, &mut plain)?];
    match open(&**engine.planner(), &mut modules)? {
        None => Ok(plain),
        Some(_) => Err(Error::NotAuthentic { module: what.into() }),
    }
}

fn open_all(executor: &dyn Executor, modules: &mut [EncryptedModule<'_>]) -> Result<()> {
    let mut counters: Vec<Block> =
        modules.iter().map(|module| first_counter(&module.head[LENGTH..])).collect();
    let (mut gcm, mut ctr) = (Vec::new(), Vec::new());
    let mut statuses = vec![Status::AuthenticationFailed; modules.len()];
    for ((module, counter), status) in modules.iter_mut().zip(&mut counters).zip(&mut statuses) {
        if !module.has_right_length() {
            zero(executor, &mut module.data)?;
            continue;
        }
        let EncryptedModule { protection: Protection { key, kind, aad }, head, tag, data, .. } = module;
        let data = data.reborrow();
        match kind {
            Kind::Gcm => {
                let (nonce, tag) = (&head[LENGTH..], Tag::Expect(&*tag));
                gcm.push((AeadMessage { key, nonce, aad, data, tag, status: Status::Pending }, status));
            }
            Kind::Ctr => {
                *status = Status::Done;
                if !data.is_empty() {
                    ctr.push(Segment { key, tweak: None, state: counter, data });
                }
            }
        }
    }
    let (mut gcm, of_gcm): (Vec<_>, Vec<_>) = gcm.into_iter().unzip();
    if !gcm.is_empty() {
        match Aead::Gcm.run_messages(executor, Direction::Decrypt, &mut gcm) {
            Ok(()) | Err(CoreError::AuthenticationFailed) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for (status, message) in of_gcm.into_iter().zip(&gcm) {
        *status = message.status;
    }
    run_ctr(executor, &mut ctr)?;
    modules.iter_mut().zip(statuses).for_each(|(module, status)| module.status = status);
    Ok(())
}

fn zero(executor: &dyn Executor, data: &mut Data<'_>) -> Result<()> {
    match data {
        Data::Host(data) => data.output().zeroize(),
        Data::Device { to, .. } if !to.is_empty() => {
            let stream = executor.stream(to.device());
            executor.memory(to.device())?.upload(&vec![0; to.len()], to, stream)?;
        }
        Data::Pinned { to, .. } => to.buffer().lock()[to.range()].zeroize(),
        Data::Device { .. } => {}
    }
    Ok(())
}

/// A module in memory of a device.
#[derive(Debug, Clone)]
pub struct DeviceModule<'a> {
    /// How the module is protected.
    pub protection: Protection<'a>,
    /// The module with its length field.
    pub module: DeviceSlice,
    /// The place for the plaintext, of the length of the ciphertext: the range of the ciphertext in the module, or separate memory of
    /// the same device.
    pub output: DeviceSlice,
}

/// Prepares modules in memory of one device for [`decrypt_modules`]: copies the lengths, nonces and tags to the host, in one copy.
/// Everything else stays on the device. The copy runs after earlier work on the stream, and the call waits for it.
///
/// # Errors
/// [`Error::Malformed`] if a module is too short; [`Error::Library`] if an output has another length, overlaps in part or is on another
/// device; errors of devices.
pub fn device_modules<'a>(
    memory: &dyn DeviceMemory,
    stream: Stream,
    modules: &[DeviceModule<'a>],
) -> Result<Vec<EncryptedModule<'a>>> {
    let (mut ends, mut prepared) = (Vec::with_capacity(2 * modules.len()), Vec::with_capacity(modules.len()));
    for DeviceModule { protection, module, output } in modules {
        let body = ciphertext(protection.kind, module.len())?;
        ends.push(module.slice(0..body.start));
        if protection.kind == Kind::Gcm {
            ends.push(module.slice(body.end..module.len()));
        }
        let data = Data::on_device(module.slice(body), output.clone())?;
        prepared.push(EncryptedModule::new(*protection, &[], &[], data));
    }
    if ends.is_empty() {
        return Ok(prepared);
    }
    let fetched = memory.fetch(&ends, stream)?.wait()?;
    let mut rest = &fetched[..];
    for module in &mut prepared {
        let (head, after) = rest.split_first_chunk().ok_or_else(|| malformed("a module is cut off"))?;
        (module.head, rest) = (*head, after);
        if module.protection.kind == Kind::Gcm {
            let (tag, after) = rest.split_first_chunk().ok_or_else(|| malformed("a module is cut off"))?;
            (module.tag, rest) = (*tag, after);
        }
    }
    Ok(prepared)
}
