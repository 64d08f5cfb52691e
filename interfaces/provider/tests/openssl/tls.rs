//! TLS records as libssl passes them: GCM and CCM with the record's header as additional data and an explicit part of
//! the IV in the record; CBC with padding and MAC removed by the provider.

use crate::evp::{DECRYPT, ENCRYPT};
use crate::harness::{bytes, ours, subject, theirs};
use crate::libcrypto::*;
use crate::script::Call::*;
use crate::script::{Call, Outcome, Side, compare, key_and_iv, start_decrypting, start_encrypting};

const EXPLICIT: usize = 8;

/// The additional data of a record: sequence number and header, with the length `n`.
fn header(sequence: u64, n: usize) -> Call {
    let mut aad = sequence.to_be_bytes().to_vec();
    aad.extend([23, 3, 3, (n >> 8) as u8, n as u8]);
    Control(EVP_CTRL_AEAD_TLS1_AAD, 13, aad)
}

/// A record with `data` and space for the explicit IV and the tag, as a writer allocates it.
fn frame(data: &[u8], tag: usize) -> Vec<u8> {
    [&[0; EXPLICIT], data, &vec![0; tag]].concat()
}

fn gcm_setup(name: &str, way: i32) -> Vec<Call> {
    // The length -1 sets the whole IV. If only the fixed part is set, the rest is random.
    let fixed = Control(EVP_CTRL_AEAD_SET_IV_FIXED, -1, bytes(12, 2));
    vec![Init(way, Some(key_and_iv(name).0), None), fixed]
}

fn ccm_setup(name: &str, way: i32, tag: i32) -> Vec<Call> {
    vec![
        Init(way, None, None),
        IvLength(12),
        TagLength(tag),
        Control(EVP_CTRL_AEAD_SET_IV_FIXED, 4, bytes(4, 2)),
        Init(-1, Some(key_and_iv(name).0), None),
    ]
}

const SIZES: [usize; 17] = [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 100, 1000, 1024, 1369, 4096, 16383, 16384];

/// Writes consecutive records of all sizes, and reads them, intact and tampered with.
fn records_round_trip(name: &str, tag: usize, setup: &dyn Fn(i32) -> Vec<Call>) {
    let mut script = setup(ENCRYPT);
    let begin = script.len();
    for (i, n) in SIZES.into_iter().enumerate() {
        script.push(header(i as u64, n + EXPLICIT));
        script.push(Record(frame(&bytes(n, n as u64), tag), 0));
    }
    let written = compare(name, &script);
    assert!(written.iter().all(Outcome::ok), "{name}: {written:?}");

    let mut script = setup(DECRYPT);
    let records: Vec<&[u8]> = written[begin + 1..].iter().step_by(2).map(|outcome| &*outcome.out).collect();
    for (i, record) in records.iter().enumerate() {
        assert_eq!(record.len(), EXPLICIT + SIZES[i] + tag);
        script.extend([header(i as u64, record.len()), Record(record.to_vec(), EXPLICIT)]);
    }
    let read = compare(name, &script);
    for (i, outcome) in read[begin + 1..].iter().step_by(2).enumerate() {
        assert!(
            outcome.ok() && outcome.out == bytes(SIZES[i], SIZES[i] as u64),
            "{name}: record {i}: {outcome:?}"
        );
    }

    for (i, record) in records.iter().enumerate().step_by(3) {
        let mut wrong = vec![(header(i as u64 + 1, record.len()), record.to_vec())];
        for at in [0, EXPLICIT, record.len() - tag, record.len() - 1] {
            let mut tampered = record.to_vec();
            tampered[at] ^= 4;
            wrong.push((header(i as u64, record.len()), tampered));
        }
        for (header, record) in wrong {
            let mut script = setup(DECRYPT);
            script.extend([header, Record(record, EXPLICIT)]);
            assert!(!compare(name, &script).last().unwrap().ok(), "{name}: a tampered record was taken");
        }
    }
}

#[test]
fn gcm_records_of_many_sizes_and_tampered_ones() {
    for name in ["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"] {
        records_round_trip(name, 16, &|way| gcm_setup(name, way));
    }
}

#[test]
fn ccm_records_of_many_sizes_and_tampered_ones() {
    for name in ["AES-128-CCM", "AES-192-CCM", "AES-256-CCM"] {
        for tag in [8, 16] {
            records_round_trip(name, tag as usize, &|way| ccm_setup(name, way, tag));
        }
    }
}

/// libssl uses GCM in this way: it sets the fixed part, and the writer chooses the invocation part and sends it in the
/// record.
#[test]
fn gcm_records_with_a_fixed_iv_part_are_read_by_the_other_provider() {
    let name = "AES-128-GCM";
    let fixed = Control(EVP_CTRL_AEAD_SET_IV_FIXED, 4, bytes(4, 7));
    let init = |way| Init(way, Some(key_and_iv(name).0), None);
    for (writer, reader) in [(ours(name), theirs(name)), (theirs(name), ours(name))] {
        let (mut writer, mut reader) = (Side::new(writer), Side::new(reader));
        for (side, way) in [(&mut writer, ENCRYPT), (&mut reader, DECRYPT)] {
            assert!(side.run(&init(way)).ok() && side.run(&fixed).ok());
        }
        let mut before: Option<u64> = None;
        for i in 0..20 {
            let data = bytes(i as usize * 11, i);
            assert_eq!(writer.run(&header(i, data.len() + EXPLICIT)).returned, 16);
            let record = writer.run(&Record(frame(&data, 16), 0)).out;
            let explicit = u64::from_be_bytes(record[..8].try_into().unwrap());
            assert!(
                before.is_none_or(|before| explicit == before.wrapping_add(1)),
                "the explicit part counts"
            );
            before = Some(explicit);
            assert_eq!(reader.run(&header(i, record.len())).returned, 16);
            assert_eq!(reader.run(&Record(record, EXPLICIT)).out, data);
        }
    }
}

#[test]
fn gcm_gets_and_sets_invocation_ivs() {
    let name = "AES-256-GCM";
    for n in [0, 4, 8, 11, 12, 13, -1] {
        let generate = Control(EVP_CTRL_GCM_IV_GEN, n, vec![0; 16]);
        let mut script = gcm_setup(name, ENCRYPT);
        script.extend([generate.clone(), Update(bytes(50, 1)), Final, Tag(16)]);
        script.extend([generate.clone(), Aad(bytes(5, 1)), Update(bytes(50, 1)), Final, Tag(16)]);
        script.push(State);
        compare(name, &script);
        if (1..=12).contains(&n) {
            let invocation = Control(EVP_CTRL_GCM_SET_IV_INV, n, bytes(n as usize, 3));
            let mut script = gcm_setup(name, DECRYPT);
            script.extend([invocation, Update(bytes(50, 1)), State]);
            compare(name, &script);
        }
    }
    // The invocation part is refused before the fixed part or a key is set, and in the other direction.
    let invocation = Control(EVP_CTRL_GCM_SET_IV_INV, 8, bytes(8, 3));
    let generate = Control(EVP_CTRL_GCM_IV_GEN, 8, vec![0; 8]);
    compare(name, &[start_decrypting(name), invocation.clone()]);
    compare(name, &[start_encrypting(name), generate.clone()]);
    compare(name, &[gcm_setup(name, ENCRYPT), vec![invocation]].concat());
    for n in [0, 1, 3, 4, 5, 11, 12] {
        let fixed = Control(EVP_CTRL_AEAD_SET_IV_FIXED, n, bytes(12, 1));
        compare(name, &[Init(DECRYPT, Some(key_and_iv(name).0), None), fixed]);
    }
}

/// Each message gets an IV of its own. The default provider fails this test: it starts the second message with the IV of the first.
#[test]
fn a_generated_iv_is_not_that_of_an_earlier_message() {
    let name = "AES-128-GCM";
    let generate = Control(EVP_CTRL_GCM_IV_GEN, 12, vec![0; 12]);
    let mut side = Side::new(ours(name));
    assert!(gcm_setup(name, ENCRYPT).iter().all(|call| side.run(call).ok()));
    let first = side.run(&Update(vec![0; 50])).out;
    assert!(side.run(&Final).ok());
    let mut ivs = vec![bytes(12, 2)];
    for _ in 0..3 {
        let iv = side.run(&generate).out;
        assert!(iv.len() == 12 && !ivs.contains(&iv));
        ivs.push(iv);
        assert_ne!(side.run(&Update(vec![0; 50])).out, first);
        assert!(side.run(&Final).ok());
    }
}

/// A received IV may be that of an earlier message, so encryption with it is refused. The default provider encrypts.
#[test]
fn a_received_iv_is_not_used_for_encryption() {
    let name = "AES-128-GCM";
    let iv = bytes(12, 2);
    let received = [
        Control(EVP_CTRL_GCM_SET_IV_INV, 8, iv[4..].to_vec()),
        Control(EVP_CTRL_AEAD_SET_IV_FIXED, 4, iv[..4].to_vec()),
    ];
    for call in received {
        for next in [Control(EVP_CTRL_GCM_IV_GEN, 12, vec![0; 12]), Update(vec![0; 50])] {
            let mut side = Side::new(ours(name));
            assert!(gcm_setup(name, ENCRYPT).iter().all(|call| side.run(call).ok()));
            assert!(side.run(&Update(vec![0; 50])).ok() && side.run(&Final).ok());
            assert!(side.run(&Init(DECRYPT, None, None)).ok() && side.run(&call).ok());
            assert!(side.run(&Init(ENCRYPT, None, None)).ok());
            assert!(!side.run(&next).ok(), "{call:?}, {next:?}");
            // After a new IV is set, the context may be used again.
            assert!(side.run(&Init(ENCRYPT, None, Some(vec![9; 12]))).ok());
            assert!(side.run(&Update(vec![0; 50])).ok() && side.run(&Final).ok());
        }
    }
}

#[test]
fn an_impossible_header_is_refused() {
    let (gcm, ccm) = ("AES-128-GCM", "AES-128-CCM");
    for way in [ENCRYPT, DECRYPT] {
        for n in [0, 7, 8, 15, 16, 23, 24, 25] {
            compare(gcm, &[gcm_setup(gcm, way), vec![header(1, n)]].concat());
            compare(ccm, &[ccm_setup(ccm, way, 16), vec![header(1, n)]].concat());
        }
        for n in [0, 1, 12, 14] {
            let wrong = Control(EVP_CTRL_AEAD_TLS1_AAD, n, bytes(14, 1));
            compare(gcm, &[gcm_setup(gcm, way), vec![wrong.clone()]].concat());
            compare(ccm, &[ccm_setup(ccm, way, 16), vec![wrong]].concat());
        }
        // A record that is too short for its frame, or that is not processed in place, is refused.
        for n in [8, 16, 23] {
            compare(gcm, &[gcm_setup(gcm, way), vec![header(1, 40), Record(bytes(n, 1), 0)]].concat());
            compare(ccm, &[ccm_setup(ccm, way, 16), vec![header(1, 40), Record(bytes(n, 1), 0)]].concat());
        }
        compare(gcm, &[gcm_setup(gcm, way), vec![header(1, 40), Update(bytes(40, 1))]].concat());
        compare(ccm, &[ccm_setup(ccm, way, 16), vec![header(1, 40), Update(bytes(40, 1))]].concat());
    }
}

/// TLS 1.0, 1.1, 1.2; DTLS 1.0, 1.2.
const VERSIONS: [i32; 5] = [0x301, 0x302, 0x303, 0xfeff, 0xfefd];
const MACS: [usize; 4] = [0, 20, 32, 48];

/// Length of the explicit IV at the start of a CBC record.
fn explicit(version: i32) -> usize {
    if version == 0x301 { 0 } else { 16 }
}

fn cbc_setup(name: &str, way: i32, version: i32, mac: usize) -> Vec<Call> {
    let start = if way == ENCRYPT { start_encrypting(name) } else { start_decrypting(name) };
    vec![start, SetInt("tls-version", version), Set("tls-mac-size", mac)]
}

/// A CBC record: explicit IV, data, MAC and the given padding bytes, encrypted by the default provider.
fn cbc_record(name: &str, version: i32, data: &[u8], padding: &[u8]) -> Vec<u8> {
    let plain = [&bytes(explicit(version), 9), data, padding].concat();
    assert_eq!(plain.len() % 16, 0);
    let mut side = Side::new(theirs(name));
    assert!(side.run(&start_encrypting(name)).ok() && side.run(&Padding(false)).ok());
    side.run(&Update(plain)).out
}

#[test]
fn cbc_records_are_padded_as_the_version_requires() {
    for name in ["AES-128-CBC", "AES-256-CBC"] {
        for version in VERSIONS {
            let mut script = cbc_setup(name, ENCRYPT, version, 20);
            script.extend((0..=70).chain([16384 + 52]).map(|n| Record(bytes(n, n as u64), 0)));
            script.extend([TlsMac, State, Final]);
            compare(name, &script);
        }
    }
}

#[test]
fn cbc_records_with_every_length_of_padding() {
    for (name, version) in
        VERSIONS.into_iter().map(|version| ("AES-128-CBC", version)).chain([("AES-256-CBC", 0x303)])
    {
        for mac in MACS {
            for padding in 0..=255usize {
                // The lengths are such that data, MAC and padding together fill whole blocks. In some of the records there are no
                // data.
                let n = (16 - (padding + 1 + mac) % 16) % 16 + padding % 3 * 16;
                let data = bytes(n + mac, padding as u64);
                let record = cbc_record(name, version, &data, &vec![padding as u8; padding + 1]);
                let mut script = cbc_setup(name, DECRYPT, version, mac);
                script.extend([Record(record, explicit(version)), TlsMac]);
                let outcomes = compare(name, &script);
                assert!(outcomes[3].ok() && outcomes[3].out == data[..n], "{version:x} {mac} {padding}");
                assert!(outcomes[4].out == data[n..], "{version:x} {mac} {padding}: the mac");
            }
        }
    }
}

#[test]
fn a_cbc_context_reads_record_after_record() {
    for name in ["AES-128-CBC", "AES-256-CBC"] {
        let mut writer = Side::new(theirs(name));
        for call in cbc_setup(name, ENCRYPT, 0x302, 32) {
            assert!(writer.run(&call).ok());
        }
        let mut script = cbc_setup(name, DECRYPT, 0x302, 32);
        let mut copied = if subject() == "lockstep" { script.clone() } else { Vec::new() };
        for n in (0..50).chain([16384]) {
            let record = writer.run(&Record(bytes(n + 16 + 32, n as u64), 0)).out;
            script.extend([Record(record, 16), TlsMac]);
            // Only this provider runs the script with copies: a copy of the default provider's context frees the MAC twice.
            if subject() == "lockstep" {
                copied.extend_from_slice(&script[script.len() - 2..]);
                copied.push(Copy);
            }
        }
        let outcomes = compare(name, &script);
        assert!(outcomes.iter().all(Outcome::ok));
        let mut side = Side::new(ours(name));
        let copied: Vec<Outcome> = copied
            .iter()
            .map(|call| (call, side.run(call)))
            .filter(|(call, _)| **call != Copy)
            .map(|(_, o)| o)
            .collect();
        assert!(copied.is_empty() || copied == outcomes, "{name}: with copies between");
    }
}

/// Lucky 13: a record with wrong padding must be indistinguishable from a record with a wrong MAC. The record is
/// accepted, and its MAC is random.
#[test]
fn wrong_padding_gives_a_random_mac_and_no_error() {
    let name = "AES-128-CBC";
    for version in VERSIONS {
        for mac in [20, 32, 48] {
            // The last byte states more padding than there is, or one of the padding bytes differs.
            for (length, claim, wrong_at) in [
                (64, 255, None),
                (64, 7, Some(0)),
                (320, 255, Some(100)),
                (320, 15, Some(14)),
                (64, 63 - mac as u8 + 1, None),
            ] {
                let mut plain = bytes(length, 5);
                let padding = usize::from(claim) + 1;
                if padding <= length {
                    plain[length - padding..].fill(claim);
                }
                plain[length - 1] = claim;
                if let Some(at) = wrong_at {
                    plain[length - padding + at] ^= 1;
                }
                let record = cbc_record(name, version, &plain, &[]);
                let read = |cipher| {
                    let mut side = Side::new(cipher);
                    for call in cbc_setup(name, DECRYPT, version, mac) {
                        assert!(side.run(&call).ok());
                    }
                    let out = side.run(&Record(record.clone(), explicit(version)));
                    (out, side.run(&TlsMac).out)
                };
                let ((one, first), (two, second), (expected, _)) =
                    (read(ours(name)), read(ours(name)), read(theirs(name)));
                assert!(
                    expected.ok() && one == expected && two == expected,
                    "{version:x} {mac}: {one:?} {expected:?}"
                );
                assert_eq!((first.len(), second.len()), (mac, mac));
                assert_ne!(first, second, "{version:x} {mac}: the mac is not random");
                let real = &plain[length - mac..];
                assert_ne!(first, real, "{version:x} {mac}: the end of the record is returned");
            }
        }
        // Without a MAC in the record (encrypt-then-MAC), the MAC was checked before the padding, so wrong padding is an error.
        let record = cbc_record(name, version, &bytes(64, 5), &[]);
        let mut script = cbc_setup(name, DECRYPT, version, 0);
        script.push(Record(record, explicit(version)));
        assert!(!compare(name, &script)[3].ok());
    }
}

#[test]
fn cbc_records_of_publicly_impossible_lengths_are_refused() {
    let name = "AES-128-CBC";
    for version in VERSIONS {
        for mac in MACS {
            for n in 0..=100 {
                // Only this provider gets an empty record, because the default provider reads out of bounds if the version has an
                // explicit IV.
                if n == 0 && version != 0x301 && subject() == "lockstep" {
                    let mut side = Side::new(ours(name));
                    let setup = cbc_setup(name, DECRYPT, version, mac);
                    assert!(setup.iter().all(|call| side.run(call).ok()));
                    assert!(!side.run(&Record(vec![], 0)).ok());
                } else if n > 0 && (n % 16 != 0 || n < explicit(version) + mac + 1) {
                    let mut script = cbc_setup(name, DECRYPT, version, mac);
                    script.push(Record(bytes(n, 1), 0));
                    assert!(!compare(name, &script)[3].ok());
                }
            }
        }
        // Records are refused that are not processed in place, that are processed without padding, or whose version is unknown.
        for way in [ENCRYPT, DECRYPT] {
            let setup = cbc_setup(name, way, version, 20);
            compare(name, &[setup.clone(), vec![Update(bytes(64, 1))]].concat());
            compare(name, &[setup, vec![Padding(false), Record(bytes(64, 1), 0)]].concat());
        }
    }
    compare(name, &[cbc_setup(name, DECRYPT, 0x304, 20), vec![Record(bytes(64, 1), 0)]].concat());
}
