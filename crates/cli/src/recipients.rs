//! Recipients of a file: age recipients, SSH public keys, recipients of age plugins.

use std::path::{Path, PathBuf};

use age::plugin::{self, RecipientPluginV1};
use age::ssh::ParseRecipientKeyError;
use age::{Recipient, ssh, tag, tagpq, x25519};
use lockstep::quoted;

use crate::error::{Result, failed};
use crate::identities::Answers;
use crate::input::read_small;
use crate::text;

/// Maximum length of a list of recipients in bytes. The recipients of a longer list would not fit in an envelope of 64
/// KiB.
const MAX_LEN: usize = 1 << 20;

/// Recipients of the command line and of files.
#[derive(Default)]
pub(crate) struct Recipients {
    direct: Vec<Box<dyn Recipient>>,
    plugins: Vec<plugin::Recipient>,
}

impl Recipients {
    /// Parses the recipients of the command line and of files.
    pub(crate) fn read(given: &[&str], files: &[PathBuf]) -> Result<Recipients> {
        let mut recipients = Recipients::default();
        for text in given {
            recipients.add(text.trim()).map_err(|reason| failed(format!("-r: {reason}")))?;
        }
        for path in files {
            recipients.add_file(path)?;
        }
        Ok(recipients)
    }

    /// Resolves all recipients. The plugins of plugin recipients are found through the search path for programs.
    pub(crate) fn resolve(self, answers: &Answers) -> Result<Vec<Box<dyn Recipient>>> {
        let Recipients { mut direct, plugins } = self;
        let mut names: Vec<_> = plugins.iter().map(plugin::Recipient::plugin).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let found = RecipientPluginV1::new(name, &plugins, &[], answers.clone());
            direct.push(Box::new(found.map_err(|error| failed(text::one_line(&error)))?));
        }
        Ok(direct)
    }

    fn add_file(&mut self, path: &Path) -> Result<()> {
        let bytes = read_small(path, "list of recipients", MAX_LEN)?;
        let name = quoted(path);
        let content = str::from_utf8(&bytes).map_err(|_| failed(format!("{name} is not text")))?;
        let before = self.len();
        for (number, line) in content.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // An invalid line is an error. If the line were skipped, its recipient could not open the file.
            self.add(line).map_err(|reason| failed(format!("{name}, line {}: {reason}", number + 1)))?;
        }
        if self.len() == before {
            return Err(failed(format!("{name} contains no recipients: put one on each line")));
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.direct.len() + self.plugins.len()
    }

    fn add(&mut self, text: &str) -> std::result::Result<(), String> {
        if let Ok(recipient) = text.parse::<x25519::Recipient>() {
            self.direct.push(Box::new(recipient));
        } else if let Ok(recipient) = text.parse::<tag::Recipient>() {
            self.direct.push(Box::new(recipient));
        } else if let Ok(recipient) = text.parse::<tagpq::Recipient>() {
            self.direct.push(Box::new(recipient));
        } else if text.starts_with("age1") {
            self.plugins
                .push(text.parse().map_err(|_| "this is not an age recipient: it was mistyped or cut off")?);
        } else {
            self.direct.push(Box::new(parse_ssh(text)?));
        }
        Ok(())
    }
}

/// Parses an SSH public key. Error messages do not contain `text`, which may be a secret.
fn parse_ssh(text: &str) -> std::result::Result<ssh::Recipient, String> {
    if text.to_ascii_uppercase().starts_with("AGE-SECRET-KEY-") || text.starts_with("lockstep-key-") {
        return Err("this is a secret key, for -i or -k; a recipient starts with `age1`".into());
    }
    let kind = text.split_ascii_whitespace().next().unwrap_or_default();
    text.parse::<ssh::Recipient>().map_err(|error| match error {
        ParseRecipientKeyError::RsaModulusTooSmall => {
            "this RSA key is shorter than 2048 bits, which is weak".into()
        }
        ParseRecipientKeyError::RsaModulusTooLarge => "this RSA key is longer than 4096 bits".into(),
        _ if kind.starts_with("ssh-") || kind.starts_with("ecdsa-") || kind.starts_with("sk-") => {
            "this SSH public key is not of a type that supports encryption: use ssh-ed25519 or ssh-rsa".into()
        }
        _ => "this is neither an age recipient (`age1...`) nor an SSH public key".into(),
    })
}
