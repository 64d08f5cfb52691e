//! Modes that need only one key.

use super::cipher::{Block, Cipher, Counter, block, public, times_alpha, xor, xor_blocks};
use super::{Differences, Prover, block_of, compare, lengths, place_data};
use crate::cases::modes::{MODES, Register};
use crate::cases::{Buffer, Extent, Operation, Session};
use crate::machine::Stop;
use crate::symbols::{Symbol, Symbols};

const KEY: Buffer = Buffer(16);
const TWEAK_KEY: Buffer = Buffer(17);
const REGISTER: Buffer = Buffer(18);
const NUMBER: Buffer = Buffer(19);
const INPUT: Buffer = Buffer(20);
const OUTPUT: Buffer = Buffer(21);
const UNIT: Buffer = Buffer(1);

/// Counters that do not wrap in a run, that wrap at 2^32 after three blocks, at 2^64 after six, and at 2^128 after five.
const COUNTERS: [u128; 4] = [
    0x3c3c_3c3c_3c3c_3c3c_3c3c_3c3c_3c3c_3c3c,
    0x0700_0000_0000_0000_ffff_ffff_ffff_fffd,
    0x0102_0304_0506_0708_ffff_ffff_ffff_fffa,
    u128::MAX - 4,
];

/// True if each block depends on the block before.
pub(super) fn is_serial(mode: usize) -> bool {
    MODES[mode].most > 0
}

/// The output of a mode, and its chaining register after the data. Both are those of the standard.
pub(super) fn expected(
    cipher: &Cipher,
    mode: &str,
    register: &Block,
    data: &[Symbol],
) -> (Vec<Symbol>, Block) {
    let symbols = cipher.symbols();
    let encrypts = mode.ends_with("encryption");
    let output = match mode {
        "CTR" => cipher.ctr(register, Counter::Whole, data),
        "CTR32" => cipher.ctr(register, Counter::Last32, data),
        "OFB" => cipher.ofb(register, data),
        _ => match mode.split(' ').next() {
            Some("ECB") => cipher.ecb(data, encrypts),
            Some("CBC") => cipher.cbc(register, data, encrypts),
            Some("CFB128") => cipher.cfb(register, data, 16, encrypts),
            Some("CFB8") => cipher.cfb(register, data, 1, encrypts),
            Some("XTS") => cipher.xts(register, data, encrypts),
            _ => unreachable!("a mode of the list"),
        },
    };
    let blocks = data.len().div_ceil(16);
    let next = match mode {
        "CTR" => Counter::Whole.after(symbols, register, blocks),
        "CTR32" => Counter::Last32.after(symbols, register, blocks),
        "OFB" => last_block(register, &xor(symbols, data, &output)),
        _ if mode.starts_with("ECB") => *register,
        _ if mode.starts_with("XTS") => (0..blocks).fold(*register, |tweak, _| times_alpha(symbols, &tweak)),
        // The last 16 bytes of ciphertext.
        _ => last_block(register, if encrypts { &output } else { data }),
    };
    (output, next)
}

/// The last 16 bytes of a register and the bytes after it.
pub(super) fn last_block(register: &Block, bytes: &[Symbol]) -> Block {
    *[register, bytes].concat().last_chunk().expect("16 bytes")
}

/// Makes a key in its place, and returns the address of the key.
pub(super) fn set_key(session: &mut Session<Symbols>, buffer: Buffer, key: &[Symbol]) -> Result<u64, Stop> {
    let place = session.invoke_well("proof_key_place", &[])?;
    let bytes = session.buffer(buffer, key.to_vec(), false);
    let kernel = session.kernel;
    session.invoke_well("proof_key_set", &[place, kernel, bytes, key.len() as u64])?;
    session.remove(buffer);
    Ok(place)
}

/// Proves a mode for each length.
pub(super) fn prove(prover: &mut Prover, mode: usize) -> Result<(), Stop> {
    let mode = &MODES[mode];
    let key = prover.key.clone();
    let place = set_key(&mut prover.session, KEY, &key)?;
    let step = prover.group.kernel.step;
    let most = if mode.most > 0 { mode.most } else { 3 * step + 48 };
    let register = block(&prover.symbols.inputs(16));
    let counters = COUNTERS.map(|counter| block(&public(&counter.to_be_bytes())));
    let registers = if mode.name.starts_with("CTR") { &counters[..] } else { &[register][..] };
    for (number, len) in lengths(prover.extent, mode.unit, most, &[step, 2 * step]).into_iter().enumerate() {
        for (index, register) in registers.iter().enumerate() {
            for in_place in [true, false] {
                // CTR runs with the first counter and with one of the other three. A proof of CTR, and a short proof
                // of any mode, runs either in place or out of place.
                let is_left_out = index > 0 && index != 1 + number % 3;
                let is_one_place = registers.len() > 1 || prover.extent == Extent::Short;
                if is_left_out || is_one_place && in_place != (number + index).is_multiple_of(2) {
                    continue;
                }
                let data = prover.data(len);
                let mut session = prover.session.clone();
                let mut run = || -> Differences {
                    let (from, to) = place_data(&mut session, INPUT, OUTPUT, &data, in_place);
                    let mut arguments = vec![place];
                    if mode.register != Register::None {
                        arguments.push(session.buffer(REGISTER, register.to_vec(), true));
                    }
                    arguments.extend([from, to, len as u64]);
                    session.invoke(mode.function, &arguments)?;
                    let (output, next) = expected(&prover.cipher, mode.name, register, &data);
                    let mut differences = Vec::new();
                    compare(&mut differences, &session, OUTPUT, "the output", &output);
                    if mode.register != Register::None {
                        compare(&mut differences, &session, REGISTER, "the chaining register", &next);
                    }
                    Ok(differences)
                };
                let result = run();
                prover.add(&format!("{len} bytes, register {index}, in place: {in_place}"), result);
            }
        }
    }
    Ok(())
}

/// Proves XTS of whole data units, whose number is a symbol.
pub(super) fn prove_units(prover: &mut Prover, encrypts: bool) -> Result<(), Stop> {
    let (key, tweak_bytes) = (prover.key.clone(), prover.symbols.inputs(prover.group.key_len));
    let place = set_key(&mut prover.session, KEY, &key)?;
    let tweak_key = set_key(&mut prover.session, TWEAK_KEY, &tweak_bytes)?;
    let tweak_cipher = Cipher::new(&prover.symbols, &tweak_bytes);
    let number = prover.symbols.inputs(16);
    let tweak = tweak_cipher.encrypt(&number);
    let step = prover.group.kernel.step;
    for len in lengths(prover.extent, 16, 3 * step + 48, &[step, 2 * step]).into_iter().filter(|len| *len > 0)
    {
        for in_place in [true, false] {
            let data = prover.data(len);
            let mut session = prover.session.clone();
            let mut run = || -> Differences {
                let (from, to) = place_data(&mut session, INPUT, OUTPUT, &data, in_place);
                let number_place = session.buffer(NUMBER, number.clone(), false);
                let after = session.public(REGISTER, &[0xee; 16], true);
                let parts = [place, tweak_key, number_place, after, u64::from(encrypts)];
                let unit = session.structure(UNIT, &parts);
                session.invoke("proof_xts_unit", &[unit, from, to, len as u64])?;
                let name = if encrypts { "XTS encryption" } else { "XTS decryption" };
                let (output, next) = expected(&prover.cipher, name, &tweak, &data);
                let mut differences = Vec::new();
                compare(&mut differences, &session, OUTPUT, "the output", &output);
                compare(&mut differences, &session, REGISTER, "the tweak after the data", &next);
                Ok(differences)
            };
            let result = run();
            prover.add(&format!("{len} bytes, in place: {in_place}"), result);
        }
    }
    Ok(())
}

/// Proves the encryption of one block, or CBC-MAC.
pub(super) fn prove_serial(prover: &mut Prover) -> Result<(), Stop> {
    let key = prover.key.clone();
    let place = set_key(&mut prover.session, KEY, &key)?;
    let state = block(&prover.symbols.inputs(16));
    let is_block = prover.group.operation == Operation::Block;
    for len in (0..=if is_block { 0 } else { 160 }).step_by(16) {
        let data = prover.data(len);
        let mut session = prover.session.clone();
        let mut run = || -> Differences {
            let register = session.buffer(REGISTER, state.to_vec(), true);
            if is_block {
                session.invoke("proof_block", &[place, register])?;
            } else {
                let from = session.buffer(INPUT, data.clone(), false);
                session.invoke("proof_cbc_mac", &[place, register, from, len as u64])?;
            }
            let add = |state: Block, block: &Block| {
                prover.cipher.encrypt(&xor_blocks(&prover.symbols, &state, block))
            };
            let expected = match is_block {
                true => prover.cipher.encrypt(&state),
                false => data.as_chunks().0.iter().fold(state, add),
            };
            let is_equal = block_of(&session, REGISTER) == expected;
            Ok(if is_equal { Vec::new() } else { vec!["the block".to_string()] })
        };
        let result = run();
        prover.add(&format!("{len} bytes"), result);
    }
    Ok(())
}
