//! Encrypted modules (`Encryption.md`, section 5.1). A module consists of a length field of 4 bytes, a nonce of 12 bytes,
//! ciphertext, and with GCM a tag of 16 bytes. This module encrypts modules, and decrypts them in batches, in host memory or in
//! memory of a device. The plain view uses these functions. Programs with their own Parquet decoder, such as readers on GPUs, find
//! the modules of a file themselves, and call the public functions of this module.

use std::ops::Range;

use lockstep::Engine;
use lockstep::aead::{self, Aead, Data, Direction, Status, Tag};
use lockstep::cobblestone::random;
use lockstep::hazmat::backend::DeviceMemory;
use lockstep::hazmat::data::DeviceSlice;
use lockstep::hazmat::mode::{Executor, transfer};
use lockstep::hazmat::work::{AeadMessage, Pass, Segment, Stream};
use lockstep::hazmat::{Block, Error as CoreError, Key};

use crate::aad::Module;
use crate::error::{Error, Result, ensure, malformed, unsupported};
use crate::format::Algorithm;

/// Bytes of the length before a module.
pub(crate) const LENGTH: usize = 4;
/// Bytes of a nonce.
pub(crate) const NONCE: usize = 12;
/// Bytes of a tag.
pub(crate) const TAG: usize = 16;
/// Bytes of a module before its ciphertext: the length and the nonce.
pub const HEAD: usize = LENGTH + NONCE;

/// The mode by which a module is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// GCM: a length field of 4 bytes, a nonce of 12 bytes, ciphertext, and a tag of 16 bytes.
    Gcm,
    /// CTR: a length field of 4 bytes, a nonce of 12 bytes, and ciphertext. Without a tag, changes are not detected.
    Ctr,
}

impl Kind {
    /// The mode of a type of modules: CTR for pages of `AES_GCM_CTR_V1`, GCM for all other modules (`Encryption.md`, section 4.1).
    pub fn of(algorithm: Algorithm, module: Module) -> Kind {
        match (algorithm, module) {
            (Algorithm::GcmCtrV1, Module::DataPage | Module::DictionaryPage) => Kind::Ctr,
            _ => Kind::Gcm,
        }
    }

    /// Bytes of a module in addition to its plaintext.
    pub const fn overhead(self) -> usize {
        match self {
            Kind::Gcm => HEAD + TAG,
            Kind::Ctr => HEAD,
        }
    }
}

/// The key, the mode and the associated data of a module.
#[derive(Clone)]
pub struct Protection<'a> {
    /// The key of the column, or the footer key.
    pub key: &'a Key,
    /// GCM or CTR, as [`Kind::of`] returns it.
    pub kind: Kind,
    /// The associated data: [`crate::module_aad`]. CTR does not use them.
    pub aad: Vec<u8>,
}

lockstep::impl_debug!([] Protection<'_>, "Protection", key, kind);

/// A module, with the place for its plaintext.
#[derive(Debug)]
pub struct EncryptedModule<'a> {
    protection: Protection<'a>,
    /// The length field and the nonce.
    head: [u8; HEAD],
    /// The tag of GCM; not used for CTR.
    tag: [u8; TAG],
    /// For decryption, the ciphertext is the input, and the plaintext is the output.
    data: Data<'a>,
    status: Status,
}

/// The range of the ciphertext in a module of `len` bytes. `len` includes the length field.
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

    /// True if the length field states the actual length of the module.
    fn has_right_length(&self) -> bool {
        let len = self.data.len() + self.protection.kind.overhead();
        let stated = u32::from_le_bytes([self.head[0], self.head[1], self.head[2], self.head[3]]);
        stated as u64 + LENGTH as u64 == len as u64
    }

    /// The first counter block of CTR: the nonce and the number 1 (`Encryption.md`, section 4.2.2).
    fn first_counter(&self) -> Block {
        let mut counter = Block::default();
        counter[..NONCE].copy_from_slice(&self.head[LENGTH..]);
        counter[15] = 1;
        counter
    }
}

/// The length of a module with its length field, from the first bytes of the module.
pub(crate) fn module_len(first: &[u8]) -> Result<usize> {
    let length = first.first_chunk::<LENGTH>().ok_or_else(|| malformed("a module is cut off"))?;
    let len = u32::from_le_bytes(*length);
    let what = "the length of a module is out of range: the module is not encrypted, or damaged";
    ensure(len <= i32::MAX as u32, || malformed(what))?;
    Ok(len as usize + LENGTH)
}

/// Decrypts modules in one batch. The outputs of modules with a wrong length field or a wrong tag are zeroed; the other outputs are
/// valid. [`EncryptedModule::status`] returns the outcome of each module. CTR has no tag: changes are not detected.
///
/// The executor is the planner, or [`lockstep::hazmat::planner::OnStream`] for memory of a device.
///
/// # Errors
/// [`Error::NotAuthentic`] if any module is not authentic. After any other error, all statuses are pending, and all outputs are
/// zeroed, unless the device cannot zero its memory.
pub fn decrypt_modules(executor: &dyn Executor, modules: &mut [EncryptedModule<'_>]) -> Result<()> {
    match open(executor, modules)? {
        None => Ok(()),
        Some(first) => Err(Error::NotAuthentic(format!("module {first} of the batch"))),
    }
}

/// Does the same as [`decrypt_modules`], but returns the index of the first module that is not authentic.
pub(crate) fn open(executor: &dyn Executor, modules: &mut [EncryptedModule<'_>]) -> Result<Option<usize>> {
    if let Err(error) = run(executor, Direction::Decrypt, modules) {
        for module in modules {
            module.status = Status::Pending;
            // Only the first error is returned: an error of zeroing is ignored.
            let _ = transfer::zero_output(executor, &mut module.data);
        }
        return Err(error);
    }
    Ok(modules.iter().position(|module| module.status != Status::Done))
}

/// Decrypts one module of GCM in host memory. `what` names the module in errors.
pub(crate) fn open_one(engine: &Engine, key: &Key, aad: &[u8], module: &[u8], what: &str) -> Result<Vec<u8>> {
    let length_error = || malformed(format!("the {what} is too short to be encrypted"));
    ensure(module.len() >= Kind::Gcm.overhead(), length_error)?;
    let is_whole = module_len(module)? == module.len();
    ensure(is_whole, || malformed("the length of a module contradicts its place"))?;
    let (nonce, sealed) = module[LENGTH..].split_at(NONCE);
    match aead::Key::new(Aead::Gcm, key.bytes())?.open(engine, nonce, &[aad], sealed) {
        Err(CoreError::AuthenticationFailed) => Err(Error::NotAuthentic(what.into())),
        opened => Ok(opened?),
    }
}

/// Encrypts or decrypts modules, and sets their statuses. Encryption also sets their tags.
fn run(executor: &dyn Executor, direction: Direction, modules: &mut [EncryptedModule<'_>]) -> Result<()> {
    let mut counters: Vec<Block> = modules.iter().map(EncryptedModule::first_counter).collect();
    let (mut messages, mut statuses, mut segments) = (Vec::new(), Vec::new(), Vec::new());
    for (module, counter) in modules.iter_mut().zip(&mut counters) {
        module.status = Status::AuthenticationFailed;
        if !module.has_right_length() {
            transfer::zero_output(executor, &mut module.data)?;
            continue;
        }
        let EncryptedModule { protection: Protection { key, kind, aad }, head, tag, data, status } = module;
        let data = data.reborrow();
        match kind {
            Kind::Gcm => {
                let nonce = &head[LENGTH..];
                let tag = if direction == Direction::Encrypt { Tag::Write(tag) } else { Tag::Expect(tag) };
                messages.push(AeadMessage { key, nonce, aad, data, tag, status: Status::Pending });
                statuses.push(status);
            }
            Kind::Ctr => {
                *status = Status::Done;
                if !data.is_empty() {
                    segments.push(Segment { key, tweak: None, state: counter, data });
                }
            }
        }
    }
    match Aead::Gcm.run_messages(executor, direction, &mut messages) {
        Ok(()) => {}
        // The statuses show which modules are not authentic.
        Err(CoreError::AuthenticationFailed) if direction == Direction::Decrypt => {}
        Err(error) => return Err(error.into()),
    }
    statuses.into_iter().zip(&messages).for_each(|(status, message)| *status = message.status);
    // All keys of a pass must have the same size.
    segments.sort_by_key(|segment| segment.key.size());
    for of_size in segments.chunk_by_mut(|one, next| one.key.size() == next.key.size()) {
        executor.run_pass(Pass::Ctr, of_size)?;
    }
    Ok(())
}

/// A module in memory of a device.
#[derive(Debug, Clone)]
pub struct DeviceModule<'a> {
    /// The key, the mode and the associated data of the module.
    pub protection: Protection<'a>,
    /// The module with its length field.
    pub module: DeviceSlice,
    /// The place for the plaintext, of the length of the ciphertext: the range of the ciphertext in the module, or separate memory of
    /// the same device.
    pub output: DeviceSlice,
}

/// Prepares modules in memory of one device for [`decrypt_modules`]: copies the lengths, nonces and tags to the host, in one copy.
/// The ciphertexts stay on the device. The copy starts after the earlier work on the stream, and the call waits for the end of the
/// copy.
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
        prepared.push(EncryptedModule::new(protection.clone(), &[], &[], data));
    }
    if ends.is_empty() {
        return Ok(prepared);
    }
    let fetched = memory.fetch(&ends, stream)?.wait()?;
    let mut rest = &fetched[..];
    for EncryptedModule { protection, head, tag, .. } in &mut prepared {
        let tag_len = protection.kind.overhead() - HEAD;
        for part in [&mut head[..], &mut tag[..tag_len]] {
            let (bytes, after) =
                rest.split_at_checked(part.len()).ok_or_else(|| malformed("a module is cut off"))?;
            part.copy_from_slice(bytes);
            rest = after;
        }
    }
    Ok(prepared)
}

/// Encrypts modules, with random nonces; appends them to `out` one after the other. After an error, discard `out`.
pub(crate) fn seal(engine: &Engine, plains: Vec<(Protection<'_>, &[u8])>, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let total: usize =
        plains.iter().map(|(protection, plain)| plain.len() + protection.kind.overhead()).sum();
    out.resize(start + total, 0);
    let mut nonces = vec![[0; NONCE]; plains.len()];
    random(nonces.as_flattened_mut())?;
    let (mut modules, mut tags) = (Vec::with_capacity(plains.len()), Vec::with_capacity(plains.len()));
    let mut rest = &mut out[start..];
    for ((protection, plain), nonce) in plains.into_iter().zip(&nonces) {
        let len = plain.len() + protection.kind.overhead();
        let module = rest.split_off_mut(..len).expect("the output has the length of all modules");
        let stated = i32::try_from(len - LENGTH).map_err(|_| unsupported("a page of 2 GiB or more"))?;
        module[..LENGTH].copy_from_slice(&stated.to_le_bytes());
        module[LENGTH..HEAD].copy_from_slice(nonce);
        let (head, body) = module.split_at_mut(HEAD);
        let (body, tag) = body.split_at_mut(plain.len());
        modules.push(EncryptedModule::new(protection, head, &[], Data::copy(plain, body)?));
        tags.push(tag);
    }
    run(engine.planner(), Direction::Encrypt, &mut modules)?;
    for (module, tag) in modules.iter().zip(tags) {
        tag.copy_from_slice(&module.tag[..tag.len()]);
    }
    Ok(())
}

/// Returns the tag of GCM for a plaintext. This tag is the signature of a plain footer (`Encryption.md`, section 5.5).
pub(crate) fn sign(engine: &Engine, key: &Key, aad: &[u8], nonce: &[u8], plain: &[u8]) -> Result<[u8; TAG]> {
    let (mut body, mut tag) = (plain.to_vec(), [0; TAG]);
    aead::Key::new(Aead::Gcm, key.bytes())?.seal_in_place(engine, nonce, &[aad], &mut body, &mut tag)?;
    Ok(tag)
}
