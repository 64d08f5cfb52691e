//! What is measured.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use lockstep_rustls_peers::{bytes, client_config, connected, server_config};
use rustls::crypto::CryptoProvider;
use rustls::quic::{Keys, Version};
use rustls::{CipherSuite, ClientConfig, ConnectionCommon, ServerConfig, Side, SideData};

use crate::timed;

/// One kind of work, which each contender does once in a round. The work consists of several operations, and the result is the time of one
/// of them.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Writes this number of bytes and encrypts them into records.
    Send(CipherSuite, usize),
    /// Decrypts and reads the records of a write of this number of bytes.
    Receive(CipherSuite, usize),
    /// A handshake, with the work of both sides. True if the handshake resumes an earlier connection.
    Handshake(CipherSuite, bool),
    /// A packet of QUIC of this size, with its header protection. True for encryption, false for decryption.
    Packet(bool, usize),
}

/// A function that does the work by one provider, and returns the time that the work took.
type Contender = Box<dyn FnMut() -> Duration>;

const SUITES: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
];

/// The kinds of work that are measured. Each is a row of the table.
pub(crate) fn all() -> Vec<Work> {
    let of_suite = |suite| {
        let sizes = [100, 1024, 16 << 10];
        let bulk =
            sizes.into_iter().flat_map(move |size| [Work::Send(suite, size), Work::Receive(suite, size)]);
        bulk.chain([Work::Handshake(suite, false), Work::Handshake(suite, true)])
    };
    let packets =
        [100, 1200].into_iter().flat_map(|size| [Work::Packet(true, size), Work::Packet(false, size)]);
    SUITES.into_iter().flat_map(of_suite).chain(packets).collect()
}

fn name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS 1.3, AES-128",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS 1.3, AES-256",
        _ => "TLS 1.2, AES-128",
    }
}

impl Work {
    pub(crate) fn name(self) -> String {
        match self {
            Work::Send(suite, size) => format!("{}, send {size} B", name(suite)),
            Work::Receive(suite, size) => format!("{}, receive {size} B", name(suite)),
            Work::Handshake(suite, false) => format!("{}, handshake", name(suite)),
            Work::Handshake(suite, true) => format!("{}, resumed handshake", name(suite)),
            Work::Packet(true, size) => format!("QUIC, encrypt a packet of {size} B"),
            Work::Packet(false, size) => format!("QUIC, decrypt a packet of {size} B"),
        }
    }

    /// The contender that does this work by a provider. `None` if the provider cannot do the work.
    pub(crate) fn contender(self, provider: CryptoProvider) -> Option<Contender> {
        match self {
            Work::Send(suite, size) => Some(transfer(provider, suite, size, true)),
            Work::Receive(suite, size) => Some(transfer(provider, suite, size, false)),
            Work::Handshake(suite, resumes) => Some(handshake(provider, suite, resumes)),
            Work::Packet(encrypts, size) => packet(&provider, encrypts, size),
        }
    }
}

fn transfer(provider: CryptoProvider, suite: CipherSuite, size: usize, sends: bool) -> Contender {
    // All operations of a measurement together take some milliseconds. They run in batches of 64 KiB, which stay in the second-level cache.
    let batch = (64 << 10) / size.max(1024);
    let (mut client, mut server) =
        connected(client_config(provider.clone(), suite), server_config(provider, suite));
    client.set_buffer_limit(None);
    let data = bytes(size, 1);
    let (mut wire, mut plain) = (Vec::new(), vec![0; 16 << 10]);
    Box::new(move || {
        let mut time = Duration::ZERO;
        let batches = 10;
        for _ in 0..batches {
            wire.clear();
            let sending = timed(|| send(&mut client, &data, batch, &mut wire));
            let receiving = timed(|| receive(&mut server, &wire, &mut plain));
            time += if sends { sending } else { receiving };
        }
        time / (batches * batch as u32)
    })
}

fn send<S: SideData>(connection: &mut ConnectionCommon<S>, data: &[u8], times: usize, wire: &mut Vec<u8>) {
    for _ in 0..times {
        connection.writer().write_all(data).unwrap();
        while connection.wants_write() {
            connection.write_tls(wire).unwrap();
        }
    }
}

fn receive<S: SideData>(connection: &mut ConnectionCommon<S>, mut wire: &[u8], plain: &mut [u8]) {
    while !wire.is_empty() {
        connection.read_tls(&mut wire).unwrap();
        let mut rest = connection.process_new_packets().unwrap().plaintext_bytes_to_read();
        while rest > 0 {
            rest -= connection.reader().read(plain).unwrap();
        }
    }
}

fn handshake(provider: CryptoProvider, suite: CipherSuite, resumes: bool) -> Contender {
    let mut client = client_config(provider.clone(), suite);
    if !resumes {
        client.resumption = rustls::client::Resumption::disabled();
    }
    let (client, server) = (Arc::new(client), Arc::new(server_config(provider, suite)));
    let one = |client: &Arc<ClientConfig>, server: &Arc<ServerConfig>| {
        connected((**client).clone(), (**server).clone())
    };
    if resumes {
        // The first handshake is followed by data, because in TLS 1.3 the tickets for resumption arrive after the handshake.
        let (mut client, mut server) = one(&client, &server);
        let (mut wire, mut plain) = (Vec::new(), [0; 100]);
        send(&mut server, b"hello", 1, &mut wire);
        receive(&mut client, &wire, &mut plain);
    }
    Box::new(move || {
        let count = 10;
        let work = || (0..count).for_each(|_| drop(one(&client, &server)));
        timed(work) / count
    })
}

fn packet(provider: &CryptoProvider, encrypts: bool, size: usize) -> Option<Contender> {
    let name = CipherSuite::TLS13_AES_128_GCM_SHA256;
    let suite = provider.cipher_suites.iter().find(|suite| suite.suite() == name).unwrap().tls13().unwrap();
    let quic = suite.quic?;
    let keys = |side| Keys::initial(Version::V1, suite, quic, b"an id", side);
    let (sender, receiver) = (keys(Side::Client).local, keys(Side::Server).remote);
    let (header, payload) = (bytes(20, 2), bytes(size, 3));
    let mut number = 0;
    Some(Box::new(move || {
        let count: u32 = 1000;
        let mut time = Duration::ZERO;
        // Several packets are measured at once, so that the measured time is much longer than reading the clock takes.
        for _ in 0..count / 20 {
            let mut packets: Vec<_> =
                (0..20).map(|_| (header.clone(), [&payload[..], &[0; 16]].concat())).collect();
            let sending = timed(|| {
                for (i, (header, packet)) in packets.iter_mut().enumerate() {
                    let (body, tag) = packet.split_at_mut(size);
                    tag.copy_from_slice(
                        sender.packet.encrypt_in_place(number + i as u64, header, body).unwrap().as_ref(),
                    );
                    let (first, rest) = header.split_first_mut().unwrap();
                    sender.header.encrypt_in_place(&packet[2..18], first, &mut rest[17..]).unwrap();
                }
            });
            let receiving = timed(|| {
                for (i, (header, packet)) in packets.iter_mut().enumerate() {
                    let (first, rest) = header.split_first_mut().unwrap();
                    receiver.header.decrypt_in_place(&packet[2..18], first, &mut rest[17..]).unwrap();
                    receiver.packet.decrypt_in_place(number + i as u64, header, packet).unwrap();
                }
            });
            number += 20;
            time += if encrypts { sending } else { receiving };
        }
        time / count
    }))
}
