//! Measures every kernel and operation on data in device memory. A call of a serial pass processes many messages, which one table
//! describes.

use lockstep_core::KeySize;
use lockstep_core::backend::KernelId;
use lockstep_core::work::{Operation, Pass};
use serde_json::json;

use super::Result;
use super::bench::{Bench, is_slow};
use super::message::{Message, key_sizes, parallel};
use super::messages::Batch;
use super::rows::{Rows, Subject, Timing, time};

/// Number of bytes of each message in the measurements of serial passes.
const SERIAL: usize = 4096;

pub(crate) fn measure(bench: &mut Bench, rows: &mut Rows) -> Result<()> {
    for operation in parallel() {
        for size in key_sizes(operation) {
            one_message(bench, rows, operation, size)?;
        }
    }
    for pass in Pass::ALL.into_iter().filter(|pass| pass.is_serial()) {
        for size in key_sizes(Operation::Pass(pass)) {
            many_messages(bench, rows, pass, size)?;
        }
    }
    Ok(())
}

/// The kernels that support an operation, each with the subject for the rows of its results.
fn subjects(
    bench: &Bench,
    what: &'static str,
    operation: Operation,
    size: KeySize,
) -> Vec<(KernelId, Subject)> {
    let supports = |kernel: &KernelId| bench.device.cost(*kernel, operation, size).is_some();
    let kernels = bench.kernels().into_iter().filter(|(kernel, _)| supports(kernel));
    let subject = |kernel: &str| Subject {
        what,
        kernel: kernel.into(),
        operation: operation.to_string(),
        bits: size.bits(),
        messages: 1,
        bytes: 0,
    };
    kernels.map(|(kernel, name)| (kernel, subject(name))).collect()
}

fn one_message(bench: &mut Bench, rows: &mut Rows, operation: Operation, size: KeySize) -> Result<()> {
    let mut kernels = subjects(bench, "resident", operation, size);
    let message = Message::new(operation, size)?;
    for len in bench.sizes() {
        kernels.iter_mut().for_each(|(_, subject)| subject.bytes = len);
        let wanted: Vec<_> = kernels.iter().filter(|(_, subject)| rows.wants(subject)).cloned().collect();
        if wanted.is_empty() {
            continue;
        }
        let expected = message.prepare(bench, len)?;
        for (kernel, subject) in wanted {
            let seconds = bench.seconds(len);
            let outcome = message.check(bench, kernel, len, expected).and_then(|()| {
                time(seconds, 3, || message.run_on_device(bench, kernel, len, expected).map(|_| ()))
            });
            if !write(bench, rows, subject, outcome)? {
                kernels.retain(|(other, _)| *other != kernel);
            }
        }
    }
    Ok(())
}

/// Writes the outcome of a measurement. Returns false if this run must not measure the kernel at larger sizes.
fn write(bench: &Bench, rows: &mut Rows, mut subject: Subject, outcome: Result<Timing>) -> Result<bool> {
    let (has_failed, is_slow) = (outcome.is_err(), outcome.as_ref().is_ok_and(|it| is_slow(it.median())));
    rows.write(&subject, outcome, json!({"checked": "all"}))?;
    if is_slow {
        let (measured, messages) = (subject.bytes, subject.messages);
        for len in bench.sizes().into_iter().filter(|&len| len > measured) {
            // If there are several messages, their number grows with the size.
            subject.messages = if messages == 1 { 1 } else { messages * (len / measured) };
            subject.bytes = len;
            rows.skip(&subject, "a call would take too long")?;
        }
    }
    Ok(!has_failed && !is_slow)
}

fn many_messages(bench: &mut Bench, rows: &mut Rows, pass: Pass, size: KeySize) -> Result<()> {
    let operation = Operation::Pass(pass);
    let mut kernels = subjects(bench, "serial", operation, size);
    for len in bench.sizes() {
        for (_, subject) in &mut kernels {
            (subject.bytes, subject.messages) = (len, len / SERIAL);
        }
        let wanted: Vec<_> = kernels.iter().filter(|(_, subject)| rows.wants(subject)).cloned().collect();
        if wanted.is_empty() {
            continue;
        }
        let batch = Batch::new(bench, operation, size, len / SERIAL, SERIAL, false)?;
        for (kernel, subject) in wanted {
            let seconds = bench.seconds(len);
            let outcome = batch
                .check_table(bench, kernel)
                .and_then(|()| time(seconds, 3, || batch.run_table(bench, kernel)));
            if !write(bench, rows, subject, outcome)? {
                kernels.retain(|(other, _)| *other != kernel);
            }
        }
    }
    Ok(())
}
