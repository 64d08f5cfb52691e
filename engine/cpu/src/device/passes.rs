//! Runs tasks on a [`Kernel`]: translates the types of `lockstep-core` to those of kernels. Costs of operations.

use lockstep_core::backend::Cost;
use lockstep_core::work::{FusedAead, Operation, Pass, Segment, Task};
use lockstep_core::{KeySize, Result};

use super::serial;
use crate::host::{check_host, host};
use crate::kernel::entry::{Entry, enter};
use crate::kernel::prepared::{hash_key, polyval_key, schedule};
use crate::kernel::{Kernel, tweak};
use crate::kernels::Row;
use crate::{message, threads};

/// Runs a task on at most this number of threads. This is a call of its own for each kernel, so that the caller has a small frame.
#[inline(never)]
pub(super) fn run<K: Kernel>(kernel: K, task: &mut Task<'_, '_>, threads: usize) -> Result<()> {
    let _entry = Entry::of(kernel);
    match task {
        Task::Pass(pass, segments) => {
            for segment in &**segments {
                if !pass.takes_key(segment.key.size()) {
                    return Err(Operation::Pass(*pass).unsupported_by(K::NAME));
                }
                check_host(&segment.data, pass.is_read_only())?;
            }
            let run = |pass: Pass, segments: &mut [Segment<'_>]| {
                if pass.is_serial() {
                    serial::run(kernel, pass, segments);
                } else {
                    segments.iter_mut().for_each(|segment| parallel(kernel, pass, segment));
                }
            };
            threads::spread(*pass, segments, threads, &run, &|calls| enter(kernel, calls));
            Ok(())
        }
        Task::Fused(fused, messages) => message::run(kernel, *fused, messages, threads),
        Task::Table(operation, _) => Err(operation.unsupported_by(K::NAME)),
    }
}

/// The cost of an operation; `None` if the kernel does not support it. The rates are scaled by the number of rounds for longer
/// keys.
pub(super) fn cost(row: Row, operation: Operation, key: KeySize) -> Option<Cost> {
    let scaled = |fixed, rate| Some(Cost::new(fixed, rate * 10.0 / key.rounds() as f64));
    match operation {
        Operation::Pass(pass) if !pass.takes_key(key) => None,
        Operation::Pass(pass) if pass.is_serial() => scaled(20.0, row.serial / steps(pass)),
        Operation::Pass(_) => scaled(20.0, row.parallel),
        Operation::Fused(fused) => match fused {
            FusedAead::GcmSeal | FusedAead::GcmOpen => scaled(100.0, row.gcm),
            // One AES step for each block, as in ECB.
            FusedAead::OcbSeal | FusedAead::OcbOpen => scaled(20.0, row.parallel),
            // GCM-SIV prepares two keys for each message.
            FusedAead::GcmSivSeal | FusedAead::GcmSivOpen => scaled(300.0, row.gcm),
        },
    }
}

/// Number of encryptions for 16 bytes of a serial pass.
fn steps(pass: Pass) -> f64 {
    match pass {
        Pass::Cfb8Encrypt | Pass::Cfb8Decrypt => 16.0,
        Pass::Cfb1Encrypt | Pass::Cfb1Decrypt => 128.0,
        _ => 1.0,
    }
}

/// Runs a parallel pass on one segment.
fn parallel<K: Kernel>(kernel: K, pass: Pass, segment: &mut Segment<'_>) {
    let key = segment.key;
    let register = &mut *segment.state;
    let data = host(&mut segment.data);
    match pass {
        Pass::Ghash => kernel.ghash(hash_key(kernel, key), register, data.input()),
        Pass::Polyval => kernel.polyval(polyval_key(kernel, key), register, data.input()),
        Pass::EcbEncrypt | Pass::EcbDecrypt => {
            kernel.ecb(schedule(kernel, key), pass == Pass::EcbEncrypt, data.into_span())
        }
        Pass::Ctr => kernel.ctr(schedule(kernel, key), register, data.into_span()),
        Pass::Ctr32 => kernel.ctr32(schedule(kernel, key), register, data.into_span()),
        Pass::CtrLittle32 => kernel.ctr_little32(schedule(kernel, key), register, data.into_span()),
        Pass::CbcDecrypt => kernel.cbc_decrypt(schedule(kernel, key), register, data.into_span()),
        Pass::Cfb128Decrypt => {
            let whole = data.len() & !15;
            let (blocks, mut tail) = data.split_at(whole);
            kernel.cfb128_decrypt(schedule(kernel, key), register, blocks.into_span());
            if !tail.is_empty() {
                let mut keystream = *register;
                kernel.encrypt_block(schedule(kernel, key), &mut keystream);
                tail.xor_with(&keystream);
            }
        }
        Pass::XtsEncrypt | Pass::XtsDecrypt => {
            let place = segment.tweak.expect("XTS segments have a tweak");
            let mut first = *register;
            kernel.encrypt_block(schedule(kernel, place.key), &mut first);
            tweak::advance(&mut first, place.position);
            kernel.xts(schedule(kernel, key), pass == Pass::XtsEncrypt, &mut first, data.into_span());
        }
        _ => unreachable!("not a parallel pass"),
    }
}
