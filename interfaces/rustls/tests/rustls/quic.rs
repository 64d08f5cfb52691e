//! Tests of QUIC: the vectors of RFC 9001, appendix A, and packets that must equal those of ring.

use std::sync::Barrier;

use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::ring;
use rustls::quic::{Algorithm, DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, Version};
use rustls::{CipherSuite, Error, Side};

use crate::common::{bytes, ours, suite};

/// The connection id of RFC 9001, appendix A.
const ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

fn initial_keys(provider: &CryptoProvider, side: Side) -> Keys {
    let suite = suite(provider, CipherSuite::TLS13_AES_128_GCM_SHA256).tls13().unwrap();
    Keys::initial(Version::V1, suite, suite.quic.unwrap(), &ID, side)
}

/// The AES-256 algorithm, whose keys a test can make.
fn aes_256(provider: &CryptoProvider) -> &'static dyn Algorithm {
    suite(provider, CipherSuite::TLS13_AES_256_GCM_SHA384).tls13().unwrap().quic.unwrap()
}

fn packet_key(provider: &CryptoProvider) -> Box<dyn PacketKey> {
    let iv: [u8; 12] = bytes(12, 22).try_into().unwrap();
    aes_256(provider).packet_key(key(), Iv::from(iv))
}

fn header_key(provider: &CryptoProvider) -> Box<dyn HeaderProtectionKey> {
    aes_256(provider).header_protection_key(key())
}

fn key() -> AeadKey {
    let key: [u8; 32] = bytes(32, 21).try_into().unwrap();
    key.into()
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Protects a packet. The packet number must be at the end of the header.
fn protect(keys: &DirectionalKeys, number: u64, header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut packet = [header, payload].concat();
    let (head, body) = packet.split_at_mut(header.len());
    let tag = keys.packet.encrypt_in_place(number, head, body).unwrap();
    packet.extend_from_slice(tag.as_ref());
    let (head, body) = packet.split_at_mut(header.len());
    let number_len = usize::from(head[0] & 3) + 1;
    let (first, rest) = head.split_first_mut().unwrap();
    let start = rest.len() - number_len;
    // The sample starts 4 bytes after the start of the packet number.
    let sample = &body[4 - number_len..][..keys.header.sample_len()];
    keys.header.encrypt_in_place(sample, first, &mut rest[start..]).unwrap();
    packet
}

/// RFC 9001, appendix A.2.
#[test]
fn the_initial_packet_of_a_client_is_that_of_the_rfc() {
    let hello = from_hex(
        "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c
         00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006
         001d0017001800100007000504616c706e00050005010000000000330026002400 1d00209370b2c9caa47
         fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e0403050306
         030203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff070480
         00ffff0801100104800075300901100f088394c8f03e51570806048000ffff",
    );
    let mut payload = hello;
    payload.resize(1162, 0);
    let header = from_hex("c300000001088394c8f03e5157080000449e00000002");
    let packet = protect(&initial_keys(&ours(), Side::Client).local, 2, &header, &payload);
    assert_eq!(packet[..22], from_hex("c000000001088394c8f03e5157080000449e7b9aec34"));
    assert_eq!(packet[22..38], from_hex("d1b1c98dd7689fb8ec11d242b123dc9b"));
    assert_eq!(packet[packet.len() - 16..], from_hex("e221af44860018ab0856972e194cd934"));
    assert_eq!(packet.len(), 1200);
}

/// RFC 9001, appendix A.3.
#[test]
fn the_initial_packet_of_a_server_is_that_of_the_rfc() {
    let payload = from_hex(
        "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a
         045a1200130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bc
         f32bb9da1a002b00020304",
    );
    let header = from_hex("c1000000010008f067a5502a4262b50040750001");
    let wanted = from_hex(
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c697975
         54780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bde
         d74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc421584 07d
         d074ee",
    );
    let mut packet = protect(&initial_keys(&ours(), Side::Server).local, 1, &header, &payload);
    assert_eq!(packet, wanted);

    let keys = initial_keys(&ours(), Side::Client).remote;
    let (head, body) = packet.split_at_mut(header.len());
    let (first, rest) = head.split_first_mut().unwrap();
    let start = rest.len() - 2;
    // A receiver does not know the length of the packet number, so it passes 4 bytes. The last two of them belong to the
    // payload and must not be changed.
    let sample: Vec<u8> = body[2..18].to_vec();
    let mut number = [rest[start], rest[start + 1], body[0], body[1]];
    keys.header.decrypt_in_place(&sample, first, &mut number).unwrap();
    assert_eq!((*first, number), (header[0], [0, 1, body[0], body[1]]));
    rest[start..].copy_from_slice(&number[..2]);
    assert_eq!(keys.packet.decrypt_in_place(1, head, body).unwrap(), payload);
}

#[test]
fn packets_equal_those_of_ring() {
    let (ours, others) = (packet_key(&ours()), packet_key(&ring::default_provider()));
    for (i, len) in (0..100).chain([1199, 1200, 1452, 9000, 65_535]).enumerate() {
        let (data, header, number) = (bytes(len, i as u64), bytes(i % 40, 1), 1 << (i % 60));
        let seal = |key: &dyn PacketKey| {
            let mut packet = data.clone();
            let tag = key.encrypt_in_place(number, &header, &mut packet).unwrap();
            packet.extend_from_slice(tag.as_ref());
            packet
        };
        let (packet, mut other) = (seal(&*ours), seal(&*others));
        assert!(packet == other, "{len} bytes");
        assert!(ours.decrypt_in_place(number, &header, &mut other).unwrap() == data, "{len} bytes");

        let on_path = |key: &dyn PacketKey| {
            let mut packet = data.clone();
            let tag = key.encrypt_in_place_for_path(3, number, &header, &mut packet).unwrap();
            packet.extend_from_slice(tag.as_ref());
            packet
        };
        let (packet, mut other) = (on_path(&*ours), on_path(&*others));
        assert!(packet == other, "{len} bytes on another path");
        let plain = ours.decrypt_in_place_for_path(3, number, &header, &mut other).unwrap();
        assert!(plain == data, "{len} bytes on another path");
    }
}

#[test]
fn headers_equal_those_of_ring() {
    let (ours, others) = (header_key(&ours()), header_key(&ring::default_provider()));
    for first in 0..=255_u8 {
        let sample = bytes(16, first.into());
        for len in 1..=4 {
            type Call = fn(&dyn HeaderProtectionKey, &[u8], &mut u8, &mut [u8]) -> Result<(), Error>;
            let calls: [Call; 2] = [
                |key, sample, first, number| key.encrypt_in_place(sample, first, number),
                |key, sample, first, number| key.decrypt_in_place(sample, first, number),
            ];
            for call in calls {
                let [mut ours_now, mut others_now] = [(first, bytes(len, 9)), (first, bytes(len, 9))];
                call(&*ours, &sample, &mut ours_now.0, &mut ours_now.1).unwrap();
                call(&*others, &sample, &mut others_now.0, &mut others_now.1).unwrap();
                assert_eq!(ours_now, others_now);
            }
        }
    }
}

#[test]
fn wrong_arguments_change_nothing() {
    let header = header_key(&ours());
    for (sample, number) in [(15, 2), (17, 2), (0, 2), (16, 5)] {
        let (mut first, mut bytes_of_number) = (0xc1, bytes(number, 1));
        let outcome = header.encrypt_in_place(&bytes(sample, 1), &mut first, &mut bytes_of_number);
        assert!(
            matches!(outcome, Err(Error::General(_))),
            "sample of {sample} bytes, number of {number} bytes"
        );
        assert_eq!((first, bytes_of_number), (0xc1, bytes(number, 1)));
    }
}

#[test]
fn a_changed_packet_is_refused_and_zeroed() {
    let key = packet_key(&ours());
    let mut packet = bytes(50, 4);
    let tag = key.encrypt_in_place(9, b"header", &mut packet).unwrap();
    packet.extend_from_slice(tag.as_ref());
    for changed in 0..packet.len() {
        let mut wrong = packet.clone();
        wrong[changed] ^= 1;
        assert_eq!(key.decrypt_in_place(9, b"header", &mut wrong).unwrap_err(), Error::DecryptError);
        assert_eq!(wrong[..50], [0; 50]);
    }
    for len in 0..16 {
        let outcome = key.decrypt_in_place(9, b"header", &mut packet.clone()[..len]).map(<[u8]>::to_vec);
        assert_eq!(outcome, Err(Error::DecryptError), "{len} bytes");
    }
    let outcome = key.decrypt_in_place(9, b"Header", &mut packet.clone()).map(<[u8]>::to_vec);
    assert_eq!(outcome, Err(Error::DecryptError));
}

/// RFC 9001, section 6.6.
#[test]
fn keys_have_the_limits_of_the_rfc() {
    let keys = packet_key(&ours());
    assert_eq!((keys.confidentiality_limit(), keys.integrity_limit()), (1 << 23, 1 << 52));
    let initial = initial_keys(&ours(), Side::Client).local.packet;
    assert_eq!((initial.confidentiality_limit(), initial.integrity_limit()), (1 << 23, 1 << 52));
}

/// Several threads may use a key at the same time, also for the first packets of the key.
#[test]
fn threads_share_a_key() {
    const THREADS: usize = 4;
    let other = packet_key(&ours());
    let wanted: Vec<_> = (0..20).map(|number| sealed(&*other, number)).collect();
    for _ in 0..20 {
        let (key, start) = (packet_key(&ours()), Barrier::new(THREADS));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for (number, wanted) in wanted.iter().enumerate() {
                        assert!(sealed(&*key, number as u64) == *wanted);
                    }
                });
            }
        });
    }
}

fn sealed(key: &dyn PacketKey, number: u64) -> Vec<u8> {
    let mut packet = bytes(1200, number);
    let tag = key.encrypt_in_place(number, b"header", &mut packet).unwrap();
    packet.extend_from_slice(tag.as_ref());
    packet
}
