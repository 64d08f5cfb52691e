//! Work on a named device.

use std::cell::Cell;
use std::sync::Arc;

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
    /// The submission of work that fails on devices that this thread opens, counted from 0.
    static FAIL_AT: Cell<u64> = const { Cell::new(u64::MAX) };
}

fn backends(_: &BackendOptions) -> Vec<Box<dyn Backend>> {
    let fail_at = Some(FAIL_AT.get());
    vec![Box::new(MockBackend(Behaviour { fail_at, ..Behaviour::default() }))]
}

/// An instance whose work is on a device from this number of bytes on.
fn instance(threshold: &str) -> Arc<Instance> {
    // False if another test has registered them.
    register(backends);
    let settings = |name: &str| match name {
        "LOCKSTEP_DEVICE" => Some("mock:0".into()),
        "LOCKSTEP_THRESHOLD" => Some(threshold.into()),
        "LOCKSTEP_AHEAD" => Some("off".into()),
        _ => None,
    };
    Instance::new(Core::none(), settings).unwrap()
}

/// A context of the algorithm, with a key and an IV of this length.
fn started<C: Cipher>(name: &str, encrypts: bool, instance: &Arc<Instance>, iv_len: usize) -> C {
    let algorithm = ALGORITHMS.iter().find(|algorithm| algorithm.name() == name).unwrap();
    let mut context = C::new(Common::new(Arc::clone(instance), algorithm));
    context.init(encrypts, Some(&KEY[..algorithm.key_len]), Some(&IV[..iv_len])).unwrap();
    context
}

/// The bytes of the work of the device.
fn worked(instance: &Instance) -> u64 {
    instance.resources.engine().unwrap().planner().worked().into_iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn a_device_gets_all_blocks_of_a_large_update() {
    let instance = instance("65536");
    let mut context = started::<Gcm>("AES-128-GCM", true, &instance, 12);
    let mut data = vec![0x5a; 101_007];
    let mut expected = data.clone();
    let (small, large) = data.split_at_mut(1_000);
    assert_eq!(context.update(Buffers::in_place_of(small)), Ok(1_000));
    assert_eq!(context.update(Buffers::in_place_of(large)), Ok(100_007));
    let mut gcm = InlineGcm::new(InlineKernel::best(), &KEY[..16]).unwrap();
    assert!(gcm.start(true, &IV[..12]) && gcm.update(Span::in_place(&mut expected)));
    assert!(data == expected);
    // The first 8 bytes of the large update complete a block of the small one, and the last 15 bytes are no block.
    assert_eq!(worked(&instance), 99_984);
    context.finish(Buffers::in_place_of(&mut [])).unwrap();
    assert_eq!(Some(context.tag), gcm.finish_seal());
}

/// A message in one update: the result, the output and the tag. `tag` is given for decryption.
type Message = fn(&Arc<Instance>, &[u8], Option<Block>) -> (Outcome<()>, Vec<u8>, Block);

fn aead<M: AeadMode>(
    instance: &Arc<Instance>,
    data: &[u8],
    tag: Option<Block>,
) -> (Outcome<()>, Vec<u8>, Block) {
    let name = match M::AEAD {
        Aead::Ocb => "AES-256-OCB".into(),
        aead => format!("AES-256-{aead}"),
    };
    let encrypts = tag.is_none();
    let mut context = started::<AeadContext<M>>(&name, encrypts, instance, M::IV_LEN);
    context.tag_len = 16;
    tag.inspect(|tag| context.expect_tag(tag));
    let mut output = data.to_vec();
    context.set_message_len(data.len()).unwrap();
    context.aad(b"additional data of over 16 bytes").unwrap();
    let outcome = context.update(Buffers::in_place_of(&mut output));
    if outcome == Err(Reason::Device) {
        let again = context.update(Buffers::in_place_of(&mut data.to_vec()));
        assert!(again.is_err(), "{name}: the message has ended");
    }
    let outcome = outcome.and_then(|_| context.finish(Buffers::in_place_of(&mut [])));
    (outcome.map(|_| ()), output, context.tag)
}

fn record_of_ccm(instance: &Arc<Instance>, data: &[u8], tag: Option<Block>) -> (Outcome<()>, Vec<u8>, Block) {
    let encrypts = tag.is_none();
    let mut context = started::<Ccm>("AES-256-CCM", encrypts, instance, 7);
    (context.tag_len, context.iv_len) = (16, 12);
    let len = data.len() + if encrypts { 8 } else { 8 + 16 };
    context.set_record_aad(&[&[0; 11][..], &(len as u16).to_be_bytes()].concat(), 16).unwrap();
    // The explicit IV is the sequence number, which is 0.
    let mut output = [&[0; 8][..], data, &tag.unwrap_or_default()].concat();
    let outcome = context.update(Buffers::in_place_of(&mut output)).map(|_| ());
    let tag = output[8 + data.len()..].try_into().unwrap();
    (outcome, output[8..][..data.len()].to_vec(), tag)
}

/// A mode without a tag.
fn plain<C: Cipher>(
    name: &str,
    instance: &Arc<Instance>,
    data: &[u8],
    tag: Option<Block>,
) -> (Outcome<()>, Vec<u8>, Block) {
    let mut context = started::<C>(name, tag.is_none(), instance, 16);
    let mut output = data.to_vec();
    (context.update(Buffers::in_place_of(&mut output)).map(|_| ()), output, [0; 16])
}

const MESSAGES: [(&str, Message); 9] = [
    ("GCM", aead::<gcm::GcmState>),
    ("CCM", aead::<ccm::CcmState>),
    ("CCM in a record", record_of_ccm),
    ("OCB", aead::<ocb::OcbState>),
    ("GCM-SIV", aead::<siv::SyntheticIvState<false>>),
    ("SIV", aead::<siv::SyntheticIvState<true>>),
    ("CFB1", |instance, data, tag| plain::<Streams>("AES-128-CFB1", instance, data, tag)),
    ("CTR", |instance, data, tag| plain::<Streams>("AES-192-CTR", instance, data, tag)),
    ("XTS", |instance, data, tag| plain::<Xts>("AES-256-XTS", instance, data, tag)),
];

/// Each submission fails in turn. The first ones are those of self-tests: then the CPU does the work. It also does the work if the failure
/// has not changed the data.
#[test]
fn a_failing_device_writes_no_wrong_bytes_and_releases_no_plaintext() {
    let plaintext: [u8; LEN] = std::array::from_fn(|i| i as u8);
    for (name, message) in MESSAGES {
        FAIL_AT.set(u64::MAX);
        let cpu = instance("1G");
        let (sealed, ciphertext, made) = message(&cpu, &plaintext, None);
        assert_eq!((sealed, worked(&cpu)), (Ok(()), 0), "{name}");
        for (input, output, tag) in
            [(&plaintext[..], &ciphertext[..], None), (&ciphertext, &plaintext, Some(made))]
        {
            FAIL_AT.set(u64::MAX);
            let device = instance("16");
            let expected = (Ok(()), output.to_vec(), made);
            assert_eq!(message(&device, input, tag), expected, "{name}");
            assert!(worked(&device) >= LEN as u64, "{name}: all blocks are the device's");
            let mut failures = 0;
            for number in 0.. {
                FAIL_AT.set(number);
                let failing = instance("16");
                let (outcome, found, tag_found) = message(&failing, input, tag);
                if outcome.is_ok() {
                    assert_eq!((outcome, found, tag_found), expected, "{name}: {number}");
                    if failures > 0 && worked(&failing) == worked(&device) {
                        // All submissions have succeeded.
                        break;
                    }
                } else {
                    failures += 1;
                    assert_eq!((outcome, found), (Err(Reason::Device), vec![0; LEN]), "{name}: {number}");
                }
            }
        }
    }
}

#[test]
fn a_failing_device_unwraps_no_part_of_a_key() {
    let wrapped = |instance: &Arc<Instance>, data: &mut [u8]| {
        let mut context = started::<Wrap>("AES-128-WRAP-INV", false, instance, 8);
        context.update(Buffers::in_place_of(data))
    };
    FAIL_AT.set(u64::MAX);
    let device = instance("16");
    // A key that is not authentic takes all steps too.
    let outcomes: Vec<_> = (0..40)
        .map(|number| {
            FAIL_AT.set(number);
            let mut data = [0x5a; 40];
            let outcome = wrapped(&instance("16"), &mut data);
            assert_eq!(data[..32], [0; 32], "{number}");
            outcome
        })
        .collect();
    assert!(outcomes.contains(&Err(Reason::Unwrap)) && outcomes.contains(&Err(Reason::Device)));
    FAIL_AT.set(u64::MAX);
    assert_eq!(wrapped(&device, &mut [0x5a; 40]), Err(Reason::Unwrap));
    assert_eq!(worked(&device), 12 * 32);
}

#[test]
fn a_failing_device_ends_a_record_of_gcm() {
    for encrypts in [true, false] {
        let is_zeroed = (0..).any(|number| {
            FAIL_AT.set(number);
            let mut context = started::<Gcm>("AES-128-GCM", encrypts, &instance("16"), 12);
            // The explicit IV, the data, and the tag.
            let mut data = [0x5a; 8 + 61 + 16];
            context.mode.iv_counts = true;
            context.record_aad = Some([0; 13]);
            match context.update(Buffers::in_place_of(&mut data)) {
                // The CPU has done the work, and the tag of a record to decrypt is wrong.
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
    let (outcome, output, tag) = aead::<gcm::GcmState>(&instance, &[0x5a; LEN], None);
    let mut expected = [0x5a; LEN];
    let mut gcm = InlineGcm::new(InlineKernel::best(), &KEY[..32]).unwrap();
    assert!(gcm.start(true, &IV[..12]) && gcm.aad(b"additional data of over 16 bytes"));
    assert!(gcm.update(Span::in_place(&mut expected)));
    assert_eq!((outcome, &output[..], Some(tag)), (Ok(()), &expected[..], gcm.finish_seal()));
    assert_eq!(worked(&instance), 0);
}

#[test]
fn bits_of_cfb1_that_fill_no_byte_follow_the_bytes_of_the_device() {
    FAIL_AT.set(u64::MAX);
    let (cpu, device) = (instance("1G"), instance("16"));
    let [expected, found] = [&cpu, &device].map(|instance| {
        let mut context = started::<Streams>("AES-128-CFB1", true, instance, 16);
        let mut data = [0x5a; LEN];
        context.update(Buffers::in_place_of(&mut data).with_bits(8 * LEN - 3)).unwrap();
        data
    });
    assert_eq!(found, expected);
    assert_eq!(worked(&device), LEN as u64 - 1);
}
