//! Work on several threads gives the same data, chaining values and statuses as on one thread, wherever the work is split.

use lockstep_core::backend::{Device, KernelId, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Status, Tag, Task, Tweak};
use lockstep_core::{Block, Key, KeySize};
use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_testkit::suite::{noise, test_block, test_key};

/// Only the first available kernel is tested, because all kernels distribute work among threads in the same way.
const KERNELS: [&str; 5] = ["cpu/vaes512", "cpu/aesni", "cpu/armv8-sha3", "cpu/armv8", "cpu/soft"];

fn cpu(threads: usize) -> (Cpu, KernelId) {
    let cpu = Cpu::new(&CpuOptions { threads: Some(threads) });
    let kernel = KERNELS.iter().find_map(|name| kernel_by_name(&cpu, name).ok());
    (cpu, kernel.expect("cpu/soft is always there"))
}

/// The input of one segment.
#[derive(Clone)]
struct Part {
    register: Block,
    position: u64,
    data: Vec<u8>,
}

/// Runs a pass on a number of threads. Returns the output and the chaining value of each segment.
fn run(threads: usize, pass: Pass, in_place: bool, parts: &[Part]) -> Vec<(Vec<u8>, Block)> {
    let (cpu, kernel) = cpu(threads);
    let keys: Vec<_> = (0..parts.len()).map(|i| test_key(i as u64 % 3, KeySize::Aes128)).collect();
    let tweak_key = test_key(9, KeySize::Aes128);
    let mut registers: Vec<_> = parts.iter().map(|part| part.register).collect();
    let mut outputs: Vec<_> = parts
        .iter()
        .map(|part| if in_place { part.data.clone() } else { vec![0xaa; part.data.len()] })
        .collect();
    let mut segments: Vec<_> = keys
        .iter()
        .zip(&mut registers)
        .zip(parts.iter().zip(&mut outputs))
        .map(|((key, register), (part, output))| Segment {
            key,
            tweak: pass.is_xts().then_some(Tweak { key: &tweak_key, position: part.position }),
            state: register,
            data: if pass.is_read_only() {
                Data::read_only(&part.data)
            } else if in_place {
                Data::in_place(output)
            } else {
                Data::copy(&part.data, output).unwrap()
            },
        })
        .collect();
    cpu.submit(kernel, Task::Pass(pass, &mut segments).into()).unwrap().wait().unwrap();
    if pass.is_read_only() {
        outputs.iter_mut().for_each(|output| output.fill(0));
    }
    outputs.into_iter().zip(registers).collect()
}

fn check(pass: Pass, parts: &[Part]) {
    let expected = run(1, pass, true, parts);
    for threads in [2, 3, 5, 16] {
        for in_place in [true, false] {
            let found = run(threads, pass, in_place, parts);
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    found.0 == expected.0,
                    "{pass:?}, {threads} threads, segment {i}, in place: {in_place}"
                );
                // ECB has no chaining value. After a partial block, a message cannot continue, so its chaining value is undefined.
                let has_register = pass != Pass::EcbEncrypt && pass != Pass::EcbDecrypt;
                if has_register && parts[i].data.len().is_multiple_of(16) {
                    assert_eq!(found.1, expected.1, "{pass:?}, {threads} threads, register {i}");
                }
            }
        }
    }
}

fn part(seed: u64, len: usize) -> Part {
    Part { register: test_block(seed), position: seed * 1000, data: noise(seed, len) }
}

const MIB: usize = 1 << 20;

/// One long segment has the same result on several threads. It is split if the pass allows this.
#[test]
fn one_long_segment() {
    for pass in Pass::ALL {
        let len = match pass {
            Pass::Cfb1Encrypt | Pass::Cfb1Decrypt => continue,
            Pass::Cfb8Encrypt | Pass::Cfb8Decrypt => 3 << 16,
            pass if pass.is_serial() => 5 << 16,
            _ => 5 * MIB + 4096 * 3 + 16 * 7,
        };
        check(pass, &[part(1, len)]);
        if pass.unit() == 1 {
            check(pass, &[part(2, len + 5)]);
        }
    }
}

/// Segments of different lengths have the same results on several threads. Some are split, some share a thread, and some are empty.
#[test]
fn segments_of_all_sizes() {
    for pass in Pass::ALL {
        let unit = match pass {
            Pass::Cfb1Encrypt | Pass::Cfb1Decrypt => 1024,
            Pass::Cfb8Encrypt | Pass::Cfb8Decrypt => 16 << 10,
            pass if pass.is_serial() => 64 << 10,
            _ => MIB,
        };
        let lengths = [unit / 2, 0, 3 * unit + 16, 16, unit, 4096, 0, 2 * unit - 16, 48];
        let parts: Vec<_> = lengths.iter().enumerate().map(|(i, &len)| part(i as u64, len)).collect();
        check(pass, &parts);
    }
}

/// Counters may wrap anywhere: within a piece, at a split, and one block before or after it.
#[test]
fn counters_wrap_at_cuts() {
    // Splits are at multiples of 4096 bytes. With 2 threads the data is split in the middle, at block 65536.
    let len = 2 * MIB;
    for pass in [Pass::Ctr, Pass::Ctr32] {
        for ones in [4, 8, 12, 16] {
            for before in [1u128, 65535, 65536, 65537, 100_000] {
                let mut part = part(3, len);
                part.register[16 - ones..].fill(0xff);
                let counter = u128::from_be_bytes(part.register).wrapping_sub(before - 1);
                part.register = counter.to_be_bytes();
                let one = run(1, pass, true, std::slice::from_ref(&part));
                let two = run(2, pass, true, std::slice::from_ref(&part));
                assert!(one == two, "{pass:?} wraps at bit {}, {before} blocks on", 8 * ones);
            }
        }
    }
}

/// A batch of valid and forged GCM messages has the same results on one thread and on several threads.
#[test]
fn batches_of_gcm() {
    const COUNT: usize = 700;
    let run = |kernel: &str, threads: usize| {
        let cpu = Cpu::new(&CpuOptions { threads: Some(threads) });
        let kernel = kernel_by_name(&cpu, kernel).unwrap();
        let keys: Vec<Key> = (0..COUNT as u64).map(|i| test_key(i / 2, KeySize::Aes256)).collect();
        let nonces: Vec<_> = (0..COUNT as u64).map(|i| noise(i, 12)).collect();
        let mut data: Vec<_> = (0..COUNT).map(|i| noise(i as u64, (i * 53) % 9000)).collect();
        let mut tags = vec![[0; 16]; COUNT];
        let mut messages: Vec<_> = keys
            .iter()
            .zip(&nonces)
            .zip(data.iter_mut().zip(&mut tags))
            .map(|((key, nonce), (data, tag))| AeadMessage {
                key,
                nonce,
                aad: b"aad",
                data: Data::in_place(data),
                tag: Tag::Write(tag),
                status: Status::Pending,
            })
            .collect();
        cpu.submit(kernel, Task::Fused(FusedAead::GcmSeal, &mut messages).into()).unwrap().wait().unwrap();
        assert!(messages.iter().all(|message| message.status == Status::Done));
        drop(messages);
        let sealed = (data.clone(), tags.clone());
        tags.iter_mut().step_by(7).for_each(|tag| tag[15] ^= 1);
        let mut messages: Vec<_> = keys
            .iter()
            .zip(&nonces)
            .zip(data.iter_mut().zip(&tags))
            .map(|((key, nonce), (data, tag))| AeadMessage {
                key,
                nonce,
                aad: b"aad",
                data: Data::in_place(data),
                tag: Tag::Expect(tag),
                status: Status::Pending,
            })
            .collect();
        cpu.submit(kernel, Task::Fused(FusedAead::GcmOpen, &mut messages).into()).unwrap().wait().unwrap();
        let statuses: Vec<_> = messages.iter().map(|message| message.status).collect();
        drop(messages);
        (sealed, data, statuses)
    };
    let own = KERNELS.into_iter().find(|name| kernel_by_name(&cpu(1).0, name).is_ok()).unwrap();
    let one = run(own, 1);
    for (i, (data, status)) in one.1.iter().zip(&one.2).enumerate() {
        if i % 7 == 0 {
            assert_eq!(*status, Status::AuthenticationFailed);
            assert!(data.iter().all(|&byte| byte == 0));
        } else {
            assert_eq!(*status, Status::Done);
            assert!(*data == noise(i as u64, (i * 53) % 9000));
        }
    }
    for threads in [2, 3, 8] {
        assert!(run(own, threads) == one, "{threads} threads");
    }
}
