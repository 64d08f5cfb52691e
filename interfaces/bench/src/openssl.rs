//! OpenSSL, measured by `openssl speed`. It runs as a separate process, in turn with the other contenders.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lockstep::hazmat::mode::{Cipher, Direction};

use super::workload::{Aead, Kind, Workload};

/// The environment variable that names a second `openssl` program to measure.
pub const ENV_NEWEST: &str = "OPENSSL_NEWEST";

/// An `openssl` program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSsl {
    program: PathBuf,
    /// The version line, such as `OpenSSL 3.0.19 27 Jan 2026`.
    pub version: String,
}

impl OpenSsl {
    /// The program at this path, if it runs and prints its version.
    pub fn find(program: &Path) -> Option<OpenSsl> {
        let output = Command::new(program).arg("version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split(" (").next()?.trim().to_owned();
        (output.status.success() && !version.is_empty()).then(|| OpenSsl { program: program.into(), version })
    }

    /// A command that runs the program with empty standard input.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::null());
        command
    }

    /// Bytes per second of a cipher on buffers of `size` bytes, measured over one second.
    pub fn speed(&self, cipher: &str, decrypt: bool, size: usize) -> Option<f64> {
        let mut command = self.command();
        command.args(["speed", "-elapsed", "-mr", "-seconds", "1", "-evp", cipher]);
        command.args(["-bytes", &size.to_string()]);
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

/// The name of a workload for `openssl speed -evp`, and whether it decrypts.
pub(crate) fn name(work: &Workload) -> Option<(String, bool)> {
    let bits = work.key_len * 8;
    let (mode, direction) = match work.kind {
        Kind::Aead(Aead::Gcm, direction) => ("gcm", direction),
        Kind::Aead(Aead::Ocb, direction) => ("ocb", direction),
        // `openssl speed` cannot measure it.
        Kind::Aead(Aead::GcmSiv, _) => return None,
        Kind::Cipher(cipher, direction) => {
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
