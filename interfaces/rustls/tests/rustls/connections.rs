//! Tests of connections in memory between Lockstep and ring.

use std::io::{IoSlice, Read, Write};

use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, Error};

use crate::common::{
    Pair, SUITES, bytes, client_config, deliver, ours, receive, records, send, server_config,
};

/// Returns three connections for each suite: Lockstep is the client, the server, or both.
fn pairs() -> impl Iterator<Item = (CipherSuite, Pair)> {
    let sides: [[fn() -> CryptoProvider; 2]; 3] =
        [[ours, ring::default_provider], [ring::default_provider, ours], [ours, ours]];
    SUITES.into_iter().flat_map(move |suite| {
        sides.map(|[client, server]| {
            (suite, Pair::new(client_config(client(), suite), server_config(server(), suite)))
        })
    })
}

#[test]
fn data_of_any_length_arrive_in_both_directions() {
    for (suite, mut pair) in pairs() {
        let negotiated = pair.client.negotiated_cipher_suite().expect("the handshake has ended");
        assert_eq!(negotiated.suite(), suite);
        for len in [1, 15, 16, 17, 255, 1000, 16_383, 16_384, 16_385, 100_000] {
            let data = bytes(len, len as u64);
            let Pair { client, server } = &mut pair;
            assert!(send(client, server, &data) == data, "{suite:?}, {len} bytes to the server");
            assert!(send(server, client, &data) == data, "{suite:?}, {len} bytes to the client");
        }
    }
}

#[test]
fn slices_of_a_vectored_write_become_one_record() {
    for (suite, mut pair) in pairs() {
        let data = bytes(3000, 1);
        let slices = [&data[..1], &[], &data[1..1234], &data[1234..]].map(IoSlice::new);
        assert_eq!(pair.client.writer().write_vectored(&slices).unwrap(), data.len());
        let wire = records(&mut pair.client);
        let len = usize::from(u16::from_be_bytes([wire[3], wire[4]]));
        assert_eq!(wire.len(), 5 + len, "{suite:?}: one record");
        assert!(receive(&mut pair.server, &wire).unwrap() == data, "{suite:?}");
    }
}

#[test]
fn keys_can_change_during_a_connection() {
    for (suite, mut pair) in
        pairs().filter(|(_, pair)| pair.client.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3))
    {
        let data = bytes(20_000, 2);
        for _ in 0..3 {
            pair.client.refresh_traffic_keys().unwrap();
            let Pair { client, server } = &mut pair;
            assert!(send(client, server, &data) == data, "{suite:?}");
            assert!(send(server, client, &data) == data, "{suite:?}");
        }
    }
}

#[test]
fn a_changed_record_ends_the_connection_without_plaintext() {
    for (suite, mut pair) in pairs() {
        pair.client.writer().write_all(&bytes(100, 3)).unwrap();
        let mut wire = records(&mut pair.client);
        // Changes a byte of the content. The header does not change.
        wire[40] ^= 1;
        assert_eq!(receive(&mut pair.server, &wire), Err(Error::DecryptError), "{suite:?}");
        let mut plain = Vec::new();
        let _ = pair.server.reader().read_to_end(&mut plain);
        assert!(plain.is_empty(), "{suite:?}");
        let told = deliver(&mut pair.server, &mut pair.client);
        let alert = Error::AlertReceived(rustls::AlertDescription::BadRecordMac);
        assert_eq!(told, Err(alert), "{suite:?}");
    }
}

#[test]
fn sessions_resume() {
    for name in SUITES {
        let (client, server) = (client_config(ours(), name), server_config(ours(), name));
        let (client, server) = (std::sync::Arc::new(client), std::sync::Arc::new(server));
        let kinds = [(); 2].map(|()| {
            let mut pair = Pair::new((*client).clone(), (*server).clone());
            // The tickets of TLS 1.3 arrive with data.
            let Pair { client, server } = &mut pair;
            assert_eq!(send(server, client, b"hello"), b"hello");
            pair.client.handshake_kind()
        });
        use rustls::HandshakeKind::{Full, Resumed};
        assert_eq!(kinds, [Some(Full), Some(Resumed)], "{name:?}");
    }
}
