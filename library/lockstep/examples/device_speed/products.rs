//! Measures GHASH with each method of multiplication: with integers, with tensor units, and with the carry-less multiply-add if the
//! build includes this instruction and the device has it.

use std::sync::Arc;

use lockstep_core::KeySize;
use lockstep_core::backend::{Device, KernelId};
use lockstep_core::work::{FusedAead, Operation, Pass};
use lockstep_cuda::{Cuda, LaunchOptions, Products};
use serde_json::json;

use super::Result;
use super::bench::{Bench, is_slow};
use super::message::Message;
use super::messages::Batch;
use super::rows::{Rows, Subject, time};

const WAYS: [(Products, &str); 3] = [
    (Products::Integers, "integers"),
    (Products::TensorUnits, "tensor-units"),
    (Products::CarryLess, "carry-less"),
];

const OPERATIONS: [Operation; 3] =
    [Operation::Pass(Pass::Ghash), Operation::Pass(Pass::Polyval), Operation::Fused(FusedAead::GcmSeal)];

/// The number of messages, each with its own key, and their length in bytes.
const MESSAGES: (usize, usize) = (100_000, 1 << 10);

/// `cuda/bitslice`, which has GHASH.
const KERNEL: KernelId = KernelId(0);

/// Measures the CUDA device of this name.
pub(crate) fn measure(rows: &mut Rows, name: &str, largest: usize, seconds: f64) -> Result<()> {
    let (devices, _) = lockstep_cuda::devices();
    let device = devices.into_iter().find(|device| device.id().to_string() == name);
    let device = device.ok_or_else(|| format!("{name} is no device of CUDA"))?;
    let bench = &mut Bench::of(Arc::new(device.clone()), largest, seconds)?;
    for (products, way) in WAYS {
        let chosen = device.launched(LaunchOptions { products, ..LaunchOptions::default() });
        bench.device = Arc::new(chosen.clone());
        for operation in OPERATIONS {
            one_message(bench, rows, operation, way)?;
        }
        many_messages(bench, rows, way)?;
        if products == Products::CarryLess {
            is_used(&chosen, rows)?;
        }
    }
    Ok(())
}

fn subject(operation: Operation, way: &str, messages: usize, bytes: usize) -> Subject {
    let operation = operation.to_string();
    Subject { what: "products", kernel: way.into(), operation, bits: 128, messages, bytes }
}

fn one_message(bench: &mut Bench, rows: &mut Rows, operation: Operation, way: &str) -> Result<()> {
    let message = Message::new(operation, KeySize::Aes128)?;
    for len in bench.sizes() {
        let subject = subject(operation, way, 1, len);
        if !rows.wants(&subject) {
            continue;
        }
        let expected = message.prepare(bench, len)?;
        let seconds = bench.seconds(len);
        let outcome = message.check(bench, KERNEL, len, expected).and_then(|()| {
            time(seconds, 3, || message.run_on_device(bench, KERNEL, len, expected).map(|_| ()))
        });
        let is_last = outcome.as_ref().map_or(true, |timing| is_slow(timing.median()));
        rows.write(&subject, outcome, json!({"checked": "all"}))?;
        if is_last {
            break;
        }
    }
    Ok(())
}

fn many_messages(bench: &mut Bench, rows: &mut Rows, way: &str) -> Result<()> {
    let (count, each) = (MESSAGES.0.min(bench.largest / MESSAGES.1), MESSAGES.1);
    let operation = Operation::Fused(FusedAead::GcmSeal);
    let subject = subject(operation, way, count, count * each);
    if !rows.wants(&subject) {
        return Ok(());
    }
    let batch = Batch::new(bench, operation, KeySize::Aes128, count, each, true)?;
    let seconds = bench.seconds(bench.largest);
    let outcome =
        batch.check_table(bench, KERNEL).and_then(|()| time(seconds, 3, || batch.run_table(bench, KERNEL)));
    rows.write(&subject, outcome, json!({"checked": "all", "own_keys": true}))
}

/// Records whether the device used the carry-less multiply-add.
fn is_used(device: &Cuda, rows: &mut Rows) -> Result<()> {
    let counters = device.counters();
    let launches = |name: &str| -> u64 {
        counters.iter().filter(|counter| counter.name.starts_with(name)).map(|counter| counter.launches).sum()
    };
    let (tests, uses) = (launches("carry_less_products"), launches("ghash_carry_less"));
    let state = match (tests, uses) {
        (0, _) => "the build does not include it for this device, or nothing was measured in this run",
        (_, 0) => "the device did not pass its known-answer test, so it is not used",
        _ => "the device passed its known-answer test, and uses it",
    };
    eprintln!("carry-less multiply-add: {state} ({uses} launches)");
    let subject = Subject {
        what: "carry-less",
        kernel: "carry-less".into(),
        operation: "state".into(),
        bits: 0,
        messages: tests as usize,
        bytes: uses as usize,
    };
    rows.skip(&subject, state)
}
