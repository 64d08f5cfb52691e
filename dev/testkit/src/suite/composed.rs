//! Checks the AEADs that the library composes of passes: GCM-SIV, OCB3, XAES-256-GCM, SIV and HCTR2. The results must equal those of the
//! oracles, and forgeries and wrong lengths must be refused.

use lockstep_reference as reference;

use super::{Subject, noise, test_key};
use lockstep_core::data::Data;
use lockstep_core::error::Error;
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{AeadMessage, Pass, Status, Tag};
use lockstep_modes::aead::Message;
use lockstep_modes::hctr2::{self, Hctr2Key};
use lockstep_modes::siv::MAX_STRINGS;
use lockstep_modes::{AeadKey, Direction};

/// The reference implementation of an AEAD. It takes key, nonce, associated data and plaintext, and returns
/// ciphertext and tag.
type Oracle = fn(&[u8], &[u8], &[u8], &[u8]) -> (Vec<u8>, Block);

/// An AEAD, the passes and key sizes that it needs, and its reference implementation.
struct Aead {
    name: &'static str,
    mode: lockstep_modes::Aead,
    nonce: usize,
    passes: &'static [Pass],
    /// True if the AEAD uses POLYVAL, whose keys always have 16 bytes.
    polyval: bool,
    sizes: &'static [KeySize],
    oracle: Oracle,
}

const AEADS: [Aead; 3] = [
    Aead {
        name: "GCM-SIV",
        mode: lockstep_modes::Aead::GcmSiv,
        nonce: 12,
        passes: &[Pass::EcbEncrypt, Pass::CtrLittle32],
        polyval: true,
        sizes: &KeySize::ALL,
        oracle: |key, nonce, aad, plain| {
            reference::gcm_siv::seal(key, nonce.try_into().expect("12 bytes"), aad, plain)
        },
    },
    Aead {
        name: "OCB3",
        mode: lockstep_modes::Aead::Ocb,
        nonce: 12,
        passes: &[Pass::EcbEncrypt, Pass::EcbDecrypt],
        polyval: false,
        sizes: &KeySize::ALL,
        oracle: |key, nonce, aad, plain| {
            let (output, tag) = reference::ocb::seal(&reference::Aes::new(key), nonce, aad, plain, 16);
            (output, tag.try_into().expect("16 bytes"))
        },
    },
    Aead {
        name: "XAES-256-GCM",
        mode: lockstep_modes::Aead::Xaes,
        nonce: 24,
        passes: &[Pass::EcbEncrypt, Pass::Ctr32, Pass::Ghash],
        polyval: false,
        sizes: &[KeySize::Aes256],
        oracle: |key, nonce, aad, plain| {
            let (key, nonce) = (key.try_into().expect("32 bytes"), nonce.try_into().expect("24 bytes"));
            reference::xaes::seal(key, nonce, aad, plain)
        },
    },
];

impl Aead {
    fn sizes(&self, subject: &Subject) -> impl Iterator<Item = KeySize> {
        let has_hash = !self.polyval || subject.does(Pass::Polyval, KeySize::Aes128);
        self.sizes.iter().copied().filter(move |&size| has_hash && subject.does_all(self.passes, size))
    }
}

/// Lengths near multiples of the block size, and one length that processors with wide vectors process in several steps.
fn lengths(subject: &Subject) -> Vec<usize> {
    let mut lengths =
        vec![0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 100, 255, 511, 512, 530, 1025, 1040, 4133];
    lengths.retain(|&len| !subject.slow || len <= 100);
    lengths
}

/// The inputs of a message, and the result that the oracle computes.
struct Case {
    key: Key,
    nonce: Vec<u8>,
    aad: Vec<u8>,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    tag: Block,
}

fn cases(aead: &Aead, subject: &Subject, size: KeySize) -> Vec<Case> {
    let lengths = lengths(subject);
    let cases = lengths.iter().enumerate().map(|(i, &len)| {
        let seed = i as u64;
        let key = test_key(seed % 5, size);
        let (nonce, aad, plain) = (noise(seed, aead.nonce), noise(seed, (i * 9) % 70), noise(seed, len));
        let (sealed, tag) = (aead.oracle)(key.bytes(), &nonce, &aad, &plain);
        Case { key, nonce, aad, plain, sealed, tag }
    });
    cases.collect()
}

fn message<'d>(case: &'d Case, data: Data<'d>, tag: Tag<'d>) -> AeadMessage<'d> {
    AeadMessage { key: &case.key, nonce: &case.nonce, aad: &case.aad, data, tag, status: Status::Pending }
}

/// Seals a batch of messages of all lengths in place, and opens it out of place.
pub fn composed_aeads_agree(subject: &Subject) {
    for aead in &AEADS {
        for size in aead.sizes(subject) {
            let cases = cases(aead, subject, size);
            let mut data: Vec<_> = cases.iter().map(|case| case.plain.clone()).collect();
            let mut tags = vec![[0; 16]; cases.len()];
            let mut messages: Vec<_> = (cases.iter().zip(&mut data).zip(&mut tags))
                .map(|((case, data), tag)| message(case, Data::in_place(data), Tag::Write(tag)))
                .collect();
            aead.mode.run_messages(&*subject.planner, Direction::Encrypt, &mut messages).unwrap();
            assert!(messages.iter().all(|message| message.status == Status::Done));
            for ((case, data), tag) in cases.iter().zip(&data).zip(&tags) {
                let len = case.plain.len();
                assert!(*data == case.sealed && *tag == case.tag, "{} of {len} bytes, {size:?}", aead.name);
            }
            let mut opened: Vec<_> = cases.iter().map(|case| vec![0xee; case.plain.len()]).collect();
            let mut messages: Vec<_> = (cases.iter().zip(&data).zip(&mut opened))
                .map(|((case, data), opened)| {
                    message(case, Data::copy(data, opened).unwrap(), Tag::Expect(&case.tag))
                })
                .collect();
            aead.mode.run_messages(&*subject.planner, Direction::Decrypt, &mut messages).unwrap();
            for (case, opened) in cases.iter().zip(&opened) {
                assert!(*opened == case.plain, "{}: opening {} bytes", aead.name, case.plain.len());
            }
        }
    }
}

/// Some messages of a batch have a change in their tag, ciphertext, nonce or associated data. These messages are refused, and their outputs
/// are zeroed. The other messages are opened.
pub fn composed_forgeries_are_refused(subject: &Subject) {
    for aead in &AEADS {
        for size in aead.sizes(subject) {
            let mut cases = cases(aead, subject, size);
            for (i, case) in cases.iter_mut().enumerate() {
                match i % 6 {
                    0 => case.tag[i % 16] ^= 1,
                    1 => case.nonce[0] ^= 1,
                    2 => case.aad.push(0),
                    3 if !case.sealed.is_empty() => *case.sealed.last_mut().unwrap() ^= 0x80,
                    _ => {}
                }
            }
            let mut data: Vec<_> = cases.iter().map(|case| case.sealed.clone()).collect();
            let mut messages: Vec<_> = (cases.iter().zip(&mut data))
                .map(|(case, data)| message(case, Data::in_place(data), Tag::Expect(&case.tag)))
                .collect();
            assert_eq!(
                aead.mode.run_messages(&*subject.planner, Direction::Decrypt, &mut messages),
                Err(Error::AuthenticationFailed)
            );
            let statuses: Vec<_> = messages.iter().map(|message| message.status).collect();
            for (i, ((case, data), status)) in cases.iter().zip(&data).zip(statuses).enumerate() {
                let (expected, output) = match i % 6 {
                    0..=3 => (Status::AuthenticationFailed, vec![0; data.len()]),
                    _ => (Status::Done, case.plain.clone()),
                };
                assert_eq!(status, expected, "{} message {i}", aead.name);
                assert!(*data == output, "{} message {i}", aead.name);
            }
        }
    }
}

/// An AEAD accepts nonces and tags of all lengths that it allows. Other lengths are refused before anything is written.
pub fn lengths_of_nonces_and_tags(subject: &Subject) {
    for aead in &AEADS {
        for size in aead.sizes(subject) {
            let key = test_key(1, size);
            let check = |nonce_len: usize, tag_len: usize| {
                let is_ocb = aead.name == "OCB3";
                let is_lawful = match is_ocb {
                    true => (1..=15).contains(&nonce_len) && (1..=16).contains(&tag_len),
                    false => nonce_len == aead.nonce && tag_len == 16,
                };
                let (nonce, mut tag) = (noise(7, nonce_len), vec![0; tag_len]);
                let mut data = vec![5; 40];
                let place = Data::in_place(&mut data);
                let (key, nonce, status) = (&key, &nonce[..], Status::Pending);
                let tag_place = Tag::Write(&mut tag);
                let mut messages =
                    [AeadMessage { key, nonce, aad: b"", data: place, tag: tag_place, status }];
                let outcome = aead.mode.run_messages(&*subject.planner, Direction::Encrypt, &mut messages);
                assert_eq!(outcome.is_ok(), is_lawful, "{}: {nonce_len}, {tag_len}", aead.name);
                if !is_lawful {
                    assert_eq!(data, [5; 40], "{} wrote before it refused", aead.name);
                } else if is_ocb {
                    let aes = reference::Aes::new(key.bytes());
                    let expected = reference::ocb::seal(&aes, nonce, b"", &[5; 40], tag_len);
                    assert!((data, tag) == expected, "OCB3: {nonce_len}, {tag_len}");
                }
            };
            (0..=25).for_each(|nonce_len| check(nonce_len, 16));
            (0..=17).for_each(|tag_len| check(aead.nonce, tag_len));
        }
    }
}

fn siv_sizes(subject: &Subject) -> impl Iterator<Item = KeySize> {
    KeySize::ALL.into_iter().filter(|&size| subject.does_all(&[Pass::Ctr, Pass::CbcMac], size))
}

const SIV: lockstep_modes::Aead = lockstep_modes::Aead::Siv;

fn siv_message<'d>(key: &'d AeadKey, aad: &'d [&'d [u8]], data: &'d mut [u8], tag: Tag<'d>) -> Message<'d> {
    Message { key, nonce: &[], aad, data: Data::in_place(data), tag, status: Status::Pending }
}

/// Seals and opens batches of SIV messages with any number of strings of associated data. Forgeries are refused.
pub fn siv_agrees(subject: &Subject) {
    for size in siv_sizes(subject) {
        let lengths = lengths(subject);
        let bytes: Vec<_> = (0..lengths.len() as u64).map(|i| noise(i, 2 * size.bytes())).collect();
        let keys: Vec<_> = bytes.iter().map(|bytes| AeadKey::new(SIV, bytes).unwrap()).collect();
        let strings: Vec<Vec<_>> = (0..lengths.len())
            .map(|i| (0..i % 5).map(|k| noise(k as u64, [0, 7, 16, 40][k])).collect())
            .collect();
        let aads: Vec<Vec<&[u8]>> =
            strings.iter().map(|strings| strings.iter().map(Vec::as_slice).collect()).collect();
        let plain: Vec<_> = lengths.iter().map(|&len| noise(len as u64, len)).collect();
        let (mut data, mut tags) = (plain.clone(), vec![[0; 16]; plain.len()]);
        let mut messages: Vec<_> = (data.iter_mut().zip(&mut tags).zip(keys.iter().zip(&aads)))
            .map(|((data, tag), (key, aad))| siv_message(key, aad, data, Tag::Write(tag)))
            .collect();
        SIV.seal(&*subject.planner, &mut messages).unwrap();
        for (i, plain) in plain.iter().enumerate() {
            let expected = reference::siv::seal(&bytes[i], &aads[i], plain);
            assert!((&data[i], tags[i]) == (&expected.0, expected.1), "{} bytes, {size:?}", plain.len());
        }
        tags[3][15] ^= 1;
        data[6][0] ^= 1;
        let mut messages: Vec<_> = (data.iter_mut().zip(&tags).zip(keys.iter().zip(&aads)))
            .map(|((data, tag), (key, aad))| siv_message(key, aad, data, Tag::Expect(tag)))
            .collect();
        assert_eq!(SIV.open(&*subject.planner, &mut messages), Err(Error::AuthenticationFailed));
        for (i, message) in messages.iter().enumerate() {
            assert_eq!(message.status == Status::Done, i != 3 && i != 6, "message {i}");
        }
        for (i, (data, plain)) in data.iter().zip(&plain).enumerate() {
            let expected = if i == 3 || i == 6 { vec![0; plain.len()] } else { plain.clone() };
            assert!(*data == expected, "message {i}");
        }
        let too_many = vec![&b""[..]; MAX_STRINGS + 1];
        let mut tag = [0; 16];
        let mut messages = [siv_message(&keys[0], &too_many, &mut [], Tag::Write(&mut tag))];
        assert!(matches!(SIV.seal(&*subject.planner, &mut messages), Err(Error::TooLong { .. })));
    }
    assert!(matches!(AeadKey::new(SIV, &[1; 16]), Err(Error::ModeKey { .. })));
}

/// HCTR2 encrypts and decrypts with tweaks of any length, in place and out of place.
pub fn hctr2_agrees(subject: &Subject) {
    for size in KeySize::ALL {
        let passes = [Pass::EcbEncrypt, Pass::EcbDecrypt];
        if !subject.does_all(&passes, size) || !subject.does(Pass::Polyval, KeySize::Aes128) {
            continue;
        }
        let aes = reference::Aes::new(test_key(4, size).bytes());
        let key = Hctr2Key::new(&*subject.planner, test_key(4, size)).unwrap();
        for (i, len) in lengths(subject).into_iter().enumerate() {
            let (tweak, mut data) = (noise(3, i * 5), noise(len as u64, len));
            let plain = data.clone();
            let run =
                |direction, data: Data<'_>| hctr2::run(&*subject.planner, direction, &key, &tweak, data);
            if len < 16 {
                let refused = run(Direction::Encrypt, Data::in_place(&mut data));
                assert!(matches!(refused, Err(Error::DataLength { .. })), "{len} bytes");
                assert_eq!(data, plain);
                continue;
            }
            run(Direction::Encrypt, Data::in_place(&mut data)).unwrap();
            assert!(data == reference::hctr2::encrypt(&aes, &tweak, &plain), "{len} bytes, {size:?}");
            let mut opened = vec![0xee; len];
            run(Direction::Decrypt, Data::copy(&data, &mut opened).unwrap()).unwrap();
            assert!(opened == plain, "decrypting {len} bytes, {size:?}");
        }
    }
}
