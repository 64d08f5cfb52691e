//! Serial passes. A single message leaves the AES units idle most of the time, so up to [`LANES`](crate::kernel::LANES) messages are
//! processed together, one step of each at a time.

use lockstep_core::work::{Pass, Segment};

use crate::host::host;
use crate::kernel::prepared::schedule;
use crate::kernel::serial::{Cbc, Cfb, Message, Ofb, Pcbc, Step, run_interleaved, run_single};
use crate::kernel::{Kernel, Lane};

/// Runs a serial pass over segments of different messages.
pub(super) fn run<K: Kernel>(kernel: K, pass: Pass, segments: &mut [Segment<'_>]) {
    if let [segment] = segments {
        return single(kernel, pass, segment);
    }
    match pass {
        Pass::CbcEncrypt => {
            let lane = |segment| {
                let Segment { key, state: register, data, .. }: &mut Segment<'_> = segment;
                Lane { schedule: schedule(kernel, key), register, data: host(data).into_span() }
            };
            kernel.cbc_encrypt(&mut segments.iter_mut().map(lane).collect::<Vec<_>>());
        }
        Pass::Cfb128Encrypt => interleaved::<_, Cfb<128, true>>(kernel, segments),
        Pass::Ofb => interleaved::<_, Ofb>(kernel, segments),
        Pass::PcbcEncrypt => interleaved::<_, Pcbc<true>>(kernel, segments),
        Pass::PcbcDecrypt => interleaved::<_, Pcbc<false>>(kernel, segments),
        Pass::CbcMac => interleaved::<_, Cbc>(kernel, segments),
        Pass::Cfb8Encrypt => interleaved::<_, Cfb<8, true>>(kernel, segments),
        Pass::Cfb8Decrypt => interleaved::<_, Cfb<8, false>>(kernel, segments),
        Pass::Cfb1Encrypt => interleaved::<_, Cfb<1, true>>(kernel, segments),
        Pass::Cfb1Decrypt => interleaved::<_, Cfb<1, false>>(kernel, segments),
        _ => unreachable!("not a serial pass"),
    }
}

/// Runs a serial pass over one segment with the loop that the kernel has for a single message, which keeps the chaining register
/// in the processor.
fn single<K: Kernel>(kernel: K, pass: Pass, segment: &mut Segment<'_>) {
    let Segment { key, state, data, .. } = segment;
    let (schedule, data) = (schedule(kernel, key), host(data));
    let (is_whole, bits) = (data.len().is_multiple_of(16), 8 * data.len());
    match pass {
        Pass::CbcEncrypt => kernel.cbc_encrypt_single(schedule, state, data.into_span()),
        Pass::CbcMac => kernel.cbc_mac(schedule, state, data.input()),
        Pass::Cfb128Encrypt if is_whole => kernel.cfb128_encrypt(schedule, state, data.into_span()),
        Pass::Cfb128Encrypt => run_single::<_, Cfb<128, true>>(kernel, schedule, state, data, None),
        Pass::Ofb if is_whole => kernel.ofb(schedule, state, data.into_span()),
        Pass::Ofb => run_single::<_, Ofb>(kernel, schedule, state, data, None),
        Pass::PcbcEncrypt => run_single::<_, Pcbc<true>>(kernel, schedule, state, data, None),
        Pass::PcbcDecrypt => run_single::<_, Pcbc<false>>(kernel, schedule, state, data, None),
        Pass::Cfb8Encrypt | Pass::Cfb8Decrypt => {
            kernel.cfb8(schedule, pass == Pass::Cfb8Encrypt, state, data.into_span())
        }
        Pass::Cfb1Encrypt | Pass::Cfb1Decrypt => {
            kernel.cfb1(schedule, pass == Pass::Cfb1Encrypt, state, data.into_span(), bits)
        }
        _ => unreachable!("not a serial pass"),
    }
}

/// Runs steps of a mode over several segments.
fn interleaved<K: Kernel, S: Step>(kernel: K, segments: &mut [Segment<'_>]) {
    let message = |segment| {
        let Segment { key, state: register, data, .. }: &mut Segment<'_> = segment;
        Message { schedule: schedule(kernel, key), register, data: host(data) }
    };
    let mut messages: Vec<_> = segments.iter_mut().map(message).collect();
    run_interleaved::<_, S>(&|keys, blocks| kernel.each(keys, !S::DECRYPTS, blocks), &mut messages);
}
