//! Serial modes as steps: one call of the block cipher, and what a mode computes before and after it.
//!
//! Registers, blocks and texts are big-endian numbers. A text of fewer bits than a block is in the upper bits of a number.

use lockstep_core::data::HostData;
use lockstep_core::work::Pass;

use super::interleave::interleave;
use super::{Block, Kernel, LANES, Lane};

/// One step of a serial mode.
pub(crate) trait Step {
    /// Number of bits of a step; the last step of a message may have fewer bytes.
    const BITS: usize = 128;
    /// True if the step uses the inverse cipher.
    const DECRYPTS: bool = false;

    /// The input of the block cipher.
    fn before(register: u128, text: u128) -> u128;

    /// The output and the next register, from the result of the block cipher.
    fn after(register: u128, cipher: u128, text: u128) -> (u128, u128);
}

/// CBC encryption (SP 800-38A, 6.2); for data that are only read, CBC-MAC.
pub(crate) struct Cbc;

impl Step for Cbc {
    fn before(register: u128, text: u128) -> u128 {
        register ^ text
    }

    fn after(_: u128, cipher: u128, _: u128) -> (u128, u128) {
        (cipher, cipher)
    }
}

/// CFB with segments of 1, 8 or 128 bits (SP 800-38A, 6.3).
pub(crate) struct Cfb<const BITS: usize, const ENCRYPTS: bool>;

impl<const BITS: usize, const ENCRYPTS: bool> Step for Cfb<BITS, ENCRYPTS> {
    const BITS: usize = BITS;

    fn before(register: u128, _: u128) -> u128 {
        register
    }

    fn after(register: u128, cipher: u128, text: u128) -> (u128, u128) {
        let output = text ^ cipher;
        let ciphertext = if ENCRYPTS { output } else { text };
        (output, register.unbounded_shl(BITS as u32) | ciphertext >> (128 - BITS))
    }
}

/// OFB (SP 800-38A, 6.4).
pub(crate) struct Ofb;

impl Step for Ofb {
    fn before(register: u128, _: u128) -> u128 {
        register
    }

    fn after(_: u128, cipher: u128, text: u128) -> (u128, u128) {
        (text ^ cipher, cipher)
    }
}

/// PCBC: the register is the XOR of the last blocks of plaintext and ciphertext.
pub(crate) struct Pcbc<const ENCRYPTS: bool>;

impl<const ENCRYPTS: bool> Step for Pcbc<ENCRYPTS> {
    const DECRYPTS: bool = !ENCRYPTS;

    fn before(register: u128, text: u128) -> u128 {
        if ENCRYPTS { register ^ text } else { text }
    }

    fn after(register: u128, cipher: u128, text: u128) -> (u128, u128) {
        let output = if ENCRYPTS { cipher } else { cipher ^ register };
        (output, text ^ output)
    }
}

/// The first byte of a step.
#[inline(always)]
fn byte_of<S: Step>(step: usize) -> usize {
    if S::BITS == 1 { step / 8 } else { step * (S::BITS / 8) }
}

#[inline]
fn text<S: Step>(data: &HostData<'_>, step: usize) -> u128 {
    let input = &data.input()[byte_of::<S>(step)..];
    if let (128, Some(block)) = (S::BITS, input.first_chunk()) {
        return u128::from_be_bytes(*block);
    }
    let len = input.len().min(S::BITS.div_ceil(8));
    let mut block = [0; 16];
    block[..len].copy_from_slice(&input[..len]);
    u128::from_be_bytes(block) << if S::BITS == 1 { step % 8 } else { 0 }
}

/// Writes the output of a step, unless the data are only read. No other bits are changed.
#[inline]
fn put<S: Step>(data: &mut HostData<'_>, step: usize, output: u128) {
    let Some(place) = data.output().get_mut(byte_of::<S>(step)..) else { return };
    let output = output.to_be_bytes();
    if S::BITS == 1 {
        // The bit is a secret: its value is not a condition.
        let (bit, value) = (0x80 >> (step % 8), (output[0] & 0x80) >> (step % 8));
        place.iter_mut().take(1).for_each(|byte| *byte = *byte & !bit | value);
    } else if let (128, Some(block)) = (S::BITS, place.first_chunk_mut()) {
        *block = output;
    } else {
        let len = place.len().min(S::BITS / 8);
        place[..len].copy_from_slice(&output[..len]);
    }
}

/// Evaluates an expression with the type of the steps of a serial pass.
macro_rules! with_step {
    ($pass:expr, $step:ident => $call:expr) => {{
        use lockstep_core::work::Pass;
        use $crate::kernel::serial::{Cbc, Cfb, Ofb, Pcbc};
        macro_rules! with {
            ($type:ty) => {{
                type $step = $type;
                $call
            }};
        }
        match $pass {
            Pass::CbcEncrypt | Pass::CbcMac => with!(Cbc),
            Pass::Cfb128Encrypt => with!(Cfb<128, true>),
            Pass::Cfb8Encrypt => with!(Cfb<8, true>),
            Pass::Cfb8Decrypt => with!(Cfb<8, false>),
            Pass::Cfb1Encrypt => with!(Cfb<1, true>),
            Pass::Cfb1Decrypt => with!(Cfb<1, false>),
            Pass::Ofb => with!(Ofb),
            Pass::PcbcEncrypt => with!(Pcbc<true>),
            Pass::PcbcDecrypt => with!(Pcbc<false>),
            _ => unreachable!("not a serial pass"),
        }
    }};
}
pub(crate) use with_step;

/// Runs a serial pass over one message. Of CFB1, only the first `bits` bits are processed.
pub(crate) fn single<K: Kernel>(
    kernel: K,
    key: &K::Schedule,
    pass: Pass,
    register: &mut Block,
    bits: u64,
    mut data: HostData<'_>,
) {
    assert!(bits.div_ceil(8) <= data.len() as u64, "fewer bytes than bits");
    with_step!(pass, S => {
        let mut number = u128::from_be_bytes(*register);
        for step in 0..usize::try_from(bits.div_ceil(S::BITS as u64)).expect("as many steps as a usize counts") {
            let text = text::<S>(&data, step);
            let mut block = S::before(number, text).to_be_bytes();
            if S::DECRYPTS {
                kernel.each(&[key], false, std::slice::from_mut(&mut block));
            } else {
                kernel.encrypt_block(key, &mut block);
            }
            let output;
            (output, number) = S::after(number, u128::from_be_bytes(block), text);
            put::<S>(&mut data, step, output);
        }
        *register = number.to_be_bytes();
    })
}

/// A message of any length.
pub(crate) type Message<'a, T> = Lane<'a, T, HostData<'a>>;

/// Runs a mode over several messages, one step of each at a time. `each` calls [`Kernel::each`] with the direction of the step.
/// Kernels with the same type of schedules share the compiled code.
pub(crate) fn run_interleaved<T, S: Step>(
    each: &dyn Fn(&[&T], &mut [Block]),
    messages: &mut [Message<'_, T>],
) {
    let steps = |message: &Message<'_, T>| {
        let steps = (8 * message.data.len() as u64).div_ceil(S::BITS as u64);
        usize::try_from(steps).expect("as many steps as a usize counts")
    };
    interleave(messages, LANES, steps, |messages, slots, steps| {
        let last = slots.len() - 1;
        let keys: [&T; LANES] = std::array::from_fn(|i| messages[slots[i.min(last)].message].schedule);
        for _ in 0..steps {
            let mut blocks = [[0; 16]; LANES];
            for (block, slot) in blocks.iter_mut().zip(&*slots) {
                let Message { register, data, .. } = &messages[slot.message];
                *block = S::before(u128::from_be_bytes(**register), text::<S>(data, slot.next)).to_be_bytes();
            }
            each(&keys[..=last], &mut blocks[..=last]);
            for (block, slot) in blocks.iter().zip(&mut *slots) {
                let Message { register, data, .. } = &mut messages[slot.message];
                let (before, cipher) = (u128::from_be_bytes(**register), u128::from_be_bytes(*block));
                let (output, after) = S::after(before, cipher, text::<S>(data, slot.next));
                put::<S>(data, slot.next, output);
                **register = after.to_be_bytes();
                slot.next += 1;
            }
        }
    });
}
