//! The encrypted or signed footer.

use lockstep::{Engine, ReadAt};
use subtle::ConstantTimeEq;

use super::ReadOptions;
use crate::aad::FileAad;
use crate::batch::open_one;
use crate::error::{Error, Result, aad_prefix, malformed, read};
use crate::format::{
    Algorithm, Encryption, MAGIC, MAGIC_ENCRYPTED, MAX_FOOTER, TAIL, file, file_crypto, footer_too_long,
};
use crate::keys::{KeySource, ModuleKey};
use crate::modules::{self, NONCE, TAG, module_len};
use crate::thrift::{Struct, missing};

/// The end of a file of Parquet.
pub(crate) struct End {
    /// True if the magic bytes are those of an encrypted footer.
    pub(crate) is_encrypted: bool,
    /// The offset of the footer.
    pub(crate) start: u64,
    /// Everything between the pages and the footer's length.
    pub(crate) footer: Vec<u8>,
}

/// Reads the end of a file.
pub(crate) fn read_end(source: &impl ReadAt) -> Result<End> {
    let size = source.size().map_err(read)?;
    let (mut head, mut tail) = ([0; MAGIC.len()], [0; TAIL as usize]);
    if size < MAGIC.len() as u64 + TAIL {
        return Err(malformed(format!("it has {size} bytes")));
    }
    source.read_exact_at(&mut head, 0).map_err(read)?;
    source.read_exact_at(&mut tail, size - TAIL).map_err(read)?;
    let is_encrypted = match &tail[4..] {
        magic if magic == MAGIC => false,
        magic if magic == MAGIC_ENCRYPTED => true,
        _ => return Err(malformed("the last 4 bytes are neither PAR1 nor PARE")),
    };
    if head[..] != tail[4..] {
        return Err(malformed("the first and the last 4 bytes differ"));
    }
    let [a, b, c, d, ..] = tail;
    let len = u64::from(u32::from_le_bytes([a, b, c, d]));
    let start = size.checked_sub(len + TAIL).filter(|start| *start >= MAGIC.len() as u64);
    let start = start.ok_or_else(|| malformed("it is shorter than its footer"))?;
    if len > MAX_FOOTER {
        return Err(footer_too_long());
    }
    let mut footer = vec![0; len as usize];
    source.read_exact_at(&mut footer, start).map_err(read)?;
    Ok(End { is_encrypted, start, footer })
}

/// A footer that has been checked, as far as the caller demands it.
pub(super) struct Opened {
    pub(super) footer: Struct,
    /// The offset of the footer in the encrypted file.
    pub(super) start: u64,
    pub(super) encryption: Encryption,
    pub(super) aad: FileAad,
    /// The footer key. None if the footer is not authenticated.
    pub(super) key: Option<ModuleKey>,
}

/// Reads the footer, and decrypts it or checks its signature. Until this has succeeded, only the fields that state how the file is
/// encrypted are read from it.
pub(super) fn open(
    engine: &Engine,
    source: &impl ReadAt,
    keys: &dyn KeySource,
    options: ReadOptions<'_>,
) -> Result<Opened> {
    let End { is_encrypted, start, footer: bytes } = read_end(source)?;
    let (what, algorithm, metadata) = match is_encrypted {
        true => ("crypto metadata", file_crypto::ENCRYPTION_ALGORITHM, file_crypto::KEY_METADATA),
        false => ("footer", file::ENCRYPTION_ALGORITHM, file::FOOTER_SIGNING_KEY_METADATA),
    };
    let (first, used) = Struct::read_only(&bytes, &[algorithm, metadata])?
        .ok_or_else(|| malformed(format!("the {what} is cut off")))?;
    let encryption = match first.structure(algorithm)? {
        Some(union) => Encryption::from_struct(&union)?,
        None if is_encrypted => return Err(missing("the encryption algorithm")),
        None => return Err(Error::NotEncrypted),
    };
    // In a file with an encrypted footer nothing authenticates the algorithm, so the caller has to decide.
    if encryption.algorithm == Algorithm::GcmCtrV1 && !options.allows_unauthenticated_pages {
        return Err(Error::UnauthenticatedPages);
    }
    let aad = file_aad(&encryption, options)?;
    let key = keys.footer_key(first.binary(metadata))?;
    let key = key.map(|key| ModuleKey::new(&key, "the footer")).transpose()?;
    let (head, rest) = bytes.split_at(used);
    let footer = match &key {
        Some(key) if is_encrypted => {
            if module_len(rest)? != rest.len() {
                return Err(malformed("the encrypted footer does not end where the file states"));
            }
            let plain = open_one(engine, key, &aad.footer(), rest, "footer")?;
            drop(bytes);
            Struct::read_module(&plain, "footer")?
        }
        None if is_encrypted => return Err(Error::MissingKey { what: "the footer".into() }),
        Some(key) => {
            check_signature(engine, key, &aad, head, rest)?;
            Struct::read_whole(head, "footer")?
        }
        None if !options.allows_unauthenticated_footer => return Err(Error::UnauthenticatedFooter),
        None => Struct::read_whole(head, "footer")?,
    };
    Ok(Opened { footer, start, encryption, aad, key })
}

/// The associated data of the file. The prefix is always that of the caller: `aad` states why.
fn file_aad(encryption: &Encryption, options: ReadOptions<'_>) -> Result<FileAad> {
    let supplied = options.aad_prefix;
    match (&encryption.aad_prefix, supplied) {
        (_, Some([])) => return Err(aad_prefix("the AAD prefix is empty: give none or the one of the file")),
        (Some(stored), None) => {
            return Err(aad_prefix(format!(
                "the file states the AAD prefix {}, which is not used unless you give it too: pass it as aad_prefix if it is the one that \
                 you expect",
                quoted(stored)
            )));
        }
        (Some(stored), Some(supplied)) if stored != supplied => {
            return Err(aad_prefix(
                "the file has another AAD prefix than the one that was given: it is not the file that you expect",
            ));
        }
        (None, None) if encryption.needs_prefix => {
            return Err(aad_prefix(
                "the file was written with an AAD prefix that it does not store: pass the prefix as aad_prefix",
            ));
        }
        (None, Some(_)) if !encryption.needs_prefix => {
            return Err(aad_prefix(
                "an AAD prefix was given, and the file was written without one: it is not the file that you expect",
            ));
        }
        _ => {}
    }
    match &encryption.file_unique {
        Some(unique) => Ok(FileAad::new(supplied.unwrap_or_default(), unique)),
        None if !options.allows_missing_aad => Err(Error::MissingAad),
        None if supplied.is_some() => Err(aad_prefix(
            "an AAD prefix was given, and the modules of the file have no associated data, so that it cannot be checked: do not give one",
        )),
        None => Ok(FileAad::missing()),
    }
}

/// Bytes as they are written in a string of Python or Rust. Long ones are cut off.
fn quoted(bytes: &[u8]) -> String {
    /// Maximum number of bytes that are shown.
    const SHOWN: usize = 64;
    match bytes.get(..SHOWN) {
        Some(first) if bytes.len() > SHOWN => {
            format!("\"{}...\" ({} bytes)", first.escape_ascii(), bytes.len())
        }
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}

fn check_signature(
    engine: &Engine,
    key: &ModuleKey,
    aad: &FileAad,
    footer: &[u8],
    signature: &[u8],
) -> Result<()> {
    let Ok(signature) = <&[u8; NONCE + TAG]>::try_from(signature) else {
        return Err(malformed("the footer has no signature of 28 bytes"));
    };
    let (nonce, tag) = signature.split_at(NONCE);
    let expected = modules::sign(engine, key, &aad.footer(), nonce, footer)?;
    if bool::from(expected.ct_eq(tag)) {
        Ok(())
    } else {
        Err(Error::NotAuthentic { module: "footer".into() })
    }
}
