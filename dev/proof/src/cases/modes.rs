//! The modes of a key: the table of modes and the call of a mode, which are the same for both domains, and the runs
//! with secret values.

use lockstep_reference::{Aes, Block, cbc, cbc_mac, cfb, ctr, ecb, ghash, ofb, pcbc, polyval, xts};

use super::session::{Buffer, Session};
use super::{Extent, Group, Outcome, lengths};
use crate::machine::Stop;
use crate::value::Domain;

/// A mode.
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    /// The function of the harness. Empty if the mode is available only in tasks.
    pub(crate) function: &'static str,
    pub(crate) form: Form,
    /// True if the chaining register is secret.
    pub(crate) has_secret_register: bool,
    pub(crate) next: Next,
    /// Lengths are multiples of this number of bytes.
    pub(crate) unit: usize,
    /// The maximum length in bytes if each block depends on the block before. 0 means three steps of the kernel.
    pub(crate) most: usize,
    /// The result of the reference implementation for a key, a chaining register and data: the output or, for [`Form::Read`] and
    /// [`Form::Block`], the register. For [`Form::Mac`], the output followed by the register.
    pub(crate) expected: fn(&Aes, &Block, &[u8]) -> Vec<u8>,
}

/// The arguments of a function besides the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Input and output.
    Data,
    /// A chaining register, input and output.
    Chained,
    /// A chaining register and input.
    Read,
    /// A block in place.
    Block,
    /// A second key, the number of a data unit, a place for the tweak after the data, input and output.
    Unit,
    /// A chaining register, the counter block [`CCM_COUNTER`], input and output.
    Mac,
}

/// The value of the chaining register after the data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    None,
    /// A counter of this number of bytes at the end of the block, increased by the number of processed blocks.
    Counter(usize),
    /// The last block of ciphertext.
    Ciphertext,
    /// The XOR of the last blocks of input and output.
    Difference,
    /// The tweak of the next block.
    Tweak,
    /// The result.
    Result,
    /// The last block of the result, which follows the output.
    Tag,
}

impl Mode {
    /// True if the mode encrypts; otherwise it decrypts or has no direction.
    pub(crate) fn encrypts(&self) -> bool {
        self.name.ends_with("encryption")
    }

    /// The same mode with another function of the harness.
    pub(crate) fn with_function(&self, function: &'static str) -> Mode {
        Mode { function, ..*self }
    }

    /// True if the mode processes a part of the last byte only. Its equality and its loops are not analysed.
    pub(crate) fn is_of_bits(&self) -> bool {
        self.name.starts_with("CFB1-bits ")
    }

    /// True if each block depends on the block before.
    pub(crate) fn is_serial(&self) -> bool {
        self.most > 0
    }
}

/// The modes.
pub(crate) const MODES: [Mode; 28] = {
    use Form::{Chained, Data, Mac, Read, Unit};
    use Next::{Ciphertext, Counter, Difference, Tweak};
    type Expected = fn(&Aes, &Block, &[u8]) -> Vec<u8>;
    const fn mode(
        (name, function): (&'static str, &'static str),
        (form, has_secret_register, next): (Form, bool, Next),
        (unit, most): (usize, usize),
        expected: Expected,
    ) -> Mode {
        Mode { name, function, form, has_secret_register, next, unit, most, expected }
    }
    let ccm = (Mac, true, Next::Tag);
    let (ecb, xts, unit) = ((Data, false, Next::None), (Chained, true, Tweak), (Unit, false, Tweak));
    let bits = (Chained, false, Next::None);
    let (chained, tag, hash) =
        ((Chained, false, Ciphertext), (Read, true, Next::Result), (Chained, true, Difference));
    let (blocks, bytes, serial, serial_bytes, short) = ((16, 0), (1, 0), (16, 160), (1, 160), (1, 40));
    let block: Expected = |aes, block, _| aes.encrypt(*block).to_vec();
    let cbc_mac: Expected = |aes, state, data| cbc_mac::update(aes, *state, data).to_vec();
    let ghash: Expected = |aes, state, data| ghash::update(&aes.encrypt([0; 16]), *state, data).to_vec();
    // The first round key is the key.
    let polyval: Expected = |aes, state, data| polyval::update(&aes.round_keys()[0], *state, data).to_vec();
    let cfb1_encrypt: Expected = |aes, iv, data| cfb::encrypt1(aes, iv, data, 8 * data.len());
    let cfb1_decrypt: Expected = |aes, iv, data| cfb::decrypt1(aes, iv, data, 8 * data.len());
    let bits_encrypt: Expected =
        |aes, iv, data| but_last_bits(data, |bits| cfb::encrypt1(aes, iv, data, bits));
    let bits_decrypt: Expected =
        |aes, iv, data| but_last_bits(data, |bits| cfb::decrypt1(aes, iv, data, bits));
    let ccm_encrypt: Expected = |aes, mac, data| ccm_data(aes, true, mac, data);
    let ccm_decrypt: Expected = |aes, mac, data| ccm_data(aes, false, mac, data);
    let xts_encrypt: Expected = |aes, tweak, data| xts_blocks(aes, true, tweak, data);
    let xts_decrypt: Expected = |aes, tweak, data| xts_blocks(aes, false, tweak, data);
    [
        mode(("block", "proof_block"), (Form::Block, true, Next::Result), (16, 16), block),
        mode(("CBC-MAC", "proof_cbc_mac"), tag, serial, cbc_mac),
        mode(("CCM encryption", "proof_ccm_encrypt"), ccm, serial_bytes, ccm_encrypt),
        mode(("CCM decryption", "proof_ccm_decrypt"), ccm, serial_bytes, ccm_decrypt),
        mode(("ECB encryption", "proof_ecb_encrypt"), ecb, blocks, |aes, _, data| ecb::encrypt(aes, data)),
        mode(("ECB decryption", "proof_ecb_decrypt"), ecb, blocks, |aes, _, data| ecb::decrypt(aes, data)),
        mode(("CTR", "proof_ctr"), (Chained, false, Counter(16)), bytes, ctr::apply),
        mode(("CTR32", "proof_ctr32"), (Chained, false, Counter(4)), bytes, ctr::apply32),
        mode(("CBC encryption", "proof_cbc_encrypt"), chained, serial, cbc::encrypt),
        mode(("CBC decryption", "proof_cbc_decrypt"), chained, blocks, cbc::decrypt),
        mode(("CFB128 encryption", "proof_cfb128_encrypt"), chained, serial, cfb::encrypt128),
        mode(("CFB128 decryption", "proof_cfb128_decrypt"), chained, blocks, cfb::decrypt128),
        mode(("CFB8 encryption", "proof_cfb8_encrypt"), chained, short, cfb::encrypt8),
        mode(("CFB8 decryption", "proof_cfb8_decrypt"), chained, short, cfb::decrypt8),
        mode(("CFB1 encryption", "proof_cfb1_encrypt"), chained, (1, 6), cfb1_encrypt),
        mode(("CFB1 decryption", "proof_cfb1_decrypt"), chained, (1, 6), cfb1_decrypt),
        mode(("CFB1-bits encryption", "proof_cfb1_bits_encrypt"), bits, (1, 6), bits_encrypt),
        mode(("CFB1-bits decryption", "proof_cfb1_bits_decrypt"), bits, (1, 6), bits_decrypt),
        mode(("OFB", "proof_ofb"), hash, serial, ofb::apply),
        mode(("XTS encryption", "proof_xts_encrypt"), xts, blocks, xts_encrypt),
        mode(("XTS decryption", "proof_xts_decrypt"), xts, blocks, xts_decrypt),
        mode(("XTS unit encryption", "proof_xts_unit"), unit, blocks, xts_encrypt),
        mode(("XTS unit decryption", "proof_xts_unit"), unit, blocks, xts_decrypt),
        mode(("CTR of GCM-SIV", ""), (Chained, false, Next::None), bytes, ctr_little32),
        mode(("PCBC encryption", ""), hash, serial, pcbc::encrypt),
        mode(("PCBC decryption", ""), hash, serial, pcbc::decrypt),
        mode(("GHASH", ""), tag, blocks, ghash),
        mode(("POLYVAL", ""), tag, blocks, polyval),
    ]
};

/// The counter block that masks the tag of CCM. The counter wraps at 2^64 after three blocks of data.
pub(crate) const CCM_COUNTER: Block = 0x0102_0304_0506_0708_ffff_ffff_ffff_fffc_u128.to_be_bytes();

/// The data of a message of CCM (SP 800-38C, 6.1 and 6.2), followed by the tag: `mac` is the input block of the CBC-MAC before the data.
pub(crate) fn ccm_data(aes: &Aes, encrypts: bool, mac: &Block, data: &[u8]) -> Vec<u8> {
    let mut result = ctr::apply(aes, &counter_after(&CCM_COUNTER, 16, 16), data);
    let mut plaintext = if encrypts { data.to_vec() } else { result.clone() };
    plaintext.resize(data.len().next_multiple_of(16), 0);
    let tag = cbc_mac::update(aes, aes.encrypt(*mac), &plaintext);
    result.extend(tag.iter().zip(aes.encrypt(CCM_COUNTER)).map(|(byte, mask)| byte ^ mask));
    result
}

/// XTS of whole blocks. The tweak is already encrypted.
fn xts_blocks(aes: &Aes, encrypts: bool, tweak: &Block, data: &[u8]) -> Vec<u8> {
    let mut tweak = *tweak;
    let each = |block: &Block| {
        let masked: Block = std::array::from_fn(|i| block[i] ^ tweak[i]);
        let computed = if encrypts { aes.encrypt(masked) } else { aes.decrypt(masked) };
        let result: Block = std::array::from_fn(|i| computed[i] ^ tweak[i]);
        tweak = xts::mul_alpha(tweak);
        result
    };
    data.as_chunks().0.iter().flat_map(each).collect()
}

/// CTR of GCM-SIV (RFC 8452, section 4).
pub(crate) fn ctr_little32(aes: &Aes, counter: &Block, data: &[u8]) -> Vec<u8> {
    let mut counter = *counter;
    let mut result = Vec::with_capacity(data.len());
    for chunk in data.chunks(16) {
        let keystream = aes.encrypt(counter);
        result.extend(chunk.iter().zip(keystream).map(|(byte, mask)| byte ^ mask));
        let (low, _) = counter.split_first_chunk_mut::<4>().expect("16 bytes");
        *low = u32::from_le_bytes(*low).wrapping_add(1).to_le_bytes();
    }
    result
}

/// The chaining register of a mode after the data.
pub(super) fn next_register(mode: &Mode, register: &Block, input: &[u8], output: &[u8]) -> Option<Block> {
    let last = |bytes: &[u8]| *[register, bytes].concat().last_chunk().expect("16 bytes");
    Some(match mode.next {
        Next::None => return None,
        Next::Counter(width) => counter_after(register, input.len(), width),
        Next::Ciphertext => last(if mode.encrypts() { output } else { input }),
        Next::Difference => last(&input.iter().zip(output).map(|(x, y)| x ^ y).collect::<Vec<_>>()),
        Next::Tweak => tweak_after(*register, input.len()),
        Next::Tag => last(output),
        Next::Result => *output.first_chunk().expect("16 bytes"),
    })
}

/// The result of a mode for all bits of the data but the last three, followed by these three.
fn but_last_bits(data: &[u8], result: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut result = result((8 * data.len()).saturating_sub(3));
    if let (Some(last), Some(byte)) = (result.last_mut(), data.last()) {
        *last |= byte & 7;
    }
    result
}

/// The tweak of the block after `len` bytes.
fn tweak_after(tweak: Block, len: usize) -> Block {
    (0..len / 16).fold(tweak, |tweak, _| xts::mul_alpha(tweak))
}

/// A counter in the last `width` bytes of a block, increased by the number of blocks of the data, including a partial one.
fn counter_after(counter: &Block, len: usize, width: usize) -> Block {
    let mut counter = *counter;
    for _ in 0..len.div_ceil(16) {
        for byte in counter[16 - width..].iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
    counter
}

/// The buffers of a call, by their numbers.
const KEY: Buffer = Buffer(16);
pub(crate) const REGISTER: Buffer = Buffer(18);
const NUMBER: Buffer = Buffer(19);
pub(crate) const INPUT: Buffer = Buffer(20);
pub(crate) const OUTPUT: Buffer = Buffer(21);
const UNIT: Buffer = Buffer(1);

/// Makes a key in its place. Returns the address of the key.
pub(crate) fn set_key<D: Domain>(session: &mut Session<D>, key: Vec<D::Byte>) -> Result<u64, Stop> {
    let (kernel, len) = (session.kernel, key.len() as u64);
    let place = session.call_well("proof_key_place", &[])?;
    let bytes = session.buffer(KEY, key, false);
    session.call_well("proof_key_set", &[place, kernel, bytes, len])?;
    session.remove(KEY);
    Ok(place)
}

/// Processes data with a mode. `keys` are the addresses of the key and of the tweak key. `register` has the chaining register, a block, or the
/// number of a data unit.
pub(crate) fn call<D: Domain>(
    session: &mut Session<D>,
    mode: &Mode,
    keys: [u64; 2],
    register: Vec<D::Byte>,
    data: (&[D::Byte], bool),
) -> Result<(), Stop> {
    let arguments = arguments(session, mode, keys, register, data);
    session.call(mode.function, &arguments)?;
    Ok(())
}

/// Makes the buffers of a call, and returns its arguments. The last one is the length of the data.
pub(crate) fn arguments<D: Domain>(
    session: &mut Session<D>,
    mode: &Mode,
    keys: [u64; 2],
    register: Vec<D::Byte>,
    (data, in_place): (&[D::Byte], bool),
) -> Vec<u64> {
    let mut arguments = vec![keys[0]];
    match mode.form {
        Form::Data => {}
        Form::Unit => {
            let number = session.buffer(NUMBER, register, false);
            let after = session.public(REGISTER, &[0xee; 16], true);
            arguments[0] =
                session.structure(UNIT, &[keys[0], keys[1], number, after, u64::from(mode.encrypts())]);
        }
        _ => arguments.push(session.buffer(REGISTER, register, true)),
    }
    if mode.form == Form::Mac {
        arguments.push(session.public(NUMBER, &CCM_COUNTER, false));
    }
    let len = data.len() as u64;
    match mode.form {
        Form::Block => {}
        Form::Read => arguments.extend([session.buffer(INPUT, data.to_vec(), false), len]),
        _ => {
            let (from, to) = session.data(INPUT, OUTPUT, data, in_place);
            arguments.extend([from, to, len]);
        }
    }
    arguments
}

/// The lengths with which a mode is run, and where its output is: in place if `true`, in another buffer if `false`.
pub(crate) fn ranges(mode: &Mode, step: usize) -> (std::ops::RangeInclusive<usize>, &'static [bool]) {
    match mode.form {
        Form::Block => (0..=0, &[true]),
        Form::Read => (0..=mode.most, &[true]),
        Form::Unit => (16..=3 * step + 48, &[true, false]),
        _ if mode.is_serial() => (0..=mode.most, &[true, false]),
        _ => (0..=3 * step + 48, &[true, false]),
    }
}

/// Three counters: the first does not wrap in a run, the second wraps at 32 bits, and the third wraps at 64 and 128
/// bits.
const COUNTERS: [Block; 3] = {
    let first = 0x3c91_a7e0_5d14_f86b_22c7_390f_b8d6_417a_u128.to_be_bytes();
    let mut counters = [first, [0xff; 16], [0xff; 16]];
    counters[1][0] = 7;
    (counters[1][15], counters[2][15]) = (0xfd, 0xfb);
    counters
};

/// Copies a key and drops both keys. Advances a tweak by several numbers of blocks.
pub(super) fn run_key(session: &Session, group: Group, outcome: &mut Outcome) {
    let mut session = session.clone();
    let mut run = || -> Result<(), Stop> {
        let key = session.secrets(&session.sample(group.key_len, 5));
        let key = set_key(&mut session, key)?;
        let copy = session.call_well("proof_key_place", &[])?;
        session.call_well("proof_key_copy", &[copy, key])?;
        for key in [key, copy] {
            session.call("proof_key_drop", &[key])?;
        }
        for blocks in [0, 1, 7, 8, 64, 129, 300] {
            let tweak: Block = session.sample(16, 9).try_into().expect("16 bytes");
            let place = session.secret(REGISTER, &tweak, true);
            session.call("proof_advance_tweak", &[place, blocks])?;
            session.check_values(REGISTER, "the tweak", &tweak_after(tweak, 16 * blocks as usize));
        }
        session.check_heap();
        Ok(())
    };
    let result = run();
    outcome.add(&session, result, format!("{group}"));
}

/// Runs a mode of a key with each length.
pub(super) fn run(session: &Session, group: Group, extent: Extent, mode: &Mode, outcome: &mut Outcome) {
    let (key, tweak_key) = (session.sample(group.key_len, 5), session.sample(group.key_len, 9));
    let mut keyed = session.clone();
    let mut set = |key: &[u8]| {
        let key = keyed.secrets(key);
        set_key(&mut keyed, key)
    };
    let made = set(&key).and_then(|place| {
        let tweak_key = if mode.form == Form::Unit { set(&tweak_key)? } else { 0 };
        Ok([place, tweak_key])
    });
    outcome.add(&keyed, made.clone(), format!("{group}: set-up"));
    let Ok(keys) = made else { return };
    (keyed.machine.steps, keyed.machine.findings) = (0, Default::default());
    let (range, places) = ranges(mode, group.kernel.step);
    let lens = lengths(group.kernel, extent, mode.unit, *range.end());
    let is_counter = matches!(mode.next, Next::Counter(_));
    for len in lens.into_iter().filter(|len| range.contains(len)) {
        for in_place in places {
            let has_all = is_counter && (extent == Extent::Full || *in_place);
            for counter in &COUNTERS[..if has_all { COUNTERS.len() } else { 1 }] {
                let mut session = keyed.clone();
                let data = session.sample(len, 3);
                let register = if mode.has_secret_register {
                    session.secrets(counter)
                } else {
                    session.publics(counter)
                };
                // The tweak of a data unit is the encrypted number of the unit.
                let start =
                    if mode.form == Form::Unit { Aes::new(&tweak_key).encrypt(*counter) } else { *counter };
                let expected = (mode.expected)(&Aes::new(&key), &start, &data);
                let next = next_register(mode, &start, &data, &expected);
                if mode.name.ends_with("decryption") {
                    session.results = vec![data.clone()];
                } else if mode.encrypts() {
                    session.results = vec![expected.clone()];
                }
                let secrets = session.secrets(&data);
                let result = call(&mut session, mode, keys, register, (&secrets, *in_place));
                if result.is_ok() {
                    if !matches!(mode.form, Form::Read | Form::Block) {
                        session.check(OUTPUT, "the output", &expected[..len]);
                    }
                    match next {
                        Some(next) if mode.form == Form::Unit => session.check(REGISTER, "the tweak", &next),
                        Some(next) => session.check_values(REGISTER, "the chaining register", &next),
                        None => {}
                    }
                }
                let place = if *in_place { "in place" } else { "not in place" };
                let run = format!("{group}, {len} bytes, {place}, counter {counter:02x?}");
                outcome.add(&session, result, run);
            }
        }
    }
}
