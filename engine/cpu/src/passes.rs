//! Runs passes over segments on a [`Kernel`]. Translates the types of `lockstep-core` to those of kernels.

use lockstep_core::backend::Cost;
use lockstep_core::data::{Data, HostData};
use lockstep_core::key::{Block, Key};
use lockstep_core::work::{FusedAead, Operation, Pass, Segment, Task};
use lockstep_core::{Error, KeySize, Result};
use zeroize::Zeroizing;

use crate::device::{AnyKernel, CPU};
use crate::inline::SingleStreamKernel;
use crate::kernel::{Kernel, Span};
use crate::{aead, gcm_siv, ocb, serial, threads, tweak};

/// Runs passes on a kernel.
pub(crate) struct Passes<K>(K);

impl<K: Kernel> Passes<K> {
    pub(crate) fn new(kernel: K) -> Self {
        Passes(kernel)
    }
}

/// The GHASH key of an AES key, in the format of one kernel.
struct HashForm<K: Kernel>(K::HashKey);

pub(crate) fn schedule<K: Kernel>(kernel: K, key: &Key) -> &K::Schedule {
    key.prepared(|key| kernel.expand(key.bytes()))
}

/// The hash key of an AES key with all powers.
pub(crate) fn hash_key<K: Kernel>(kernel: K, key: &Key) -> &K::HashKey {
    let form = key.prepared(|key| {
        let mut h = Zeroizing::new([[0u8; 16]]);
        kernel.encrypt_each(&[schedule(kernel, key)], &mut *h);
        HashForm::<K>(kernel.hash_key(&h[0]))
    });
    &form.0
}

/// A POLYVAL key, in the format of one kernel.
struct PolyvalForm<K: Kernel>(K::HashKey);

fn polyval_key<K: Kernel>(kernel: K, key: &Key) -> &K::HashKey {
    let form = key.prepared(|key| {
        let h = Zeroizing::new(key.bytes().try_into().expect("checked by the caller"));
        PolyvalForm::<K>(kernel.polyval_key(&h))
    });
    &form.0
}

/// True if the forms of [`schedule`] and [`hash_key`] have been made.
pub(crate) fn is_prepared<K: Kernel>(key: &Key) -> bool {
    key.already_prepared::<HashForm<K>>().is_some()
}

/// Host data as a span.
pub(crate) fn span(data: HostData<'_>) -> Span<'_> {
    match data {
        HostData::InPlace(data) => Span::in_place(data),
        HostData::Copy { from, to, .. } => Span::copy(from, to),
        HostData::ReadOnly(_) => unreachable!("read-only passes use slices"),
    }
}

impl<K: SingleStreamKernel> AnyKernel for Passes<K> {
    fn cost(&self, operation: Operation, key: KeySize) -> Option<Cost> {
        match operation {
            Operation::Pass(pass) => pass.takes_key(key).then(|| pass_cost(K::NAME, pass, key)),
            Operation::Fused(fused) => Some(match fused.sealing() {
                // One AES step for each block, as in ECB.
                FusedAead::OcbSeal => pass_cost(K::NAME, Pass::EcbEncrypt, key),
                // GCM-SIV prepares two keys for each message.
                FusedAead::GcmSivSeal => Cost { fixed_ns: 300.0, ..fused_cost(K::NAME, key) },
                _ => fused_cost(K::NAME, key),
            }),
        }
    }

    fn run(&self, task: &mut Task<'_, '_>, threads: usize) -> Result<()> {
        match task {
            Task::Pass(pass, segments) => {
                check(K::NAME, *pass, segments)?;
                threads::spread(*pass, segments, threads, &|pass, segments| {
                    if pass.is_serial() {
                        serial::run(self.0, pass, segments);
                    } else {
                        segments.iter_mut().for_each(|segment| parallel(self.0, pass, segment));
                    }
                });
                Ok(())
            }
            Task::Fused(fused, messages) => match fused.sealing() {
                FusedAead::OcbSeal => ocb::messages::run(self.0, messages, threads),
                FusedAead::GcmSivSeal => gcm_siv::run(self.0, messages, threads),
                _ => aead::run(self.0, messages, threads),
            },
            Task::Table(..) => {
                Err(Error::Unsupported { kernel: K::NAME, operation: task.operation().to_string() })
            }
        }
    }
}

/// Checks that all data are in host memory, that they are writable unless the pass only reads, and that the
/// pass takes keys of these sizes.
fn check(kernel: &'static str, pass: Pass, segments: &[Segment<'_>]) -> Result<()> {
    for segment in segments {
        if !pass.takes_key(segment.key.size()) {
            return Err(Operation::Pass(pass).unsupported_by(kernel));
        }
        check_host(&segment.data, pass.is_read_only())?;
    }
    Ok(())
}

/// Checks that data are in host memory, and that they are writable unless they are only read.
pub(crate) fn check_host(data: &Data<'_>, only_read: bool) -> Result<()> {
    match data {
        Data::Host(HostData::ReadOnly(_)) if !only_read => {
            Err(Error::OutputLength { needed: data.len(), got: 0 })
        }
        Data::Host(_) => Ok(()),
        Data::Pinned { .. } => {
            Err(Error::OutOfReach { device: CPU, what: "pinned memory of other devices".into() })
        }
        Data::Device { from, .. } => {
            Err(Error::OutOfReach { device: CPU, what: format!("memory of {}", from.device()) })
        }
    }
}

/// The host data of a segment that [`check`] has accepted.
pub(crate) fn host<'s>(data: &'s mut Data<'_>) -> HostData<'s> {
    match data {
        Data::Host(data) => data.reborrow(),
        Data::Pinned { .. } | Data::Device { .. } => unreachable!("rejected by check"),
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
        Pass::EcbEncrypt => kernel.ecb_encrypt(schedule(kernel, key), span(data)),
        Pass::EcbDecrypt => kernel.ecb_decrypt(schedule(kernel, key), span(data)),
        Pass::Ctr => kernel.ctr(schedule(kernel, key), register, span(data)),
        Pass::Ctr32 => kernel.ctr32(schedule(kernel, key), register, span(data)),
        Pass::CtrLittle32 => kernel.ctr_little32(schedule(kernel, key), register, span(data)),
        Pass::CbcDecrypt => kernel.cbc_decrypt(schedule(kernel, key), register, span(data)),
        Pass::Cfb128Decrypt => {
            let whole = data.len() & !15;
            let (blocks, tail) = data.split_at(whole);
            kernel.cfb128_decrypt(schedule(kernel, key), register, span(blocks));
            xor_last(kernel, key, *register, tail);
        }
        Pass::XtsEncrypt | Pass::XtsDecrypt => {
            let place = segment.tweak.expect("XTS segments have a tweak");
            let mut first = [*register];
            kernel.encrypt_each(&[schedule(kernel, place.key)], &mut first);
            tweak::advance(&mut first[0], place.position);
            if pass == Pass::XtsEncrypt {
                kernel.xts_encrypt(schedule(kernel, key), &mut first[0], span(data));
            } else {
                kernel.xts_decrypt(schedule(kernel, key), &mut first[0], span(data));
            }
        }
        _ => unreachable!("not a parallel pass"),
    }
}

/// Decrypts the last, partial block of CFB.
fn xor_last<K: Kernel>(kernel: K, key: &Key, register: Block, mut tail: HostData<'_>) {
    if tail.is_empty() {
        return;
    }
    let mut keystream = [register];
    kernel.encrypt_each(&[schedule(kernel, key)], &mut keystream);
    for (i, mask) in keystream[0].iter().enumerate().take(tail.len()) {
        let byte = tail.input()[i] ^ mask;
        tail.output()[i] = byte;
    }
}

/// The cost of a pass. The rates were measured on a Zen 4 core with AES-128 (docs/measured). They are scaled by the number
/// of rounds for longer keys. Only the order of the kernels matters, since they all run on the same processor.
fn pass_cost(kernel: &str, pass: Pass, key: KeySize) -> Cost {
    let (parallel, serial) = match kernel {
        "cpu/vaes512" => (22.0, 1.5),
        "cpu/vaes256" => (18.0, 1.49),
        "cpu/aesni" | "cpu/armv8" => (10.0, 1.48),
        _ => (0.8, 0.05),
    };
    let steps = match pass {
        Pass::Cfb8Encrypt | Pass::Cfb8Decrypt => 16.0,
        Pass::Cfb1Encrypt | Pass::Cfb1Decrypt => 128.0,
        _ => 1.0,
    };
    let rate = if pass.is_serial() { serial / steps } else { parallel };
    Cost::new(20.0, rate * 10.0 / key.rounds() as f64)
}

/// The cost of fused GCM, measured by the example `fused_gcm` on a Zen 5 core. Only the order matters here, too. The rate of
/// `cpu/armv8` has not been measured; it is above that of AWS-LC, so that the planner chooses the kernel with all modes.
fn fused_cost(kernel: &str, key: KeySize) -> Cost {
    let rate = match kernel {
        "cpu/vaes512" => 25.0,
        "cpu/vaes256" => 12.4,
        "cpu/aesni" | "cpu/armv8" => 6.3,
        _ => 0.33,
    };
    Cost::new(100.0, rate * 10.0 / key.rounds() as f64)
}
