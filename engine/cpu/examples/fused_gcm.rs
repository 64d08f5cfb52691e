//! Compares the fused GCM of the kernels: `cargo run --release -p lockstep-cpu --example fused_gcm [filter...]`.
//!
//! The program uses one thread. Sealing works in place, and opening writes to another buffer. Other programs may run on the machine, so
//! the kernels alternate in many short rounds. Each figure is that of the best round or, with `MEDIAN=1`, the median of the rounds. If
//! all messages of a batch have the same key, the prepared form of the key is cached, and the times do not include the key set-up. If
//! each message has its own key, the times include the key set-up. Only rows whose names contain all filters are measured.

use std::hint::black_box;
use std::time::Duration;

use lockstep_core::Key;
use lockstep_core::backend::{Device, KernelId, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag, Task};
use lockstep_cpu::{Cpu, CpuOptions};

#[path = "harness/mod.rs"]
mod harness;

const KERNELS: [&str; 6] =
    ["cpu/vaes512", "cpu/vaes256", "cpu/aesni", "cpu/armv8-sha3", "cpu/armv8", "cpu/soft"];
const SIZES: [usize; 9] = [16, 64, 256, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20];
const BATCHES: [usize; 5] = [16, 64, 256, 1 << 10, 4 << 10];
const BATCH: usize = 10_000;
const ROUNDS: usize = 31;
const ROUND: Duration = Duration::from_millis(2);

/// The messages of a task.
struct Work {
    keys: Vec<Key>,
    data: Vec<Vec<u8>>,
    opened: Vec<Vec<u8>>,
    tags: Vec<[u8; 16]>,
}

impl Work {
    /// Creates messages. If `is_keyed` is true, each message has its own key; otherwise all messages have the same key.
    fn new(bits: usize, count: usize, size: usize, is_keyed: bool) -> Work {
        let key = |i: usize| {
            let mut bytes = vec![7; bits / 8];
            bytes[..8].copy_from_slice(&i.to_le_bytes());
            Key::new(&bytes).expect("a length of AES")
        };
        let keys = (0..if is_keyed { count } else { 1 }).map(key).collect();
        Work {
            keys,
            data: vec![vec![1; size]; count],
            opened: vec![vec![1; size]; count],
            tags: vec![[0; 16]; count],
        }
    }

    fn run(&mut self, cpu: &Cpu, kernel: KernelId, fused: FusedAead) {
        let keys = self.keys.iter().cycle();
        let mut messages: Vec<_> = keys
            .zip(&mut self.data)
            .zip(self.tags.iter_mut().zip(&mut self.opened))
            .map(|((key, data), (tag, opened))| AeadMessage {
                key,
                nonce: &[5; 12],
                aad: &[],
                data: match fused.opens() {
                    false => Data::in_place(black_box(data)),
                    true => Data::copy(data, black_box(opened)).expect("equal lengths"),
                },
                tag: if fused.opens() { Tag::Expect(tag) } else { Tag::Write(tag) },
                status: Status::Pending,
            })
            .collect();
        let task = Task::Fused(fused, &mut messages);
        cpu.submit(kernel, task.into()).expect("host memory").wait().expect("host memory");
    }

    /// The time of a task in nanoseconds, for each kernel.
    fn times(&mut self, cpu: &Cpu, kernels: &[KernelId], fused: FusedAead) -> Vec<f64> {
        // The messages are sealed once, so that the opening that is measured later finds valid tags.
        self.run(cpu, kernels[0], FusedAead::GcmSeal);
        // All kernels work on the same messages.
        let work = std::cell::RefCell::new(self);
        let call = |kernel: KernelId| {
            let work = &work;
            move || work.borrow_mut().run(cpu, kernel, fused)
        };
        let mut calls: Vec<_> = kernels.iter().map(|kernel| call(*kernel)).collect();
        let mut calls: Vec<&mut dyn FnMut()> =
            calls.iter_mut().map(|call| call as &mut dyn FnMut()).collect();
        let part = if std::env::var_os("MEDIAN").is_some() { 0.5 } else { 0.0 };
        let found = harness::alternate(ROUNDS, ROUND, &mut calls);
        found.into_iter().map(|times| harness::quantile(times, part)).collect()
    }
}

fn main() {
    let filters: Vec<String> = std::env::args().skip(1).collect();
    let cpu = Cpu::new(&CpuOptions { threads: Some(1) });
    let found = KERNELS.iter().filter_map(|name| Some((*name, kernel_by_name(&cpu, name).ok()?)));
    let only = std::env::var("KERNELS").unwrap_or_default();
    let (names, kernels): (Vec<_>, Vec<_>) =
        found.filter(|(name, _)| only.is_empty() || only.split(',').any(|only| only == *name)).unzip();
    println!(
        "{:34}{}",
        "ns, x of the first",
        names.iter().map(|name| format!("{name:>22}")).collect::<String>()
    );
    let row = |name: String, work: &mut dyn FnMut() -> Work, fused, messages: usize| {
        if !harness::matches(&name, &filters) {
            return;
        }
        let times = work().times(&cpu, &kernels, fused);
        print!("{name:34}");
        for time in &times {
            print!("{:14.1}{:8.2}", time / messages as f64, times[0] / time);
        }
        println!();
    };
    for bits in [128, 256] {
        for (fused, name) in [(FusedAead::GcmSeal, "seal"), (FusedAead::GcmOpen, "open")] {
            for size in SIZES {
                row(format!("{name}-{bits} {size}"), &mut || Work::new(bits, 1, size, false), fused, 1);
            }
            for size in BATCHES {
                let name = format!("{name}-{bits} {BATCH} keys x {size}");
                row(name, &mut || Work::new(bits, BATCH, size, true), fused, BATCH);
            }
        }
    }
}
