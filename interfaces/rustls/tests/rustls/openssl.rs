//! Tests of connections to the programs of OpenSSL.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustls::{CipherSuite, ClientConnection, ServerConnection, StreamOwned};

use crate::common::{CA, SUITES, bytes, client_config, identity, ours, server_config};

/// The options of `openssl` that select a suite and its version.
fn options(name: CipherSuite) -> [&'static str; 3] {
    match name {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => ["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
        CipherSuite::TLS13_AES_256_GCM_SHA384 => ["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"],
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => {
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"]
        }
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => {
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"]
        }
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => {
            ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"]
        }
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => {
            ["-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"]
        }
        other => panic!("{other:?}"),
    }
}

/// A program that is ended at the end of the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn openssl(folder: &Path, name: CipherSuite, arguments: &[&str]) -> Program {
    let mut command = Command::new("openssl");
    // The configuration of the machine is not used, because it could load a provider.
    command.env("OPENSSL_CONF", "/dev/null").current_dir(folder).args(arguments).args(options(name));
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    Program(command.spawn().expect("the program openssl is needed: install OpenSSL"))
}

/// Connects to `openssl s_server`, which answers each line with the same line in reverse.
#[test]
fn a_client_talks_to_s_server() {
    for name in SUITES {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.pem"), identity(name)).unwrap();
        let arguments =
            ["s_server", "-accept", "127.0.0.1:0", "-rev", "-cert", "server.pem", "-key", "server.pem"];
        let mut server = openssl(folder.path(), name, &arguments);
        let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
        let accept = lines.find_map(|line| line.unwrap().strip_prefix("ACCEPT ").map(str::to_owned));
        let socket = TcpStream::connect(accept.expect("the address of the server")).unwrap();
        let client =
            ClientConnection::new(client_config(ours(), name).into(), "localhost".try_into().unwrap());
        let mut stream = BufReader::new(StreamOwned::new(client.unwrap(), socket));
        for len in [1, 100, 5000, 16_000] {
            let line: String = bytes(len, 31).iter().map(|byte| char::from(b'a' + byte % 26)).collect();
            stream.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_line(&mut answer).unwrap();
            assert!(answer.trim_end().chars().rev().eq(line.chars()), "{name:?}, {len} bytes");
        }
    }
}

/// `openssl s_client` sends half a megabyte to a server, and receives it again.
#[test]
fn s_client_talks_to_a_server() {
    for name in SUITES {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), CA).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let data = bytes(500_000, 32);
        let expected = data.clone();
        let config = Arc::new(server_config(ours(), name));
        let server = std::thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), socket);
            let mut received = vec![0; expected.len()];
            stream.read_exact(&mut received).unwrap();
            assert!(received == expected);
            stream.write_all(&received).unwrap();
            stream.conn.send_close_notify();
            stream.flush().unwrap();
        });
        let arguments = [
            "s_client",
            "-connect",
            &address,
            "-quiet",
            "-verify_return_error",
            "-CAfile",
            "ca.pem",
            "-nocommands",
        ];
        let mut client = openssl(folder.path(), name, &arguments);
        let mut input = client.0.stdin.take().unwrap();
        let (mut output, sent) = (client.0.stdout.take().unwrap(), data.clone());
        // The input stays open until the answer has arrived, because s_client closes the connection at the end of its input.
        let writer = std::thread::spawn(move || {
            input.write_all(&sent).unwrap();
            input
        });
        let mut answer = vec![0; data.len()];
        output.read_exact(&mut answer).unwrap();
        assert!(answer == data, "{name:?}");
        drop(writer.join().unwrap());
        server.join().unwrap();
    }
}
