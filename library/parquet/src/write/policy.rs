//! The policy of an encryption: the key of each column.

use std::sync::Arc;

use lockstep::hazmat::Key;
use zeroize::Zeroizing;

use crate::columns::{Leaf, check_name, with_values};
use crate::error::{Error, Result};
use crate::format::Algorithm;
use crate::keys::module_key;

/// The key of a column.
pub struct ColumnKey {
    /// The column: its names from the root joined by dots. The name of a group means all columns in the group.
    pub path: String,
    /// The key, of 16, 24 or 32 bytes.
    pub key: Zeroizing<Vec<u8>>,
    /// Data about the key, which the file stores for readers.
    pub key_metadata: Option<Vec<u8>>,
}

/// The parts of a file that are encrypted, with their keys and the algorithm. Columns that are named neither in `columns` nor in
/// `plain_columns` are encrypted with the footer key.
#[derive(Default)]
pub struct Policy {
    /// The algorithm of pages.
    pub algorithm: Algorithm,
    /// The footer key: 16, 24 or 32 bytes.
    pub footer_key: Zeroizing<Vec<u8>>,
    /// Data about the footer key, which the file stores for readers.
    pub footer_key_metadata: Option<Vec<u8>>,
    /// Columns with keys of their own.
    pub columns: Vec<ColumnKey>,
    /// Columns that are not encrypted. As in `columns`, the name of a group means all columns in the group.
    pub plain_columns: Vec<String>,
    /// Leave the footer plain, and sign it. Readers without keys then see the schema, and read the plain columns.
    pub plaintext_footer: bool,
    /// Identifies the file, so that an exchange of the file for another file is detected.
    pub aad_prefix: Option<Vec<u8>>,
    /// Store the AAD prefix in the file. Otherwise readers must know it.
    pub stores_aad_prefix: bool,
}

impl Policy {
    /// All columns and the footer are encrypted with one key, by AES_GCM_V1.
    pub fn uniform(footer_key: &[u8]) -> Policy {
        let footer_key = Zeroizing::new(footer_key.to_vec());
        Policy { footer_key, stores_aad_prefix: true, ..Policy::default() }
    }
}

lockstep::impl_debug!([] Policy, "Policy", algorithm);

/// A policy that was applied to the columns of a file.
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
    let mut keys = Vec::with_capacity(policy.columns.len());
    for column in &policy.columns {
        let key = module_key(&column.key, &format!("column {}", column.path))?;
        keys.push((&*column.path, (column, Arc::new(key))));
    }
    policy.plain_columns.iter().try_for_each(|name| check_name(&leaves, name))?;
    let mut treatments = Vec::with_capacity(leaves.len());
    for column in with_values(leaves, &keys)? {
        let (leaf, own) = column?;
        let is_plain = policy.plain_columns.iter().any(|name| leaf.is_in(name));
        let (own, key) = match own {
            Some(_) if is_plain => {
                let what = "it has a key and is named as plain";
                return Err(Error::Contradiction { column: (*leaf.path).into(), what });
            }
            Some((column, key)) => (Some(column), Some(key)),
            None => (None, (!is_plain).then(|| Arc::clone(&footer_key))),
        };
        treatments.push(Treatment { leaf, key, own });
    }
    Ok(Plan { footer_key, treatments })
}
