//! Tests of `lockstep::aead`: each row of the table of modes against the oracle, by each kind of call, on the calling thread and by
//! the planner.

use std::cell::Cell;

use lockstep::Engine;
use lockstep::aead::{
    self, Aead, Caller, Data, Direction, Error, HostData, HostMessage, Key, Message, Result, Status, Tag,
};
use lockstep::engine::BackendOptions;
use lockstep::hazmat::backend::Backend;
use lockstep::hazmat::inline::InlineKernel;
use lockstep::hazmat::verify::Verify;
use lockstep_cpu::{CpuBackend, CpuOptions};
use lockstep_reference::{self as reference, Aes};
use lockstep_testkit::mock::{Behaviour, MockBackend};

/// A caller whose limits are set by the test.
struct Limits {
    engine: Engine,
    inline: usize,
    batch: usize,
}

impl Caller for Limits {
    fn inline_kernel(&self) -> Option<InlineKernel> {
        Some(InlineKernel::best())
    }

    fn inline_limit(&self) -> usize {
        self.inline
    }

    fn batch_limit(&self) -> usize {
        self.batch
    }

    fn engine(&self) -> Result<Engine> {
        Ok(self.engine.clone())
    }
}

/// Two callers: one does all work on the calling thread or by batches on the CPU, and the other passes all work to the planner.
fn callers() -> [Limits; 2] {
    let engine = Engine::builder().device("cpu").threads(2).build().unwrap();
    [usize::MAX, 0].map(|limit| Limits { engine: engine.clone(), inline: limit, batch: limit })
}

fn nonce(mode: Aead, seed: u8) -> Vec<u8> {
    let len = if mode.row().nonces.contains(12) { 12 } else { *mode.row().nonces.ranges[0].start() };
    vec![seed; len]
}

/// Ciphertext and tag of the oracle.
fn expected(mode: Aead, key: &[u8], nonce: &[u8], aad: &[u8], plain: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let of_block = |(text, tag): (Vec<u8>, [u8; 16])| (text, tag.to_vec());
    match mode {
        Aead::Gcm => of_block(reference::gcm::seal(&Aes::new(key), nonce, aad, plain)),
        Aead::GcmSiv => of_block(reference::gcm_siv::seal(key, nonce.try_into().unwrap(), aad, plain)),
        Aead::Ocb => reference::ocb::seal(&Aes::new(key), nonce, aad, plain, 16),
        Aead::Siv => of_block(reference::siv::seal(key, &[aad, nonce], plain)),
        Aead::Ccm => reference::ccm::seal(&Aes::new(key), nonce, aad, plain, 16),
        Aead::Eax => reference::eax::seal(&Aes::new(key), nonce, aad, plain, 16),
        Aead::Xaes => {
            of_block(reference::xaes::seal(key.try_into().unwrap(), nonce.try_into().unwrap(), aad, plain))
        }
    }
}

/// Calls a function for each mode, length of keys and caller.
fn for_each(check: impl Fn(&Limits, Aead, &[u8])) {
    for caller in callers() {
        for mode in Aead::ALL {
            for &len in mode.key_lengths() {
                check(&caller, mode, &(0..len as u8).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn one_shot_calls_agree_with_the_oracle() {
    for_each(|caller, mode, bytes| {
        let key = Key::new(mode, bytes).unwrap();
        for len in [0, 1, 16, 1000, 20_000] {
            let (nonce, plain) = (nonce(mode, 3), vec![0x5a; len]);
            let (text, tag) = expected(mode, bytes, &nonce, b"header", &plain);
            let joined = if mode == Aead::Siv { [&tag[..], &text] } else { [&text[..], &tag] }.concat();
            let sealed = key.seal(caller, &nonce, &[b"header"], &plain).unwrap();
            assert!(sealed == joined, "{mode}, {len} bytes");
            assert_eq!(mode.split(&sealed, 16), Some((&text[..], &tag[..])));
            assert_eq!(key.open(caller, &nonce, &[b"header"], &sealed).unwrap(), plain, "{mode}");

            let (mut data, mut made) = (plain.clone(), vec![0; 16]);
            key.seal_in_place(caller, &nonce, &[b"header"], &mut data, &mut made).unwrap();
            assert!((&data, &made) == (&text, &tag), "{mode} in place, {len} bytes");
            key.open_in_place(caller, &nonce, &[b"header"], &mut data, &made).unwrap();
            assert!(data == plain, "{mode} in place, {len} bytes");
        }
    });
}

thread_local! {
    /// The number, counted from 0, of the submission whose result is wrong, on devices that this thread opens.
    static CORRUPT_AT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The CPU, and a device without fused AEADs.
fn with_mock(_: &BackendOptions) -> Vec<Box<dyn Backend>> {
    let behaviour = Behaviour { corrupt_at: CORRUPT_AT.get(), fused: false, ..Behaviour::default() };
    vec![Box::new(CpuBackend::new(CpuOptions::default())), Box::new(MockBackend(behaviour))]
}

/// A single block of data is always verified, so the wrong results in this test are MACs, derived keys and masks.
#[test]
fn a_wrong_result_of_a_device_gives_no_wrong_tag() {
    for mode in Aead::ALL {
        let bytes: Vec<u8> = (0..mode.key_lengths()[0] as u8).collect();
        let (key, nonce, plain) = (Key::new(mode, &bytes).unwrap(), nonce(mode, 3), [0x5a; 16]);
        let (text, tag) = expected(mode, &bytes, &nonce, b"header", &plain);
        let found = (0..40).filter(|number| {
            CORRUPT_AT.set(Some(*number));
            let engine = Engine::builder().with_backends(with_mock).device("mock:0");
            let engine = engine.verify(Verify::Sample).build().unwrap();
            let caller = Limits { engine, inline: 0, batch: 0 };
            let (mut data, mut made) = (plain, vec![0; 16]);
            // The wrong result may be in the self-test, which then refuses the device.
            let is_done = |outcome| match outcome {
                Ok(()) => true,
                Err(error) => {
                    assert!(matches!(error, Error::SelfTest { .. }), "{mode}: {number}: {error}");
                    false
                }
            };
            if is_done(key.seal_in_place(&caller, &nonce, &[b"header"], &mut data, &mut made)) {
                assert!((&data[..], &made) == (&text[..], &tag), "{mode}: {number}");
                let opened = key.open_in_place(&caller, &nonce, &[b"header"], &mut data, &tag);
                assert!(!is_done(opened) || data == plain, "{mode}: {number}");
            }
            !caller.engine.planner().incidents().is_empty()
        });
        assert!(found.count() >= 2, "{mode}: wrong results of sealing and of opening");
    }
}

#[test]
fn a_wrong_tag_leaves_no_plaintext() {
    for_each(|caller, mode, bytes| {
        let (key, nonce) = (Key::new(mode, bytes).unwrap(), nonce(mode, 4));
        for len in [1, 40, 20_000] {
            let mut sealed = key.seal(caller, &nonce, &[b"header"], &vec![9; len]).unwrap();
            let mut plain = vec![1; len];
            let refused = key.open_into(caller, &nonce, &[b"other"], &sealed, &mut plain);
            assert_eq!((refused, plain), (Err(Error::AuthenticationFailed), vec![0; len]), "{mode}");
            let (body, tag) = mode.split_mut(&mut sealed, 16).unwrap();
            tag[15] ^= 1;
            let refused = key.open_in_place(caller, &nonce, &[b"header"], body, tag);
            assert_eq!((refused, &*body), (Err(Error::AuthenticationFailed), &vec![0; len][..]), "{mode}");
        }
        let short = key.open(caller, &nonce, &[], &[0; 15]);
        assert_eq!(short, Err(Error::AuthenticationFailed), "{mode}: less than a tag");
    });
}

#[test]
fn batches_have_a_key_a_nonce_and_a_status_for_each_message() {
    for_each(|caller, mode, bytes| {
        const COUNT: usize = 70;
        let keys: Vec<Vec<u8>> =
            (0..COUNT).map(|i| bytes.iter().map(|byte| byte ^ i as u8).collect()).collect();
        let made: Vec<Key> = keys.iter().map(|bytes| Key::new(mode, bytes).unwrap()).collect();
        let nonces: Vec<_> = (0..COUNT).map(|i| nonce(mode, i as u8)).collect();
        let plain: Vec<_> = (0..COUNT).map(|i| vec![i as u8; 150 * i]).collect();
        let (mut texts, mut tags) = (plain.clone(), vec![[0; 16]; COUNT]);
        let parts = texts.iter_mut().zip(&mut tags).zip(&made).zip(&nonces);
        let mut messages: Vec<_> = parts
            .map(|(((data, tag), key), nonce)| Message {
                key,
                nonce,
                aad: &[b"header"],
                data: Data::in_place(data),
                tag: Tag::Write(tag),
                status: Status::Pending,
            })
            .collect();
        aead::seal(caller, &mut messages).unwrap();
        assert!(messages.iter().all(|message| message.status == Status::Done));
        for i in 0..COUNT {
            let oracle = expected(mode, &keys[i], &nonces[i], b"header", &plain[i]);
            assert!((&texts[i], &tags[i][..]) == (&oracle.0, &oracle.1), "{mode}, message {i}");
        }
        tags[33][0] ^= 1;
        let parts = texts.iter_mut().zip(&tags).zip(&made).zip(&nonces);
        let mut messages: Vec<_> = parts
            .map(|(((data, tag), key), nonce)| Message {
                key,
                nonce,
                aad: &[b"header"],
                data: Data::in_place(data),
                tag: Tag::Expect(tag),
                status: Status::Pending,
            })
            .collect();
        assert_eq!(aead::open(caller, &mut messages), Err(Error::AuthenticationFailed), "{mode}");
        for (i, message) in messages.iter().enumerate() {
            let expected = if i == 33 { Status::AuthenticationFailed } else { Status::Done };
            assert_eq!(message.status, expected, "{mode}, message {i}");
        }
        for (i, text) in texts.iter().enumerate() {
            assert!(if i == 33 { *text == vec![0; 150 * i] } else { *text == plain[i] }, "{mode}, {i}");
        }
    });
}

#[test]
fn batches_in_host_memory_take_the_bytes_of_keys() {
    for_each(|caller, mode, bytes| {
        const COUNT: usize = 70;
        let other: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        // Several successive messages have the same key, and a key is used again after messages with another key.
        let keys: Vec<&[u8]> = (0..COUNT).map(|i| if i % 7 < 4 { bytes } else { &other[..] }).collect();
        let nonces: Vec<_> = (0..COUNT).map(|i| nonce(mode, i as u8)).collect();
        let plain: Vec<_> = (0..COUNT).map(|i| vec![i as u8; 150 * i]).collect();
        let (mut texts, mut tags) = (plain.clone(), vec![[0; 16]; COUNT]);
        let run = |direction, texts: &mut [Vec<u8>], tags: &mut [[u8; 16]]| {
            let parts = texts.iter_mut().zip(tags).zip(&keys).zip(&nonces);
            let messages = parts.map(|(((data, tag), key), nonce)| HostMessage {
                key,
                nonce,
                aad: b"header",
                data: HostData::InPlace(data),
                tag: match direction {
                    Direction::Encrypt => Tag::Write(tag),
                    Direction::Decrypt => Tag::Expect(tag),
                },
                status: Status::Pending,
            });
            let mut messages: Vec<_> = messages.collect();
            let outcome = aead::run_on_host(caller, mode, direction, &mut messages);
            (outcome, messages.iter().map(|message| message.status).collect::<Vec<_>>())
        };
        let (outcome, statuses) = run(Direction::Encrypt, &mut texts, &mut tags);
        assert_eq!((outcome, statuses), (Ok(()), vec![Status::Done; COUNT]), "{mode}");
        for i in 0..COUNT {
            let oracle = expected(mode, keys[i], &nonces[i], b"header", &plain[i]);
            assert!((&texts[i], &tags[i][..]) == (&oracle.0, &oracle.1), "{mode}, message {i}");
        }
        tags[33][0] ^= 1;
        let (outcome, statuses) = run(Direction::Decrypt, &mut texts, &mut tags);
        assert_eq!(outcome, Err(Error::AuthenticationFailed), "{mode}");
        for i in 0..COUNT {
            let (status, text) = if i == 33 {
                (Status::AuthenticationFailed, vec![0; 150 * i])
            } else {
                (Status::Done, plain[i].clone())
            };
            assert!(statuses[i] == status && texts[i] == text, "{mode}, message {i}");
        }
    });
}

#[test]
fn a_batch_in_host_memory_with_a_wrong_length_changes_nothing() {
    for caller in callers() {
        for mode in Aead::ALL {
            let (key, nonce) = (vec![7; mode.row().key_lengths[0]], nonce(mode, 1));
            let run = |key: &[u8], tag: usize| {
                let (mut data, mut tag) = ([5; 20], vec![0; tag]);
                let (data_of, tag_of) = (HostData::InPlace(&mut data), Tag::Write(&mut tag));
                let status = Status::Pending;
                let message =
                    HostMessage { key, nonce: &nonce, aad: &[], data: data_of, tag: tag_of, status };
                let outcome = aead::run_on_host(&caller, mode, Direction::Encrypt, &mut [message]);
                assert!(outcome.is_ok() || data == [5; 20], "{mode}");
                outcome
            };
            run(&key, 16).unwrap();
            let refused = run(&key[1..], 16).unwrap_err();
            assert!(
                matches!(refused, Error::ModeKey { got, .. } if got == key.len() - 1),
                "{mode}: {refused}"
            );
            let refused = run(&key, 17).unwrap_err();
            assert!(matches!(refused, Error::TagLength { got: 17, .. }), "{mode}: {refused}");
        }
    }
}

#[test]
fn errors_name_the_wrong_lengths() {
    for caller in callers() {
        for mode in Aead::ALL {
            let row = mode.row();
            let bytes = vec![1; row.key_lengths[0]];
            let key = Key::new(mode, &bytes).unwrap();
            let refused = Key::new(mode, &bytes[1..]).unwrap_err();
            assert!(matches!(refused, Error::ModeKey { got, .. } if got == bytes.len() - 1), "{refused}");
            let good = nonce(mode, 1);
            let mut data = [7; 20];
            for tag in (0..18).filter(|len| !row.tags.contains(*len)) {
                let refused =
                    key.seal_in_place(&caller, &good, &[], &mut data, &mut vec![0; tag]).unwrap_err();
                assert!(matches!(refused, Error::TagLength { got, .. } if got == tag), "{mode}: {refused}");
                assert!(refused.to_string().contains(row.tags.words), "{mode}: {refused}");
                assert!(Key::new(mode, &bytes).unwrap().with_tag_len(tag).is_err());
            }
            for len in (0..26).filter(|len| !row.nonces.contains(*len)) {
                let refused = key.seal(&caller, &vec![0; len], &[], &data).unwrap_err();
                assert!(matches!(refused, Error::IvLength { got, .. } if got == len), "{mode}: {refused}");
                assert!(refused.to_string().contains(row.nonces.words), "{mode}: {refused}");
            }
            assert_eq!(data, [7; 20], "refused calls change nothing");
            let refused = key.seal_into(&caller, &good, &[], &data, &mut [0; 35]);
            assert_eq!(refused, Err(Error::OutputLength { needed: 36, got: 35 }), "{mode}");
            let strings = vec![&b"x"[..]; row.max_strings + 1];
            assert!(key.seal(&caller, &good, &strings, &data).is_err(), "{mode}: too many strings");
            // In SIV the nonce counts as a string of associated data, so it is left out here.
            let nonce = if row.nonce_is_optional { &[] } else { &good[..] };
            key.seal(&caller, nonce, &strings[1..], &data).unwrap();
        }
    }
}

#[test]
fn wrong_arguments_leave_data_in_place_unchanged() {
    let engine = Engine::new().unwrap();
    for mode in Aead::ALL {
        let row = mode.row();
        let key = Key::new(mode, &vec![7; row.key_lengths[0]]).unwrap();
        let mut data = *b"the only copy of a message";
        let nonce = nonce(mode, 1);
        let tag_error = key.open_in_place(&engine, &nonce, &[], &mut data, &[0; 17]).unwrap_err();
        assert!(matches!(tag_error, Error::TagLength { .. }), "{mode}: {tag_error}");
        assert_eq!(&data, b"the only copy of a message", "{mode}");
        if !row.nonces.contains(0) {
            key.open_in_place(&engine, &[], &[], &mut data, &[0; 16]).unwrap_err();
            assert_eq!(&data, b"the only copy of a message", "{mode}");
        }
        key.open_in_place(&engine, &nonce, &[], &mut data, &[0; 16]).unwrap_err();
        assert_eq!(data, [0; 26], "{mode}");
    }
}

#[test]
fn a_batch_limit_of_zero_passes_batches_to_the_planner() {
    struct Planned(Engine);

    impl Caller for Planned {
        fn inline_kernel(&self) -> Option<InlineKernel> {
            panic!("a batch asked for the kernel of the calling thread")
        }

        fn engine(&self) -> Result<Engine> {
            Ok(self.0.clone())
        }
    }

    let caller = Planned(Engine::builder().device("cpu").threads(1).build().unwrap());
    let key = Key::new(Aead::Gcm, &[7; 16]).unwrap();
    let (aad, mut tag) = (vec![1; 100_000], [0; 16]);
    let (data, tag) = (Data::in_place(&mut []), Tag::Write(&mut tag));
    let message = Message { key: &key, nonce: &[1; 12], aad: &[&aad], data, tag, status: Status::Pending };
    aead::seal(&caller, &mut [message]).unwrap();
}

#[test]
fn a_key_serves_callers_with_different_kernels() {
    struct Named(&'static str);

    impl Caller for Named {
        fn inline_kernel(&self) -> Option<InlineKernel> {
            InlineKernel::by_name(self.0)
        }

        fn engine(&self) -> Result<Engine> {
            panic!("the message is short")
        }
    }

    let key = Key::new(Aead::Gcm, &[7; 16]).unwrap();
    let best = key.seal(&Named(InlineKernel::best().name()), &[1; 12], &[], b"text").unwrap();
    assert_eq!(key.seal(&Named("cpu/soft"), &[1; 12], &[], b"text").unwrap(), best);
}

#[test]
fn tags_of_other_lengths_are_split_off() {
    let [caller, _] = callers();
    for mode in Aead::ALL {
        let bytes = vec![2; mode.key_lengths()[0]];
        for tag in (1..=16).filter(|len| mode.row().tags.contains(*len)) {
            let key = Key::new(mode, &bytes).unwrap().with_tag_len(tag).unwrap();
            let sealed = key.seal(&caller, &nonce(mode, 1), &[], b"hello").unwrap();
            assert_eq!(sealed.len(), 5 + tag);
            assert_eq!(key.open(&caller, &nonce(mode, 1), &[], &sealed).unwrap(), b"hello");
            assert_eq!(key.clone().tag_len(), tag);
        }
    }
}

#[test]
fn an_engine_is_a_caller_and_threads_share_a_key() {
    let engine = Engine::builder().threads(1).build().unwrap();
    let key = Key::new(Aead::Gcm, &[5; 16]).unwrap();
    let (text, tag) = expected(Aead::Gcm, &[5; 16], &[6; 12], b"", b"hello");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let (mut data, mut made) = ([0; 5], [0; 16]);
                    let copy = HostData::copy(b"hello", &mut data).unwrap();
                    key.run(&engine, &[6; 12], &[], copy, Tag::Write(&mut made)).unwrap();
                    assert_eq!((&data[..], &made[..]), (&text[..], &tag[..]));
                }
            });
        }
    });
}
