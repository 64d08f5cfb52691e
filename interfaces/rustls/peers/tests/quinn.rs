//! Tests QUIC by quinn on loopback with both AES-GCM suites. Lockstep is the provider of the client, of the server, or of both.

use std::sync::Arc;
use std::time::Duration;

use lockstep_rustls_peers::{bytes, client_config, lockstep, server_config};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig};
use rustls::CipherSuite;
use rustls::crypto::{CryptoProvider, ring};
use rustls::quic::Suite;

/// The suite that encrypts the first packets of every connection, whichever suite the connection uses later.
fn initial(provider: &CryptoProvider) -> Suite {
    let name = CipherSuite::TLS13_AES_128_GCM_SHA256;
    let suite = provider.cipher_suites.iter().find(|suite| suite.suite() == name).unwrap();
    suite.tls13().unwrap().quic_suite().unwrap()
}

fn server(provider: CryptoProvider, suite: CipherSuite) -> Endpoint {
    let initial = initial(&provider);
    let config = QuicServerConfig::with_initial(Arc::new(server_config(provider, suite)), initial).unwrap();
    Endpoint::server(ServerConfig::with_crypto(Arc::new(config)), "127.0.0.1:0".parse().unwrap()).unwrap()
}

fn client(provider: CryptoProvider, suite: CipherSuite) -> Endpoint {
    let initial = initial(&provider);
    let config = QuicClientConfig::with_initial(Arc::new(client_config(provider, suite)), initial).unwrap();
    let mut endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    endpoint.set_default_client_config(ClientConfig::new(Arc::new(config)));
    endpoint
}

/// Sends the data that arrive in each stream back in the same stream.
async fn echo(endpoint: Endpoint) {
    let connection = endpoint.accept().await.unwrap().await.unwrap();
    while let Ok((mut sender, mut receiver)) = connection.accept_bi().await {
        let data = receiver.read_to_end(4 << 20).await.unwrap();
        sender.write_all(&data).await.unwrap();
        sender.finish().unwrap();
    }
}

/// Sends data in a new stream, and receives the answer.
async fn exchange(connection: &Connection, data: &[u8]) -> Vec<u8> {
    let (mut sender, mut receiver) = connection.open_bi().await.unwrap();
    sender.write_all(data).await.unwrap();
    sender.finish().unwrap();
    receiver.read_to_end(4 << 20).await.unwrap()
}

#[tokio::test]
async fn streams_arrive() {
    let sides: [[fn() -> CryptoProvider; 2]; 3] =
        [[lockstep, ring::default_provider], [ring::default_provider, lockstep], [lockstep, lockstep]];
    for suite in [CipherSuite::TLS13_AES_128_GCM_SHA256, CipherSuite::TLS13_AES_256_GCM_SHA384] {
        for [client_side, server_side] in sides {
            let server = server(server_side(), suite);
            let address = server.local_addr().unwrap();
            let server = tokio::spawn(echo(server));
            let client = client(client_side(), suite);
            let work = async {
                let connection = client.connect(address, "localhost").unwrap().await.unwrap();
                for len in [1, 1200, 100_000, 1 << 20] {
                    let data = bytes(len, len as u64);
                    assert!(exchange(&connection, &data).await == data, "{suite:?}, {len} bytes");
                    // The data of the next stream are encrypted with new keys.
                    connection.force_key_update();
                }
                connection.close(0_u8.into(), b"done");
            };
            tokio::time::timeout(Duration::from_secs(60), work).await.unwrap();
            server.await.unwrap();
        }
    }
}
