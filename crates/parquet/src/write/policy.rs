//! Which column is encrypted with which key.

use std::sync::Arc;

use lockstep::hazmat::shown;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::format::{Algorithm, Leaf};
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
    pub(super) column: String,
    pub(super) names: Vec<String>,
    pub(super) protection: Protection,
}

pub(super) enum Protection {
    Plain,
    FooterKey(Arc<ModuleKey>),
    /// A key and its metadata.
    ColumnKey(Arc<ModuleKey>, Option<Vec<u8>>),
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
        columns.push((&*column.path, Arc::new(key), &column.key_metadata));
    }
    let names = columns.iter().map(|(path, ..)| *path).chain(policy.plain_columns.iter().map(String::as_str));
    for name in names {
        let mut named = leaves.iter().filter_map(|leaf| named_part(leaf, name));
        let Some(first) = named.next() else {
            let known = leaves.iter().map(|leaf| &*leaf.path).collect::<Vec<_>>().join(", ");
            return Err(Error::UnknownColumn { name: shown::name(name).into(), known });
        };
        if named.any(|other| other != first) {
            let what = "two columns or groups have this name, because a name has dots";
            return Err(Error::Contradiction { column: name.into(), what });
        }
    }
    let mut treatments = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        let contradiction = |what| Error::Contradiction { column: leaf.path.clone(), what };
        let mut keys = columns.iter().filter(|(path, ..)| is_in(leaf, path));
        let key = keys.next();
        if keys.next().is_some() {
            return Err(contradiction("two keys are given for it"));
        }
        let is_plain = policy.plain_columns.iter().any(|name| is_in(leaf, name));
        let protection = match key {
            Some(_) if is_plain => return Err(contradiction("it has a key and is named as plain")),
            Some((_, key, metadata)) => Protection::ColumnKey(Arc::clone(key), (*metadata).clone()),
            None if is_plain => Protection::Plain,
            None => Protection::FooterKey(Arc::clone(&footer_key)),
        };
        treatments.push(Treatment { column: leaf.path.clone(), names: leaf.names.clone(), protection });
    }
    Ok(Plan { footer_key, treatments })
}

/// The part of a column's path that a name of a policy stands for: all of it, or a group that the column is in. None if the name
/// stands for something else. A dot in the name of a column does not make a group.
fn named_part<'l>(leaf: &'l Leaf, name: &str) -> Option<&'l [String]> {
    let mut rest = name;
    for (index, part) in leaf.names.iter().enumerate() {
        rest = rest.strip_prefix(&**part)?;
        if rest.is_empty() {
            return Some(&leaf.names[..=index]);
        }
        rest = rest.strip_prefix('.')?;
    }
    None
}

/// True if a name is that of the column or of a group that it is in.
fn is_in(leaf: &Leaf, name: &str) -> bool {
    named_part(leaf, name).is_some()
}
