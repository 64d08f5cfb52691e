//! Functions for tests: configurations, and connections in memory.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::client::ClientConnectionData;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerConnectionData;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ConnectionCommon, Error, RootCertStore, ServerConfig,
    ServerConnection, SideData, SupportedCipherSuite, SupportedProtocolVersion,
};

pub(crate) const CA: &[u8] = include_bytes!("../data/ca.pem");
pub(crate) const EC: &[u8] = include_bytes!("../data/ec.pem");
pub(crate) const RSA: &[u8] = include_bytes!("../data/rsa.pem");

/// The suites with AES-GCM.
pub(crate) const SUITES: [CipherSuite; 6] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
];

/// The provider under test.
pub(crate) fn ours() -> CryptoProvider {
    lockstep_rustls::provider(ring::default_provider()).expect("a kernel passes its self-test")
}

/// The suite of this name.
pub(crate) fn suite(provider: &CryptoProvider, name: CipherSuite) -> SupportedCipherSuite {
    *provider.cipher_suites.iter().find(|suite| suite.suite() == name).expect("the provider has the suite")
}

/// The provider with this suite only, and the version of TLS to which the suite belongs.
fn with_suite(
    provider: CryptoProvider,
    name: CipherSuite,
) -> (Arc<CryptoProvider>, [&'static SupportedProtocolVersion; 1]) {
    let suite = suite(&provider, name);
    (CryptoProvider { cipher_suites: vec![suite], ..provider }.into(), [suite.version()])
}

/// The certificate for a suite, with its private key.
pub(crate) fn identity(name: CipherSuite) -> &'static [u8] {
    match name {
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        | CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => RSA,
        _ => EC,
    }
}

pub(crate) fn server_config(provider: CryptoProvider, name: CipherSuite) -> ServerConfig {
    let (provider, versions) = with_suite(provider, name);
    let certificate = CertificateDer::from_pem_slice(identity(name)).unwrap();
    let key = PrivateKeyDer::from_pem_slice(identity(name)).unwrap();
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&versions).unwrap();
    builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap()
}

pub(crate) fn client_config(provider: CryptoProvider, name: CipherSuite) -> ClientConfig {
    let (provider, versions) = with_suite(provider, name);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CA).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions).unwrap();
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// A client and a server after their handshake.
pub(crate) struct Pair {
    pub(crate) client: ClientConnection,
    pub(crate) server: ServerConnection,
}

impl Pair {
    pub(crate) fn new(client: ClientConfig, server: ServerConfig) -> Pair {
        let client = ClientConnection::new(client.into(), "localhost".try_into().unwrap()).unwrap();
        let mut pair = Pair { client, server: ServerConnection::new(server.into()).unwrap() };
        pair.settle();
        pair
    }

    /// Delivers messages until neither side has a message to send.
    pub(crate) fn settle(&mut self) {
        while self.client.wants_write() || self.server.wants_write() {
            deliver::<ClientConnectionData, ServerConnectionData>(&mut self.client, &mut self.server)
                .unwrap();
            deliver::<ServerConnectionData, ClientConnectionData>(&mut self.server, &mut self.client)
                .unwrap();
        }
        assert!(!self.client.is_handshaking() && !self.server.is_handshaking());
    }
}

/// The records that a connection wants to send.
pub(crate) fn records<S: SideData>(from: &mut ConnectionCommon<S>) -> Vec<u8> {
    let mut wire = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut wire).unwrap();
    }
    wire
}

/// Passes records to a connection, and returns their plaintext.
pub(crate) fn receive<S: SideData>(to: &mut ConnectionCommon<S>, mut wire: &[u8]) -> Result<Vec<u8>, Error> {
    let mut plain = Vec::new();
    while !wire.is_empty() {
        to.read_tls(&mut wire).unwrap();
        let available = to.process_new_packets()?.plaintext_bytes_to_read();
        let start = plain.len();
        plain.resize(start + available, 0);
        to.reader().read_exact(&mut plain[start..]).unwrap();
    }
    Ok(plain)
}

/// Delivers the records that one side wants to send to the other side, and returns their plaintext.
pub(crate) fn deliver<A: SideData, B: SideData>(
    from: &mut ConnectionCommon<A>,
    to: &mut ConnectionCommon<B>,
) -> Result<Vec<u8>, Error> {
    receive(to, &records(from))
}

/// Sends data in pieces that fit into the buffer of the connection, and returns the data that the other side has received.
pub(crate) fn send<A: SideData, B: SideData>(
    from: &mut ConnectionCommon<A>,
    to: &mut ConnectionCommon<B>,
    data: &[u8],
) -> Vec<u8> {
    let mut received = Vec::new();
    for piece in data.chunks(40_000) {
        from.writer().write_all(piece).unwrap();
        received.extend(deliver(from, to).unwrap());
    }
    received
}

/// Bytes without a period.
pub(crate) fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}
