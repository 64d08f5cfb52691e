//! Known-answer tests that a kernel must pass before its first use for an operation, on the device itself.

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::KeySize;
use lockstep_core::selftest;
use lockstep_core::work::Operation;

/// Runs the known-answer tests of an operation, for every key size the kernel claims to support.
///
/// # Errors
/// [`Error::SelfTest`] if an answer is wrong; errors of the device.
pub fn run(device: &dyn Device, kernel: KernelId, operation: Operation) -> Result<()> {
    for size in KeySize::ALL.into_iter().filter(|size| device.cost(kernel, operation, *size).is_some()) {
        let passes = selftest::passes(
            &|task| {
                device.submit(kernel, task.into())?.wait()?;
                Ok(())
            },
            operation,
            size,
        )?;
        if !passes {
            return Err(Error::SelfTest {
                kernel: device.kernels()[usize::from(kernel.0)].name.into(),
                device: device.id(),
                test: format!("known answer of {operation} with {} bits", size.bits()),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
}
