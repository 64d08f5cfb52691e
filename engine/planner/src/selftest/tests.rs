
use super::*;

/// Compares the stored answers with those of the reference implementation.
#[test]
fn answers_are_the_oracles() {
    let behaviour = lockstep_testkit::mock::Behaviour { ocb: true, gcm_siv: true, ..Default::default() };
    let oracle = lockstep_testkit::mock::MockAsyncDevice::new(behaviour);
    let run: selftest::Run<'_> = &|task| {
        oracle.submit(KernelId(0), task.into())?.wait()?;
        Ok(())
    };
    let mut wrong = Vec::new();
    for size in KeySize::ALL {
        for operation in Operation::all().filter(|operation| operation.takes_key(size)) {
            if !selftest::passes(run, operation, size).unwrap() {
                let digest = selftest::digest_of(run, operation, size).unwrap();
                wrong.push(format!("{operation} {size:?}: {digest:#018x}"));
            }
        }
    }
    if !selftest::passes_first_tests(run).unwrap() {
        let digest = |size| selftest::digest_of_first_tests(run, size).unwrap();
        wrong.push(format!("FIRST_TESTS: {:#018x?}", KeySize::ALL.map(digest)));
    }
    assert_eq!(wrong, [""; 0], "the stored answers differ");
}
