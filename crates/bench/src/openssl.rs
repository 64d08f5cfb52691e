//! OpenSSL, by its own `openssl speed`: a program of its own, run in turn with the others.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lockstep::hazmat::mode::{Cipher, Direction};

use super::work::{What, Work};

/// Names a program `openssl` that is measured beside the installed one.
pub const ENV_NEWEST: &str = "OPENSSL_NEWEST";

/// An `openssl` program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSsl {
    program: PathBuf,
    /// Its version line, such as `OpenSSL 3.0.19 27 Jan 2026`.
    pub version: String,
}

impl OpenSsl {
    /// The program, if it runs and says what it is.
    pub fn find(program: &Path) -> Option<OpenSsl> {
        let output = Command::new(program).arg("version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split(" (").next()?.trim().to_owned();
        (output.status.success() && !version.is_empty()).then(|| OpenSsl { program: program.into(), version })
    }

    /// Its command.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::null());
        command
    }

    /// Bytes per second of a cipher on buffers of `size` bytes, over one second.
    pub(crate) fn speed(&self, cipher: &str, decrypt: bool, size: usize) -> Option<f64> {
        let mut command = self.command();
        command.args([
            "speed",
            "-elapsed",
            "-mr",
            "-seconds",
            "1",
            "-bytes",
            &size.to_string(),
            "-evp",
            cipher,
        ]);
        if decrypt {
            command.arg("-decrypt");
        }
        let output = command.output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        // The machine-readable result: `+F:25:AES-128-CTR:9463819702.86`.
        let line = text.lines().rev().find(|line| line.starts_with("+F:"))?;
        line.rsplit(':').next()?.parse().ok()
    }
}

/// The name `openssl speed -evp` has for a work, and whether it decrypts.
pub(crate) fn name(work: &Work) -> Option<(String, bool)> {
    let bits = work.key * 8;
    let (mode, direction) = match work.what {
        What::Gcm(direction) => ("gcm", direction),
        What::Cipher(cipher, direction) => {
            let mode = match cipher {
                Cipher::Ecb => "ecb",
                Cipher::Ctr => "ctr",
                Cipher::Xts => "xts",
                Cipher::Cbc => "cbc",
                Cipher::Cfb128 => "cfb",
                Cipher::Ofb => "ofb",
                _ => return None,
            };
            (mode, direction)
        }
    };
    Some((format!("aes-{bits}-{mode}"), direction == Direction::Decrypt))
}
