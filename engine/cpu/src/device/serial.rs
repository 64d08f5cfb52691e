//! Serial passes. A single message leaves the AES units idle most of the time, so up to [`LANES`] messages are
//! processed together, one step of each at a time.

use lockstep_core::data::HostData;
use lockstep_core::key::Key;
use lockstep_core::work::{Pass, Segment};

use super::passes::span;
use crate::host::host;
use crate::kernel::prepared::schedule;
use crate::kernel::{Block, Kernel, LANES, Lane};

/// Runs a serial pass over segments of different messages.
pub(crate) fn run<K: Kernel>(kernel: K, pass: Pass, segments: &mut [Segment<'_>]) {
    if let [segment] = segments
        && run_single(kernel, pass, segment)
    {
        return;
    }
    if pass == Pass::CbcEncrypt {
        return cbc_encrypt(kernel, segments);
    }
    let cipher = BlockCipher::<K::Schedule> {
        schedule: &|key| schedule(kernel, key),
        encrypt_each: &|keys, blocks| kernel.encrypt_each(keys, blocks),
        decrypt_each: &|keys, blocks| kernel.decrypt_each(keys, blocks),
    };
    match pass {
        Pass::Cfb128Encrypt => run_interleaved::<_, Cfb128>(cipher, segments),
        Pass::Ofb => run_interleaved::<_, Ofb>(cipher, segments),
        Pass::PcbcEncrypt => run_interleaved::<_, PcbcEncrypt>(cipher, segments),
        Pass::PcbcDecrypt => run_interleaved::<_, PcbcDecrypt>(cipher, segments),
        Pass::CbcMac => run_interleaved::<_, CbcMac>(cipher, segments),
        Pass::Cfb8Encrypt => run_interleaved::<_, Cfb8<true>>(cipher, segments),
        Pass::Cfb8Decrypt => run_interleaved::<_, Cfb8<false>>(cipher, segments),
        Pass::Cfb1Encrypt => run_interleaved::<_, Cfb1<true>>(cipher, segments),
        Pass::Cfb1Decrypt => run_interleaved::<_, Cfb1<false>>(cipher, segments),
        _ => unreachable!("not a serial pass"),
    }
}

/// Runs a serial pass over one segment with the loop that the kernel has for a single message, which keeps the chaining register
/// in the processor. Returns false if the kernel has no such loop.
fn run_single<K: Kernel>(kernel: K, pass: Pass, segment: &mut Segment<'_>) -> bool {
    let Segment { key, state, data, .. } = segment;
    let (schedule, data) = (schedule(kernel, key), host(data));
    let (is_whole, bits) = (data.len().is_multiple_of(16), 8 * data.len());
    match pass {
        Pass::CbcEncrypt => kernel.cbc_encrypt_single(schedule, state, span(data)),
        Pass::CbcMac if is_whole => kernel.cbc_mac(schedule, state, data.input()),
        Pass::Cfb128Encrypt if is_whole => kernel.cfb128_encrypt(schedule, state, span(data)),
        Pass::Ofb if is_whole => kernel.ofb(schedule, state, span(data)),
        Pass::Cfb8Encrypt => kernel.cfb8_encrypt(schedule, state, span(data)),
        Pass::Cfb8Decrypt => kernel.cfb8_decrypt(schedule, state, span(data)),
        Pass::Cfb1Encrypt => kernel.cfb1_encrypt(schedule, state, span(data), bits),
        Pass::Cfb1Decrypt => kernel.cfb1_decrypt(schedule, state, span(data), bits),
        _ => return false,
    }
    true
}

/// The block cipher of a kernel with schedules of type `S`. Kernels with the same schedule type share the compiled code
/// below.
struct BlockCipher<'k, S> {
    schedule: &'k dyn for<'a> Fn(&'a Key) -> &'a S,
    encrypt_each: &'k dyn Fn(&[&S], &mut [Block]),
    decrypt_each: &'k dyn Fn(&[&S], &mut [Block]),
}

fn cbc_encrypt<K: Kernel>(kernel: K, segments: &mut [Segment<'_>]) {
    let lane = |segment| {
        let Segment { key, state: register, data, .. }: &mut Segment<'_> = segment;
        Lane { schedule: schedule(kernel, key), register, data: span(host(data)) }
    };
    kernel.cbc_encrypt(&mut segments.iter_mut().map(lane).collect::<Vec<_>>());
}

/// One step of a serial mode: one block cipher call and the operations before and after it.
trait Step {
    /// Number of bytes of a step; the last step of a message may have fewer.
    const BYTES: usize;
    /// Number of steps on the same bytes: 8 for modes that work on bits.
    const TIMES: usize = 1;
    /// True if the step uses the inverse cipher.
    const DECRYPTS: bool = false;

    /// The input of the block cipher.
    fn before(register: &Block, input: &[u8]) -> Block;

    /// Computes the output and the new register from the result of the block cipher. `output` has the length of `input`.
    fn after(register: &mut Block, cipher: &Block, input: &[u8], output: &mut [u8], time: usize);
}

/// A message in progress: its segment, the next byte, and the step on that byte.
struct Slot {
    segment: usize,
    at: usize,
    time: usize,
}

fn run_interleaved<T, S: Step>(cipher: BlockCipher<'_, T>, segments: &mut [Segment<'_>]) {
    let mut slots: [Slot; LANES] = std::array::from_fn(|_| Slot { segment: 0, at: 0, time: 0 });
    let mut active = 0;
    let mut waiting = 0;
    loop {
        while active < LANES && waiting < segments.len() {
            if !segments[waiting].data.is_empty() {
                slots[active] = Slot { segment: waiting, at: 0, time: 0 };
                active += 1;
            }
            waiting += 1;
        }
        if active == 0 {
            return;
        }
        let first = (cipher.schedule)(segments[slots[0].segment].key);
        let mut keys = [first; LANES];
        for (key, slot) in keys.iter_mut().zip(&slots[..active]) {
            *key = (cipher.schedule)(segments[slot.segment].key);
        }
        // The set of messages stays the same until a message ends.
        let mut ended = false;
        while !ended {
            let mut blocks = [[0; 16]; LANES];
            for (block, slot) in blocks.iter_mut().zip(&slots[..active]) {
                let segment = &mut segments[slot.segment];
                *block = S::before(segment.state, step_of::<S>(&host(&mut segment.data), slot.at));
            }
            if S::DECRYPTS {
                (cipher.decrypt_each)(&keys[..active], &mut blocks[..active]);
            } else {
                (cipher.encrypt_each)(&keys[..active], &mut blocks[..active]);
            }
            for (block, slot) in blocks.iter().zip(&mut slots[..active]) {
                let segment = &mut segments[slot.segment];
                let mut data = host(&mut segment.data);
                let mut copy = [0; 16];
                let step = step_of::<S>(&data, slot.at);
                let len = step.len();
                copy[..len].copy_from_slice(step);
                let place: &mut [u8] = match &mut data {
                    HostData::ReadOnly(_) => &mut [],
                    data => &mut data.output()[slot.at..slot.at + len],
                };
                S::after(segment.state, block, &copy[..len], place, slot.time);
                slot.time += 1;
                if slot.time == S::TIMES {
                    slot.time = 0;
                    slot.at += len;
                    ended |= slot.at == segment.data.len();
                }
            }
        }
        let mut i = 0;
        while i < active {
            if slots[i].at == segments[slots[i].segment].data.len() {
                active -= 1;
                slots.swap(i, active);
            } else {
                i += 1;
            }
        }
    }
}

/// The input of the step that starts at byte `at`.
fn step_of<'s, S: Step>(data: &'s HostData<'_>, at: usize) -> &'s [u8] {
    let input = &data.input()[at..];
    &input[..input.len().min(S::BYTES)]
}

fn xor(output: &mut [u8], a: &[u8], b: &[u8]) {
    for ((byte, a), b) in output.iter_mut().zip(a).zip(b) {
        *byte = a ^ b;
    }
}

struct Cfb128;

impl Step for Cfb128 {
    const BYTES: usize = 16;

    fn before(register: &Block, _input: &[u8]) -> Block {
        *register
    }

    fn after(register: &mut Block, cipher: &Block, input: &[u8], output: &mut [u8], _time: usize) {
        xor(output, input, cipher);
        register[..output.len()].copy_from_slice(output);
    }
}

struct Ofb;

impl Step for Ofb {
    const BYTES: usize = 16;

    fn before(register: &Block, _input: &[u8]) -> Block {
        *register
    }

    fn after(register: &mut Block, cipher: &Block, input: &[u8], output: &mut [u8], _time: usize) {
        xor(output, input, cipher);
        *register = *cipher;
    }
}

struct PcbcEncrypt;

impl Step for PcbcEncrypt {
    const BYTES: usize = 16;

    fn before(register: &Block, input: &[u8]) -> Block {
        let mut block = [0; 16];
        xor(&mut block, register, input);
        block
    }

    fn after(register: &mut Block, cipher: &Block, input: &[u8], output: &mut [u8], _time: usize) {
        output.copy_from_slice(cipher);
        xor(register, input, cipher);
    }
}

struct PcbcDecrypt;

impl Step for PcbcDecrypt {
    const BYTES: usize = 16;
    const DECRYPTS: bool = true;

    fn before(_register: &Block, input: &[u8]) -> Block {
        input.try_into().expect("whole blocks")
    }

    fn after(register: &mut Block, cipher: &Block, input: &[u8], output: &mut [u8], _time: usize) {
        xor(output, cipher, register);
        xor(register, input, output);
    }
}

struct CbcMac;

impl Step for CbcMac {
    const BYTES: usize = 16;

    fn before(register: &Block, input: &[u8]) -> Block {
        PcbcEncrypt::before(register, input)
    }

    fn after(register: &mut Block, cipher: &Block, _input: &[u8], _output: &mut [u8], _time: usize) {
        *register = *cipher;
    }
}

struct Cfb8<const ENCRYPT: bool>;

impl<const ENCRYPT: bool> Step for Cfb8<ENCRYPT> {
    const BYTES: usize = 1;

    fn before(register: &Block, _input: &[u8]) -> Block {
        *register
    }

    fn after(register: &mut Block, cipher: &Block, input: &[u8], output: &mut [u8], _time: usize) {
        output[0] = input[0] ^ cipher[0];
        let ciphertext = if ENCRYPT { output[0] } else { input[0] };
        register.copy_within(1.., 0);
        register[15] = ciphertext;
    }
}

struct Cfb1<const ENCRYPT: bool>;

impl<const ENCRYPT: bool> Step for Cfb1<ENCRYPT> {
    const BYTES: usize = 1;
    const TIMES: usize = 8;

    fn before(register: &Block, _input: &[u8]) -> Block {
        *register
    }

    /// The most significant bit of the byte is processed first. If the operation is in place, the bits that are not yet
    /// processed still hold the input.
    fn after(register: &mut Block, cipher: &Block, input: &[u8], output: &mut [u8], time: usize) {
        let bit = 7 - time;
        let keystream = (cipher[0] >> 7) << bit;
        let mask = 1u8 << bit;
        let result = (input[0] ^ keystream) & mask;
        output[0] = (output[0] & !mask) | result;
        let ciphertext = if ENCRYPT { result } else { input[0] & mask } >> bit;
        *register = (u128::from_be_bytes(*register) << 1 | u128::from(ciphertext)).to_be_bytes();
    }
}
