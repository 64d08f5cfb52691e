//! Runs the shared suite on the mock device, which fails if shared code assumes that data are in host memory. Also tests failures of the
//! device.

use std::sync::Arc;
use std::time::Duration;

use lockstep_core::backend::Device;
use lockstep_core::data::Data;
use lockstep_core::work::Operation;
use lockstep_core::{Error, KeySize};
use lockstep_modes::{Aead, AeadKey, Cipher, CipherKey, Direction, Executor};
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::{Behaviour, MOCK_DEVICE, MockAsyncDevice};

fn far(behaviour: Behaviour) -> Arc<dyn Device> {
    Arc::new(MockAsyncDevice::new(behaviour))
}

lockstep_testkit::backend_suite!(fused, far(Behaviour::default()), "mock/oracle");
lockstep_testkit::backend_suite!(
    composed,
    far(Behaviour { fused: false, ..Behaviour::default() }),
    "mock/oracle"
);

fn planner(behaviour: Behaviour) -> Planner {
    let selection = Selection { device: Some("mock:0".into()), kernel: None };
    Planner::new(vec![far(behaviour)], &selection).unwrap()
}

#[test]
fn work_completes_later() {
    let planner = planner(Behaviour { delay: Duration::from_millis(20), ..Behaviour::default() });
    let key = lockstep_core::Key::new(&[1; 16]).unwrap();
    let plan = planner
        .plan(Operation::Pass(lockstep_core::work::Pass::EcbEncrypt), KeySize::Aes128, 16, None)
        .unwrap();
    let mut state = [0; 16];
    let mut data = [0; 16];
    let mut segments = [lockstep_core::work::Segment {
        key: &key,
        tweak: None,
        state: &mut state,
        data: lockstep_core::data::Data::in_place(&mut data),
    }];
    let task = lockstep_core::work::Task::Pass(lockstep_core::work::Pass::EcbEncrypt, &mut segments);
    let completion = plan.submit(task).unwrap();
    assert!(!completion.is_ready(), "20 ms have passed already?");
    completion.wait().unwrap();
    assert_ne!(data, [0; 16]);
}

#[test]
fn a_failing_device_is_an_error() {
    // Submissions 0 to 5 are the self-test of the three key sizes, with two calls for each.
    let planner = planner(Behaviour { fail_at: Some(6), ..Behaviour::default() });
    let key = CipherKey::new(Cipher::Ctr, &[1; 16]).unwrap();
    let error = Cipher::Ctr
        .one(&planner, Direction::Encrypt, &key, &mut [0; 16], Data::in_place(&mut [0; 100]))
        .unwrap_err();
    assert!(matches!(error, Error::DeviceFailed { device: MOCK_DEVICE, .. }), "{error}");
    Cipher::Ctr.one(&planner, Direction::Encrypt, &key, &mut [0; 16], Data::in_place(&mut [0; 100])).unwrap();
}

#[test]
fn a_stream_does_not_go_on_after_a_failure() {
    use lockstep_modes::stream::Sealer;
    // Submissions 0 to 5 are the self-test of Ctr32. Submission 6 is the first piece of data, and the self-test of Ghash
    // follows.
    let executor: Arc<dyn Executor> =
        Arc::new(planner(Behaviour { fail_at: Some(6), ..Behaviour::default() }));
    let key = AeadKey::new(Aead::Gcm, &[1; 16]).unwrap();
    let mut stream = Sealer::new(executor, &key, &[0; 12], None).unwrap();
    let error = stream.update_in_place(&mut [1; 32]).unwrap_err();
    assert!(matches!(error, Error::DeviceFailed { .. }), "{error}");
    let error = stream.update_in_place(&mut [2; 32]).unwrap_err();
    assert!(matches!(error, Error::Order { .. }), "keystream could be used twice: {error}");
    assert!(stream.finish(&mut [0; 16]).is_err());
}

#[test]
fn gcm_goes_by_passes_if_the_fused_kernel_fails_its_test() {
    use lockstep_core::work::{AeadMessage, Status, Tag};
    // Submission 0 is the first self-test of the fused AEAD.
    let planner = planner(Behaviour { corrupt_at: Some(0), ..Behaviour::default() });
    let key = lockstep_core::Key::new(&[1; 16]).unwrap();
    let (mut data, mut tag) = ([7; 40], [0; 16]);
    let message = AeadMessage {
        key: &key,
        nonce: &[3; 12],
        aad: b"a",
        data: Data::in_place(&mut data),
        tag: Tag::Write(&mut tag),
        status: Status::Pending,
    };
    Aead::Gcm.run_messages(&planner, Direction::Encrypt, &mut [message]).unwrap();
    let aes = lockstep_reference::Aes::new(&[1; 16]);
    assert_eq!((data.to_vec(), tag), lockstep_reference::gcm::seal(&aes, &[3; 12], b"a", &[7; 40]));
    assert_eq!(planner.failures().len(), 1);
}

#[test]
fn a_device_that_answers_wrong_is_not_used() {
    let planner = planner(Behaviour { corrupt_at: Some(1), ..Behaviour::default() });
    let key = CipherKey::new(Cipher::Ctr, &[1; 16]).unwrap();
    for _ in 0..2 {
        let error = Cipher::Ctr
            .one(&planner, Direction::Encrypt, &key, &mut [0; 16], Data::in_place(&mut [7; 100]))
            .unwrap_err();
        assert!(matches!(error, Error::SelfTest { device: MOCK_DEVICE, .. }), "{error}");
    }
    assert_eq!(planner.failures().len(), 1);
}

#[test]
fn auto_does_not_choose_devices_that_are_used_by_name_only() {
    let auto = Planner::new(vec![far(Behaviour::default())], &Selection::default()).unwrap();
    assert!(auto.devices().is_empty());
    let error =
        auto.plan(Operation::Pass(lockstep_core::work::Pass::Ctr), KeySize::Aes128, 1, None).err().unwrap();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[test]
fn unknown_names_are_errors_that_help() {
    let named = |device: Option<&str>, kernel: Option<&str>| {
        let selection = Selection { device: device.map(Into::into), kernel: kernel.map(Into::into) };
        Planner::new(vec![far(Behaviour::default())], &selection).err().unwrap().to_string()
    };
    assert_eq!(named(Some("cuda:7"), None), "no device `cuda:7`: there are mock:0");
    assert_eq!(named(None, Some("mock/fast")), "no kernel `mock/fast` on mock:0: it has mock/oracle");
    let expected = "no device `gpu`: there are mock:0; the name of a kernel begins with that of its device, as in cpu/soft";
    assert_eq!(named(None, Some("gpu/fast")), expected);
}
