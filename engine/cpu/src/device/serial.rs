//! Serial passes. A single message leaves the AES units idle most of the time, so up to [`LANES`](crate::kernel::LANES) messages are
//! processed together, one step of each at a time.

use lockstep_core::work::{Pass, Segment};

use crate::host::host;
use crate::kernel::prepared::schedule;
use crate::kernel::serial::{self, Message, Step, run_interleaved, with_step};
use crate::kernel::{Kernel, Lane};

/// Runs a serial pass over segments of different messages.
pub(super) fn run<K: Kernel>(kernel: K, pass: Pass, segments: &mut [Segment<'_>]) {
    if let [Segment { key, state, data, .. }] = segments {
        let (schedule, data) = (schedule(kernel, key), host(data));
        let bits = 8 * data.len() as u64;
        // The loops of kernels process whole blocks of CFB128 and OFB.
        return match pass {
            Pass::CbcMac => kernel.cbc_mac(schedule, state, data.input()),
            Pass::Cfb128Encrypt | Pass::Ofb if !bits.is_multiple_of(128) => {
                serial::single(kernel, schedule, pass, state, bits, data)
            }
            _ => kernel.serial(schedule, pass, state, bits, data.into_span()),
        };
    }
    run_several(kernel, pass, segments);
}

/// Runs a serial pass over several segments. A function of its own: a single message needs less of the stack.
#[inline(never)]
fn run_several<K: Kernel>(kernel: K, pass: Pass, segments: &mut [Segment<'_>]) {
    if pass == Pass::CbcEncrypt {
        let lane = |segment| {
            let Segment { key, state: register, data, .. }: &mut Segment<'_> = segment;
            Lane { schedule: schedule(kernel, key), register, data: host(data).into_span() }
        };
        return kernel.cbc_encrypt(&mut segments.iter_mut().map(lane).collect::<Vec<_>>());
    }
    let message = |segment| {
        let Segment { key, state: register, data, .. }: &mut Segment<'_> = segment;
        Message { schedule: schedule(kernel, key), register, data: host(data) }
    };
    let mut messages: Vec<_> = segments.iter_mut().map(message).collect();
    with_step!(pass, S => {
        run_interleaved::<_, S>(&|keys, blocks| kernel.each(keys, !S::DECRYPTS, blocks), &mut messages)
    });
}
