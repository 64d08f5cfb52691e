//! OpenSSL, measured by `openssl speed`. It runs as a separate process, in turn with the other contenders.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lockstep::aead::Aead;
use lockstep::hazmat::mode::Cipher;

use super::workload::{Mode, Workload};

/// The environment variable that names a second `openssl` program to measure.
pub(super) const ENV_NEWEST: &str = "OPENSSL_NEWEST";

/// An `openssl` program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSsl {
    pub(super) program: PathBuf,
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

    /// Bytes per second of a cipher on buffers of `size` bytes, measured over one second.
    pub fn speed(&self, cipher: &str, decrypt: bool, size: usize) -> Option<f64> {
        let mut command = Command::new(&self.program);
        command.args(["speed", "-elapsed", "-mr", "-seconds", "1", "-evp", cipher]);
        command.args(["-bytes", &size.to_string()]);
        if decrypt {
            command.arg("-decrypt");
        }
        let output = command.stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        // The machine-readable result: `+F:25:AES-128-CTR:9463819702.86`.
        let line = text.lines().rev().find(|line| line.starts_with("+F:"))?;
        line.rsplit(':').next()?.parse().ok()
    }
}

/// The name of a workload for `openssl speed -evp`; None if the program cannot measure it.
pub(super) fn name(work: &Workload) -> Option<String> {
    let mode = match work.mode {
        Mode::Aead(Aead::Gcm) => "gcm",
        Mode::Aead(Aead::Ocb) => "ocb",
        Mode::Cipher(Cipher::Ecb) => "ecb",
        Mode::Cipher(Cipher::Ctr) => "ctr",
        Mode::Cipher(Cipher::Xts) => "xts",
        Mode::Cipher(Cipher::Cbc) => "cbc",
        Mode::Cipher(Cipher::Cfb128) => "cfb",
        Mode::Cipher(Cipher::Ofb) => "ofb",
        _ => return None,
    };
    Some(format!("aes-{}-{mode}", work.key_len * 8))
}
