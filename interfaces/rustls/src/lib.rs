//! AES-GCM of TLS and QUIC by Lockstep, for [rustls].
//!
//! [`provider`] makes a [`CryptoProvider`] from another one, such as those of `aws-lc-rs`, `ring` or graviola. Its AES-GCM suites
//! of TLS 1.2 and TLS 1.3 encrypt records by Lockstep, and those of TLS 1.3 also encrypt the packets and headers of QUIC. Everything
//! else is the other provider's: key exchange, signatures, hashes, key derivation, random numbers and ChaCha20-Poly1305.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let provider = lockstep_rustls::provider(rustls::crypto::ring::default_provider())?;
//! let builder = rustls::ClientConfig::builder_with_provider(provider.into());
//! # let _ = builder.with_safe_default_protocol_versions()?;
//! # Ok(())
//! # }
//! ```
//!
//! **Where the work runs.** Each record and packet is computed on the calling thread, by the fastest CPU kernel that has passed its
//! self-test. There are no other threads, no devices and no files, and the environment variables of
//! [`lockstep::Engine`] have no effect.
//!
//! **Limits.** A suite states a limit of 2^24 records for a key. In QUIC, the limits for a key are 2^23 packets, and 2^52 packets that
//! are not authentic (RFC 9001, section 6.6). rustls and the implementation of QUIC count them, and change keys or end the connection.
//! Keys are wiped on drop. Every failure of decryption is the same error, [`rustls::Error::DecryptError`]. The suites are not
//! FIPS-approved, even if those of the other provider are.
#![forbid(unsafe_code)]

mod gcm;
mod quic;
mod suites;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls12")]
mod tls12;
mod tls13;

use lockstep::hazmat::inline::{InlineKernel, is_proven};
use rustls::crypto::CryptoProvider;

/// Returns the provider `other`, changed such that Lockstep computes AES-GCM. The suites keep their order, and no suite is added or
/// removed. A suite of TLS 1.3 that does not support QUIC in `other` does not support QUIC in the result either.
///
/// **On a processor without AES instructions, all suites stay those of the other provider:** Lockstep's code for such processors is slower.
///
/// rustls requires suites that live as long as the program, so they are never freed. Each suite of another provider is made once.
///
/// # Errors
/// [`NoKernel`], if no kernel passes its self-test.
pub fn provider(other: CryptoProvider) -> Result<CryptoProvider, NoKernel> {
    let kernel = InlineKernel::all().find(|kernel| is_proven(*kernel)).ok_or(NoKernel)?;
    Ok(with_kernel(kernel, other))
}

fn with_kernel(kernel: InlineKernel, other: CryptoProvider) -> CryptoProvider {
    if !kernel.has_aes_instructions() {
        return other;
    }
    let cipher_suites = other.cipher_suites.iter().map(|suite| suites::with_kernel(kernel, *suite)).collect();
    CryptoProvider { cipher_suites, ..other }
}

/// The error of [`provider`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoKernel;

impl std::fmt::Display for NoKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "no AES kernel passed its self-test on this processor: use the other provider unchanged, and please report this",
        )
    }
}

impl std::error::Error for NoKernel {}
