//! Functions that the tests and the measurement use.

#[path = "../../tests/rustls/common.rs"]
#[allow(dead_code, unreachable_pub)]
mod connections;

use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::{CipherSuite, ClientConfig, ClientConnection, ServerConfig, ServerConnection};

/// The suites with AES-GCM.
pub const SUITES: [CipherSuite; 6] = connections::SUITES;

/// The provider that takes AES-GCM from Lockstep and everything else from AWS-LC.
pub fn lockstep() -> CryptoProvider {
    lockstep_rustls::provider(aws_lc_rs::default_provider()).expect("a kernel passes its self-test")
}

/// All providers with their names. The provider of Lockstep is the first.
pub fn providers() -> Vec<(&'static str, CryptoProvider)> {
    vec![
        ("lockstep", lockstep()),
        ("aws-lc-rs", aws_lc_rs::default_provider()),
        ("ring", ring::default_provider()),
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        ("graviola", rustls_graviola::default_provider()),
    ]
}

/// The configuration of a client for one suite and the version of TLS to which it belongs.
pub fn client_config(provider: CryptoProvider, suite: CipherSuite) -> ClientConfig {
    connections::client_config(provider, suite)
}

/// The configuration of a server for one suite and the version of TLS to which it belongs.
pub fn server_config(provider: CryptoProvider, suite: CipherSuite) -> ServerConfig {
    connections::server_config(provider, suite)
}

/// A client and a server after their handshake, in memory.
pub fn connected(client: ClientConfig, server: ServerConfig) -> (ClientConnection, ServerConnection) {
    let connections::Pair { client, server } = connections::Pair::new(client, server);
    (client, server)
}

/// Bytes without a period.
pub fn bytes(len: usize, seed: u64) -> Vec<u8> {
    connections::bytes(len, seed)
}
