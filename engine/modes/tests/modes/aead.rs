//! The authenticated modes through the type `AeadKey`: the key selects the mode, and each message gets a status.

use std::collections::BTreeSet;
use std::sync::Mutex;

use lockstep_core::backend::{DeviceId, DeviceMemory};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag};
use lockstep_core::{Block, Error, KeySize, Result};
use lockstep_modes::aead::{Aead, AeadKey, Message};
use lockstep_modes::{Direction, Executor};
use lockstep_planner::{Planner, Selection};
use lockstep_reference::Aes;
use lockstep_testkit::mock::MockCpu;

fn planner() -> Planner {
    Planner::new(vec![std::sync::Arc::new(MockCpu::default())], &Selection::default()).unwrap()
}

/// The ciphertext and the tag that the oracle computes.
fn expected(mode: Aead, key: &[u8], nonce: &[u8], aad: &[u8], plaintext: &[u8]) -> (Vec<u8>, Block) {
    let of_vector = |(text, tag): (Vec<u8>, Vec<u8>)| (text, tag.try_into().unwrap());
    match mode {
        Aead::Gcm => lockstep_reference::gcm::seal(&Aes::new(key), nonce, aad, plaintext),
        Aead::GcmSiv => lockstep_reference::gcm_siv::seal(key, nonce.try_into().unwrap(), aad, plaintext),
        Aead::Ocb => of_vector(lockstep_reference::ocb::seal(&Aes::new(key), nonce, aad, plaintext, 16)),
        Aead::Siv => lockstep_reference::siv::seal(key, &[aad, nonce], plaintext),
        Aead::Ccm => of_vector(lockstep_reference::ccm::seal(&Aes::new(key), nonce, aad, plaintext, 16)),
        Aead::Eax => of_vector(lockstep_reference::eax::seal(&Aes::new(key), nonce, aad, plaintext, 16)),
        Aead::Xaes => {
            lockstep_reference::xaes::seal(key.try_into().unwrap(), nonce.try_into().unwrap(), aad, plaintext)
        }
    }
}

fn message<'d>(key: &'d AeadKey, nonce: &'d [u8], data: &'d mut [u8], tag: Tag<'d>) -> Message<'d> {
    Message { key, nonce, aad: &[b"header"], data: Data::in_place(data), tag, status: Status::Pending }
}

#[test]
fn each_mode_has_its_row_and_one_layout() {
    for mode in Aead::ALL {
        // The rows of the table must have the order of the enumeration.
        let (name, variant) = (mode.name().replace('-', ""), format!("{mode:?}"));
        assert!(name.to_lowercase().starts_with(&variant.to_lowercase()), "{variant} has the row of {name}");
        assert_eq!(mode.to_string(), mode.name());
        // Only SIV has two AES keys (RFC 5297, section 2.2).
        let key = AeadKey::new(mode, &[1; 32]).unwrap();
        assert_eq!((key.mode(), key.key().is_none()), (mode, mode == Aead::Siv));
        let mut sealed: Vec<u8> = (0..21).collect();
        let (body, tag) = mode.split(&sealed, 16).unwrap();
        assert_eq!((body.len(), tag.len()), (5, 16), "{mode}");
        assert_eq!(mode.in_order(body, tag).concat(), sealed, "{mode}");
        let copies = (body.to_vec(), tag.to_vec());
        let (body, tag) = mode.split_mut(&mut sealed, 16).unwrap();
        assert_eq!((body.to_vec(), tag.to_vec()), copies, "{mode}");
        assert_eq!(tag[0] == 0, mode == Aead::Siv, "only SIV has the tag first (RFC 5297, section 2.6)");
        assert!(mode.split(&sealed[..15], 16).is_none() && mode.split_mut(&mut sealed[..15], 16).is_none());
    }
}

#[test]
fn each_mode_is_the_oracles_and_a_forged_message_fails_alone() {
    let planner = planner();
    for mode in Aead::ALL {
        let nonce = &[7; 24][..if mode == Aead::Xaes { 24 } else { 12 }];
        for &len in mode.key_lengths() {
            let bytes: Vec<u8> = (0..len as u8).collect();
            let key = AeadKey::new(mode, &bytes).unwrap();
            for count in [1, 3] {
                let plaintexts: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; 40 * i + 5]).collect();
                let mut texts = plaintexts.clone();
                let mut tags = vec![[0; 16]; count];
                let parts = texts.iter_mut().zip(&mut tags);
                let mut messages: Vec<_> =
                    parts.map(|(text, tag)| message(&key, nonce, text, Tag::Write(tag))).collect();
                mode.seal(&planner, &mut messages).unwrap();
                assert!(messages.iter().all(|message| message.status == Status::Done), "{mode}");
                drop(messages);
                for ((plaintext, text), tag) in plaintexts.iter().zip(&texts).zip(&tags) {
                    assert_eq!(
                        (text.clone(), *tag),
                        expected(mode, &bytes, nonce, b"header", plaintext),
                        "{mode}"
                    );
                }
                *tags.last_mut().unwrap().last_mut().unwrap() ^= 1;
                let parts = texts.iter_mut().zip(&tags);
                let mut messages: Vec<_> =
                    parts.map(|(text, tag)| message(&key, nonce, text, Tag::Expect(tag))).collect();
                assert_eq!(mode.open(&planner, &mut messages), Err(Error::AuthenticationFailed), "{mode}");
                let statuses: Vec<_> = messages.iter().map(|message| message.status).collect();
                drop(messages);
                for (i, status) in statuses.iter().enumerate() {
                    let is_forged = i == count - 1;
                    let wanted = if is_forged { Status::AuthenticationFailed } else { Status::Done };
                    assert_eq!(*status, wanted, "{mode}, message {i}");
                    let released = if is_forged { vec![0; texts[i].len()] } else { plaintexts[i].clone() };
                    assert_eq!(texts[i], released, "{mode}, message {i}");
                }
            }
        }
    }
}

#[test]
fn keys_of_other_lengths_and_of_other_modes_are_refused() {
    let planner = planner();
    for mode in Aead::ALL {
        for len in (0..=65).filter(|len| !mode.key_lengths().contains(len)) {
            let refused = AeadKey::new(mode, &vec![1; len]);
            assert!(matches!(refused, Err(Error::ModeKey { got, .. }) if got == len), "{mode}: {refused:?}");
        }
    }
    let key = AeadKey::new(Aead::Gcm, &[1; 16]).unwrap();
    let (mut data, mut tag) = ([9; 20], [0; 16]);
    let mut seal = |mode: Aead, aad: &[&[u8]]| {
        let (data, tag) = (Data::in_place(&mut data), Tag::Write(&mut tag));
        mode.seal(
            &planner,
            &mut [Message { key: &key, nonce: &[0; 12], aad, data, tag, status: Status::Done }],
        )
    };
    assert!(matches!(seal(Aead::Ocb, &[]), Err(Error::Order { .. })));
    assert!(matches!(seal(Aead::Siv, &[]), Err(Error::Order { .. })));
    assert!(matches!(seal(Aead::Gcm, &[b"a", b"b"]), Err(Error::Order { .. })));
    assert_eq!((data, tag), ([9; 20], [0; 16]));
}

/// Runs passes with a planner, and records them with the sizes of their keys. Supports no fused AEAD.
struct Recording {
    planner: Planner,
    passes: Mutex<BTreeSet<(Pass, KeySize)>>,
}

impl Executor for Recording {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        self.passes.lock().unwrap().extend(segments.iter().map(|segment| (pass, segment.key.size())));
        self.planner.run_pass(pass, segments)
    }

    fn run_fused(&self, _: FusedAead, _: &mut [AeadMessage<'_>]) -> Result<bool> {
        Ok(false)
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        self.planner.memory(device)
    }
}

/// A mode can be composed on an executor that supports the passes that the mode runs, and only on such an executor.
#[test]
fn a_mode_is_supported_with_the_passes_that_it_runs() {
    let executor = Recording { planner: planner(), passes: Mutex::default() };
    for mode in Aead::ALL {
        let nonce = &[7; 24][..if mode == Aead::Xaes { 24 } else { 12 }];
        for &len in mode.key_lengths() {
            let key = AeadKey::new(mode, &vec![3; len]).unwrap();
            let (mut data, mut tag) = ([5; 40], [0; 16]);
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let tag = match direction {
                    Direction::Encrypt => Tag::Write(&mut tag),
                    Direction::Decrypt => Tag::Expect(&tag),
                };
                mode.run(&executor, direction, &mut [message(&key, nonce, &mut data, tag)]).unwrap();
                let passes = std::mem::take(&mut *executor.passes.lock().unwrap());
                let with = |left_out: Option<(Pass, KeySize)>| {
                    mode.is_supported(direction, key.size(), |operation, size| match operation {
                        Operation::Pass(pass) => {
                            passes.contains(&(pass, size)) && left_out != Some((pass, size))
                        }
                        _ => false,
                    })
                };
                assert!(with(None), "{mode}, {direction:?}, {passes:?}");
                for pass in &passes {
                    assert!(!with(Some(*pass)), "{mode}, {direction:?}: {pass:?} is not asked for");
                }
            }
            assert_eq!(data, [5; 40], "{mode}");
        }
        let fused = matches!(mode, Aead::Gcm | Aead::GcmSiv | Aead::Ocb);
        let only_fused = |operation, _| matches!(operation, Operation::Fused(fused) if fused.opens());
        assert_eq!(mode.is_supported(Direction::Decrypt, KeySize::Aes256, only_fused), fused, "{mode}");
        assert!(!mode.is_supported(Direction::Encrypt, KeySize::Aes256, only_fused), "{mode}");
    }
}
