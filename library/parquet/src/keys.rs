//! The keys of a file, and the trait of the sources that find them.

use std::collections::BTreeMap;

use lockstep::hazmat::Key;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// Finds the keys of a file.
pub trait KeySource: Sync {
    /// The key of a column, or the footer key if `column` is None: 16, 24 or 32 bytes. None if there is no key, or if the caller must
    /// not read the column. `column` is the name in [`KeySource::expected_columns`] that stands for the column. If no name there stands
    /// for the column, `column` is the path of the column: its names from the root joined by dots. `key_metadata` contains the data
    /// about the key that the file stores.
    ///
    /// # Errors
    /// Any error of the source.
    fn key(&self, column: Option<&str>, key_metadata: Option<&[u8]>) -> Result<Option<Zeroizing<Vec<u8>>>>;

    /// The columns that must be encrypted with a key of their own: a file in which one of these columns is plain or missing is
    /// refused. The name of a group means all columns in the group.
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

    /// Adds the key of a column: its names from the root joined by dots. The name of a group means all columns in the group.
    pub fn column(mut self, name: &str, key: &[u8]) -> Keys {
        self.columns.insert(name.into(), Zeroizing::new(key.to_vec()));
        self
    }
}

impl KeySource for Keys {
    fn key(&self, column: Option<&str>, _key_metadata: Option<&[u8]>) -> Result<Option<Zeroizing<Vec<u8>>>> {
        Ok(column.map_or(self.footer.as_ref(), |name| self.columns.get(name)).cloned())
    }

    fn expected_columns(&self) -> Vec<String> {
        self.columns.keys().cloned().collect()
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The names are not printed, because a caller may have passed a key in place of a name.
        f.debug_struct("Keys").field("columns", &self.columns.len()).finish_non_exhaustive()
    }
}

/// A key for modules: the AES key of GCM and of CTR. `what` is the key's purpose, for the error.
pub(crate) fn module_key(bytes: &[u8], what: &str) -> Result<Key> {
    Key::new(bytes).map_err(|_| Error::KeyLength { what: what.into(), got: bytes.len() })
}
