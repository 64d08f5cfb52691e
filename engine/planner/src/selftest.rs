//! Known-answer tests that a kernel must pass before its first use for an operation, on the device itself.

use lockstep_core::backend::{Device, KernelId, kernel_by_name};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::KeySize;
use lockstep_core::selftest;
use lockstep_core::work::Operation;

/// Runs the known-answer tests of an operation on the device and on its variants, for every key size the kernel claims to support.
///
/// # Errors
/// [`Error::SelfTest`] if an answer is wrong; errors of the device.
pub fn run(device: &dyn Device, kernel: KernelId, operation: Operation) -> Result<()> {
    let name = device.kernels()[usize::from(kernel.0)].name;
    for variant in device.variants() {
        run_on(&*variant, kernel_by_name(&*variant, name)?, operation)?;
    }
    run_on(device, kernel, operation)
}

/// The operations that the kernel claims to support with a key size. There are none if the kernel cannot run here.
pub fn operations(device: &dyn Device, kernel: KernelId) -> Vec<Operation> {
    let is_here = device.kernels()[usize::from(kernel.0)].missing.is_none();
    let has_cost = |operation, size: &KeySize| device.cost(kernel, operation, *size).is_some();
    let is_supported = |operation: &Operation| KeySize::ALL.iter().any(|size| has_cost(*operation, size));
    Operation::all().filter(|operation| is_here && is_supported(operation)).collect()
}

fn run_on(device: &dyn Device, kernel: KernelId, operation: Operation) -> Result<()> {
    for size in KeySize::ALL.into_iter().filter(|size| device.cost(kernel, operation, *size).is_some()) {
        if !selftest::passes(&|task| device.submit(kernel, task.into())?.wait(), operation, size)? {
            return Err(Error::SelfTest {
                kernel: device.kernels()[usize::from(kernel.0)].name.into(),
                device: device.id(),
                test: format!("known answer of {} with {} bits", operation.words(), size.bits()),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
