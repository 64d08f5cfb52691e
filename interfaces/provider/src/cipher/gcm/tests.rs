//! GCM with its CTR on a device.

use std::cell::Cell;
use std::sync::Arc;

use lockstep::engine::{BackendOptions, register};
use lockstep::hazmat::backend::Backend;
use lockstep::hazmat::inline::InlineKernel;
use lockstep_testkit::mock::{Behaviour, MockBackend};

use super::*;
use crate::algorithm::ALGORITHMS;
use crate::cipher::{Cipher, Common, Gcm};
use crate::libcrypto::core::Core;

const KEY: [u8; 16] = [0x42; 16];
const IV: [u8; 12] = [7; 12];

thread_local! {
    /// The submission of work that fails on devices that this thread opens, counted from 0.
    static FAIL_AT: Cell<u64> = const { Cell::new(u64::MAX) };
}

fn backends(_: &BackendOptions) -> Vec<Box<dyn Backend>> {
    let fail_at = Some(FAIL_AT.get());
    vec![Box::new(MockBackend(Behaviour { fail_at, ..Behaviour::default() }))]
}

/// A context of AES-128-GCM whose CTR is on a device from this number of bytes on.
fn started(encrypts: bool, threshold: &str) -> (Gcm, Arc<Instance>) {
    // False if another test has registered them.
    register(backends);
    let settings = |name: &str| match name {
        "LOCKSTEP_DEVICE" => Some("mock:0".into()),
        "LOCKSTEP_THRESHOLD" => Some(threshold.into()),
        "LOCKSTEP_AHEAD" => Some("off".into()),
        _ => None,
    };
    let instance = Instance::new(Core::none(), settings).unwrap();
    let algorithm = ALGORITHMS.iter().find(|algorithm| algorithm.name() == "AES-128-GCM").unwrap();
    let mut context = Gcm::new(Common { instance: Arc::clone(&instance), algorithm, encrypts });
    context.init(encrypts, Some(&KEY), Some(&IV)).unwrap();
    (context, instance)
}

#[test]
fn a_device_gets_all_blocks_of_a_large_update() {
    let (mut context, instance) = started(true, "65536");
    let mut data = vec![0x5a; 101_007];
    let mut expected = data.clone();
    let (small, large) = data.split_at_mut(1_000);
    assert_eq!(context.update(Buffers::in_place_of(small)), Ok(1_000));
    assert_eq!(context.update(Buffers::in_place_of(large)), Ok(100_007));
    let mut gcm = InlineGcm::new(InlineKernel::best(), &KEY).unwrap();
    assert!(gcm.start(true, &IV) && gcm.update(Span::in_place(&mut expected)));
    assert!(data == expected);
    // The first 8 bytes of the large update complete a block of the small one, and the last 15 bytes do not fill a block.
    let worked = instance.resources.engine().unwrap().planner().worked();
    let worked: Vec<_> = worked.into_iter().map(|(id, bytes)| (id.to_string(), bytes)).collect();
    assert_eq!(worked, [("mock:0".into(), 99_984)]);
    context.finish(Buffers::in_place_of(&mut [])).unwrap();
    assert_eq!(Some(context.tag), gcm.finish_seal());
}

#[test]
fn a_failure_of_the_device_leaves_no_data_in_the_output() {
    for (encrypts, is_record) in [(true, false), (false, false), (true, true), (false, true)] {
        // The first submissions are those of the self-test. If one of them fails, the CPU does the work.
        let is_zeroed = (0..).any(|number| {
            FAIL_AT.set(number);
            let (mut context, _) = started(encrypts, "16");
            // The explicit IV of a record, the data, and the tag.
            let mut data = [0x5a; 8 + 61 + 16];
            if is_record {
                context.mode.iv_counts = true;
                context.record_aad = Some([0; 13]);
            }
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
