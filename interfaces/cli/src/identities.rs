//! Reads the identities that open a file (age identities, SSH private keys, age plugins).
//!
//! This module and [`crate::recipients`] do not use the feature `cli-common` of the crate age, for these reasons:
//!
//! - The feature starts any installed `pinentry` instead of asking on the terminal.
//! - The feature cannot read a passphrase from a file.
//! - If a question could not be asked, the feature does not return the reason.
//! - The feature copies identity files through buffers that are not wiped.
//! - The error messages of the feature contain the text of an invalid recipient, which may be a secret.

use std::io;
use std::path::{Path, PathBuf};

use age::{Identity, ssh};
use lockstep::quoted;
use lockstep::text::to_utf8;

use crate::age_file::{self, AtOnce};
use crate::answers::Answers;
use crate::error::{Result, failed};
use crate::input::read_small;
use crate::locked_identity::{Locked, MAX_LEN, parse_age_identities};
use crate::permissions::warn_if_open_to_others;
use crate::unlock::Unlock;

/// Reads identity files.
pub(crate) fn read(files: &[PathBuf], answers: Answers, quiet: bool) -> Result<Unlock> {
    let mut identities = Vec::new();
    for path in files {
        let bytes = read_small(path, "identity file", MAX_LEN)?;
        let not_text = || failed(format!("{} is not valid UTF-16: save it as UTF-8", quoted(path)));
        let bytes = to_utf8(&bytes).ok_or_else(not_text)?;
        if !age_file::is_age_file(&bytes) {
            // No warning is necessary for an encrypted file, since a passphrase protects it.
            warn_if_open_to_others(path, "identity file", quiet);
        }
        identities.extend(parse(path, &bytes, &answers)?);
    }
    Ok(Unlock::Identities { identities, answers })
}

/// The identity file that is used if none is named: `lockstep/identities` in the user's configuration folder.
pub(crate) fn default_file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("lockstep").join("identities"))
}

fn parse(path: &Path, bytes: &[u8], answers: &Answers) -> Result<Vec<Box<dyn Identity>>> {
    let name = quoted(path).to_string();
    if bytes.starts_with(b"lockstep-key-") {
        return Err(failed(format!("{name} is a Lockstep key file: give it with -k")));
    }
    if age_file::is_age_file(bytes) {
        return Ok(vec![Box::new(Locked::file(&name, bytes, answers)?)]);
    }
    match ssh::Identity::from_buffer(AtOnce::new(bytes, io::empty()), Some(name.clone())) {
        Ok(ssh::Identity::Unsupported(_)) => Err(failed(format!(
            "{name} is an SSH key of a kind that cannot decrypt: use ssh-ed25519 or ssh-rsa, in OpenSSH's \
             format (`ssh-keygen -p -f {name}` rewrites older ones)"
        ))),
        Ok(ssh::Identity::Encrypted(key)) => Ok(vec![Box::new(Locked::ssh_key(&name, key, answers))]),
        Ok(identity) => Ok(vec![Box::new(identity)]),
        Err(_) => parse_age_identities(&name, bytes, answers),
    }
}
