use super::*;

fn engine(kernel: &str) -> Engine {
    Engine::builder().device("cpu").kernel(kernel).threads(1).build().unwrap()
}

/// Two kernels run each workload, with one message and with several. After each call, the outputs of the two
/// kernels are equal and differ from the input.
#[test]
fn no_call_reverses_another() {
    let (ours, verifier) = (engine("auto"), engine("cpu/soft"));
    for work in all() {
        for shape in [Shape::one(96), Shape { size: 48, messages: 3 }] {
            let inputs = work.inputs(shape, &verifier).unwrap();
            let mut runs = [&ours, &verifier].map(|engine| work.ours(engine, &inputs, shape).unwrap());
            let start = random(shape.bytes());
            let mut buffers = [start.clone(), start.clone()];
            for call in 0..4 {
                let digests: Vec<_> = runs
                    .iter_mut()
                    .zip(&mut buffers)
                    .map(|(run, buffer)| run(buffer, call).unwrap())
                    .collect();
                assert!(digests[0] == digests[1] && buffers[0] == buffers[1], "{} call {call}", work.name);
                assert!(buffers[0] != start, "{} call {call}", work.name);
            }
        }
    }
}

/// The digest detects a call that does nothing, although the buffer contains the correct output of an earlier call. The test has three
/// cases: all calls after the first one do nothing, only one call does nothing, and every call does its work.
#[test]
fn an_opening_that_does_nothing_is_found() {
    let verifier = engine("cpu/soft");
    let work = named("gcm-128-open");
    for shape in [Shape::one(40), Shape { size: 40, messages: 3 }] {
        let inputs = work.inputs(shape, &verifier).unwrap();
        let mut plaintext = random(shape.bytes());
        work.ours(&verifier, &inputs, shape).unwrap()(&mut plaintext, 0).unwrap();
        for idle in [1..9, 4..5, 9..9] {
            let mut right = work.ours(&verifier, &inputs, shape).unwrap();
            let (plaintext, skipped) = (plaintext.clone(), idle.clone());
            let mut wrong = checking_each_write(
                shape.size,
                Box::new(move |data, call| {
                    if !skipped.contains(&call) {
                        data.copy_from_slice(&plaintext);
                    }
                    Ok(0)
                }),
            );
            let mut buffers = [random(shape.bytes()), Vec::new()];
            buffers[1] = buffers[0].clone();
            let mut differ = |call: u64| {
                let digests = [right(&mut buffers[0], call), wrong(&mut buffers[1], call)];
                let [right, wrong] = digests.map(|digest| digest.unwrap());
                right != wrong
            };
            let found: Vec<u64> = (0..9).filter(|call| differ(*call)).collect();
            assert_eq!(found, idle.collect::<Vec<_>>());
        }
    }
}

#[test]
fn names() {
    let begin_with = |prefix| all().iter().filter(|work| work.name.starts_with(prefix)).count();
    assert_eq!([begin_with("xts"), begin_with("ctr-1"), begin_with("abacus")], [4, 2, 0]);
    assert!(!named("xts-128").accepts(32 << 20) && !named("ecb-128").accepts(17));
}
