//! Tests of contexts whose work runs on a device that the settings name.

use std::cell::Cell;

use lockstep::aead::Aead;
use lockstep::engine::{BackendOptions, register};
use lockstep::hazmat::backend::Backend;
use lockstep::hazmat::inline::{Block, InlineGcm, InlineKernel, Span};
use lockstep_testkit::mock::{Behaviour, MockBackend};

use super::aead::{AeadContext, AeadMode};
use super::*;
use crate::algorithm::ALGORITHMS;
use crate::libcrypto::core::Core;

const KEY: [u8; 64] = *b"The keys of these tests are the beginning of these sixty-4 bytes";
const IV: [u8; 16] = [7; 16];
/// A multiple of the block size.
const LEN: usize = 80;

thread_local! {
    /// The number of the submission that fails, counted from 0 over all devices that this thread opens.
    static FAIL_AT: Cell<u64> = const { Cell::new(u64::MAX) };
    /// The number of the submission whose result is wrong.
    static CORRUPT_AT: Cell<u64> = const { Cell::new(u64::MAX) };
}

fn backends(_: &BackendOptions) -> Vec<Box<dyn Backend>> {
    let (fail_at, corrupt_at) = (Some(FAIL_AT.get()), Some(CORRUPT_AT.get()));
    vec![Box::new(MockBackend(Behaviour { fail_at, corrupt_at, ..Behaviour::default() }))]
}

/// An instance whose work is on a device from this number of bytes on.
fn instance(threshold: &str) -> &'static Instance {
    // The result is false if another test has already registered the backends.
    register(backends);
    let settings = |name: &str| match name {
        "LOCKSTEP_DEVICE" => Some("mock:0".into()),
        "LOCKSTEP_THRESHOLD" => Some(threshold.into()),
        "LOCKSTEP_AHEAD" => Some("off".into()),
        _ => None,
    };
    Box::leak(Instance::new(Core::none(), settings).unwrap())
}

/// A context of the algorithm, with a key and an IV of this length.
fn started<C: Cipher>(name: &str, encrypts: bool, instance: &'static Instance, iv_len: usize) -> C {
    let mut context = created::<C>(name, instance);
    let key_len = context.common().algorithm.key_len;
    context.init(encrypts, Some(&KEY[..key_len]), Some(&IV[..iv_len])).unwrap();
    context
}

/// Creates a context of the algorithm without a key.
fn created<C: Cipher>(name: &str, instance: &'static Instance) -> C {
    let algorithm = ALGORITHMS.iter().find(|algorithm| algorithm.name() == name).unwrap();
    C::new(Common::new(instance, algorithm))
}

/// Number of bytes that the device has processed.
fn worked(instance: &Instance) -> u64 {
    instance.resources.engine().unwrap().planner().worked().into_iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn a_device_gets_all_blocks_of_a_large_update() {
    let instance = instance("65536");
    let mut context = started::<Gcm>("AES-128-GCM", true, instance, 12);
    let mut data = vec![0x5a; 101_007];
    let mut expected = data.clone();
    let (small, large) = data.split_at_mut(1_000);
    assert_eq!(context.update(Buffers::in_place_of(small)), Ok(1_000));
    assert_eq!(context.update(Buffers::in_place_of(large)), Ok(100_007));
    let mut gcm = InlineGcm::new(InlineKernel::best(), &KEY[..16]).unwrap();
    assert!(gcm.start(true, &IV[..12]) && gcm.update(Span::in_place(&mut expected)));
    assert!(data == expected);
    // The first 8 bytes of the large update complete a block of the small one, and the last 15 bytes do not fill a block.
    assert_eq!(worked(instance), 99_984);
    context.finish(Buffers::in_place_of(&mut [])).unwrap();
    assert_eq!(Some(context.tag), gcm.finish_seal());
}

/// The way in which the data of a message are passed to the context.
#[derive(Clone, Copy, Debug)]
struct Shape {
    len: usize,
    /// The bytes of the first of two updates; 0 for a single update.
    first: usize,
    in_place: bool,
    tag_len: usize,
}

/// The shape of most messages: a single update of whole blocks.
const WHOLE: Shape = Shape { len: LEN, first: 0, in_place: true, tag_len: 16 };

/// The outcome of a message, its output, and its tag.
type Found = (Outcome<()>, Vec<u8>, Block);

/// Processes a message. `tag` is given for decryption.
type Message = fn(&'static Instance, Shape, &[u8], Option<Block>) -> Found;

/// Processes the data of a message, and checks that a failed update has written zeros.
fn updated<C: Cipher>(context: &mut C, shape: Shape, data: &[u8]) -> (Outcome<()>, Vec<u8>) {
    // ECB, CBC and OCB may hold back the last block, which then has no output.
    let mode = context.common().algorithm.mode;
    let held = if matches!(mode, Mode::Ecb | Mode::Cbc | Mode::Ocb) { 16 } else { 0 };
    let (first, rest) = data.split_at(shape.first);
    let mut output = Vec::new();
    for part in [first, rest].into_iter().filter(|part| !part.is_empty()) {
        let mut memory = vec![0; part.len() + 16];
        if shape.in_place {
            memory[..part.len()].copy_from_slice(part);
        }
        let data = match shape.in_place {
            true => Buffers::in_place_in(&mut memory, part.len()),
            false => Buffers::separate(part, &mut memory),
        };
        match context.update(data) {
            Ok(written) => output.extend_from_slice(&memory[..written]),
            Err(reason) => {
                let name = context.common().algorithm.name();
                let zeroed = if shape.in_place { part.len().saturating_sub(held) } else { memory.len() };
                assert!(memory[..zeroed].iter().all(|&byte| byte == 0), "{name}, {shape:?}: {memory:?}");
                return (Err(reason), output);
            }
        }
    }
    let mut last = [0; 16];
    let outcome = context.finish(Buffers::in_place_in(&mut last, 0));
    output.extend_from_slice(&last[..outcome.unwrap_or(0)]);
    (outcome.map(|_| ()), output)
}

fn aead<M: AeadMode>(instance: &'static Instance, shape: Shape, data: &[u8], tag: Option<Block>) -> Found {
    let name = match M::AEAD {
        Aead::Ocb => "AES-256-OCB".into(),
        aead => format!("AES-256-{aead}"),
    };
    let mut context = started::<AeadContext<M>>(&name, tag.is_none(), instance, M::IV_LEN);
    let tag_len = if M::AEAD.row().tags.contains(shape.tag_len) { shape.tag_len } else { 16 };
    context.tag_len = tag_len;
    tag.inspect(|tag| context.expect_tag(&tag[..tag_len]));
    context.set_message_len(data.len()).unwrap();
    context.aad(b"additional data of over 16 bytes").unwrap();
    let (outcome, output) = updated(&mut context, shape, data);
    if outcome == Err(Reason::Device) {
        let again = context.update(Buffers::in_place_of(&mut data.to_vec()));
        assert!(again.is_err(), "{name}: the message has ended");
    }
    let mut found = [0; 16];
    found[..tag_len].copy_from_slice(&context.tag[..tag_len]);
    (outcome, output, found)
}

fn record_of_ccm(instance: &'static Instance, shape: Shape, data: &[u8], tag: Option<Block>) -> Found {
    // A tag of a CCM record has 8 or 16 bytes.
    let tag_len = if shape.tag_len < 16 { 8 } else { 16 };
    let encrypts = tag.is_none();
    let mut context = started::<Ccm>("AES-256-CCM", encrypts, instance, 7);
    (context.tag_len, context.iv_len) = (tag_len, 12);
    let len = data.len() + if encrypts { 8 } else { 8 + tag_len };
    context.set_record_aad(&[&[0; 11][..], &(len as u16).to_be_bytes()].concat(), tag_len).unwrap();
    // The explicit IV is the sequence number, which is 0.
    let mut record = [&[0; 8][..], data, &tag.unwrap_or_default()[..tag_len]].concat();
    let outcome = context.update(Buffers::in_place_of(&mut record)).map(|_| ());
    let (output, made) = record[8..].split_at(data.len());
    assert!(outcome != Err(Reason::Device) || output.iter().all(|&byte| byte == 0));
    let mut found = [0; 16];
    found[..tag_len].copy_from_slice(made);
    (outcome, output.to_vec(), found)
}

/// Processes a message of a mode without a tag.
fn plain<C: Cipher>(
    name: &str,
    instance: &'static Instance,
    shape: Shape,
    data: &[u8],
    tag: Option<Block>,
) -> Found {
    let mut context = created::<C>(name, instance);
    let Common { algorithm, .. } = context.common();
    let (key, iv) = (&KEY[..algorithm.key_len], (algorithm.iv_len > 0).then_some(&IV[..]));
    context.init(tag.is_none(), Some(key), iv).unwrap();
    let (outcome, output) = updated(&mut context, shape, data);
    (outcome, output, [0; 16])
}

/// The modes. The second member is true if a message may have several updates.
const MESSAGES: [(&str, bool, Message); 15] = [
    ("GCM", true, aead::<gcm::GcmMode>),
    ("CCM", false, aead::<ccm::CcmMode>),
    ("CCM in a record", false, record_of_ccm),
    ("OCB", true, aead::<ocb::OcbMode>),
    ("GCM-SIV", false, aead::<siv::SyntheticIv<false>>),
    ("SIV", false, aead::<siv::SyntheticIv<true>>),
    ("ECB", true, |instance, shape, data, tag| plain::<Ecb>("AES-128-ECB", instance, shape, data, tag)),
    ("CBC", true, |instance, shape, data, tag| plain::<Cbc>("AES-128-CBC", instance, shape, data, tag)),
    ("CBC-CTS", false, |instance, shape, data, tag| {
        plain::<Cts>("AES-128-CBC-CTS", instance, shape, data, tag)
    }),
    ("OFB", true, |instance, shape, data, tag| plain::<Feedback>("AES-128-OFB", instance, shape, data, tag)),
    ("CFB", true, |instance, shape, data, tag| plain::<Feedback>("AES-128-CFB", instance, shape, data, tag)),
    ("CFB8", true, |instance, shape, data, tag| {
        plain::<Feedback>("AES-128-CFB8", instance, shape, data, tag)
    }),
    ("CFB1", true, |instance, shape, data, tag| {
        plain::<Feedback>("AES-128-CFB1", instance, shape, data, tag)
    }),
    ("CTR", true, |instance, shape, data, tag| plain::<Ctr>("AES-192-CTR", instance, shape, data, tag)),
    ("XTS", false, |instance, shape, data, tag| plain::<Xts>("AES-256-XTS", instance, shape, data, tag)),
];

/// Encrypts and decrypts a message on the CPU. Returns, for each direction, the input, the tag to compare with, and the result.
fn by_cpu(name: &str, message: Message, shape: Shape) -> [(Vec<u8>, Option<Block>, Found); 2] {
    FAIL_AT.set(u64::MAX);
    CORRUPT_AT.set(u64::MAX);
    let cpu = instance("1G");
    let plaintext: Vec<u8> = (0..shape.len).map(|i| i as u8).collect();
    let sealed = message(cpu, shape, &plaintext, None);
    let (ciphertext, tag) = (sealed.1.clone(), sealed.2);
    let opened = message(cpu, shape, &ciphertext, Some(tag));
    assert_eq!((sealed.0, &opened, worked(cpu)), (Ok(()), &(Ok(()), plaintext.clone(), tag), 0), "{name}");
    [(plaintext, None, sealed), (ciphertext, Some(tag), opened)]
}

/// In each run, another submission to the device fails. If it is a submission of a self-test, or if the failure has not changed the
/// data, the CPU does the work.
#[test]
fn a_failing_device_writes_no_wrong_bytes_and_releases_no_plaintext() {
    let shapes = [
        WHOLE,
        Shape { len: 77, tag_len: 4, ..WHOLE },
        Shape { len: 77, tag_len: 12, in_place: false, ..WHOLE },
        Shape { len: 93, first: 37, tag_len: 8, ..WHOLE },
        Shape { len: 93, first: 37, tag_len: 10, in_place: false },
    ];
    for (name, takes_parts, message) in MESSAGES {
        for shape in shapes.into_iter().filter(|shape| takes_parts || shape.first == 0) {
            for (input, tag, expected) in by_cpu(name, message, shape) {
                let device = instance("16");
                assert_eq!(message(device, shape, &input, tag), expected, "{name}, {shape:?}");
                assert!(worked(device) >= LEN as u64 - 48, "{name}, {shape:?}: most blocks are the device's");
                let mut failures = 0;
                let all_succeed = (0..100).any(|number| {
                    FAIL_AT.set(number);
                    let failing = instance("16");
                    let found = message(failing, shape, &input, tag);
                    if found.0.is_ok() {
                        assert_eq!(found, expected, "{name}, {shape:?}: {number}");
                        return worked(failing) == worked(device);
                    }
                    failures += 1;
                    assert_eq!(found.0, Err(Reason::Device), "{name}, {shape:?}: {number}");
                    // Only updates before the failed one have output.
                    assert!(expected.1.starts_with(&found.1) || name == "CCM in a record");
                    false
                });
                assert!(all_succeed && (failures > 0 || !shape.in_place), "{name}, {shape:?}");
                FAIL_AT.set(u64::MAX);
            }
        }
    }
}

/// A wrong block of data is always detected, so only MACs and derived keys could be wrong.
#[test]
fn a_wrong_result_of_a_device_gives_no_wrong_tag() {
    let shape = Shape { len: 16, ..WHOLE };
    for (name, _, message) in MESSAGES {
        for (input, tag, expected) in by_cpu(name, message, shape) {
            for number in 0..40 {
                CORRUPT_AT.set(number);
                let device = instance("16");
                let found = message(device, shape, &input, tag);
                // The self-test of GCM-SIV refuses the device while the message is processed.
                let is_right = found == expected || found.0 == Err(Reason::Device);
                assert!(is_right, "{name}: {number}: {found:?}");
            }
            CORRUPT_AT.set(u64::MAX);
        }
    }
}

/// Makes the inits and the largest draw of a generator without a derivation function. `between` runs before the last init of ECB. Returns
/// the number of bytes that the device has processed.
fn drawn(threshold: &str, between: impl FnOnce(&'static Instance)) -> u64 {
    let instance = instance(threshold);
    let mut ecb = created::<Ecb>("AES-256-ECB", instance);
    let mut ctr = created::<Ctr>("AES-256-CTR", instance);
    ecb.init(true, None, None).unwrap();
    ctr.init(true, None, None).unwrap();
    between(instance);
    ecb.init(true, Some(&[0; 32]), None).unwrap();
    ctr.init(true, Some(&[0; 32]), Some(&IV)).unwrap();
    // The largest draw of a generator.
    let mut data = vec![0; 1 << 16];
    ecb.update(Buffers::in_place_of(&mut data)).unwrap();
    ctr.update(Buffers::in_place_of(&mut data)).unwrap();
    worked(instance)
}

#[test]
fn the_random_generator_never_uses_a_device() {
    for threshold in ["16", "65536"] {
        assert_eq!(drawn(threshold, |_| ()), 0, "{threshold}");
        // An init of any other context ends the sequence of the generator's inits, so the device does the ECB work.
        let others: [fn(&'static Instance); 4] = [
            |instance| _ = started::<Gcm>("AES-128-GCM", true, instance, 12),
            |instance| _ = started::<Xts>("AES-128-XTS", true, instance, 16),
            |instance| _ = started::<Wrap>("AES-128-WRAP", true, instance, 8),
            |instance| _ = started::<Cts>("AES-128-CBC-CTS", true, instance, 16),
        ];
        others.into_iter().for_each(|other| assert!(drawn(threshold, other) > 0, "{threshold}"));
    }
}

#[test]
fn a_failing_device_unwraps_no_part_of_a_key() {
    let wrapped = |instance: &'static Instance, data: &mut [u8]| {
        let mut context = started::<Wrap>("AES-128-WRAP-INV", false, instance, 8);
        context.update(Buffers::in_place_of(data))
    };
    FAIL_AT.set(u64::MAX);
    let device = instance("16");
    // The data are not a wrapped key, but all steps of unwrapping are done before this is detected.
    let outcomes: Vec<_> = (0..40)
        .map(|number| {
            FAIL_AT.set(number);
            let mut data = [0x5a; 40];
            let outcome = wrapped(instance("16"), &mut data);
            assert_eq!(data[..32], [0; 32], "{number}");
            outcome
        })
        .collect();
    assert!(outcomes.contains(&Err(Reason::Unwrap)) && outcomes.contains(&Err(Reason::Device)));
    FAIL_AT.set(u64::MAX);
    assert_eq!(wrapped(device, &mut [0x5a; 40]), Err(Reason::Unwrap));
    assert_eq!(worked(device), 12 * 32);
}

#[test]
fn a_failing_device_ends_a_record_of_gcm() {
    for encrypts in [true, false] {
        let is_zeroed = (0..100).any(|number| {
            FAIL_AT.set(number);
            let mut context = started::<Gcm>("AES-128-GCM", encrypts, instance("16"), 12);
            // The explicit IV, the data, and the tag.
            let mut data = [0x5a; 8 + 61 + 16];
            context.mode.iv_counts = true;
            context.record_aad = Some([0; 13]);
            match context.update(Buffers::in_place_of(&mut data)) {
                // In these cases the CPU has done the work. For a record to decrypt, it reports the wrong tag.
                Ok(_) | Err(Reason::TagMismatch) => return false,
                outcome => assert_eq!(outcome, Err(Reason::Device)),
            }
            assert_eq!(data[8..][..61], [0; 61]);
            assert_eq!(context.update(Buffers::in_place_of(&mut data)), Err(Reason::Finished));
            true
        });
        assert!(is_zeroed);
    }
}

#[test]
fn gcm_that_the_device_cannot_do_uses_the_key_of_the_kernel() {
    // The self-test fails, so that the CPU does all work.
    FAIL_AT.set(0);
    let instance = instance("16");
    let (outcome, output, tag) = aead::<gcm::GcmMode>(instance, WHOLE, &[0x5a; LEN], None);
    let mut expected = [0x5a; LEN];
    let mut gcm = InlineGcm::new(InlineKernel::best(), &KEY[..32]).unwrap();
    assert!(gcm.start(true, &IV[..12]) && gcm.aad(b"additional data of over 16 bytes"));
    assert!(gcm.update(Span::in_place(&mut expected)));
    assert_eq!((outcome, &output[..], Some(tag)), (Ok(()), &expected[..], gcm.finish_seal()));
    assert_eq!(worked(instance), 0);
}

#[test]
fn bits_of_cfb1_that_fill_no_byte_follow_the_bytes_of_the_device() {
    FAIL_AT.set(u64::MAX);
    let (cpu, device) = (instance("1G"), instance("16"));
    let [expected, found] = [&cpu, &device].map(|instance| {
        let mut context = started::<Feedback>("AES-128-CFB1", true, instance, 16);
        let mut data = [0x5a; LEN];
        context.counts_bits = true;
        assert_eq!(context.begin_update(8 * LEN - 3), LEN);
        assert_eq!(context.update(Buffers::in_place_of(&mut data)), Ok(8 * LEN - 3));
        data
    });
    assert_eq!(found, expected);
    assert_eq!(worked(device), LEN as u64 - 1);
}

/// A context decrypts under one key, encrypts under another key, and decrypts without a new key. It is replaced by its copy after the
/// steps that `copies` states; the original then shares the key.
fn change_direction<C: Cipher>(name: &str, copies: [bool; 2]) {
    let instance = Box::leak(Instance::new(Core::none(), |_| None).unwrap());
    let Algorithm { key_len, iv_len, .. } = *created::<C>(name, instance).common().algorithm;
    let (text, iv, other) = ([0x5a; LEN], &IV[..iv_len], &KEY[KEY.len() - key_len..].to_ascii_uppercase());
    let crypt = |context: &mut C, encrypts, key: Option<&[u8]>, data: &[u8]| {
        context.init(encrypts, key, Some(iv)).unwrap();
        let (outcome, output) = updated(context, WHOLE, data);
        assert_eq!(outcome, Ok(()), "{name}, {copies:?}");
        output
    };
    let [first, second] =
        [&KEY[..key_len], other].map(|key| crypt(&mut created::<C>(name, instance), true, Some(key), &text));
    assert_ne!(first, second);
    let mut originals = Vec::new();
    let mut copy_if = |copies, context: &mut C| {
        if copies {
            let copy = context.duplicate().unwrap()();
            originals.push(std::mem::replace(context, copy));
        }
    };
    let mut context = created::<C>(name, instance);
    assert_eq!(crypt(&mut context, false, Some(&KEY[..key_len]), &first), text, "{name}, {copies:?}");
    copy_if(copies[0], &mut context);
    assert_eq!(crypt(&mut context, true, Some(other), &text), second, "{name}, {copies:?}");
    copy_if(copies[1], &mut context);
    assert_eq!(crypt(&mut context, false, None, &second), text, "{name}, {copies:?}");
    assert_eq!(crypt(&mut context, true, None, &text), second, "{name}, {copies:?}");
    // The originals have the keys that they had when they were copied.
    let expected = if copies[0] { [&first, &second] } else { [&second; 2] };
    for (original, expected) in originals.iter_mut().zip(expected) {
        assert_eq!(crypt(original, false, None, expected), text, "{name}, {copies:?}");
    }
}

#[test]
fn a_context_decrypts_with_the_key_that_it_was_given_for_encryption() {
    for copies in [[false, false], [true, false], [false, true], [true, true]] {
        change_direction::<Ecb>("AES-256-ECB", copies);
        change_direction::<Cbc>("AES-256-CBC", copies);
        change_direction::<Cts>("AES-256-CBC-CTS", copies);
        change_direction::<Xts>("AES-256-XTS", copies);
    }
}

#[test]
fn a_refused_iv_does_not_change_the_direction() {
    let instance = Box::leak(Instance::new(Core::none(), |_| None).unwrap());
    let mut context = started::<Cbc>("AES-128-CBC", true, instance, 16);
    assert_eq!(context.init(false, None, Some(&IV[..8])), Err(Reason::IvLength));
    let mut data = [[0; LEN]; 2];
    for data in &mut data {
        context.update(Buffers::in_place_of(data)).unwrap();
        context.init(true, None, Some(&IV)).unwrap();
    }
    assert_eq!(data[0], data[1]);
}

/// 300 messages under each of two keys, with all kernels. The context computes all powers of H before its 256th message, which is number
/// 255. It is copied within the message `copied_at`; the copy and the original then make all further messages.
#[test]
fn gcm_is_right_before_and_after_the_powers_of_h_are_complete() {
    const MESSAGES: u32 = 300;
    let len_of = |number: u32| [16, 1024, 100][number as usize % 3];
    let iv_of = |number: u32| (u128::from(number) << 32).to_be_bytes();
    let keys = [&KEY[..32], &KEY[32..]];
    let expected = keys.map(|key| {
        let mut gcm = InlineGcm::new(InlineKernel::by_name("cpu/soft").unwrap(), key).unwrap();
        let message = |number| {
            let mut data = vec![0x5a; len_of(number)];
            assert!(gcm.start(true, &iv_of(number)[..12]) && gcm.update(Span::in_place(&mut data)));
            (data, gcm.finish_seal().unwrap())
        };
        (0..MESSAGES).map(message).collect::<Vec<_>>()
    });
    for kernel in InlineKernel::all() {
        let settings = |name: &str| (name == "LOCKSTEP_KERNEL").then(|| kernel.name().into());
        let instance = Box::leak(Instance::new(Core::none(), settings).unwrap());
        for copied_at in [254, 255, 256, MESSAGES] {
            let mut contexts = vec![created::<Gcm>("AES-256-GCM", instance)];
            for (key, expected) in keys.iter().zip(&expected) {
                contexts.iter_mut().for_each(|context| context.init(true, Some(key), None).unwrap());
                for (number, (text, tag)) in (0..).zip(expected) {
                    let mut found = vec![0x5a; len_of(number)];
                    let (first, rest) = found.split_at_mut(16);
                    let mut last = Vec::new();
                    for context in &mut contexts {
                        context.init(true, None, Some(&iv_of(number)[..12])).unwrap();
                        first.fill(0x5a);
                        context.update(Buffers::in_place_of(first)).unwrap();
                    }
                    if number == copied_at && contexts.len() == 1 {
                        let copy = contexts[0].duplicate().unwrap()();
                        contexts.push(copy);
                    }
                    for context in &mut contexts {
                        rest.fill(0x5a);
                        context.update(Buffers::in_place_of(rest)).unwrap();
                        context.finish(Buffers::in_place_of(&mut last)).unwrap();
                        let place = format!("{}, copied at {copied_at}: message {number}", kernel.name());
                        assert!(first == &text[..16] && rest == &text[16..], "{place}");
                        assert_eq!(context.tag, *tag, "{place}");
                    }
                }
            }
        }
    }
}
