use super::*;

const RANDOM: [u8; MAX_MAC] = [0xAA; MAX_MAC];

fn records(version: u32, mac_size: usize) -> Records {
    let mut records = Records::default();
    (records.version, records.mac_size) = (version, mac_size);
    records
}

/// An IV (if the version has one), data, MAC, padding of `count` bytes and the length byte.
fn record(version: u32, data: usize, mac_size: usize, count: u8) -> Vec<u8> {
    let iv = if version == TLS_1_0 || version == SSL_3_0 { 0 } else { 16 };
    let mut bytes = vec![0x11; iv];
    bytes.extend((0..data).map(|i| i as u8));
    bytes.extend((0..mac_size).map(|i| 0x80 | i as u8));
    bytes.extend(vec![count; usize::from(count) + 1]);
    bytes
}

#[test]
fn valid_records_return_data_and_mac() {
    for version in [TLS_1_0, TLS_1_1, TLS_1_2, DTLS_1_0, DTLS_1_2, DTLS_0_9] {
        for mac_size in [1, 16, 20, 32, 48, 64] {
            for data in [0, 1, 15, 100, 1000] {
                for count in 0..=255 {
                    let mut records = records(version, mac_size);
                    let bytes = record(version, data, mac_size, count);
                    assert_eq!(records.open_with(&bytes, &RANDOM), Ok(data));
                    let mac: Vec<u8> = (0..mac_size).map(|i| 0x80 | i as u8).collect();
                    assert_eq!(records.mac(), mac, "data {data}, padding {count}");
                }
            }
        }
    }
}

#[test]
fn wrong_padding_gives_a_random_mac_and_no_error() {
    for count in [1u8, 2, 15, 100, 255] {
        for wrong in 0..=usize::from(count) {
            let mut bytes = record(TLS_1_2, 300, 20, count);
            let at = bytes.len() - 1 - wrong;
            bytes[at] ^= 0x40;
            let mut records = records(TLS_1_2, 20);
            let len = records.open_with(&bytes, &RANDOM).unwrap();
            // A change of the length byte itself could make another padding valid by chance. With these values it
            // does not.
            assert_eq!(len, bytes.len() - 16 - 20, "the length without any padding");
            assert_eq!(records.mac(), &RANDOM[..20]);
        }
    }
    // The padding would overlap the MAC.
    let mut records = records(TLS_1_2, 20);
    let bytes = vec![40; 16 + 48];
    assert_eq!(records.open_with(&bytes, &RANDOM), Ok(48 - 20));
    assert_eq!(records.mac(), &RANDOM[..20]);
}

#[test]
fn random_macs_differ() {
    let mut bytes = record(TLS_1_2, 30, 32, 5);
    *bytes.last_mut().unwrap() = 200;
    let macs: Vec<Vec<u8>> = (0..2)
        .map(|_| {
            let mut records = records(TLS_1_2, 32);
            records.open(&bytes).unwrap();
            records.mac().to_vec()
        })
        .collect();
    assert_ne!(macs[0], macs[1]);
}

#[test]
fn impossible_lengths_are_refused() {
    for (version, len) in [(TLS_1_2, 0), (TLS_1_2, 15), (TLS_1_2, 16 + 20), (TLS_1_0, 20), (TLS_1_0, 0)] {
        assert_eq!(records(version, 20).open_with(&vec![0; len], &RANDOM), Err(Reason::TlsRecord));
    }
    assert_eq!(records(0x0304, 20).open_with(&[0; 64], &RANDOM), Err(Reason::TlsRecord));
    assert_eq!(records(TLS_1_2, 65).open(&[0; 160]), Err(Reason::TlsRecord));
    assert_eq!(records(TLS_1_2, usize::MAX).open(&[0; 160]), Err(Reason::TlsRecord));
}

#[test]
fn without_a_mac_wrong_padding_is_an_error() {
    let mut records = records(TLS_1_2, 0);
    let mut bytes = record(TLS_1_2, 100, 0, 7);
    assert_eq!(records.open_with(&bytes, &RANDOM), Ok(100));
    *bytes.last_mut().unwrap() = 8;
    assert_eq!(records.open_with(&bytes, &RANDOM), Err(Reason::TlsRecord));
}

#[test]
fn ssl_3_checks_only_the_padding_length() {
    let mut records = records(SSL_3_0, 20);
    let mut bytes = record(SSL_3_0, 37, 20, 6);
    let end = bytes.len() - 1;
    bytes[end - 6..end].fill(0x99);
    assert_eq!(records.open_with(&bytes, &RANDOM), Ok(37));
    bytes[end] = 16;
    records.open_with(&bytes, &RANDOM).unwrap();
    assert_eq!(records.mac(), &RANDOM[..20]);
}

#[test]
fn padding_depends_on_the_version() {
    let mut record = [0xFF; 16];
    pad(TLS_1_2, &mut record, 10);
    assert_eq!(record[10..], [5; 6]);
    pad(SSL_3_0, &mut record, 10);
    assert_eq!(record[10..], [0, 0, 0, 0, 0, 5]);
}
