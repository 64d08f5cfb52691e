//! Measures operations whose input and output are in host memory. They are compared with copies of the same bytes without an operation.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use lockstep_core::backend::{DeviceMemory, KernelId};
use lockstep_core::data::{Data, DeviceSlice, PinnedBuffer};
use lockstep_core::work::{Operation, Pass, Segment, Stream, Task};
use lockstep_core::{Key, KeySize};
use lockstep_testkit::suite::random_bytes;
use serde_json::json;

use super::Result;
use super::bench::{Bench, compare, fastest};
use super::rows::{Rows, Subject, Timing, time};

/// Lengths in bytes. Lengths that exceed the buffers are left out.
const SIZES: [usize; 5] = [64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30];

/// The default stream of the calling thread in CUDA. With this handle, the work of two threads can overlap.
// SAFETY: CUDA defines this handle for every thread.
const STREAM_OF_THREAD: Stream = unsafe { Stream::from_raw(2) };

const STATE: [u8; 16] = [0x24; 16];

pub(crate) fn measure(bench: &mut Bench, rows: &mut Rows) -> Result<()> {
    let sizes: Vec<usize> = SIZES.into_iter().filter(|&len| len <= bench.largest).collect();
    let sizes = if sizes.is_empty() { vec![bench.largest] } else { sizes };
    for len in sizes {
        copies(bench, rows, len)?;
        for (pass, size) in
            [(Pass::Ctr, KeySize::Aes128), (Pass::Ctr, KeySize::Aes256), (Pass::EcbEncrypt, KeySize::Aes128)]
        {
            let key = Key::new(&random_bytes(size.bytes()))?;
            prepare(bench, pass, &key, len)?;
            // Only the first two kernels are measured. `lockstep-lab lab cuda` measures the kernels of the papers.
            for (kernel, name) in bench.kernels().into_iter().take(2) {
                if bench.device.cost(kernel, Operation::Pass(pass), size).is_some() {
                    passes(bench, rows, (kernel, name), pass, &key, len)?;
                }
            }
        }
    }
    Ok(())
}

fn subject(what: &'static str, kernel: &str, operation: &str, bits: usize, bytes: usize) -> Subject {
    Subject { what, kernel: kernel.into(), operation: operation.into(), bits, messages: 1, bytes }
}

/// Computes the result on the CPU and writes it to `bench.expected`.
fn prepare(bench: &mut Bench, pass: Pass, key: &Key, len: usize) -> Result<()> {
    let kernel = fastest(&*bench.cpu, Operation::Pass(pass), key.size()).ok_or("no kernel of the CPU")?;
    let mut state = STATE;
    let data = Data::copy(&bench.input[..len], &mut bench.expected[..len])?;
    let mut segments = [Segment { key, tweak: None, state: &mut state, data }];
    Ok(bench.cpu.submit(kernel, Task::Pass(pass, &mut segments).into())?.wait()?)
}

fn passes(
    bench: &Bench,
    rows: &mut Rows,
    (kernel, name): (KernelId, &str),
    pass: Pass,
    key: &Key,
    len: usize,
) -> Result<()> {
    let operation = Operation::Pass(pass).to_string();
    let run = |data: Data<'_>| -> Result<()> {
        let mut state = STATE;
        let mut segments = [Segment { key, tweak: None, state: &mut state, data }];
        Ok(bench.device.submit(kernel, Task::Pass(pass, &mut segments).into())?.wait()?)
    };
    let seconds = bench.seconds(bench.largest);
    let (input, expected) = (&bench.input[..len], &bench.expected[..len]);
    let pageable = subject("host-pageable", name, &operation, key.size().bits(), len);
    if rows.wants(&pageable) {
        let mut output = vec![0; len];
        let timing = time(seconds, 3, || run(Data::copy(input, &mut output)?));
        let outcome = timing.and_then(|timing| compare(&output, expected).map(|()| timing));
        rows.write(&pageable, outcome, json!({"checked": "all"}))?;
    }
    let pinned = subject("host-pinned", name, &operation, key.size().bits(), len);
    if rows.wants(&pinned) {
        let outcome = pinned_pair(bench.memory()?, input).map(|[from, to]| {
            let timing = time(seconds, 3, || run(Data::pinned(from.slice(0..len), to.slice(0..len))?));
            timing.and_then(|timing| compare(&to.lock(), expected).map(|()| timing))
        });
        if let Some(outcome) = outcome {
            rows.write(&pinned, outcome, json!({"checked": "all"}))?;
        }
    }
    Ok(())
}

/// Two buffers of page-locked memory. The first buffer contains the input. `None` if the device has no such memory.
fn pinned_pair(memory: &dyn DeviceMemory, input: &[u8]) -> Option<[PinnedBuffer; 2]> {
    let [from, to] = [memory.allocate_pinned(input.len()).ok()?, memory.allocate_pinned(input.len()).ok()?];
    from.lock().copy_from_slice(input);
    Some([from, to])
}

/// Measures copies without an operation: to the device, from the device, and in both directions at the same time.
fn copies(bench: &Bench, rows: &mut Rows, len: usize) -> Result<()> {
    let memory = bench.memory()?;
    let mut output = vec![0; len];
    copies_of(bench, rows, "host-pageable", &bench.input[..len], &mut output)?;
    if let Some([from, to]) = pinned_pair(memory, &bench.input[..len]) {
        copies_of(bench, rows, "host-pinned", &from.lock(), &mut to.lock())?;
    }
    Ok(())
}

fn copies_of(bench: &Bench, rows: &mut Rows, what: &'static str, from: &[u8], to: &mut [u8]) -> Result<()> {
    let (memory, seconds, len) = (bench.memory()?, bench.seconds(bench.largest), from.len());
    let (there, back) = (bench.to(len), bench.from(len));
    let [up, down, both] = ["up", "down", "both"].map(|operation| subject(what, "copy", operation, 0, len));
    if rows.wants(&up) {
        let outcome = time(seconds, 3, || Ok(memory.upload(from, &there, Stream::default())?));
        rows.write(&up, outcome, json!({}))?;
    }
    if rows.wants(&down) {
        let timing = time(seconds, 3, || Ok(memory.download(&back, to, Stream::default())?));
        let outcome = timing.and_then(|timing| compare(to, from).map(|()| timing));
        rows.write(&down, outcome, json!({"checked": "all"}))?;
    }
    let has_streams = bench.device.id().backend == "cuda";
    if has_streams && rows.wants(&both) {
        let outcome = both_ways(memory, seconds, (from, &there), (&back, to));
        rows.write(&both, outcome, json!({}))?;
    }
    Ok(())
}

/// Two threads copy in both directions at the same time, until the end of the measurement.
fn both_ways(
    memory: &dyn DeviceMemory,
    seconds: f64,
    (from, there): (&[u8], &DeviceSlice),
    (back, to): (&DeviceSlice, &mut [u8]),
) -> Result<Timing> {
    let (start, end) = (Barrier::new(2), Barrier::new(2));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let uploads = scope.spawn(|| {
            let mut result = Ok(());
            loop {
                start.wait();
                if is_over.load(Ordering::SeqCst) {
                    return result;
                }
                result = result.and(memory.upload(from, there, STREAM_OF_THREAD));
                end.wait();
            }
        });
        let timing = time(seconds, 3, || {
            start.wait();
            let result = memory.download(back, to, STREAM_OF_THREAD);
            end.wait();
            Ok(result?)
        });
        is_over.store(true, Ordering::SeqCst);
        start.wait();
        uploads.join().map_err(|_| "the thread of the uploads panicked")??;
        timing
    })
}
