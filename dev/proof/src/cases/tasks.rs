//! Tasks of the backend interface: passes and fused AEADs over several messages with keys of their own.

use lockstep_reference::{
    Aes, Block, cbc, cbc_mac, cfb, ctr, ecb, gcm, gcm_siv, ghash, ocb, ofb, pcbc, polyval, xts,
};

use super::session::{Buffer, Session, sample};
use super::{Extent, Group, Operation, Outcome};
use crate::machine::Stop;

/// A pass. Its result is the output. If the pass only reads, its result is the chaining state.
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    /// Lengths are multiples of this number of bytes.
    pub(crate) unit: usize,
    /// True if each block depends on the block before, so that messages are interleaved and short messages suffice.
    pub(crate) is_serial: bool,
    /// The result of the reference implementation: the output, or the state after a pass that only reads.
    expected: fn(&[u8], &Block, &[u8]) -> Vec<u8>,
}

/// The passes in the order of `lockstep_core::work::Pass::ALL`.
pub(crate) const PASSES: [Pass; 21] = {
    const fn pass(
        name: &'static str,
        unit: usize,
        is_serial: bool,
        expected: fn(&[u8], &Block, &[u8]) -> Vec<u8>,
    ) -> Pass {
        Pass { name, unit, is_serial, expected }
    }
    [
        pass("EcbEncrypt", 16, false, |key, _, data| ecb::encrypt(&Aes::new(key), data)),
        pass("EcbDecrypt", 16, false, |key, _, data| ecb::decrypt(&Aes::new(key), data)),
        pass("Ctr", 1, false, |key, state, data| ctr::apply(&Aes::new(key), state, data)),
        pass("Ctr32", 1, false, |key, state, data| ctr::apply32(&Aes::new(key), state, data)),
        pass("CtrLittle32", 1, false, |key, state, data| ctr_little32(&Aes::new(key), state, data)),
        pass("CbcEncrypt", 16, true, |key, state, data| cbc::encrypt(&Aes::new(key), state, data)),
        pass("CbcDecrypt", 16, false, |key, state, data| cbc::decrypt(&Aes::new(key), state, data)),
        pass("Cfb128Encrypt", 1, true, |key, state, data| cfb::encrypt128(&Aes::new(key), state, data)),
        pass("Cfb128Decrypt", 1, false, |key, state, data| cfb::decrypt128(&Aes::new(key), state, data)),
        pass("Cfb8Encrypt", 1, true, |key, state, data| cfb::encrypt8(&Aes::new(key), state, data)),
        pass("Cfb8Decrypt", 1, true, |key, state, data| cfb::decrypt8(&Aes::new(key), state, data)),
        pass("Cfb1Encrypt", 1, true, |key, state, data| {
            cfb::encrypt1(&Aes::new(key), state, data, 8 * data.len())
        }),
        pass("Cfb1Decrypt", 1, true, |key, state, data| {
            cfb::decrypt1(&Aes::new(key), state, data, 8 * data.len())
        }),
        pass("Ofb", 1, true, |key, state, data| ofb::apply(&Aes::new(key), state, data)),
        pass("PcbcEncrypt", 16, true, |key, state, data| pcbc::encrypt(&Aes::new(key), state, data)),
        pass("PcbcDecrypt", 16, true, |key, state, data| pcbc::decrypt(&Aes::new(key), state, data)),
        pass("CbcMac", 16, true, |key, state, data| cbc_mac::update(&Aes::new(key), *state, data).to_vec()),
        pass("XtsEncrypt", 16, false, |key, state, data| {
            if data.is_empty() {
                Vec::new()
            } else {
                xts::encrypt(&Aes::new(key), &tweak_aes(key), state, data)
            }
        }),
        pass("XtsDecrypt", 16, false, |key, state, data| {
            if data.is_empty() {
                Vec::new()
            } else {
                xts::decrypt(&Aes::new(key), &tweak_aes(key), state, data)
            }
        }),
        pass("Ghash", 16, false, |key, state, data| {
            ghash::update(&Aes::new(key).encrypt([0; 16]), *state, data).to_vec()
        }),
        pass("Polyval", 16, false, |key, state, data| {
            polyval::update(key.try_into().expect("a hash key"), *state, data).to_vec()
        }),
    ]
};

/// The fused AEADs in the order of `lockstep_core::work::FusedAead::ALL`.
pub(crate) const FUSED: [&str; 6] = ["GcmSeal", "GcmOpen", "OcbSeal", "OcbOpen", "GcmSivSeal", "GcmSivOpen"];

/// The tweak key that belongs to a key in these runs.
fn tweak_key(key: &[u8]) -> Vec<u8> {
    key.iter().map(|byte| byte ^ 0x77).collect()
}

fn tweak_aes(key: &[u8]) -> Aes {
    Aes::new(&tweak_key(key))
}

/// CTR of GCM-SIV (RFC 8452, section 4).
fn ctr_little32(aes: &Aes, counter: &Block, data: &[u8]) -> Vec<u8> {
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

/// The buffers of message `index`: the key, the tweak key, the state, input, output and additional data.
pub(crate) fn buffer(part: u64, index: usize) -> Buffer {
    Buffer(32 + 8 * index as u64 + part)
}

const LIST: Buffer = Buffer(1);

/// The numbers and lengths of messages of the runs.
pub(crate) fn shapes(group: Group, extent: Extent, is_serial: bool, unit: usize) -> Vec<Vec<usize>> {
    // CFB1 encrypts a block for each bit.
    let is_cfb1 = matches!(group.operation, Operation::Pass(index) if PASSES[index].name.starts_with("Cfb1"));
    let step = group.kernel.step;
    let round = |len: usize| len / unit * unit;
    let mut shapes = vec![vec![], vec![0]];
    if !is_cfb1 {
        shapes.extend([vec![round(16)], vec![round(47)]]);
    }
    if is_serial {
        let short = match unit {
            _ if is_cfb1 => 1,
            1 => 11,
            _ => 48,
        };
        // The shortest message is at another place for each number of messages.
        shapes.extend(
            [1, 2, 3, 5, 8, 9, 15, 16, 17, 33].map(|count| {
                (0..count).map(|index| round(short + unit * ((count + index) * 5 % 4))).collect()
            }),
        );
        return shapes;
    }
    shapes.push(vec![round(step + 16), 0, round(2 * step + 31), round(37)]);
    // Kernels interleave up to eight messages, and process the rest in smaller numbers.
    for count in [5, 6, MIXED, 17] {
        shapes.push((0..count).map(|index| round(16 * (index % 5) + index)).collect());
    }
    if extent == Extent::Full {
        shapes.extend((0..3 * step + 48).step_by(unit * if unit == 1 { 7 } else { 1 }).map(|len| vec![len]));
    }
    shapes
}

/// Number of messages of a task whose keys have different sizes.
const MIXED: usize = 7;

/// The size of the key of a message in a task of `count` messages.
fn key_len(group: Group, count: usize, index: usize) -> usize {
    let sizes = [16, 24, 32];
    if count != MIXED || group.operation.takes_hash_key() {
        return group.key_len;
    }
    // Pairs of keys of one size, so that there are messages to interleave.
    sizes[(group.key_len / 8 + index / 2) % sizes.len()]
}

/// The chaining state after a pass. `None` if the pass has no chaining state, if its state is not specified after a partial block, or for
/// XTS, whose state the cases of the modes check.
fn next_state(pass: &str, state: &Block, input: &[u8], output: &[u8]) -> Option<Block> {
    match pass {
        "Ctr" => Some(super::counter_after(state, input.len(), 16)),
        "Ctr32" => Some(super::counter_after(state, input.len(), 4)),
        "Cfb8Encrypt" | "Cfb1Encrypt" => Some(super::last_block(state, output)),
        "Cfb8Decrypt" | "Cfb1Decrypt" => Some(super::last_block(state, input)),
        _ if !input.len().is_multiple_of(16) => None,
        "CbcEncrypt" | "Cfb128Encrypt" => Some(super::last_block(state, output)),
        "CbcDecrypt" | "Cfb128Decrypt" => Some(super::last_block(state, input)),
        "Ofb" | "PcbcEncrypt" | "PcbcDecrypt" => Some(super::last_difference(state, input, output)),
        _ => None,
    }
}

/// Runs the pass or the fused AEAD of a group.
pub(super) fn run(session: &Session, group: Group, extent: Extent, outcome: &mut Outcome) {
    let (is_serial, unit) = match group.operation {
        Operation::Pass(index) => (PASSES[index].is_serial, PASSES[index].unit),
        _ => (false, 1),
    };
    for lens in shapes(group, extent, is_serial, unit) {
        for in_place in [true, false] {
            let mut run = |is_forged: bool| {
                let mut session = session.clone();
                let result = match group.operation {
                    Operation::Pass(index) => run_pass(&mut session, group, index, &lens, in_place),
                    Operation::Fused(index) => {
                        run_fused(&mut session, group, index, &lens, (in_place, is_forged))
                    }
                    _ => unreachable!("a task"),
                };
                if result.is_ok() {
                    session.check_heap();
                }
                let place = if in_place { "in place" } else { "not in place" };
                let forged = if is_forged { ", a wrong tag" } else { "" };
                outcome.add(
                    &session,
                    result,
                    format!("{group}, messages of {lens:?} bytes, {place}{forged}"),
                );
            };
            run(false);
            if matches!(group.operation, Operation::Fused(index) if index % 2 == 1) && !lens.is_empty() {
                run(true);
            }
        }
    }
}

fn run_pass(
    session: &mut Session,
    group: Group,
    index: usize,
    lens: &[usize],
    in_place: bool,
) -> Result<(), Stop> {
    let pass = &PASSES[index];
    let only_reads = matches!(pass.name, "CbcMac" | "Ghash" | "Polyval");
    // The state of OFB is keystream, and that of PCBC depends on the plaintext.
    let has_secret_state = pass.name == "Ofb" || pass.name.starts_with("Pcbc");
    let is_xts = pass.name.starts_with("Xts");
    let (mut list, mut expected) = (Vec::new(), Vec::new());
    for (index, len) in lens.iter().enumerate() {
        let key = sample(key_len(group, lens.len(), index), 5 + index);
        let data = sample(*len, 3 + index);
        let state: Block = sample(16, 40 + index).try_into().expect("16 bytes");
        let key_place = session.secret(buffer(0, index), &key, false);
        let tweak_place = if is_xts { session.secret(buffer(1, index), &tweak_key(&key), false) } else { 0 };
        let state_place = match only_reads || has_secret_state {
            true => session.secret(buffer(2, index), &state, true),
            false => session.public(buffer(2, index), &state, true),
        };
        let (from, to) = if only_reads {
            let place = session.secret(buffer(4, index), &data, false);
            (place, place)
        } else {
            session.data(buffer(3, index), buffer(4, index), &data, in_place)
        };
        let key_len = key.len() as u64;
        list.extend([key_place, key_len, tweak_place, state_place, from, to, *len as u64, 0, 0]);
        let result = (pass.expected)(&key, &state, &data);
        let next = (!only_reads).then(|| next_state(pass.name, &state, &data, &result)).flatten();
        if pass.name.ends_with("Decrypt") {
            session.results.push(data);
        } else if pass.name.ends_with("Encrypt") {
            session.results.push(result.clone());
        }
        expected.push((result, next));
    }
    let place = session.structure(LIST, &list);
    let kernel = session.kernel;
    session.call_well("proof_pass", &[kernel, index as u64, place, lens.len() as u64])?;
    for (index, (expected, next)) in expected.iter().enumerate() {
        if only_reads {
            session.check_values(buffer(2, index), "the state", expected);
            continue;
        }
        session.check(buffer(4, index), "the output", expected);
        if let Some(next) = next {
            session.check_values(buffer(2, index), "the chaining state", next);
        }
    }
    Ok(())
}

/// The ciphertext and the tag by the reference implementation.
fn seal(index: usize, key: &[u8], nonce: &[u8; 12], aad: &[u8], plaintext: &[u8]) -> (Vec<u8>, Vec<u8>) {
    match index / 2 {
        0 => {
            let (ciphertext, tag) = gcm::seal(&Aes::new(key), nonce, aad, plaintext);
            (ciphertext, tag.to_vec())
        }
        1 => ocb::seal(&Aes::new(key), nonce, aad, plaintext, 16),
        _ => {
            let (ciphertext, tag) = gcm_siv::seal(key, nonce, aad, plaintext);
            (ciphertext, tag.to_vec())
        }
    }
}

fn run_fused(
    session: &mut Session,
    group: Group,
    index: usize,
    lens: &[usize],
    (in_place, is_forged): (bool, bool),
) -> Result<(), Stop> {
    let seals = index.is_multiple_of(2);
    let (mut list, mut expected) = (Vec::new(), Vec::new());
    for (number, len) in lens.iter().enumerate() {
        let key = sample(key_len(group, lens.len(), number), 5 + number);
        let plaintext = sample(*len, 3 + number);
        let (nonce, aad) = (sample(12, 40 + number), sample(number * 19 % 70, 8));
        let nonce: [u8; 12] = nonce.try_into().expect("12 bytes");
        let (ciphertext, tag) = seal(index, &key, &nonce, &aad, &plaintext);
        let (input, output) =
            if seals { (&plaintext, ciphertext.clone()) } else { (&ciphertext, plaintext.clone()) };
        session.results.push(ciphertext.clone());
        if seals {
            session.results.push(tag.clone());
        }
        let key_place = session.secret(buffer(0, number), &key, false);
        // The nonce has 12 of 16 bytes; the tag follows.
        let mut state = [&nonce[..], &[0; 4], &[0xee; 16]].concat();
        // The last message has the wrong tag.
        let has_wrong_tag = is_forged && number + 1 == lens.len();
        if !seals {
            state[16..].copy_from_slice(&tag);
            // A comparison by two numbers of 64 bits may ignore one of them.
            state[if in_place { 31 } else { 16 }] ^= if has_wrong_tag { 0x40 } else { 0 };
        }
        let state_place = session.public(buffer(2, number), &state, seals);
        let aad_place = session.secret(buffer(5, number), &aad, false);
        let (from, to) = session.data(buffer(3, number), buffer(4, number), input, in_place);
        let key_len = key.len() as u64;
        list.extend([key_place, key_len, 0, state_place, from, to, *len as u64, aad_place, aad.len() as u64]);
        if seals {
            state[16..].copy_from_slice(&tag);
        }
        expected.push((if has_wrong_tag { vec![0; *len] } else { output }, state));
    }
    let place = session.structure(LIST, &list);
    let kernel = session.kernel;
    session.check_verdict("proof_fused", &[kernel, index as u64, place, lens.len() as u64], !is_forged)?;
    for (number, (output, state)) in expected.iter().enumerate() {
        session.check(buffer(4, number), "the output", output);
        session.check_values(buffer(2, number), "the tag", state);
    }
    Ok(())
}
