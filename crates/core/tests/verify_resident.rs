//! Results that stay on a device, or in page-locked memory, are compared when their completion is waited for.

use std::sync::Arc;

use lockstep_core::backend::{Completion, Cost, Device, DeviceBuffer, DeviceId, KernelId, KernelInfo, Unit};
use lockstep_core::data::Data;
use lockstep_core::far::{Behaviour, FAR, Far};
use lockstep_core::planner::{Planner, Selection};
use lockstep_core::verify::Verify;
use lockstep_core::work::{
    AeadMessage, Operation, Pass, Recipe, Segment, Status, Stream, Tag, Task, Tweak, Work,
};
use lockstep_core::{Error, Key, KeySize, Result};

/// The processor that the results of others are compared with.
struct Near(Far, [KernelInfo; 1]);

impl Device for Near {
    fn id(&self) -> DeviceId {
        DeviceId { backend: "near", unit: Unit::Only }
    }
    fn description(&self) -> String {
        "near".into()
    }
    fn is_trusted(&self) -> bool {
        true
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.1
    }
    fn cost(&self, _: KernelId, _: Operation, _: KeySize) -> Option<Cost> {
        Some(Cost::new(1.0, 1.0))
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        self.0.submit(kernel, work)
    }
}

/// A planner over a device that answers wrong in the work with a number.
fn planner(verify: Verify, corrupt_at: Option<u64>) -> (Planner, Arc<Far>) {
    let far = Arc::new(Far::new(Behaviour { corrupt_at, ..Behaviour::default() }));
    let info = KernelInfo { name: "near/right", description: "near", constant_time: true, missing: None };
    let devices: Vec<Arc<dyn Device>> = vec![Arc::clone(&far) as _, Arc::new(Near(Far::default(), [info]))];
    let selection = Selection { device: Some(FAR.to_string()), kernel: None };
    (Planner::new(devices, &selection).unwrap().with_verify(verify), far)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251 + 1) as u8).collect()
}

/// Where the data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Same,
    Apart,
    Pinned,
}

/// Does one operation on so many bytes; what came of it, and what is in the output then.
fn run(planner: &Planner, operation: Operation, len: usize, place: Place) -> (Result<()>, Vec<u8>) {
    let memory = planner.devices()[0].memory().unwrap();
    let buffers: [Box<dyn DeviceBuffer>; 2] = [0, 1].map(|_| memory.allocate(len).unwrap());
    let [from, to] = [0, usize::from(place != Place::Same)].map(|index| buffers[index].slice());
    memory.upload(&bytes(len), &from, Stream::default()).unwrap();
    let pinned = memory.allocate_pinned(2 * len).unwrap();
    pinned.lock()[..len].copy_from_slice(&bytes(len));
    let data = if place == Place::Pinned {
        Data::pinned(pinned.slice(0..len), pinned.slice(len..2 * len)).unwrap()
    } else {
        Data::on_device(from, to.clone()).unwrap()
    };
    let keys = [Key::new(&[1; 16]).unwrap(), Key::new(&[2; 16]).unwrap()];
    let plan = planner.plan(operation, KeySize::Aes128, len, Some(FAR)).unwrap();
    let outcome = match operation {
        Operation::Pass(pass) => {
            let tweak = pass.is_xts().then_some(Tweak { key: &keys[1], position: 3 });
            let mut segments = [Segment { key: &keys[0], tweak, register: &mut [9; 16], data }];
            match place {
                // Nothing but the completion brings the verdict.
                Place::Pinned => plan.run(Task::Pass(pass, &mut segments)),
                _ => plan.submit(Task::Pass(pass, &mut segments)).and_then(Completion::wait),
            }
        }
        Operation::Recipe(recipe) => {
            let mut tag = [0; 16];
            let tag = if recipe == Recipe::GcmSeal { Tag::Write(&mut tag) } else { Tag::Expect(&[5; 16]) };
            let status = Status::Pending;
            let mut messages = [AeadMessage { key: &keys[0], nonce: &[1; 12], aad: b"", data, tag, status }];
            let outcome = plan.run(Task::Recipe(recipe, &mut messages));
            assert!(outcome.is_err() || (messages[0].status == Status::Done) == (recipe == Recipe::GcmSeal));
            outcome
        }
    };
    let mut output = vec![0; len];
    if place == Place::Pinned {
        output.copy_from_slice(&pinned.lock()[len..]);
    } else {
        memory.download(&to, &mut output, Stream::default()).unwrap();
    }
    (outcome, output)
}

fn writing() -> impl Iterator<Item = Operation> {
    Operation::all().filter(|operation| !matches!(operation, Operation::Pass(pass) if pass.is_read_only()))
}

#[test]
fn wrong_results_are_seen_and_zeroed() {
    for operation in writing() {
        // The wrong byte is the first: a sample of a single block must find it, and whoever looks at everything.
        for (verify, len) in [(Verify::Sample, 16), (Verify::Full, 16 * 4097 + 32)] {
            for place in [Place::Same, Place::Apart, Place::Pinned] {
                let (right, far) = planner(verify, None);
                let (outcome, good) = run(&right, operation, len, place);
                assert_eq!(outcome, Ok(()), "{operation} {place:?}");
                let refused = operation == Operation::Recipe(Recipe::GcmOpen);
                assert_eq!(good == vec![0; len], refused, "{operation}");
                // The last work was that one; before it came the self-test.
                let (wrong, _) = planner(verify, Some(far.submitted() - 1));
                let (outcome, output) = run(&wrong, operation, len, place);
                assert_eq!(
                    outcome,
                    Err(Error::WrongResult { device: FAR }),
                    "{operation} {verify:?} {place:?}"
                );
                assert!(output == vec![0; len], "{operation} {place:?}");
            }
        }
    }
}

#[test]
fn tails_are_compared_where_all_is() {
    let ctr = Operation::Pass(Pass::Ctr);
    let (planner, _) = planner(Verify::Full, None);
    for len in [1, 15, 17, 65_536, 65_537] {
        assert_eq!(run(&planner, ctr, len, Place::Apart).0, Ok(()), "{len}");
    }
}

#[test]
fn off_is_off() {
    let (right, far) = planner(Verify::Off, None);
    run(&right, Operation::Pass(Pass::EcbEncrypt), 16, Place::Apart).0.unwrap();
    let (wrong, _) = planner(Verify::Off, Some(far.submitted() - 1));
    assert_eq!(run(&wrong, Operation::Pass(Pass::EcbEncrypt), 16, Place::Apart).0, Ok(()));
}
