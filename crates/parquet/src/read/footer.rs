//! The encrypted or signed footer.

use lockstep::{Engine, ReadAt};
use subtle::ConstantTimeEq;

use super::{ReadOptions, footer_range};
use crate::aad::FileAad;
use crate::error::{Error, Result, malformed, read};
use crate::format::{Algorithm, Encryption, MAGIC, MAGIC_ENCRYPTED, TAIL, file, file_crypto};
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
    let (start, len) = footer_range(size, &tail)?;
    let mut footer = vec![0; len];
    source.read_exact_at(&mut footer, start).map_err(read)?;
    Ok(End { is_encrypted, start, footer })
}

/// A footer that has been checked.
pub(super) struct Opened {
    pub(super) footer: Struct,
    /// The offset of the footer in the encrypted file.
    pub(super) start: u64,
    pub(super) encryption: Encryption,
    pub(super) aad: FileAad,
    pub(super) key: ModuleKey,
}

/// Reads the footer, and decrypts it or checks its signature.
pub(super) fn open(
    engine: &Engine,
    source: &impl ReadAt,
    keys: &dyn KeySource,
    options: ReadOptions<'_>,
) -> Result<Opened> {
    let End { is_encrypted, start, footer: bytes } = read_end(source)?;
    let what = if is_encrypted { "crypto metadata" } else { "footer" };
    let (first, used) = Struct::read(&bytes)?.ok_or_else(|| malformed(format!("the {what} is cut off")))?;
    let (algorithm, metadata) = match is_encrypted {
        true => (file_crypto::ENCRYPTION_ALGORITHM, file_crypto::KEY_METADATA),
        false => (file::ENCRYPTION_ALGORITHM, file::FOOTER_SIGNING_KEY_METADATA),
    };
    let encryption = match first.structure(algorithm) {
        Some(union) => Encryption::from_struct(union)?,
        None if is_encrypted => return Err(missing("the encryption algorithm")),
        None => return Err(Error::NotEncrypted),
    };
    // In a file with an encrypted footer nothing authenticates the algorithm, so the caller has to decide.
    if encryption.algorithm == Algorithm::GcmCtrV1 && !options.allows_unauthenticated_pages {
        return Err(Error::UnauthenticatedPages);
    }
    let prefix = prefix(&encryption, options.aad_prefix)?;
    let aad = match &encryption.file_unique {
        Some(unique) => FileAad::new(prefix, unique),
        None if options.allows_missing_aad => FileAad::missing(),
        None => return Err(Error::MissingAad),
    };
    let key = ModuleKey::new(&keys.footer_key(first.binary(metadata))?, "the footer")?;
    let rest = &bytes[used..];
    let footer = if is_encrypted {
        if module_len(rest)? != rest.len() {
            return Err(malformed("the encrypted footer does not end where the file states"));
        }
        let plain = modules::open_one(engine, &key, aad.footer(), rest, "footer")?;
        Struct::read_module(&plain, "footer")?
    } else {
        check_signature(engine, &key, &aad, &bytes[..used], rest)?;
        first
    };
    Ok(Opened { footer, start, encryption, aad, key })
}

/// The AAD prefix: the one that is supplied, or the one in the file.
fn prefix<'a>(encryption: &'a Encryption, supplied: Option<&'a [u8]>) -> Result<&'a [u8]> {
    match (&encryption.aad_prefix, supplied) {
        (Some(stored), Some(supplied)) if stored != supplied => Err(Error::AadPrefix {
            what: "the file has another AAD prefix than the one that was given: it is not the file that you expect",
        }),
        (Some(stored), _) => Ok(stored),
        (None, None) if encryption.needs_prefix => Err(Error::AadPrefix {
            what: "the file was written with an AAD prefix that it does not store: give the prefix",
        }),
        (None, Some(_)) if !encryption.needs_prefix => Err(Error::AadPrefix {
            what: "an AAD prefix was given, and the file was written without one: it is not the file that you expect",
        }),
        (None, supplied) => Ok(supplied.unwrap_or_default()),
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
