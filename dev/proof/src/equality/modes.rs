//! Modes that need only one key.

use super::cipher::{Block, Cipher, Counter, block, public, times_alpha, xor};
use super::{Differences, Prover, compare, lengths};
use crate::cases::Extent;
use crate::cases::modes::{CCM_COUNTER, Form, MODES, Mode, Next, OUTPUT, REGISTER, call, ranges, set_key};
use crate::machine::Stop;
use crate::symbols::Symbol;

/// Four counters: the first does not wrap in a run. The others wrap at 2^32 after three blocks, at 2^64 after six
/// blocks, and at 2^128 after five blocks.
const COUNTERS: [u128; 4] = [
    0x3c3c_3c3c_3c3c_3c3c_3c3c_3c3c_3c3c_3c3c,
    0x0700_0000_0000_0000_ffff_ffff_ffff_fffd,
    0x0102_0304_0506_0708_ffff_ffff_ffff_fffa,
    u128::MAX - 4,
];

/// The output of a mode and its chaining register after the data, as the standard defines them.
pub(super) fn expected(
    cipher: &Cipher,
    mode: &Mode,
    register: &Block,
    data: &[Symbol],
) -> (Vec<Symbol>, Option<Block>) {
    let (symbols, encrypts, blocks) = (cipher.symbols(), mode.encrypts(), data.len().div_ceil(16));
    let mut output = match mode.name.split(' ').next() {
        _ if mode.name == "CTR of GCM-SIV" => cipher.ctr(register, Counter::First32, data),
        Some("block") => cipher.encrypt(register).to_vec(),
        Some("CBC-MAC") => cipher.cbc_mac(register, data).to_vec(),
        Some("CCM") => cipher.ccm(register, &block(&public(&CCM_COUNTER)), data, encrypts),
        Some("ECB") => cipher.ecb(data, encrypts),
        Some("CTR") => cipher.ctr(register, Counter::Whole, data),
        Some("CTR32") => cipher.ctr(register, Counter::Last32, data),
        Some("CBC") => cipher.cbc(register, data, encrypts),
        Some("CFB128") => cipher.cfb(register, data, 128, encrypts),
        Some("CFB8") => cipher.cfb(register, data, 8, encrypts),
        Some("CFB1") => cipher.cfb(register, data, 1, encrypts),
        Some("OFB") => cipher.ofb(register, data),
        Some("PCBC") => cipher.pcbc(register, data, encrypts),
        Some("XTS") => cipher.xts(register, data, encrypts),
        _ => unreachable!("a mode of the list"),
    };
    // The last 16 bytes of the register followed by these bytes.
    let last = |bytes: &[Symbol]| *[register, bytes].concat().last_chunk().expect("16 bytes");
    let next = match mode.next {
        Next::None => return (output, None),
        Next::Counter(16) => Counter::Whole.after(symbols, register, blocks),
        Next::Counter(_) => Counter::Last32.after(symbols, register, blocks),
        Next::Ciphertext => last(if encrypts { &output } else { data }),
        Next::Difference => last(&xor(symbols, data, &output)),
        Next::Tweak => (0..blocks).fold(*register, |tweak, _| times_alpha(symbols, &tweak)),
        Next::Tag => block(&output.split_off(data.len())),
        Next::Result => block(&output),
    };
    (output, Some(next))
}

/// Proves a mode for each length.
pub(super) fn prove(prover: &mut Prover, mode: usize) -> Result<(), Stop> {
    let (mode, extent) = (&MODES[mode], prover.extent);
    let key = prover.key.clone();
    let place = set_key(&mut prover.session, key)?;
    let symbol = block(&prover.symbols.inputs(16));
    let counters = COUNTERS.map(|counter| block(&public(&counter.to_be_bytes())));
    let registers = if matches!(mode.next, Next::Counter(_)) { &counters[..] } else { &[symbol][..] };
    // The tweak of a data unit is the encrypted number of the unit.
    let (mut tweak_key, mut unit) = (0, None);
    if mode.form == Form::Unit {
        let bytes = prover.symbols.inputs(prover.group.key_len);
        unit = Some(Cipher::new(&prover.symbols, &bytes).encrypt(&symbol));
        tweak_key = set_key(&mut prover.session, bytes)?;
    }
    let (step, is_circuit) = (prover.group.kernel.step, prover.group.kernel.width.is_some());
    let (range, places) = ranges(mode, step);
    let lens = lengths(extent, mode.unit, *range.end(), &[step, 2 * step]);
    for (number, len) in lens.into_iter().filter(|len| range.contains(len)).enumerate() {
        for (index, register) in registers.iter().enumerate() {
            for in_place in places.iter().copied() {
                // CTR runs with the first counter and with one of the other three; for `cpu/soft`, with one of these two. A proof of CTR, and
                // a short proof of any mode, runs either in place or out of place.
                let is_other = index == 1 + number % 3;
                let is_counter = registers.len() > 1;
                let is_left_out = !is_other && index > 0
                    || is_circuit && is_counter && is_other != number.is_multiple_of(2);
                let is_one_place = is_counter || extent == Extent::Short;
                let parity = if is_circuit { number / 2 } else { number + index };
                let is_chosen = places.len() == 1 || in_place == parity.is_multiple_of(2);
                if is_left_out || is_one_place && !is_chosen {
                    continue;
                }
                let data = prover.data(len);
                // Runs of CTR in circuits have long expressions, so each has its own table.
                let forked = (is_counter && is_circuit).then(|| prover.fork());
                let Prover { session, cipher, .. } = forked.as_ref().unwrap_or(prover);
                let mut session = session.clone();
                let mut run = || -> Differences {
                    // The definition is computed first: it registers the inputs of S-boxes.
                    let start = unit.as_ref().unwrap_or(register);
                    let (output, next) = expected(cipher, mode, start, &data);
                    call(&mut session, mode, [place, tweak_key], register.to_vec(), (&data, in_place))?;
                    let mut differences = Vec::new();
                    if !matches!(mode.form, Form::Read | Form::Block) {
                        compare(&mut differences, &session, OUTPUT, "the output", &output);
                    }
                    if let Some(next) = next {
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
