//! Which column is encrypted with which key.

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::columns::{Leaf, check_name, key_of};
use crate::error::{Error, Result};
use crate::format::Algorithm;
use crate::keys::ModuleKey;

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
pub(super) struct Plan {
    pub(super) footer_key: Arc<ModuleKey>,
    /// The treatment of each column of the file.
    pub(super) treatments: Vec<Treatment>,
}

pub(super) struct Treatment {
    pub(super) column: Arc<str>,
    pub(super) names: Arc<[String]>,
    pub(super) protection: Protection,
}

pub(super) enum Protection {
    Plain,
    FooterKey(Arc<ModuleKey>),
    /// A key and its metadata.
    ColumnKey(Arc<ModuleKey>, Option<Arc<[u8]>>),
}

impl Treatment {
    pub(super) fn key(&self) -> Option<&Arc<ModuleKey>> {
        match &self.protection {
            Protection::Plain => None,
            Protection::FooterKey(key) | Protection::ColumnKey(key, _) => Some(key),
        }
    }
}

/// Applies a policy to columns.
pub(super) fn plan(policy: &Policy, leaves: &[Leaf]) -> Result<Plan> {
    let footer_key = Arc::new(ModuleKey::new(&policy.footer_key, "the footer")?);
    let mut columns = Vec::with_capacity(policy.columns.len());
    for column in &policy.columns {
        let key = ModuleKey::new(&column.key, &format!("column {}", column.path))?;
        let metadata: Option<Arc<[u8]>> = column.key_metadata.as_deref().map(Into::into);
        columns.push((&*column.path, Arc::new(key), metadata));
    }
    let mut names =
        columns.iter().map(|(path, ..)| *path).chain(policy.plain_columns.iter().map(String::as_str));
    names.try_for_each(|name| check_name(leaves, name))?;
    let mut treatments = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        let key = key_of(leaf, columns.iter().map(|(path, ..)| *path))?.map(|index| &columns[index]);
        let is_plain = policy.plain_columns.iter().any(|name| leaf.is_in(name));
        let protection = match key {
            Some(_) if is_plain => {
                let what = "it has a key and is named as plain";
                return Err(Error::Contradiction { column: (*leaf.path).into(), what });
            }
            Some((_, key, metadata)) => Protection::ColumnKey(Arc::clone(key), metadata.clone()),
            None if is_plain => Protection::Plain,
            None => Protection::FooterKey(Arc::clone(&footer_key)),
        };
        treatments.push(Treatment {
            column: Arc::clone(&leaf.path),
            names: Arc::clone(&leaf.names),
            protection,
        });
    }
    Ok(Plan { footer_key, treatments })
}
