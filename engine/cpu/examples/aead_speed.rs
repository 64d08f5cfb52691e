//! Compares the AEADs of a kernel with its CTR: `cargo run --release -p lockstep-cpu --example aead_speed [filter...]`.
//!
//! The program uses one thread and one key. In the output, "task" means a task of the device with one message. "mode" means a call of
//! the mode's function with one message and a planner, as the library calls it. "batch" means a task with 16 messages; its figure is
//! the time of the task divided by 16. The calls of one size are measured alternately in many short rounds, because other programs may
//! run on the machine. Each figure is the median of the rounds, and each ratio is the median of the ratios of measurements in the same
//! round. The environment variable `KERNEL` selects a kernel, and `SIZES` is a list of the sizes that are measured.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use lockstep_core::Key;
use lockstep_core::backend::{Device, KernelId, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Status, Tag, Task};
use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_modes::{Aead, Cipher, CipherKey, Direction};
use lockstep_planner::{Planner, Selection};

#[path = "harness/mod.rs"]
mod harness;
use harness::quantile;

/// Number of messages of a batch.
const BATCH: usize = 16;

/// The calls of CTR with which the AEADs are compared. Sealing in place is compared with CTR in place. Opening to another buffer is
/// compared with CTR to another buffer, because work on two buffers is slower than work in place. For example, two buffers of 16 KiB
/// fill the L1 cache.
const BASES: [(&str, bool); 2] = [("ctr task", false), ("ctr task, copy", true)];

const ROUNDS: usize = 101;
const ROUND: Duration = Duration::from_micros(300);

type Call<'a> = Box<dyn FnMut() + 'a>;
/// Makes a call of a task with one message. Sealing works in place. Opening writes to another buffer, so that each call
/// has the same input.
fn task<'a>(cpu: &'a Cpu, kernel: KernelId, fused: FusedAead, key: &'a Key, size: usize) -> Call<'a> {
    let (mut data, mut tag) = (vec![1; size], [0; 16]);
    let mut output = vec![0; size];
    run_task(cpu, kernel, fused.sealing(), key, &mut data, None, &mut tag);
    Box::new(move || {
        let to = fused.opens().then_some(&mut output[..]);
        run_task(cpu, kernel, fused, key, black_box(&mut data), to, &mut tag);
    })
}

fn run_task(
    cpu: &Cpu,
    kernel: KernelId,
    fused: FusedAead,
    key: &Key,
    data: &mut [u8],
    to: Option<&mut [u8]>,
    tag: &mut [u8; 16],
) {
    let mut messages = [message(fused.opens(), key, data, to, tag)];
    cpu.submit(kernel, Task::Fused(fused, &mut messages).into()).expect("supported").wait().expect("host");
}

/// Makes a call of a task that seals several messages under one key.
fn batch<'a>(cpu: &'a Cpu, kernel: KernelId, fused: FusedAead, key: &'a Key, size: usize) -> Call<'a> {
    let mut messages = vec![(vec![1; size], [0; 16]); BATCH];
    Box::new(move || {
        let messages = black_box(&mut messages).iter_mut();
        let mut messages: Vec<_> = messages.map(|(data, tag)| message(false, key, data, None, tag)).collect();
        let task = Task::Fused(fused, &mut messages);
        cpu.submit(kernel, task.into()).expect("supported").wait().expect("host");
    })
}

fn message<'a>(
    opens: bool,
    key: &'a Key,
    data: &'a mut [u8],
    to: Option<&'a mut [u8]>,
    tag: &'a mut [u8; 16],
) -> AeadMessage<'a> {
    AeadMessage {
        key,
        nonce: &[5; 12],
        aad: &[],
        data: match to {
            Some(to) => Data::copy(data, to).expect("equal lengths"),
            None => Data::in_place(data),
        },
        tag: if opens { Tag::Expect(tag) } else { Tag::Write(tag) },
        status: Status::Pending,
    }
}

/// Makes a call of a mode with one message. Sealing works in place, and opening writes to another buffer.
fn mode<'a>(planner: &'a Planner, aead: Aead, opens: bool, key: &'a Key, size: usize) -> Call<'a> {
    let (mut data, mut tag) = (vec![1; size], [0; 16]);
    let mut output = vec![0; size];
    let mut sealed = [message(false, key, &mut data, None, &mut tag)];
    aead.run_messages(planner, Direction::Encrypt, &mut sealed).expect("supported");
    let direction = if opens { Direction::Decrypt } else { Direction::Encrypt };
    Box::new(move || {
        let to = opens.then_some(&mut output[..]);
        let mut messages = [message(opens, key, black_box(&mut data), to, &mut tag)];
        aead.run_messages(planner, direction, &mut messages).expect("the right tag");
    })
}

fn calls<'a>(
    cpu: &'a Cpu,
    planner: &'a Planner,
    kernel: KernelId,
    key: &'a Key,
    cipher_key: &'a CipherKey,
    size: usize,
) -> Vec<(String, Call<'a>)> {
    let mut all: Vec<(String, Call<'a>)> = Vec::new();
    for (name, copies) in BASES {
        let (mut data, mut output) = (vec![1; size], vec![0; size]);
        all.push((
            name.into(),
            Box::new(move || {
                let mut state = [3; 16];
                let data = black_box(&mut data);
                let data = match copies {
                    true => Data::copy(data, &mut output).expect("equal lengths"),
                    false => Data::in_place(data),
                };
                let mut segments = [Segment { key, tweak: None, state: &mut state, data }];
                cpu.submit(kernel, Task::Pass(Pass::Ctr, &mut segments).into())
                    .expect("supported")
                    .wait()
                    .expect("host");
            }),
        ));
    }
    let mut data = vec![1; size];
    all.push((
        "ctr mode".into(),
        Box::new(move || {
            let data = Data::in_place(black_box(&mut data));
            Cipher::Ctr.one(planner, Direction::Encrypt, cipher_key, &mut [3; 16], data).expect("supported");
        }),
    ));
    let data = vec![1; size];
    all.push((
        "ghash task".into(),
        Box::new(move || {
            let mut state = [3; 16];
            let data = Data::read_only(black_box(&data));
            let mut segments = [Segment { key, tweak: None, state: &mut state, data }];
            cpu.submit(kernel, Task::Pass(Pass::Ghash, &mut segments).into())
                .expect("supported")
                .wait()
                .expect("host");
        }),
    ));
    for fused in FusedAead::ALL {
        if cpu.cost(kernel, lockstep_core::work::Operation::Fused(fused), key.size()).is_some() {
            all.push((format!("{fused:?} task"), task(cpu, kernel, fused, key, size)));
            if !fused.opens() {
                all.push((format!("{fused:?} batch"), batch(cpu, kernel, fused, key, size)));
            }
        }
    }
    for aead in [Aead::Gcm, Aead::Ocb, Aead::GcmSiv] {
        all.push((format!("{aead:?}Seal mode"), mode(planner, aead, false, key, size)));
        all.push((format!("{aead:?}Open mode"), mode(planner, aead, true, key, size)));
    }
    all
}

fn measure(bits: usize, size: usize, calls: &mut [(String, Call<'_>)]) {
    let found = {
        let mut functions: Vec<&mut dyn FnMut()> = Vec::new();
        functions.extend(calls.iter_mut().map(|(_, call)| &mut **call as &mut dyn FnMut()));
        harness::alternate(ROUNDS, ROUND, &mut functions)
    };
    for ((name, _), times) in calls.iter().zip(&found) {
        let messages = if name.ends_with("batch") { BATCH as f64 } else { 1.0 };
        let base = &found[usize::from(name.contains("Open"))];
        let ratios = times.iter().zip(base).map(|(time, ctr)| messages * ctr / time).collect();
        let ns = quantile(times.clone(), 0.5) / messages;
        let (rate, ratio) = (size as f64 / ns, quantile(ratios, 0.5));
        println!("{bits:4} {size:8}  {name:16} {ns:10.1} ns {rate:7.2} GB/s {ratio:6.3} of CTR");
    }
}

fn main() {
    let filters: Vec<String> = std::env::args().skip(1).collect();
    let cpu = Arc::new(Cpu::new(&CpuOptions { threads: Some(1) }));
    let kernel = std::env::var("KERNEL").ok();
    let best = cpu.kernels().iter().find(|info| info.missing.is_none()).expect("one runs everywhere").name;
    let name = kernel.as_deref().unwrap_or(best);
    let id = kernel_by_name(&*cpu, name).expect("a kernel of this processor");
    let selection = Selection { device: None, kernel: kernel.as_ref().map(|name| name.as_str().into()) };
    let planner = Planner::new(vec![Arc::clone(&cpu) as Arc<dyn Device>], &selection).expect("the CPU");
    println!("{name}");
    let sizes = std::env::var("SIZES").unwrap_or("64,1024,16384,1048576".into());
    for bits in [128, 256] {
        for size in sizes.split(',').map(|size| size.parse().expect("a number")) {
            let key = Key::new(&vec![7; bits / 8]).expect("a length of AES");
            let cipher_key = CipherKey::new(Cipher::Ctr, &vec![7; bits / 8]).expect("a length of AES");
            let mut calls = calls(&cpu, &planner, id, &key, &cipher_key, size);
            calls.retain(|(name, _)| {
                BASES.iter().any(|(base, _)| name == base)
                    || filters.is_empty()
                    || filters.iter().any(|filter| name.contains(filter.as_str()))
            });
            measure(bits, size, &mut calls);
        }
    }
}
