//! Encrypted modules (`Encryption.md`, section 5.1): a length of 4 bytes, a nonce of 12 bytes, ciphertext, and with GCM a tag of 16
//! bytes; and their encryption.

use lockstep::Engine;
use lockstep::aead::{self, Data, Message, Status, Tag};
use lockstep::hazmat::Block;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::work::{Pass, Segment};

use crate::aad::Module;
use crate::error::{Error, Result, malformed};
use crate::format::Algorithm;
use crate::keys::ModuleKey;

/// Bytes of the length before a module.
pub(crate) const LENGTH: usize = 4;
/// Bytes of a nonce.
pub(crate) const NONCE: usize = 12;
/// Bytes of a tag.
pub(crate) const TAG: usize = 16;
/// Bytes of a module before its ciphertext: the length and the nonce.
pub const HEAD: usize = LENGTH + NONCE;

/// How a module is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// GCM: a length of 4 bytes, a nonce of 12 bytes, ciphertext, and a tag of 16 bytes.
    Gcm,
    /// CTR: the same without a tag, so that changes are not detected.
    Ctr,
}

impl Kind {
    /// The mode of a type of modules: CTR for pages of `AES_GCM_CTR_V1`, GCM for all other modules (`Encryption.md`, section 4.1).
    pub fn of(algorithm: Algorithm, module: Module) -> Kind {
        match module {
            Module::DataPage | Module::DictionaryPage => Kind::of_pages(algorithm),
            _ => Kind::Gcm,
        }
    }

    /// The mode of pages.
    pub(crate) fn of_pages(algorithm: Algorithm) -> Kind {
        if algorithm == Algorithm::GcmV1 { Kind::Gcm } else { Kind::Ctr }
    }

    /// Bytes of a module in addition to its plaintext.
    pub const fn overhead(self) -> usize {
        match self {
            Kind::Gcm => HEAD + TAG,
            Kind::Ctr => HEAD,
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

/// The first counter block of CTR: the nonce and the number 1 (`Encryption.md`, section 4.2.2).
pub(crate) fn first_counter(nonce: &[u8]) -> Block {
    let mut counter = Block::default();
    counter[..NONCE].copy_from_slice(nonce);
    counter[15] = 1;
    counter
}

/// Encrypts or decrypts by CTR. A pass has keys of one size.
pub(crate) fn run_ctr(executor: &dyn Executor, segments: &mut [Segment<'_>]) -> Result<()> {
    segments.sort_by_key(|segment| segment.key.size());
    for of_size in segments.chunk_by_mut(|one, next| one.key.size() == next.key.size()) {
        executor.run_pass(Pass::Ctr, of_size)?;
    }
    Ok(())
}

/// Fills memory with random bytes of the operating system.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    let random = |error: getrandom::Error| lockstep::Error::Random { reason: error.to_string() };
    Ok(getrandom::fill(bytes).map_err(random)?)
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
    out.resize(start + total, 0);
    let outcome = seal_to(engine, sealings, &mut out[start..]);
    if outcome.is_err() {
        out.truncate(start);
    }
    outcome
}

fn seal_to(engine: &Engine, sealings: &[Sealing<'_>], mut out: &mut [u8]) -> Result<()> {
    let mut nonces = vec![[0; NONCE]; sealings.len()];
    fill_random(nonces.as_flattened_mut())?;
    let mut counters: Vec<Block> = nonces.iter().map(|nonce| first_counter(nonce)).collect();
    let aads: Vec<&[u8]> = sealings.iter().map(|sealing| &*sealing.aad).collect();
    let (mut gcm, mut ctr) = (Vec::new(), Vec::new());
    for (((sealing, nonce), counter), aad) in sealings.iter().zip(&nonces).zip(&mut counters).zip(&aads) {
        let Sealing { key, kind, plain, .. } = *sealing;
        let len = plain.len() + kind.overhead();
        let module = out.split_off_mut(..len).expect("the output has the length of all modules");
        let stated = i32::try_from(len - LENGTH);
        let stated = stated.map_err(|_| Error::Unsupported { what: "a page of 2 GiB or more".into() })?;
        module[..LENGTH].copy_from_slice(&stated.to_le_bytes());
        module[LENGTH..HEAD].copy_from_slice(nonce);
        let (body, tag) = module[HEAD..].split_at_mut(plain.len());
        let data = Data::copy(plain, body)?;
        match kind {
            Kind::Gcm => gcm.push(Message {
                key: &key.gcm,
                nonce,
                aad: std::slice::from_ref(aad),
                data,
                tag: Tag::Write(tag),
                status: Status::Pending,
            }),
            Kind::Ctr if data.is_empty() => {}
            Kind::Ctr => ctr.push(Segment { key: key.aes(), tweak: None, state: counter, data }),
        }
    }
    aead::seal(engine, &mut gcm)?;
    run_ctr(&**engine.planner(), &mut ctr)
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
    let message = Message {
        key: &key.gcm,
        nonce,
        aad: &[aad],
        data: Data::copy(plain, &mut body)?,
        tag: Tag::Write(&mut tag),
        status: Status::Pending,
    };
    aead::seal(engine, &mut [message])?;
    Ok(tag)
}
