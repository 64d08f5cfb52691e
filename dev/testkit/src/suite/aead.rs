//! Checks GCM, CCM, GMAC and CMAC, for single messages and batches, and that forgeries are refused.

use std::sync::Arc;

use lockstep_reference as reference;

use super::{Subject, noise, test_key};
use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo};
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Status, Tag, Work};
use lockstep_modes::cmac::{CmacMessage, cmac};
use lockstep_modes::{Aead, Direction, gcm};
use lockstep_planner::{Planner, Selection};

const LENGTHS: [usize; 16] = [0, 1, 15, 16, 17, 31, 32, 33, 100, 255, 256, 511, 1024, 4095, 4096, 16384];

pub(super) fn gcm_sizes(subject: &Subject) -> Vec<KeySize> {
    let mut sizes = KeySize::ALL.to_vec();
    sizes.retain(|&size| {
        subject.does_all(&[Pass::Ctr32, Pass::Ghash], size)
            || subject.planner.supports(Operation::Fused(FusedAead::GcmSeal), size)
    });
    sizes
}

fn ccm_sizes(subject: &Subject) -> Vec<KeySize> {
    let mut sizes = KeySize::ALL.to_vec();
    sizes.retain(|&size| subject.does_all(&[Pass::Ctr, Pass::CbcMac], size));
    sizes
}

fn message<'d>(
    key: &'d Key,
    nonce: &'d [u8],
    aad: &'d [u8],
    data: &'d mut [u8],
    tag: Tag<'d>,
) -> AeadMessage<'d> {
    AeadMessage { key, nonce, aad, data: Data::in_place(data), tag, status: Status::Pending }
}

/// A batch of messages of all lengths is sealed, compared with the oracle, and opened.
pub fn gcm_agrees(subject: &Subject) {
    for size in gcm_sizes(subject) {
        let keys: Vec<_> = (0..LENGTHS.len()).map(|i| test_key(i as u64 % 5, size)).collect();
        let nonces: Vec<_> = (0..LENGTHS.len()).map(|i| noise(i as u64, 12)).collect();
        let aads: Vec<_> = (0..LENGTHS.len()).map(|i| noise(i as u64, (i * 9) % 70)).collect();
        let plain: Vec<_> = LENGTHS.iter().map(|&len| noise(len as u64, len)).collect();
        let mut data = plain.clone();
        let mut tags = vec![[0; 16]; LENGTHS.len()];
        let mut messages: Vec<_> = data
            .iter_mut()
            .zip(&mut tags)
            .enumerate()
            .map(|(i, (data, tag))| message(&keys[i], &nonces[i], &aads[i], data, Tag::Write(tag)))
            .collect();
        Aead::Gcm.run_messages(&*subject.planner, Direction::Encrypt, &mut messages).unwrap();
        assert!(messages.iter().all(|message| message.status == Status::Done));
        for (i, plain) in plain.iter().enumerate() {
            let aes = reference::Aes::new(keys[i].bytes());
            let (output, tag) = reference::gcm::seal(&aes, &nonces[i], &aads[i], plain);
            assert!(data[i] == output && tags[i] == tag, "sealing {} bytes", plain.len());
        }
        let mut messages: Vec<_> = data
            .iter_mut()
            .zip(&tags)
            .enumerate()
            .map(|(i, (data, tag))| message(&keys[i], &nonces[i], &aads[i], data, Tag::Expect(tag)))
            .collect();
        Aead::Gcm.run_messages(&*subject.planner, Direction::Decrypt, &mut messages).unwrap();
        assert!(data == plain);
    }
}

/// Messages with different key sizes in one batch: each result must be at the place of its message.
pub fn mixed_key_sizes(subject: &Subject) {
    for (mode, sizes) in [(Aead::Gcm, gcm_sizes(subject)), (Aead::Ccm, ccm_sizes(subject))] {
        if sizes.is_empty() {
            continue;
        }
        let keys: Vec<_> = (0..7).map(|i| test_key(i, sizes[i as usize * 2 % sizes.len()])).collect();
        let mut data: Vec<_> = (0..7).map(|i| noise(i, 30 * i as usize)).collect();
        let mut tags = [[0; 16]; 7];
        let mut messages: Vec<_> = (data.iter_mut().zip(&mut tags).zip(&keys))
            .map(|((data, tag), key)| message(key, &[9; 12], b"", data, Tag::Write(tag)))
            .collect();
        mode.run_messages(&*subject.planner, Direction::Encrypt, &mut messages).unwrap();
        tags[4][0] ^= 1;
        let mut messages: Vec<_> = (data.iter_mut().zip(&tags).zip(&keys))
            .map(|((data, tag), key)| message(key, &[9; 12], b"", data, Tag::Expect(tag)))
            .collect();
        assert_eq!(
            mode.run_messages(&*subject.planner, Direction::Decrypt, &mut messages),
            Err(Error::AuthenticationFailed)
        );
        for (i, message) in messages.iter().enumerate() {
            assert_eq!(message.status == Status::Done, i != 4, "message {i}");
        }
        for (i, data) in data.iter().enumerate() {
            let expected = if i == 4 { vec![0; 120] } else { noise(i as u64, 30 * i) };
            assert!(*data == expected, "message {i}");
        }
    }
}

/// The lengths of the parts of a message, in bytes.
struct Lengths {
    nonce: usize,
    tag: usize,
    aad: usize,
    data: usize,
}

/// Seals messages, compares the results with the oracle, and opens the results. Each call has one message, or on a
/// slow device all messages.
fn check_lengths(
    subject: &Subject,
    mode: Aead,
    key: &Key,
    messages: &[Lengths],
    oracle: impl Fn(&[u8], &[u8], &[u8], usize) -> (Vec<u8>, Vec<u8>),
) {
    let in_call = if subject.slow { messages.len() } else { 1 };
    for lengths in messages.chunks(in_call) {
        let nonces: Vec<_> =
            lengths.iter().map(|lengths| noise(lengths.nonce as u64, lengths.nonce)).collect();
        let aads: Vec<_> = lengths.iter().map(|lengths| noise(2, lengths.aad)).collect();
        let plain: Vec<_> = lengths.iter().map(|lengths| noise(3, lengths.data)).collect();
        let mut data = plain.clone();
        let mut tags: Vec<_> = lengths.iter().map(|lengths| vec![0; lengths.tag]).collect();
        let mut batch: Vec<_> = (data.iter_mut().zip(&mut tags).enumerate())
            .map(|(i, (data, tag))| message(key, &nonces[i], &aads[i], data, Tag::Write(tag)))
            .collect();
        mode.run_messages(&*subject.planner, Direction::Encrypt, &mut batch).unwrap();
        for (i, Lengths { nonce, tag, aad, data: len }) in lengths.iter().enumerate() {
            let expected = oracle(&nonces[i], &aads[i], &plain[i], *tag);
            let what = || format!("{mode:?}: nonce {nonce}, tag {tag}, AAD {aad}, {len} bytes");
            assert!((&data[i], &tags[i]) == (&expected.0, &expected.1), "{}", what());
        }
        let mut batch: Vec<_> = (data.iter_mut().zip(&tags).enumerate())
            .map(|(i, (data, tag))| message(key, &nonces[i], &aads[i], data, Tag::Expect(tag)))
            .collect();
        mode.run_messages(&*subject.planner, Direction::Decrypt, &mut batch).unwrap();
        assert!(data == plain, "{mode:?}: opened");
    }
}

/// GCM accepts tags of every allowed length, and nonces of other lengths than 96 bits.
pub fn gcm_nonces_of_any_length(subject: &Subject) {
    for size in gcm_sizes(subject) {
        if !subject.does_all(&[Pass::Ctr32, Pass::Ghash], size) {
            continue;
        }
        let key = test_key(3, size);
        let aes = reference::Aes::new(key.bytes());
        let messages: Vec<_> = [1, 7, 8, 11, 12, 13, 15, 16, 17, 32, 60, 128]
            .into_iter()
            .flat_map(|nonce| [4, 8, 12, 13, 14, 15, 16].map(|tag| Lengths { nonce, tag, aad: 3, data: 50 }))
            .collect();
        check_lengths(subject, Aead::Gcm, &key, &messages, |nonce, aad, plain, tag_len| {
            let (output, tag) = reference::gcm::seal(&aes, nonce, aad, plain);
            (output, tag[..tag_len].to_vec())
        });
        let mut tag = [0; 16];
        let refused = Aead::Gcm.run_messages(
            &*subject.planner,
            Direction::Encrypt,
            &mut [message(&key, &[], b"", &mut [], Tag::Write(&mut tag))],
        );
        assert!(matches!(refused, Err(Error::IvLength { mode: "GCM", got: 0, .. })));
        for wrong in [0, 1, 3, 5, 7, 9, 11, 17] {
            let mut tag = vec![0; wrong];
            let refused = Aead::Gcm.run_messages(
                &*subject.planner,
                Direction::Encrypt,
                &mut [message(&key, &[0; 12], b"", &mut [], Tag::Write(&mut tag))],
            );
            assert!(matches!(refused, Err(Error::TagLength { mode: "GCM", .. })), "{wrong}");
        }
    }
}

/// CCM with every length of nonce and tag, and with associated data around the lengths at which the encoding of the length changes.
pub fn ccm_agrees(subject: &Subject) {
    for size in ccm_sizes(subject) {
        let key = test_key(4, size);
        let aes = reference::Aes::new(key.bytes());
        let shapes = (7..=13)
            .flat_map(|nonce| [4, 6, 8, 10, 12, 14, 16].map(|tag| Lengths { nonce, tag, aad: 20, data: 61 }));
        // The encoding of a long AAD does not depend on the key size, so slow devices are tested with one size.
        let is_short = |aad: usize| aad <= 30 || !subject.slow || size == KeySize::Aes128 && aad == 0xff00;
        let aads = [0, 1, 13, 14, 15, 16, 30, 0xfeff, 0xff00, 0x1_0005].into_iter();
        let aads = aads.filter(|aad| is_short(*aad)).map(|aad| Lengths { nonce: 12, tag: 16, aad, data: 40 });
        let lengths = LENGTHS.map(|data| Lengths { nonce: 12, tag: 16, aad: 5, data });
        let messages: Vec<_> = shapes.chain(aads).chain(lengths).collect();
        check_lengths(subject, Aead::Ccm, &key, &messages, |nonce, aad, plain, tag_len| {
            reference::ccm::seal(&aes, nonce, aad, plain, tag_len)
        });
        for (nonce, tag) in [(6, 16), (14, 16), (12, 3), (12, 5), (12, 2), (12, 18)] {
            let (nonce, mut tag) = (vec![0; nonce], vec![0; tag]);
            let refused = Aead::Ccm.run_messages(
                &*subject.planner,
                Direction::Encrypt,
                &mut [message(&key, &nonce, b"", &mut [], Tag::Write(&mut tag))],
            );
            assert!(matches!(refused, Err(Error::IvLength { .. } | Error::TagLength { .. })));
        }
        // With a nonce of 13 bytes, the length is encoded in 16 bits, so these data are too long by one byte.
        let mut data = vec![0; 65536];
        let refused = Aead::Ccm.run_messages(
            &*subject.planner,
            Direction::Encrypt,
            &mut [message(&key, &[0; 13], b"", &mut data, Tag::Write(&mut [0; 16]))],
        );
        assert!(matches!(refused, Err(Error::TooLong { limit: 65535, .. })), "{refused:?}");
    }
}

/// One of two messages is forged: only this message is refused, and its output is zeroed.
pub fn forgeries_are_refused(subject: &Subject) {
    for (mode, sizes) in [(Aead::Gcm, gcm_sizes(subject)), (Aead::Ccm, ccm_sizes(subject))] {
        for size in sizes {
            let keys = [test_key(1, size), test_key(2, size)];
            for what in ["tag", "last byte of tag", "data", "aad", "nonce", "key"] {
                let plain = noise(1, 100);
                let (mut good, mut bad) = (plain.clone(), plain.clone());
                let (mut good_tag, mut bad_tag) = ([0; 16], [0; 16]);
                let nonces = [[1; 12], [2; 12]];
                let mut aad = *b"associated";
                mode.run_messages(
                    &*subject.planner,
                    Direction::Encrypt,
                    &mut [
                        message(&keys[0], &nonces[0], b"", &mut good, Tag::Write(&mut good_tag)),
                        message(&keys[1], &nonces[1], &aad, &mut bad, Tag::Write(&mut bad_tag)),
                    ],
                )
                .unwrap();
                let (mut nonce, mut key) = (nonces[1], &keys[1]);
                match what {
                    "tag" => bad_tag[0] ^= 1,
                    "last byte of tag" => bad_tag[15] ^= 0x80,
                    "data" => bad[99] ^= 1,
                    "aad" => aad[3] ^= 4,
                    "nonce" => nonce[0] ^= 1,
                    _ => key = &keys[0],
                }
                let mut messages = [
                    message(&keys[0], &nonces[0], b"", &mut good, Tag::Expect(&good_tag)),
                    message(key, &nonce, &aad, &mut bad, Tag::Expect(&bad_tag)),
                ];
                assert_eq!(
                    mode.run_messages(&*subject.planner, Direction::Decrypt, &mut messages),
                    Err(Error::AuthenticationFailed),
                    "{what}"
                );
                let statuses = messages.map(|message| message.status);
                assert_eq!(statuses, [Status::Done, Status::AuthenticationFailed]);
                assert_eq!(good, plain);
                assert_eq!(bad, vec![0; 100], "plaintext left over after a wrong {what}");
            }
        }
    }
}

/// Wraps a device, and hides its fused AEADs.
struct Unfused(Arc<dyn Device>);

impl Device for Unfused {
    fn id(&self) -> DeviceId {
        self.0.id()
    }
    fn description(&self) -> String {
        self.0.description()
    }
    fn kernels(&self) -> &[KernelInfo] {
        self.0.kernels()
    }
    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        match operation {
            Operation::Pass(_) => self.0.cost(kernel, operation, key),
            Operation::Fused(_) => None,
        }
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        self.0.submit(kernel, work)
    }
}

/// The AEAD composed of passes gives the same results as the fused AEAD. The planner selects the kernels of the device.
pub fn fused_agrees_with_composed(subject: &Subject) {
    let device = || Arc::clone(&subject.device);
    let selection = Selection { device: Some(subject.device.id().into()), kernel: None };
    let fused = Planner::new(vec![device()], &selection).unwrap();
    let composed = Planner::new(vec![Arc::new(Unfused(device()))], &selection).unwrap();
    for size in KeySize::ALL {
        if !fused.supports(Operation::Fused(FusedAead::GcmSeal), size) {
            continue;
        }
        let key = test_key(8, size);
        for len in LENGTHS {
            let (mut one, mut other) = (noise(len as u64, len), noise(len as u64, len));
            let (mut one_tag, mut other_tag) = ([0; 16], [0; 16]);
            let aad = noise(5, len % 40);
            let nonce = [7; 12];
            Aead::Gcm
                .run_messages(
                    &fused,
                    Direction::Encrypt,
                    &mut [message(&key, &nonce, &aad, &mut one, Tag::Write(&mut one_tag))],
                )
                .unwrap();
            Aead::Gcm
                .run_messages(
                    &composed,
                    Direction::Encrypt,
                    &mut [message(&key, &nonce, &aad, &mut other, Tag::Write(&mut other_tag))],
                )
                .unwrap();
            assert!(one == other && one_tag == other_tag, "{len} bytes");
            Aead::Gcm
                .run_messages(
                    &composed,
                    Direction::Decrypt,
                    &mut [message(&key, &nonce, &aad, &mut one, Tag::Expect(&one_tag))],
                )
                .unwrap();
            Aead::Gcm
                .run_messages(
                    &fused,
                    Direction::Decrypt,
                    &mut [message(&key, &nonce, &aad, &mut other, Tag::Expect(&one_tag))],
                )
                .unwrap();
            assert!(one == other && one == noise(len as u64, len));
        }
    }
}

/// Compares CMAC of every short length, in one batch, and GMAC with the oracle.
pub fn macs_agree(subject: &Subject) {
    for size in KeySize::ALL {
        if subject.does(Pass::CbcMac, size) {
            let keys: Vec<_> = (0..100).map(|i| test_key(i % 7, size)).collect();
            let data: Vec<_> = (0..100).map(|len| noise(len, len as usize)).collect();
            let mut macs: Vec<Block> = vec![[0; 16]; 100];
            let mut messages: Vec<_> = keys
                .iter()
                .zip(&data)
                .zip(&mut macs)
                .map(|((key, data), mac)| CmacMessage { key, data, mac })
                .collect();
            cmac(&*subject.planner, &mut messages).unwrap();
            for i in 0..100 {
                let aes = reference::Aes::new(keys[i].bytes());
                assert_eq!(macs[i], reference::cmac::cmac(&aes, &data[i]), "{i} bytes");
            }
        }
    }
    for size in gcm_sizes(subject) {
        let key = test_key(9, size);
        let aes = reference::Aes::new(key.bytes());
        for len in [0, 1, 16, 17, 300] {
            let data = noise(1, len);
            let mut tag = [0; 16];
            gcm::gmac(&*subject.planner, &key, &[3; 12], &data, &mut tag).unwrap();
            assert_eq!(tag, reference::gcm::gmac(&aes, &[3; 12], &data), "{len} bytes");
        }
    }
}
