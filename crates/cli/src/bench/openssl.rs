//! The installed OpenSSL, by its own `openssl speed`: a program of its own, run in turn with the others.

use std::process::{Command, Stdio};

/// The version line of the installed OpenSSL, if there is one.
pub(super) fn version() -> Option<String> {
    let output = Command::new("openssl").arg("version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.split(" (").next()?.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Bytes per second of a cipher on buffers of `size` bytes, over one second.
pub(super) fn speed(cipher: &str, decrypt: bool, size: usize) -> Option<f64> {
    let mut command = Command::new("openssl");
    command.args(["speed", "-elapsed", "-mr", "-seconds", "1", "-bytes", &size.to_string(), "-evp", cipher]);
    if decrypt {
        command.arg("-decrypt");
    }
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The machine-readable result: `+F:25:AES-128-CTR:9463819702.86`.
    let line = text.lines().rev().find(|line| line.starts_with("+F:"))?;
    line.rsplit(':').next()?.parse().ok()
}
