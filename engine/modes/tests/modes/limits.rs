//! Lengths beyond the limit of a mode are refused before anything is done. The data are device slices of a device that
//! does not exist, since no machine has so much memory.

use lockstep_core::backend::{DeviceId, Unit};
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag};
use lockstep_core::{Error, Key};
use lockstep_modes::{Aead, Cipher, CipherKey, Direction, Message};
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::MockAsyncDevice;

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
