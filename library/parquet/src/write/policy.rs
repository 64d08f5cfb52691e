//! Which column is encrypted with which key.

use std::sync::Arc;

use lockstep::hazmat::Key;
use zeroize::Zeroizing;

use crate::columns::{Leaf, check_name, key_of};
use crate::error::{Error, Result};
use crate::format::Algorithm;
use crate::keys::module_key;

/// The key of a column.
pub struct ColumnKey {
    /// The column: its names from the root joined by dots. The name of a group stands for all columns in it.
    pub path: String,
    /// The key, of 16, 24 or 32 bytes.
    pub key: Zeroizing<Vec<u8>>,
    /// What the file states about the key, for readers.
    pub key_metadata: Option<Vec<u8>>,
}

/// What is encrypted, and how. Columns that are named neither in `columns` nor in `plain_columns` are encrypted with the footer key.
pub struct Policy {
    /// The algorithm of pages.
    pub algorithm: Algorithm,
    /// The footer key: 16, 24 or 32 bytes.
    pub footer_key: Zeroizing<Vec<u8>>,
    /// What the file states about the footer key, for readers.
    pub footer_key_metadata: Option<Vec<u8>>,
    /// Columns with keys of their own.
    pub columns: Vec<ColumnKey>,
    /// Columns that are not encrypted. As in `columns`, a group stands for all columns in it.
    pub plain_columns: Vec<String>,
    /// Leave the footer plain, and sign it. Readers without keys then see the schema, and read the plain columns.
    pub plaintext_footer: bool,
    /// Identifies the file, so that it cannot be exchanged for another one.
    pub aad_prefix: Option<Vec<u8>>,
    /// Store the AAD prefix in the file. Otherwise readers must know it.
    pub stores_aad_prefix: bool,
}

impl Policy {
    /// All columns and the footer are encrypted with one key, by AES_GCM_V1.
    pub fn uniform(footer_key: &[u8]) -> Policy {
        Policy {
            algorithm: Algorithm::default(),
            footer_key: Zeroizing::new(footer_key.to_vec()),
            footer_key_metadata: None,
            columns: Vec::new(),
            plain_columns: Vec::new(),
            plaintext_footer: false,
            aad_prefix: None,
            stores_aad_prefix: true,
        }
    }
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// A policy for the columns of a file.
pub(super) struct Plan<'p> {
    pub(super) footer_key: Arc<Key>,
    /// The treatment of each column of the file.
    pub(super) treatments: Vec<Treatment<'p>>,
}

pub(super) struct Treatment<'p> {
    pub(super) leaf: Leaf,
    /// None if the column is plain.
    pub(super) key: Option<Arc<Key>>,
    /// None if the key is the footer key.
    pub(super) own: Option<&'p ColumnKey>,
}

/// Applies a policy to columns.
pub(super) fn plan(policy: &Policy, leaves: Vec<Leaf>) -> Result<Plan<'_>> {
    let footer_key = Arc::new(module_key(&policy.footer_key, "the footer")?);
    let keys = policy
        .columns
        .iter()
        .map(|column| module_key(&column.key, &format!("column {}", column.path)).map(Arc::new));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let named = || policy.columns.iter().map(|column| &*column.path);
    let mut names = named().chain(policy.plain_columns.iter().map(String::as_str));
    names.try_for_each(|name| check_name(&leaves, name))?;
    let mut treatments = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        let own = key_of(&leaf, named())?;
        let is_plain = policy.plain_columns.iter().any(|name| leaf.is_in(name));
        if is_plain && own.is_some() {
            let what = "it has a key and is named as plain";
            return Err(Error::Contradiction { column: (*leaf.path).into(), what });
        }
        let key = own.map_or(&footer_key, |index| &keys[index]);
        let key = (!is_plain).then(|| Arc::clone(key));
        treatments.push(Treatment { leaf, key, own: own.map(|index| &policy.columns[index]) });
    }
    Ok(Plan { footer_key, treatments })
}
