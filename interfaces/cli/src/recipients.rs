//! Reads the recipients of a file: age recipients, SSH public keys, and recipients of age plugins.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use age::plugin::{self, RecipientPluginV1};
use age::ssh::ParseRecipientKeyError;
use age::{Recipient, ssh, tag, tagpq, x25519};
use lockstep::quoted;
use lockstep::text::to_utf8;

use crate::answers::Answers;
use crate::error::{Result, ensure, failed};
use crate::input::read_small;
use crate::{terminal, text};

/// Maximum length of a list of recipients in bytes. The recipients of a longer list would not fit in an envelope of 64
/// KiB.
const MAX_LEN: usize = 1 << 20;

/// Recipients of the built-in types, and recipients of plugins. The programs of the plugins have not been searched for yet.
#[derive(Default)]
struct Recipients {
    direct: Vec<Box<dyn Recipient>>,
    plugins: Vec<plugin::Recipient>,
}

/// Reads the recipients of the command line and of files. SSH keys of types that do not support encryption are refused on the
/// command line; in files they are skipped with a warning. Plugins are searched for on PATH, and `answers` answers their questions.
pub(crate) fn read(
    given: &[&str],
    files: &[PathBuf],
    answers: &Answers,
    quiet: bool,
) -> Result<Vec<Box<dyn Recipient>>> {
    let mut recipients = Recipients::default();
    for text in given {
        recipients.add(text.trim()).map_err(|reason| failed(format!("-r: {reason}")))?;
    }
    for path in files {
        recipients.add_file(path, quiet)?;
    }
    let Recipients { mut direct, plugins } = recipients;
    let names: BTreeSet<_> = plugins.iter().map(plugin::Recipient::plugin).collect();
    for name in names {
        let found = RecipientPluginV1::new(name, &plugins, &[], answers.clone());
        direct.push(Box::new(found.map_err(|error| failed(text::one_line(&error)))?));
    }
    Ok(direct)
}

impl Recipients {
    fn add_file(&mut self, path: &Path, quiet: bool) -> Result<()> {
        let bytes = read_small(path, "list of recipients", MAX_LEN)?;
        let name = quoted(path);
        let not_text = || failed(format!("{name} is not text in UTF-8 or UTF-16"));
        let bytes = to_utf8(&bytes).ok_or_else(not_text)?;
        let content = str::from_utf8(&bytes).map_err(|_| not_text())?;
        let (mut added, mut skipped) = (0, 0);
        for (number, line) in content.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("{name}, line {}", number + 1);
            match self.add(line) {
                Ok(()) => added += 1,
                // A key of another type is skipped, because code-hosting services publish lists with keys of all types.
                Err(UNSUPPORTED) => {
                    skipped += 1;
                    terminal::warn(quiet, &format!("{place}: skipped: {UNSUPPORTED}"));
                }
                // An invalid line is an error: if the line were skipped, the recipient that it means could not open the file.
                Err(reason) => return Err(failed(format!("{place}: {reason}"))),
            }
        }
        let rest = match skipped {
            0 => ": put one on each line",
            _ => " that support encryption: use ssh-ed25519 or ssh-rsa",
        };
        ensure(added > 0, format_args!("{name} contains no recipients{rest}"))
    }

    /// Adds a recipient. If that fails, the returned reason does not contain the text, which may be a secret.
    fn add(&mut self, text: &str) -> std::result::Result<(), &'static str> {
        if let Ok(recipient) = text.parse::<x25519::Recipient>() {
            self.direct.push(Box::new(recipient));
        } else if let Ok(recipient) = text.parse::<tag::Recipient>() {
            self.direct.push(Box::new(recipient));
        } else if let Ok(recipient) = text.parse::<tagpq::Recipient>() {
            self.direct.push(Box::new(recipient));
        } else if text.starts_with("age1") {
            let wrong = |_| "this is not an age recipient: it was mistyped or cut off";
            self.plugins.push(text.parse().map_err(wrong)?);
        } else {
            self.direct.push(Box::new(parse_ssh(text)?));
        }
        Ok(())
    }
}

/// The reason why a valid SSH public key is refused.
const UNSUPPORTED: &str =
    "this SSH public key is not of a type that supports encryption: use ssh-ed25519 or ssh-rsa";

/// Parses an SSH public key: its type, white space, the key, and any comment.
fn parse_ssh(text: &str) -> std::result::Result<ssh::Recipient, &'static str> {
    if text.to_ascii_uppercase().starts_with("AGE-SECRET-KEY-") || text.starts_with("lockstep-key-") {
        return Err("this is a secret key, for -i or -k; a recipient starts with `age1`");
    }
    let is_type = |word: &str| ["ssh-", "ecdsa-", "sk-"].iter().any(|start| word.starts_with(start));
    let mut words = text.split_ascii_whitespace();
    let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // The age crate accepts only a single space between the type and the key.
    format!("{kind} {key}").parse::<ssh::Recipient>().map_err(|error| match error {
        ParseRecipientKeyError::RsaModulusTooSmall => "this RSA key is shorter than 2048 bits, which is weak",
        ParseRecipientKeyError::RsaModulusTooLarge => "this RSA key is longer than 4096 bits",
        ParseRecipientKeyError::Unsupported(_) if !["ssh-ed25519", "ssh-rsa"].contains(&kind) => UNSUPPORTED,
        _ if is_type(kind) => "this SSH public key was mistyped or cut off",
        _ if text.split_ascii_whitespace().any(is_type) => {
            "there is text before the type of this SSH public key: remove options, as those of `authorized_keys`"
        }
        _ => "this is neither an age recipient (`age1...`) nor an SSH public key",
    })
}
