//! The encrypted or signed footer.

use std::sync::Arc;

use lockstep::hazmat::Key;
use lockstep::{Engine, ReadAt};
use subtle::ConstantTimeEq;

use super::ReadOptions;
use crate::aad::{FileAad, Module, Place};
use crate::error::{Error, Result, cut_off, ensure, malformed, missing, read};
use crate::format::{
    Algorithm, MAGIC, MAGIC_ENCRYPTED, MAX_FOOTER, TAIL, algorithm, file, file_crypto, footer_too_long,
    identifier,
};
use crate::keys::{KeySource, module_key};
use crate::modules::{Kind, NONCE, TAG, module_len, open_one, sign};
use crate::thrift::{Struct, Value};

/// The end of a file of Parquet.
pub(crate) struct End {
    /// True if the magic bytes are those of an encrypted footer.
    pub(crate) is_encrypted: bool,
    /// The offset of the footer.
    pub(crate) start: u64,
    /// The bytes from `start` to the field with the footer's length. They can include a signature.
    pub(crate) footer: Vec<u8>,
}

/// Reads the end of a file.
pub(crate) fn read_end(source: &impl ReadAt) -> Result<End> {
    let size = source.size().map_err(read)?;
    let (mut head, mut tail) = ([0; MAGIC.len()], [0; TAIL as usize]);
    ensure(size >= MAGIC.len() as u64 + TAIL, || malformed(format!("it has {size} bytes")))?;
    source.read_exact_at(&mut head, 0).map_err(read)?;
    source.read_exact_at(&mut tail, size - TAIL).map_err(read)?;
    let is_encrypted = tail[4..] == *MAGIC_ENCRYPTED;
    let is_parquet = is_encrypted || tail[4..] == *MAGIC;
    ensure(is_parquet, || malformed("the last 4 bytes are neither PAR1 nor PARE"))?;
    ensure(head[..] == tail[4..], || malformed("the first and the last 4 bytes differ"))?;
    let [a, b, c, d, ..] = tail;
    let len = u64::from(u32::from_le_bytes([a, b, c, d]));
    let start = size.checked_sub(len + TAIL).filter(|start| *start >= MAGIC.len() as u64);
    let start = start.ok_or_else(|| malformed("it is shorter than its footer"))?;
    ensure(len <= MAX_FOOTER, footer_too_long)?;
    let mut footer = vec![0; len as usize];
    source.read_exact_at(&mut footer, start).map_err(read)?;
    Ok(End { is_encrypted, start, footer })
}

/// A footer that was authenticated, unless the caller permits a footer without authentication.
pub(super) struct Opened {
    pub(super) footer: Struct,
    /// The offset of the footer in the encrypted file.
    pub(super) start: u64,
    /// The mode of pages.
    pub(super) pages: Kind,
    pub(super) aad: FileAad,
    /// The footer key. None if the footer is not authenticated.
    pub(super) key: Option<Arc<Key>>,
}

/// Reads the footer, and decrypts it or checks its signature. Before this has succeeded, only the fields that describe the
/// encryption of the file are read from the footer.
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
    let (first, used) =
        Struct::read_only(&bytes, |id| id == algorithm || id == metadata)?.ok_or_else(|| cut_off(what))?;
    let (algorithm, fields) = match first.structure(algorithm)? {
        Some(union) => Algorithm::of_union(&union)?,
        None if is_encrypted => return Err(missing("the encryption algorithm")),
        None => return Err(Error::NotEncrypted),
    };
    // In a file with an encrypted footer nothing authenticates the algorithm, so the caller decides whether pages without
    // authentication are permitted.
    let is_permitted = algorithm == Algorithm::GcmV1 || options.allows_unauthenticated_pages;
    ensure(is_permitted, || Error::UnauthenticatedPages)?;
    let aad = file_aad(&fields, options)?;
    let key = keys.key(None, first.binary(metadata))?;
    let key = key.map(|key| module_key(&key, "the footer").map(Arc::new)).transpose()?;
    let (head, rest) = bytes.split_at(used);
    let of_footer = aad.of(Module::Footer, Place::default());
    let footer = match &key {
        Some(key) if is_encrypted => {
            let is_whole = module_len(rest)? == rest.len();
            ensure(is_whole, || malformed("the encrypted footer does not end where the file states"))?;
            let plain = open_one(engine, key, &of_footer, rest, "footer")?;
            drop(bytes);
            Struct::read_module(&plain, "footer")?
        }
        None if is_encrypted => return Err(Error::MissingKey("the footer".into())),
        Some(key) => {
            check_signature(engine, key, &of_footer, head, rest)?;
            Struct::read_whole(head, "footer")?
        }
        None if !options.allows_unauthenticated_footer => return Err(Error::UnauthenticatedFooter),
        None => Struct::read_whole(head, "footer")?,
    };
    let pages = Kind::of(algorithm, Module::DataPage);
    Ok(Opened { footer, start, pages, aad, key })
}

/// Returns the part of the associated data that all modules of the file share. `fields` is the structure of the file's algorithm.
/// The prefix is always the prefix that the caller gives: the documentation of the module `aad` states why.
fn file_aad(fields: &Struct, options: ReadOptions<'_>) -> Result<FileAad> {
    // An empty prefix counts as a missing prefix.
    let stored = fields.binary(algorithm::AAD_PREFIX).filter(|prefix| !prefix.is_empty());
    let needs_prefix = fields.get(algorithm::SUPPLY_AAD_PREFIX) == Some(&Value::TRUE);
    let file_unique = fields.binary(algorithm::AAD_FILE_UNIQUE).map(identifier).transpose()?;
    let supplied = options.aad_prefix;
    let what = match (stored, supplied) {
        (_, Some([])) => "the AAD prefix is empty: give none or the one of the file".into(),
        (Some(stored), None) => format!(
            "the file states the AAD prefix {}, which is not used unless you give it too: pass it as aad_prefix if it is the one that \
             you expect",
            quoted(stored)
        ),
        (Some(stored), Some(supplied)) if stored != supplied => {
            "the file has another AAD prefix than the one that was given: it is not the file that you expect".into()
        }
        (None, None) if needs_prefix => {
            "the file was written with an AAD prefix that it does not store: pass the prefix as aad_prefix".into()
        }
        (None, Some(_)) if !needs_prefix => {
            "an AAD prefix was given, and the file was written without one: it is not the file that you expect".into()
        }
        _ => match file_unique {
            Some(unique) => return Ok(FileAad::new(supplied.unwrap_or_default(), &unique)),
            None if !options.allows_missing_aad => return Err(Error::MissingAad),
            None if supplied.is_none() => return Ok(FileAad(None)),
            None => "an AAD prefix was given, and the modules of the file have no associated data, so that it cannot be checked: \
                     do not give one"
                .into(),
        },
    };
    Err(Error::Argument(what))
}

/// Formats bytes as in a byte string of Python or Rust. Long byte strings are cut off.
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

fn check_signature(engine: &Engine, key: &Key, aad: &[u8], footer: &[u8], signature: &[u8]) -> Result<()> {
    let Ok(signature) = <&[u8; NONCE + TAG]>::try_from(signature) else {
        return Err(malformed("the footer has no signature of 28 bytes"));
    };
    let (nonce, tag) = signature.split_at(NONCE);
    let is_authentic = sign(engine, key, aad, nonce, footer)?.ct_eq(tag).into();
    ensure(is_authentic, || Error::NotAuthentic("footer".into()))
}
