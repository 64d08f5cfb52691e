//! Encrypted modules (`Encryption.md`, section 5.1): a length of 4 bytes, a nonce of 12 bytes, ciphertext, and with GCM a tag of 16
//! bytes. Batches of modules are sealed and opened on all cores.

use lockstep::Engine;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::aead::Message;
use lockstep::hazmat::mode::{self, Aead, Cipher, Direction};
use lockstep::hazmat::work::{Status, Tag};
use zeroize::Zeroize;

use crate::error::{Error, Result, malformed};
use crate::format::Algorithm;
use crate::keys::ModuleKey;

/// Bytes of the length before a module.
pub(crate) const LENGTH: usize = 4;
/// Bytes of a nonce.
pub(crate) const NONCE: usize = 12;
/// Bytes of a tag.
pub(crate) const TAG: usize = 16;

/// How a module is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// GCM: a length of 4 bytes, a nonce of 12 bytes, ciphertext, and a tag of 16 bytes.
    Gcm,
    /// CTR: the same without a tag, so that changes are not detected.
    Ctr,
}

impl Kind {
    /// The mode of pages.
    pub(crate) fn of_pages(algorithm: Algorithm) -> Kind {
        if algorithm == Algorithm::GcmV1 { Kind::Gcm } else { Kind::Ctr }
    }

    /// Bytes of a module in addition to its plaintext.
    pub const fn overhead(self) -> usize {
        match self {
            Kind::Gcm => LENGTH + NONCE + TAG,
            Kind::Ctr => LENGTH + NONCE,
        }
    }
}

/// The length of a module with its length field, from the first bytes of the module.
pub(crate) fn module_len(first: &[u8]) -> Result<usize> {
    let length = first.first_chunk::<LENGTH>().ok_or_else(|| malformed("a module is cut off"))?;
    let len = u32::from_le_bytes(*length);
    if len > i32::MAX as u32 {
        return Err(malformed(
            "the length of a module is out of range: the module is not encrypted, or damaged",
        ));
    }
    Ok(len as usize + LENGTH)
}

/// A module to decrypt.
pub(crate) struct Opening<'a> {
    pub(crate) key: &'a ModuleKey,
    pub(crate) kind: Kind,
    /// Empty for CTR.
    pub(crate) aad: Vec<u8>,
    /// The module with its length field.
    pub(crate) sealed: &'a [u8],
    /// The plaintext, shorter than `sealed` by the overhead.
    pub(crate) to: &'a mut [u8],
}

/// Decrypts modules. On success all of them are authentic. Otherwise all outputs are zeroed, and the index of the first module that
/// is not authentic is returned.
pub(crate) fn open(engine: &Engine, openings: &mut [Opening<'_>]) -> Result<std::result::Result<(), usize>> {
    let outcome = open_all(engine, openings);
    if !matches!(outcome, Ok(Ok(()))) {
        openings.iter_mut().for_each(|opening| opening.to.zeroize());
    }
    outcome
}

fn open_all(engine: &Engine, openings: &mut [Opening<'_>]) -> Result<std::result::Result<(), usize>> {
    let mut aads: Vec<[&[u8]; 1]> = Vec::with_capacity(openings.len());
    let mut ivs: Vec<[u8; 16]> = Vec::with_capacity(openings.len());
    for opening in openings.iter() {
        let stated = module_len(opening.sealed)?;
        if stated != opening.sealed.len() || stated != opening.to.len() + opening.kind.overhead() {
            return Err(malformed("the length of a module contradicts its place"));
        }
        let mut iv = [0; 16];
        iv[..NONCE].copy_from_slice(&opening.sealed[LENGTH..LENGTH + NONCE]);
        iv[15] = 1;
        ivs.push(iv);
    }
    let (mut gcm, mut ctr, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let mut parts = Vec::with_capacity(openings.len());
    for opening in openings.iter_mut() {
        aads.push([&opening.aad]);
        parts.push((opening.key, opening.kind, opening.sealed, &mut *opening.to));
    }
    for (index, (((key, kind, sealed, to), aad), iv)) in
        parts.into_iter().zip(&aads).zip(&mut ivs).enumerate()
    {
        match kind {
            Kind::Gcm => {
                let (body, tag) = sealed[LENGTH + NONCE..].split_at(to.len());
                let nonce = &sealed[LENGTH..LENGTH + NONCE];
                let data = Data::copy(body, to)?;
                gcm.push(Message {
                    key: &key.gcm,
                    nonce,
                    aad,
                    data,
                    tag: Tag::Expect(tag),
                    status: Status::Pending,
                });
                places.push(index);
            }
            Kind::Ctr => {
                let data = Data::copy(&sealed[LENGTH + NONCE..], to)?;
                ctr.push(mode::Message { key: &key.ctr, iv, data });
            }
        }
    }
    if !gcm.is_empty() {
        match Aead::Gcm.open(engine.planner(), &mut gcm) {
            Ok(()) | Err(lockstep::hazmat::Error::AuthenticationFailed) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(failed) = gcm.iter().position(|message| message.status != Status::Done) {
            return Ok(Err(places[failed]));
        }
    }
    if !ctr.is_empty() {
        Cipher::Ctr.run(engine.planner(), Direction::Decrypt, &mut ctr)?;
    }
    Ok(Ok(()))
}

/// Decrypts one module of GCM. `what` names the module in the error.
pub(crate) fn open_one(
    engine: &Engine,
    key: &ModuleKey,
    aad: Vec<u8>,
    sealed: &[u8],
    what: &str,
) -> Result<Vec<u8>> {
    let len = sealed.len().checked_sub(Kind::Gcm.overhead());
    let mut plain =
        vec![0; len.ok_or_else(|| malformed(format!("the {what} is too short to be encrypted")))?];
    let mut opening = [Opening { key, kind: Kind::Gcm, aad, sealed, to: &mut plain }];
    match open(engine, &mut opening)? {
        Ok(()) => Ok(plain),
        Err(_) => Err(Error::NotAuthentic { module: what.into() }),
    }
}

/// A module to encrypt.
pub(crate) struct Sealing<'a> {
    pub(crate) key: &'a ModuleKey,
    pub(crate) kind: Kind,
    pub(crate) aad: Vec<u8>,
    pub(crate) plain: &'a [u8],
}

/// Encrypts modules, with random nonces; appends them to `out` one after the other.
pub(crate) fn seal(engine: &Engine, sealings: &[Sealing<'_>], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let total: usize = sealings.iter().map(|sealing| sealing.plain.len() + sealing.kind.overhead()).sum();
    let mut nonces = vec![0; sealings.len() * NONCE];
    let random = |error: getrandom::Error| lockstep::Error::Random { reason: error.to_string() };
    getrandom::fill(&mut nonces).map_err(random)?;
    out.resize(start + total, 0);
    let mut ivs: Vec<[u8; 16]> = Vec::with_capacity(sealings.len());
    let aads: Vec<[&[u8]; 1]> = sealings.iter().map(|sealing| [&sealing.aad[..]]).collect();
    for nonce in nonces.chunks(NONCE) {
        let mut iv = [0; 16];
        iv[..NONCE].copy_from_slice(nonce);
        iv[15] = 1;
        ivs.push(iv);
    }
    let mut rest = &mut out[start..];
    let (mut gcm, mut ctr) = (Vec::new(), Vec::new());
    for (((sealing, nonce), iv), aad) in sealings.iter().zip(nonces.chunks(NONCE)).zip(&mut ivs).zip(&aads) {
        let len = sealing.plain.len() + sealing.kind.overhead();
        let (module, after) = std::mem::take(&mut rest).split_at_mut(len);
        rest = after;
        let stated = i32::try_from(len - LENGTH)
            .map_err(|_| Error::Unsupported { what: "a page of 2 GiB or more".into() })?;
        module[..LENGTH].copy_from_slice(&stated.to_le_bytes());
        module[LENGTH..LENGTH + NONCE].copy_from_slice(nonce);
        let (body, tag) = module[LENGTH + NONCE..].split_at_mut(sealing.plain.len());
        let data = Data::copy(sealing.plain, body)?;
        match sealing.kind {
            Kind::Gcm => {
                let tag = Tag::Write(tag);
                gcm.push(Message { key: &sealing.key.gcm, nonce, aad, data, tag, status: Status::Pending });
            }
            Kind::Ctr => ctr.push(mode::Message { key: &sealing.key.ctr, iv, data }),
        }
    }
    let outcome = if gcm.is_empty() { Ok(()) } else { Aead::Gcm.seal(engine.planner(), &mut gcm) };
    let outcome = match outcome {
        Ok(()) if gcm.iter().any(|message| message.status != Status::Done) => {
            Err(lockstep::hazmat::Error::NotSealed)
        }
        Ok(()) if !ctr.is_empty() => Cipher::Ctr.run(engine.planner(), Direction::Encrypt, &mut ctr),
        outcome => outcome,
    };
    if outcome.is_err() {
        out.truncate(start);
    }
    Ok(outcome?)
}

/// The tag of GCM for a plaintext: the signature of a plain footer (`Encryption.md`, section 5.5).
pub(crate) fn sign(
    engine: &Engine,
    key: &ModuleKey,
    aad: &[u8],
    nonce: &[u8],
    plain: &[u8],
) -> Result<[u8; TAG]> {
    let (mut body, mut tag) = (vec![0; plain.len()], [0; TAG]);
    let mut message = [Message {
        key: &key.gcm,
        nonce,
        aad: &[aad],
        data: Data::copy(plain, &mut body)?,
        tag: Tag::Write(&mut tag),
        status: Status::Pending,
    }];
    Aead::Gcm.seal(engine.planner(), &mut message)?;
    Ok(tag)
}
