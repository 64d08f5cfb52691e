//! Tests HTTP by hyper on loopback with each suite. Lockstep is the provider of the client, of the server, or of both.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use lockstep_rustls_peers::{SUITES, bytes, client_config, lockstep, server_config};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{CipherSuite, ClientConfig, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Answers a request with its body.
async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    Ok(Response::new(Full::new(request.into_body().collect().await?.to_bytes())))
}

async fn serve(listener: TcpListener, config: ServerConfig) -> Result<(), Failure> {
    let (socket, _) = listener.accept().await?;
    let stream = TlsAcceptor::from(Arc::new(config)).accept(socket).await?;
    hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service_fn(echo))
        .await?;
    Ok(())
}

/// Sends several bodies by one connection, and returns the suite.
async fn requests(address: std::net::SocketAddr, config: ClientConfig) -> Result<CipherSuite, Failure> {
    let socket = TcpStream::connect(address).await?;
    let stream = TlsConnector::from(Arc::new(config)).connect("localhost".try_into()?, socket).await?;
    let suite = stream.get_ref().1.negotiated_cipher_suite().ok_or("no suite")?.suite();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    for len in [0, 1, 1000, 16_384, 1 << 20] {
        let body = Bytes::from(bytes(len, len as u64));
        let request = Request::post("/").header("host", "localhost").body(Full::new(body.clone()))?;
        let answer = sender.send_request(request).await?.into_body().collect().await?.to_bytes();
        assert!(answer == body, "{suite:?}, {len} bytes");
    }
    drop(sender);
    connection.await??;
    Ok(suite)
}

#[tokio::test]
async fn bodies_arrive() {
    let sides: [[fn() -> CryptoProvider; 2]; 3] = [
        [lockstep, aws_lc_rs::default_provider],
        [aws_lc_rs::default_provider, lockstep],
        [lockstep, lockstep],
    ];
    for suite in SUITES {
        for [client, server] in sides {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server = tokio::spawn(serve(listener, server_config(server(), suite)));
            let requests = requests(address, client_config(client(), suite));
            let used = tokio::time::timeout(Duration::from_secs(60), requests).await.unwrap().unwrap();
            assert_eq!(used, suite);
            server.await.unwrap().unwrap();
        }
    }
}
