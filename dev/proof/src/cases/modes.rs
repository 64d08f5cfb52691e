//! Cases of the modes that need only one key.

use lockstep_reference::{Aes, Block, cbc, cbc_mac, cfb, ctr, ecb, ofb, xts};

use super::session::{Buffer, Session, sample};
use super::{Extent, Group, Operation, Outcome, counter_after, last_block, last_difference, lengths};
use crate::machine::Stop;

/// A mode that needs only one key.
pub(super) struct Mode {
    pub(super) name: &'static str,
    function: &'static str,
    /// Whether the mode has a chaining register, and whether the register is secret.
    register: Register,
    /// Lengths are multiples of this number of bytes.
    unit: usize,
    /// The maximum length in bytes. 0 means two steps of the kernel and every length of the rest.
    most: usize,
    /// The result of the reference implementation.
    expected: fn(&Aes, &Block, &[u8]) -> Vec<u8>,
}

/// The chaining register of a mode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Register {
    None,
    /// An IV or a counter, which is public.
    Public,
    /// A tweak, which depends on the key, or the keystream of OFB.
    Secret,
}

/// The modes, with the functions of the harness.
pub(super) const MODES: [Mode; 15] = {
    const fn mode(
        name: &'static str,
        function: &'static str,
        register: Register,
        (unit, most): (usize, usize),
        expected: fn(&Aes, &Block, &[u8]) -> Vec<u8>,
    ) -> Mode {
        Mode { name, function, register, unit, most, expected }
    }
    use Register::{None, Public, Secret};
    let (blocks, bytes) = ((16, 0), (1, 0));
    [
        mode("ECB encryption", "proof_ecb_encrypt", None, blocks, |aes, _, data| ecb::encrypt(aes, data)),
        mode("ECB decryption", "proof_ecb_decrypt", None, blocks, |aes, _, data| ecb::decrypt(aes, data)),
        mode("CTR", "proof_ctr", Public, bytes, ctr::apply),
        mode("CTR32", "proof_ctr32", Public, bytes, ctr::apply32),
        mode("CBC encryption", "proof_cbc_encrypt", Public, (16, 160), cbc::encrypt),
        mode("CBC decryption", "proof_cbc_decrypt", Public, blocks, cbc::decrypt),
        mode("CFB128 encryption", "proof_cfb128_encrypt", Public, (16, 160), cfb::encrypt128),
        mode("CFB128 decryption", "proof_cfb128_decrypt", Public, blocks, cfb::decrypt128),
        mode("CFB8 encryption", "proof_cfb8_encrypt", Public, (1, 40), cfb::encrypt8),
        mode("CFB8 decryption", "proof_cfb8_decrypt", Public, (1, 40), cfb::decrypt8),
        mode("CFB1 encryption", "proof_cfb1_encrypt", Public, (1, 6), |aes, iv, data| {
            cfb::encrypt1(aes, iv, data, 8 * data.len())
        }),
        mode("CFB1 decryption", "proof_cfb1_decrypt", Public, (1, 6), |aes, iv, data| {
            cfb::decrypt1(aes, iv, data, 8 * data.len())
        }),
        mode("OFB", "proof_ofb", Secret, (16, 160), ofb::apply),
        mode("XTS encryption", "proof_xts_encrypt", Secret, blocks, |aes, tweak, data| {
            xts_blocks(|block| aes.encrypt(block), tweak, data)
        }),
        mode("XTS decryption", "proof_xts_decrypt", Secret, blocks, |aes, tweak, data| {
            xts_blocks(|block| aes.decrypt(block), tweak, data)
        }),
    ]
};

/// XTS of whole blocks from an encrypted tweak.
fn xts_blocks(cipher: impl Fn(Block) -> Block, tweak: &Block, data: &[u8]) -> Vec<u8> {
    let mut tweak = *tweak;
    let mut result = Vec::with_capacity(data.len());
    for block in data.as_chunks::<16>().0 {
        let masked: Block = std::array::from_fn(|i| block[i] ^ tweak[i]);
        let computed = cipher(masked);
        result.extend((0..16).map(|i| computed[i] ^ tweak[i]));
        tweak = xts::mul_alpha(tweak);
    }
    result
}

/// The buffers of a call, by their numbers.
const KEY: Buffer = Buffer(16);
const TWEAK_KEY: Buffer = Buffer(17);
const REGISTER: Buffer = Buffer(18);
const NUMBER: Buffer = Buffer(19);
const INPUT: Buffer = Buffer(20);
const OUTPUT: Buffer = Buffer(21);
const UNIT: Buffer = Buffer(1);

/// Counters that do not wrap in a run, that wrap at 32 bits, and that wrap at 64 and 128 bits.
const COUNTERS: [Block; 3] = {
    let first = 0x3c91_a7e0_5d14_f86b_22c7_390f_b8d6_417a_u128.to_be_bytes();
    let mut counters = [first, [0xff; 16], [0xff; 16]];
    counters[1][0] = 7;
    (counters[1][15], counters[2][15]) = (0xfd, 0xfb);
    counters
};

/// Makes a key in its place. Returns the address of the key.
fn set_key(session: &mut Session, buffer: Buffer, key: &[u8]) -> Result<u64, Stop> {
    let place = session.call_well("proof_key_place", &[])?;
    let bytes = session.secret(buffer, key, false);
    let kernel = session.kernel;
    session.call_well("proof_key_set", &[place, kernel, bytes, key.len() as u64])?;
    session.remove(buffer);
    Ok(place)
}

/// Runs the modes of a key.
pub(super) fn run(session: &Session, group: Group, extent: Extent, outcome: &mut Outcome) {
    let key = sample(group.key_len, 5);
    let mut keyed = session.clone();
    let made = set_key(&mut keyed, KEY, &key);
    let Ok(place) = made else {
        outcome.add(&keyed, made.map(|_| ()), format!("{group}: set-up"));
        return;
    };
    if group.operation == Operation::Key {
        let result = run_key(&mut keyed, place);
        if result.is_ok() {
            keyed.check_heap();
        }
        outcome.add(&keyed, result, format!("{group}"));
        return;
    }
    (keyed.machine.steps, keyed.machine.findings) = (0, Default::default());
    let aes = Aes::new(&key);
    match group.operation {
        Operation::Mode(index) => run_mode(&keyed, group, extent, (&MODES[index], place, &aes), outcome),
        Operation::XtsUnit(encrypts) => run_units(&keyed, group, extent, (encrypts, place, &aes), outcome),
        _ => {
            for len in (0..=if group.operation == Operation::Block { 16 } else { 160 }).step_by(16) {
                let mut session = keyed.clone();
                let result = run_serial(&mut session, group, (place, &aes), len);
                outcome.add(&session, result, format!("{group}, {len} bytes"));
            }
        }
    }
}

/// Copies a key and drops both keys. Advances a tweak by numbers of blocks.
fn run_key(session: &mut Session, key: u64) -> Result<(), Stop> {
    let copy = session.call_well("proof_key_place", &[])?;
    session.call_well("proof_key_copy", &[copy, key])?;
    for key in [key, copy] {
        session.call("proof_key_drop", &[key])?;
    }
    for blocks in [0, 1, 7, 8, 64, 129, 300] {
        let tweak: Block = sample(16, 9).try_into().expect("16 bytes");
        let place = session.secret(REGISTER, &tweak, true);
        session.call("proof_advance_tweak", &[place, blocks])?;
        session.check_values(REGISTER, "the tweak", &tweak_after(tweak, 16 * blocks as usize));
    }
    Ok(())
}

/// The chaining register after a mode.
fn next_register(mode: &str, register: &Block, input: &[u8], output: &[u8]) -> Option<Block> {
    match mode {
        "CTR" => Some(counter_after(register, input.len(), 16)),
        "CTR32" => Some(counter_after(register, input.len(), 4)),
        "OFB" => Some(last_difference(register, input, output)),
        "XTS encryption" | "XTS decryption" => Some(tweak_after(*register, input.len())),
        "ECB encryption" | "ECB decryption" => None,
        // CBC and CFB: the last 16 bytes of ciphertext.
        _ if mode.ends_with("decryption") => Some(last_block(register, input)),
        _ => Some(last_block(register, output)),
    }
}

/// The tweak of the block after `len` bytes.
fn tweak_after(tweak: Block, len: usize) -> Block {
    (0..len / 16).fold(tweak, |tweak, _| xts::mul_alpha(tweak))
}

fn run_mode(
    keyed: &Session,
    group: Group,
    extent: Extent,
    (mode, key, aes): (&Mode, u64, &Aes),
    outcome: &mut Outcome,
) {
    let most = if mode.most > 0 { mode.most } else { 2 * group.kernel.step + group.kernel.step + 48 };
    let is_counter = mode.name.starts_with("CTR");
    for len in lengths(group.kernel, extent, mode.unit, most) {
        for in_place in [true, false] {
            let counters = if is_counter && (extent == Extent::Full || in_place) {
                &COUNTERS[..]
            } else {
                &COUNTERS[..1]
            };
            for counter in counters {
                let mut session = keyed.clone();
                let data = sample(len, 3);
                let (from, to) = session.data(INPUT, OUTPUT, &data, in_place);
                let mut arguments = vec![key];
                match mode.register {
                    Register::None => {}
                    Register::Public => arguments.push(session.public(REGISTER, counter, true)),
                    Register::Secret => arguments.push(session.secret(REGISTER, counter, true)),
                }
                arguments.extend([from, to, len as u64]);
                let expected = (mode.expected)(aes, counter, &data);
                let next = next_register(mode.name, counter, &data, &expected);
                if mode.name.ends_with("decryption") {
                    session.results = vec![data];
                } else if mode.name.ends_with("encryption") {
                    session.results = vec![expected.clone()];
                }
                let result = session.call(mode.function, &arguments);
                if result.is_ok() {
                    session.check(OUTPUT, "the output", &expected);
                    if let Some(next) = next {
                        session.check_values(REGISTER, "the chaining register", &next);
                    }
                }
                let place = if in_place { "in place" } else { "not in place" };
                outcome.add(
                    &session,
                    result,
                    format!("{group}, {len} bytes, {place}, counter {counter:02x?}"),
                );
            }
        }
    }
}

/// XTS units, whose tweak is computed by the kernel.
fn run_units(
    keyed: &Session,
    group: Group,
    extent: Extent,
    (encrypts, key, aes): (bool, u64, &Aes),
    outcome: &mut Outcome,
) {
    let tweak_bytes = sample(group.key_len, 9);
    let mut keyed = keyed.clone();
    let made = set_key(&mut keyed, TWEAK_KEY, &tweak_bytes);
    let Ok(tweak_key) = made else {
        outcome.add(&keyed, made.map(|_| ()), format!("{group}: set-up"));
        return;
    };
    (keyed.machine.steps, keyed.machine.findings) = (0, Default::default());
    let tweak_aes = Aes::new(&tweak_bytes);
    let number: Block = COUNTERS[0];
    for len in
        lengths(group.kernel, extent, 16, 3 * group.kernel.step + 48).into_iter().filter(|len| *len > 0)
    {
        for in_place in [true, false] {
            let mut session = keyed.clone();
            let data = sample(len, 3);
            let (from, to) = session.data(INPUT, OUTPUT, &data, in_place);
            let number_place = session.public(NUMBER, &number, false);
            let after = session.public(REGISTER, &[0xee; 16], true);
            let unit = session.structure(UNIT, &[key, tweak_key, number_place, after, u64::from(encrypts)]);
            let tweak = tweak_aes.encrypt(number);
            let expected = if encrypts {
                xts_blocks(|block| aes.encrypt(block), &tweak, &data)
            } else {
                xts_blocks(|block| aes.decrypt(block), &tweak, &data)
            };
            session.results = vec![if encrypts { expected.clone() } else { data }];
            let result = session.call("proof_xts_unit", &[unit, from, to, len as u64]);
            if result.is_ok() {
                session.check(OUTPUT, "the output", &expected);
                session.check(REGISTER, "the tweak after the data", &tweak_after(tweak, len));
            }
            let place = if in_place { "in place" } else { "not in place" };
            outcome.add(&session, result, format!("{group}, {len} bytes, {place}"));
        }
    }
}

/// Runs the encryption of one block, or CBC-MAC.
fn run_serial(session: &mut Session, group: Group, (key, aes): (u64, &Aes), len: usize) -> Result<(), Stop> {
    if group.operation == Operation::Block {
        let block: Block = sample(16, 3).try_into().expect("16 bytes");
        let address = session.secret(OUTPUT, &block, true);
        session.call("proof_block", &[key, address])?;
        session.check(OUTPUT, "the block", &aes.encrypt(block));
        return Ok(());
    }
    let data = sample(len, 3);
    let address = session.secret(INPUT, &data, false);
    let state = session.secret(REGISTER, &COUNTERS[0], true);
    session.call("proof_cbc_mac", &[key, state, address, len as u64])?;
    session.check_values(REGISTER, "the MAC", &cbc_mac::update(aes, COUNTERS[0], &data));
    Ok(())
}
