//! Lengths beyond the limit of a mode are refused before anything is done. The data are device slices of a device that
//! does not exist, since no machine has so much memory.

use lockstep_core::backend::{DeviceId, Unit};
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag};
use lockstep_core::{Error, Key};
use lockstep_modes::aead::{self, AeadKey};
use lockstep_modes::{Aead, Cipher, CipherKey, Direction, Message};
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::{MockAsyncDevice, MockCpu};

const MISSING_DEVICE: DeviceId = DeviceId { backend: "nowhere", unit: Unit::Only };

/// Processes a message of this length in device memory, and returns the error.
fn outcome(mode: Aead, seals: bool, nonce: usize, len: u64) -> Error {
    let far = std::sync::Arc::new(MockAsyncDevice::default());
    let planner =
        Planner::new(vec![far], &Selection { device: Some("mock:0".into()), kernel: None }).unwrap();
    let key = Key::new(&[1; 16]).unwrap();
    // SAFETY: no device of this name exists, so the range is never accessed.
    let all = unsafe { DeviceSlice::from_raw(MISSING_DEVICE, 0, usize::try_from(len).unwrap()) };
    let mut tag = [0; 16];
    let message = AeadMessage {
        key: &key,
        nonce: &vec![0; nonce],
        aad: &[],
        data: Data::on_device(all.clone(), all).unwrap(),
        tag: if seals { Tag::Write(&mut tag) } else { Tag::Expect(&[0; 16]) },
        status: Status::Pending,
    };
    let direction = if seals { Direction::Encrypt } else { Direction::Decrypt };
    mode.run_messages(&planner, direction, &mut [message]).unwrap_err()
}

/// The errors for an XTS data unit of this length: processed alone, and as a batch of one unit.
fn outcomes_of_xts(len: u64) -> [Error; 2] {
    let far = std::sync::Arc::new(MockAsyncDevice::default());
    let planner =
        Planner::new(vec![far], &Selection { device: Some("mock:0".into()), kernel: None }).unwrap();
    let key = CipherKey::new(Cipher::Xts, &std::array::from_fn::<u8, 32, _>(|i| i as u8)).unwrap();
    // SAFETY: no device of this name exists, so the range is never accessed.
    let all = unsafe { DeviceSlice::from_raw(MISSING_DEVICE, 0, usize::try_from(len).unwrap()) };
    let data = || Data::on_device(all.clone(), all.clone()).unwrap();
    let (mut iv, mut other) = ([0; 16], [0; 16]);
    let one = Cipher::Xts.one(&planner, Direction::Encrypt, &key, &mut iv, data());
    let message = Message { key: &key, iv: &mut other, data: data() };
    let batch = Cipher::Xts.run(&planner, Direction::Decrypt, &mut [message]);
    [one.unwrap_err(), batch.unwrap_err()]
}

#[test]
fn xts_takes_2_to_the_20_blocks() {
    // SP 800-38E, section 4.
    assert!(outcomes_of_xts(1 << 24).iter().all(|error| matches!(error, Error::UnknownDevice { .. })));
    for extra in [1, 16] {
        let outcomes = outcomes_of_xts((1 << 24) + extra);
        assert!(
            outcomes.iter().all(|error| matches!(error, Error::TooLong { mode: "XTS", .. })),
            "{outcomes:?}"
        );
    }
}

/// The longest valid message fails only because the device is missing. A message of one more byte is refused before that.
fn check(mode: Aead, seals: bool, nonce: usize, limit: u64) {
    assert!(matches!(outcome(mode, seals, nonce, limit), Error::UnknownDevice { .. }), "{limit} bytes");
    let error = outcome(mode, seals, nonce, limit + 1);
    assert!(matches!(error, Error::TooLong { limit: told, .. } if told == limit), "{error}");
}

#[cfg(target_pointer_width = "64")]
#[test]
fn gcm_takes_64_gib_less_two_blocks() {
    // SP 800-38D, 5.2.1.1.
    check(Aead::Gcm, true, 12, (1 << 36) - 32);
    check(Aead::Gcm, false, 12, (1 << 36) - 32);
}

#[cfg(target_pointer_width = "64")]
#[test]
fn ccm_takes_what_the_nonce_leaves() {
    // SP 800-38C, A.1: the length field has the remaining 15 - n bytes.
    for nonce in 8..=13 {
        check(Aead::Ccm, true, nonce, (1 << (8 * (15 - nonce))) - 1);
    }
}

/// Tasks that are submitted without a mode have the same limits: the counter of a longer message would repeat.
#[cfg(target_pointer_width = "64")]
#[test]
fn fused_tasks_have_the_limits_of_their_modes() {
    let key = Key::new(&[0; 16]).unwrap();
    let check = |fused: FusedAead, len: u64| {
        // SAFETY: no device of this name exists, so the range is never accessed.
        let all = unsafe { DeviceSlice::from_raw(MISSING_DEVICE, 0, usize::try_from(len).unwrap()) };
        let (data, status, mut tag) = (Data::on_device(all.clone(), all)?, Status::Pending, [0; 16]);
        let tag = if fused.opens() { Tag::Expect(&[0; 16]) } else { Tag::Write(&mut tag) };
        fused.check_lengths(&AeadMessage { key: &key, nonce: &[0; 12], aad: &[], data, tag, status })
    };
    for fused in FusedAead::ALL {
        let most = match fused.sealing() {
            // SP 800-38D, 5.2.1.1: 2^39 - 256 bits.
            FusedAead::GcmSeal => (1 << 36) - 32,
            // RFC 8452, section 6.
            FusedAead::GcmSivSeal => 1 << 36,
            // RFC 7253, section 5.1: at most 2^48 blocks with a key. A message may have 2^46 blocks of data and 2^46
            // blocks of associated data, together half of this number.
            _ => 1 << 50,
        };
        assert_eq!(check(fused, most), Ok(()));
        let error = check(fused, most + 1).unwrap_err();
        assert!(matches!(error, Error::TooLong { limit, .. } if limit == most), "{fused:?}: {error}");
    }
}

/// True if the standard of the mode allows a nonce and a tag of these lengths.
fn are_allowed(mode: Aead, nonce: usize, tag: usize) -> bool {
    match mode {
        // SP 800-38D, 5.2.1.1 and 5.2.1.2.
        Aead::Gcm => nonce > 0 && (tag == 4 || tag == 8 || (12..=16).contains(&tag)),
        // RFC 8452, section 4.
        Aead::GcmSiv => nonce == 12 && tag == 16,
        // RFC 7253, section 4.2.
        Aead::Ocb => (1..=15).contains(&nonce) && (1..=16).contains(&tag),
        // RFC 5297, section 2.6.
        Aead::Siv => tag == 16,
        // SP 800-38C, A.1.
        Aead::Ccm => (7..=13).contains(&nonce) && (4..=16).contains(&tag) && tag.is_multiple_of(2),
        Aead::Xaes => nonce == 24 && tag == 16,
        // EAX has nonces of any length.
        Aead::Eax => (1..=16).contains(&tag),
    }
}

/// Every length of the nonce up to 25 bytes, and of the tag up to 17 bytes. A refused message is unchanged.
#[test]
fn nonces_and_tags_have_the_lengths_of_the_standards() {
    let planner = Planner::new(vec![std::sync::Arc::new(MockCpu::default())], &Selection::default()).unwrap();
    for mode in Aead::ALL {
        let key = AeadKey::new(mode, &[1; 32]).unwrap();
        let run = |nonce: &[u8], data: &mut [u8], tag: Tag<'_>| {
            let direction =
                if matches!(tag, Tag::Write(_)) { Direction::Encrypt } else { Direction::Decrypt };
            let (data, status) = (Data::in_place(data), Status::Pending);
            mode.run(
                &planner,
                direction,
                &mut [aead::Message { key: &key, nonce, aad: &[], data, tag, status }],
            )
        };
        for nonce in (0..=25).map(|len| vec![2; len]) {
            for len in 0..=17 {
                let (mut data, mut tag) = ([3; 5], vec![4; len]);
                let outcomes =
                    [run(&nonce, &mut data, Tag::Write(&mut tag)), run(&nonce, &mut data, Tag::Expect(&tag))];
                let refused = |outcome: &Result<(), Error>| match outcome {
                    Err(Error::IvLength { got, .. }) => *got == nonce.len(),
                    Err(Error::TagLength { got, .. }) => *got == len,
                    _ => false,
                };
                let is_right = match are_allowed(mode, nonce.len(), len) {
                    true => outcomes == [Ok(()), Ok(())],
                    false => outcomes.iter().all(refused) && tag == vec![4; len],
                };
                assert!(is_right && data == [3; 5], "{mode}, nonce {}, tag {len}: {outcomes:?}", nonce.len());
            }
        }
    }
}

#[test]
fn a_tag_for_the_other_direction_is_refused() {
    let planner = Planner::new(vec![std::sync::Arc::new(MockCpu::default())], &Selection::default()).unwrap();
    for mode in Aead::ALL {
        let key = AeadKey::new(mode, &[1; 32]).unwrap();
        let nonce = &[0; 24][..if mode == Aead::Xaes { 24 } else { 12 }];
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let (mut data, mut tag) = ([3; 5], [4; 16]);
            let tag = match direction {
                Direction::Encrypt => Tag::Expect(&tag),
                Direction::Decrypt => Tag::Write(&mut tag),
            };
            let (text, status) = (Data::in_place(&mut data), Status::Done);
            let mut messages = [aead::Message { key: &key, nonce, aad: &[], data: text, tag, status }];
            let outcome = mode.run(&planner, direction, &mut messages);
            assert!(matches!(outcome, Err(Error::Order { .. })), "{mode}: {outcome:?}");
            assert_eq!(messages[0].status, Status::Pending, "{mode}");
            assert_eq!(data, [3; 5], "{mode}");
        }
    }
}

#[test]
fn xaes_refuses_shorter_keys() {
    let planner = Planner::new(vec![std::sync::Arc::new(MockCpu::default())], &Selection::default()).unwrap();
    for len in [16, 24] {
        let (key, mut data, mut tag) = (Key::new(&vec![1; len]).unwrap(), [3; 5], [0; 16]);
        let (text, tag, status) = (Data::in_place(&mut data), Tag::Write(&mut tag), Status::Pending);
        let message = AeadMessage { key: &key, nonce: &[0; 24], aad: &[], data: text, tag, status };
        let outcome = Aead::Xaes.run_messages(&planner, Direction::Encrypt, &mut [message]);
        assert!(matches!(outcome, Err(Error::ModeKey { got, .. }) if got == len), "{outcome:?}");
        assert_eq!(data, [3; 5]);
    }
}
