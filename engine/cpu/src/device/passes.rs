//! Runs tasks on a [`Kernel`]: translates the types of `lockstep-core` to those of kernels. Costs of operations.

use lockstep_core::backend::Cost;
use lockstep_core::work::{FusedAead, Operation, Pass, Segment, Task};
use lockstep_core::{KeySize, Result, stack};

use super::serial;
use crate::host::{check_host, host};
use crate::kernel::entry::{Entry, enter};
use crate::kernel::prepared::{hash_key, polyval_key, schedule};
use crate::kernel::wiped::Wiped;
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
        Pass::Polyval => kernel.polyval(polyval_key(kernel, key), register, data.input(), None),
        Pass::EcbEncrypt | Pass::EcbDecrypt => {
            kernel.ecb(schedule(kernel, key), pass == Pass::EcbEncrypt, data.into_span())
        }
        Pass::Ctr => kernel.ctr(schedule(kernel, key), register, data.into_span()),
        Pass::Ctr32 => kernel.ctr32(schedule(kernel, key), register, data.into_span()),
        Pass::CtrLittle32 => kernel.ctr_little32(schedule(kernel, key), register, data.into_span()),
        Pass::CbcDecrypt => kernel.cbc_decrypt(schedule(kernel, key), register, data.into_span()),
        Pass::Cfb128Decrypt => {
            let whole = data.len() & !15;
            let (blocks, tail) = data.into_span().split_at(whole);
            let key = schedule(kernel, key);
            kernel.cfb128_decrypt(key, register, blocks);
            if !tail.is_empty() {
                let mut keystream = Wiped::<1>::zero();
                keystream[0] = *register;
                kernel.encrypt_block(key, &mut keystream[0]);
                tail.into_host().xor_with(&keystream[0]);
            }
        }
        Pass::XtsEncrypt | Pass::XtsDecrypt => {
            let encrypts = pass == Pass::XtsEncrypt;
            let place = segment.tweak.expect("XTS segments have a tweak");
            let (key, tweak_key) = (schedule(kernel, key), schedule(kernel, place.key));
            if place.position == 0 {
                return kernel.xts_unit(key, tweak_key, encrypts, register, None, data.into_span());
            }
            let mut first = Wiped::<1>::zero();
            first[0] = *register;
            kernel.encrypt_block(tweak_key, &mut first[0]);
            tweak::advance(&mut first[0], place.position);
            kernel.xts(key, encrypts, &mut first[0], data.into_span());
            // The multiplications above may leave parts of tweaks.
            stack::wipe::<4>();
        }
        _ => unreachable!("not a parallel pass"),
    }
}
