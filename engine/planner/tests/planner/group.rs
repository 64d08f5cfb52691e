//! Groups of devices: the shared suite on a group of three devices, which share even short work; and work during which one device
//! fails.

use std::sync::Arc;

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag, Task};
use lockstep_core::{Error, Key, KeySize};
use lockstep_planner::Planner;
use lockstep_planner::group::Group;
use lockstep_testkit::mock::{Behaviour, MockAsyncDevice};

fn group(behaviours: [Behaviour; 3]) -> (Arc<dyn Device>, Vec<Arc<MockAsyncDevice>>) {
    let devices: Vec<_> =
        behaviours.into_iter().map(|behaviour| Arc::new(MockAsyncDevice::new(behaviour))).collect();
    let members = devices.iter().map(|device| Arc::clone(device) as Arc<dyn Device>).collect();
    (Arc::new(Group::new("mock", "all", members).with_min_share(16)), devices)
}

fn of(behaviour: &Behaviour) -> Arc<dyn Device> {
    group([behaviour.clone(), behaviour.clone(), behaviour.clone()]).0
}

lockstep_testkit::backend_suite!(fused, of(&Behaviour::default()), "mock/oracle");
lockstep_testkit::backend_suite!(
    composed,
    of(&Behaviour { fused: false, ..Behaviour::default() }),
    "mock/oracle"
);

fn ctr(device: &dyn Device, data: &mut [u8]) -> ([u8; 16], lockstep_core::Result<()>) {
    let (key, mut state) = (Key::new(&[1; 16]).unwrap(), [255; 16]);
    let data = Data::in_place(data);
    let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data }];
    let outcome = device
        .submit(KernelId(0), Task::Pass(Pass::Ctr, &mut segments).into())
        .and_then(|completion| completion.wait());
    (state, outcome)
}

#[test]
fn a_long_message_is_shared() {
    let slow = Behaviour { bytes_per_second: 10_000_000, ..Behaviour::default() };
    let fast = Behaviour { bytes_per_second: 80_000_000, ..Behaviour::default() };
    let (group, devices) = group([slow.clone(), fast, slow]);
    let mut data = vec![9; 100_000];
    let (state, outcome) = ctr(&*group, &mut data);
    outcome.unwrap();
    let aes = lockstep_reference::Aes::new(&[1; 16]);
    assert!(data == lockstep_reference::ctr::apply(&aes, &[255; 16], &[9; 100_000]));
    assert_eq!(u128::from_be_bytes(state), 6249);
    assert_eq!(devices.iter().map(|device| device.submitted()).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn short_work_is_not_shared() {
    let devices = [0, 1].map(|_| Arc::new(MockAsyncDevice::default()));
    let members = devices.iter().map(|device| Arc::clone(device) as Arc<dyn Device>).collect();
    ctr(&Group::new("mock", "all", members), &mut [0; 100_000]).1.unwrap();
    assert_eq!(devices.map(|device| device.submitted()), [1, 0]);
}

#[test]
fn if_one_device_fails_all_output_is_zeroed() {
    let failing = Behaviour { fail_at: Some(0), ..Behaviour::default() };
    let (group, _) = group([Behaviour::default(), failing.clone(), Behaviour::default()]);
    let mut data = vec![9; 50_000];
    let (state, outcome) = ctr(&*group, &mut data);
    assert!(matches!(outcome, Err(Error::DeviceFailed { .. })));
    assert!(data.iter().all(|&byte| byte == 0));
    assert_eq!(state, [255; 16]);

    let (group, _) = self::group([Behaviour::default(), Behaviour::default(), failing]);
    let key = Key::new(&[1; 16]).unwrap();
    let (mut data, mut tags) = (vec![[9; 500]; 3], [[7; 16]; 3]);
    let mut messages: Vec<_> = (data.iter_mut().zip(&mut tags))
        .map(|(data, tag)| AeadMessage {
            key: &key,
            nonce: &[1; 12],
            aad: b"",
            data: Data::in_place(data),
            tag: Tag::Write(tag),
            status: Status::Done,
        })
        .collect();
    let outcome = group.submit(KernelId(0), Task::Fused(FusedAead::GcmSeal, &mut messages).into());
    assert!(matches!(outcome.map(|_| ()), Err(Error::DeviceFailed { .. })));
    assert!(messages.iter().all(|message| message.status == Status::Pending));
    drop(messages);
    assert_eq!((data, tags), (vec![[0; 500]; 3], [[0; 16]; 3]));
}

/// A group is not used if one of its devices computes wrong results.
#[test]
fn each_member_is_tested() {
    let wrong = Behaviour { corrupt_at: Some(0), ..Behaviour::default() };
    let (group, _) = group([Behaviour::default(), Behaviour::default(), wrong]);
    let selection = lockstep_planner::Selection { device: Some("mock:all".into()), kernel: None };
    let planner = Planner::new(vec![group], &selection).unwrap();
    let plan = planner.plan(Operation::Pass(Pass::Ctr), KeySize::Aes128, 16, None);
    assert!(matches!(plan.map(|_| ()), Err(Error::SelfTest { .. })));
}
