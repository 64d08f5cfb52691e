//! Keys, and where they come from.

use std::collections::BTreeMap;

use lockstep::hazmat::mode::{Aead, AeadKey, CipherKey};
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// Finds the keys of a file.
pub trait KeySource: Sync {
    /// The footer key, of 16, 24 or 32 bytes. `key_metadata` is what the file states about the key.
    ///
    /// # Errors
    /// Any error of the source; [`Error::MissingKey`] if there is no key.
    fn footer_key(&self, key_metadata: Option<&[u8]>) -> Result<Zeroizing<Vec<u8>>>;

    /// The key of a column, whose path is its names from the root joined by dots; None if the caller must not read the column.
    ///
    /// # Errors
    /// Any error of the source.
    fn column_key(&self, path: &str, key_metadata: Option<&[u8]>) -> Result<Option<Zeroizing<Vec<u8>>>>;

    /// The columns that must be encrypted with a key of their own: a file in which one of them is plain or missing is refused.
    fn expected_columns(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Keys that are given directly. They are wiped on drop.
#[derive(Default)]
pub struct Keys {
    footer: Option<Zeroizing<Vec<u8>>>,
    columns: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

impl Keys {
    /// No keys.
    pub fn new() -> Keys {
        Keys::default()
    }

    /// Sets the footer key.
    pub fn footer(mut self, key: &[u8]) -> Keys {
        self.footer = Some(Zeroizing::new(key.to_vec()));
        self
    }

    /// Adds the key of a column.
    pub fn column(mut self, path: &str, key: &[u8]) -> Keys {
        self.columns.insert(path.into(), Zeroizing::new(key.to_vec()));
        self
    }
}

impl KeySource for Keys {
    fn footer_key(&self, _key_metadata: Option<&[u8]>) -> Result<Zeroizing<Vec<u8>>> {
        self.footer.clone().ok_or_else(|| Error::MissingKey { what: "the footer".into() })
    }

    fn column_key(&self, path: &str, _key_metadata: Option<&[u8]>) -> Result<Option<Zeroizing<Vec<u8>>>> {
        Ok(self.columns.get(path).cloned())
    }

    fn expected_columns(&self) -> Vec<String> {
        self.columns.keys().cloned().collect()
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("columns", &self.columns.keys()).finish_non_exhaustive()
    }
}

/// A key for modules, in both modes. It is wiped on drop.
#[derive(Debug, Clone)]
pub(crate) struct ModuleKey {
    pub(crate) gcm: AeadKey,
    pub(crate) ctr: CipherKey,
}

impl ModuleKey {
    /// `what` is the key's purpose, for the error.
    pub(crate) fn new(bytes: &[u8], what: &str) -> Result<ModuleKey> {
        if !matches!(bytes.len(), 16 | 24 | 32) {
            return Err(Error::KeyLength { what: what.into(), got: bytes.len() });
        }
        let gcm = AeadKey::new(Aead::Gcm, bytes)?;
        let ctr = CipherKey::new(lockstep::hazmat::mode::Cipher::Ctr, bytes)?;
        Ok(ModuleKey { gcm, ctr })
    }
}
