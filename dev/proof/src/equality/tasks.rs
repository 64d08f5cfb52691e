//! Tasks of the backend interface: passes and fused AEADs over several messages with keys of their own.

use super::cipher::{Block, Cipher, Counter, block, public, xor, xor_blocks};
use super::definition::{Aead, Message};
use super::hash::{Hashed, ghash_key, reversed};
use super::modes::last_block;
use super::{Differences, Prover, block_of, compare, place_data};
use crate::cases::tasks::{FUSED, PASSES, buffer, shapes};
use crate::cases::{Buffer, Operation, Session};
use crate::machine::Stop;
use crate::symbols::{Symbol, Symbols};
use crate::value::Domain;

const LIST: Buffer = Buffer(1);

/// The input of a message.
pub(super) struct Input {
    key: Vec<Symbol>,
    tweak_key: Vec<Symbol>,
    state: Vec<Symbol>,
    aad: Vec<Symbol>,
    pub(super) data: Vec<Symbol>,
}

/// The input of each message. Counters of CTR are public.
pub(super) fn inputs(prover: &mut Prover, lens: &[usize], known: &mut Vec<Input>) {
    let (symbols, key_len) = (prover.symbols.clone(), prover.group.key_len);
    let is_counter =
        matches!(prover.group.operation, Operation::Pass(index) if PASSES[index].name.starts_with("Ctr"));
    for (index, len) in lens.iter().enumerate() {
        if index == known.len() {
            let state = match is_counter {
                true => public(
                    &(u128::MAX - 2 - index as u128).rotate_left(40 * (index as u32 % 4)).to_le_bytes(),
                ),
                false => symbols.inputs(16),
            };
            let (key, tweak_key) = (symbols.inputs(key_len), symbols.inputs(key_len));
            known.push(Input {
                key,
                tweak_key,
                state,
                aad: symbols.inputs(index * 19 % 70),
                data: Vec::new(),
            });
        }
        let missing = len.saturating_sub(known[index].data.len());
        known[index].data.extend(symbols.inputs(missing));
    }
}

/// Proves the pass or the fused AEAD of a group.
pub(super) fn prove(prover: &mut Prover) -> Result<(), Stop> {
    let (is_serial, unit) = match prover.group.operation {
        Operation::Pass(index) => (PASSES[index].is_serial, PASSES[index].unit),
        _ => (false, 1),
    };
    let mut known = Vec::new();
    let all = shapes(prover.group, prover.extent, is_serial, unit);
    // Of the lengths of single messages, every fourth is proved.
    let shapes =
        all.into_iter().enumerate().filter(|(index, lens)| lens.len() != 1 || *index < 8 || index % 4 == 0);
    // From the length of a step of the fused loop, the opening of GCM-SIV adds products in another order than the sealing. The two tags have
    // different expressions then, so that the right tag is not recognised.
    let step = prover.group.kernel.gcm.1;
    let opens_siv = matches!(prover.group.operation, Operation::Fused(index) if FUSED[index] == "GcmSivOpen");
    let shapes = shapes.filter(|(_, lens)| !opens_siv || lens.iter().all(|len| *len < step));
    for (index, lens) in shapes {
        inputs(prover, &lens, &mut known);
        let forked = prover.fork();
        let mut session = forked.session.clone();
        let result = match prover.group.operation {
            Operation::Pass(pass) => prove_pass(&forked, &mut session, pass, &known, &lens, index % 2 == 0),
            Operation::Fused(fused) => prove_fused(&forked, &session, fused, &known, &lens, index % 2 == 0),
            _ => unreachable!("a task"),
        };
        prover.add(&format!("messages of {lens:?} bytes"), result);
    }
    Ok(())
}

pub(super) fn prove_pass(
    prover: &Prover,
    session: &mut Session<Symbols>,
    pass: usize,
    known: &[Input],
    lens: &[usize],
    in_place: bool,
) -> Differences {
    let name = PASSES[pass].name;
    let only_reads = matches!(name, "CbcMac" | "Ghash" | "Polyval");
    let mut list = Vec::new();
    for (index, (input, len)) in known.iter().zip(lens).enumerate() {
        let key = session.buffer(buffer(0, index), input.key.clone(), false);
        let is_xts = name.starts_with("Xts");
        let tweak = if is_xts { session.buffer(buffer(1, index), input.tweak_key.clone(), false) } else { 0 };
        let state = session.buffer(buffer(2, index), input.state.clone(), true);
        let data = &input.data[..*len];
        let (from, to) = if only_reads {
            let place = session.buffer(buffer(4, index), data.to_vec(), false);
            (place, place)
        } else {
            place_data(session, buffer(3, index), buffer(4, index), data, in_place)
        };
        list.extend([key, input.key.len() as u64, tweak, state, from, to, *len as u64, 0, 0]);
    }
    let (place, kernel) = (session.structure(LIST, &list), session.kernel);
    session.invoke_well("proof_pass", &[kernel, pass as u64, place, lens.len() as u64])?;
    let mut differences = Vec::new();
    for (index, (input, len)) in known.iter().zip(lens).enumerate() {
        let (state, data) = (block(&input.state), &input.data[..*len]);
        let result = block_of(session, buffer(2, index));
        if let "Ghash" | "Polyval" = name {
            if !is_hash_right(prover, name == "Ghash", input, data, result) {
                differences.push(format!("the hash of message {index}"));
            }
            continue;
        }
        let cipher = Cipher::new(&prover.symbols, &input.key);
        if name == "CbcMac" {
            let step =
                |state: Block, block: &Block| cipher.encrypt(&xor_blocks(&prover.symbols, &state, block));
            let mac = data.as_chunks().0.iter().fold(state, step);
            compare(&mut differences, session, buffer(2, index), "the MAC", &mac);
            continue;
        }
        let output = expected(&cipher, name, input, data);
        compare(&mut differences, session, buffer(4, index), "the output", &output);
        if let Some(next) = next_state(&prover.symbols, name, &state, data, &output) {
            compare(&mut differences, session, buffer(2, index), "the chaining state", &next);
        }
    }
    Ok(differences)
}

/// GHASH with E(0) as the hash key, or POLYVAL with the key of the message. The state before is added to the first block.
pub(super) fn is_hash_right(
    prover: &Prover,
    is_ghash: bool,
    input: &Input,
    data: &[Symbol],
    result: Block,
) -> bool {
    let symbols = &prover.symbols;
    if data.is_empty() {
        return result == block(&input.state);
    }
    let mut blocks: Vec<Block> = data.as_chunks().0.to_vec();
    blocks[0] = xor_blocks(symbols, &blocks[0], &block(&input.state));
    if !is_ghash {
        let hashed = Hashed { symbols, key: block(&input.key), blocks: &blocks, result, ignored: None };
        return hashed.is_right();
    }
    let key = ghash_key(symbols, &Cipher::new(symbols, &input.key).encrypt(&public(&[0; 16])));
    let blocks: Vec<Block> = blocks.iter().map(reversed).collect();
    let hashed = Hashed { symbols, key, blocks: &blocks, result: reversed(&result), ignored: None };
    hashed.is_right()
}

/// The output of a pass by the standards.
fn expected(cipher: &Cipher, pass: &str, input: &Input, data: &[Symbol]) -> Vec<Symbol> {
    let (state, encrypts) = (block(&input.state), pass.ends_with("Encrypt"));
    match pass.trim_end_matches("Encrypt").trim_end_matches("Decrypt") {
        "Ecb" => cipher.ecb(data, encrypts),
        "Ctr" => cipher.ctr(&state, Counter::Whole, data),
        "Ctr32" => cipher.ctr(&state, Counter::Last32, data),
        "CtrLittle32" => cipher.ctr(&state, Counter::First32, data),
        "Cbc" => cipher.cbc(&state, data, encrypts),
        "Cfb128" => cipher.cfb(&state, data, 16, encrypts),
        "Cfb8" => cipher.cfb(&state, data, 1, encrypts),
        "Ofb" => cipher.ofb(&state, data),
        "Pcbc" => cipher.pcbc(&state, data, encrypts),
        "Xts" => {
            let tweak = Cipher::new(cipher.symbols(), &input.tweak_key).encrypt(&state);
            cipher.xts(&tweak, data, encrypts)
        }
        _ => unreachable!("a pass of the list"),
    }
}

/// The chaining state after a pass. `None` if the pass has none, or if its state is not specified after a partial block.
fn next_state(
    symbols: &Symbols,
    pass: &str,
    state: &Block,
    data: &[Symbol],
    output: &[Symbol],
) -> Option<Block> {
    let blocks = data.len().div_ceil(16);
    let ciphertext = if pass.ends_with("Encrypt") { output } else { data };
    match pass {
        "Ctr" => Some(Counter::Whole.after(symbols, state, blocks)),
        "Ctr32" => Some(Counter::Last32.after(symbols, state, blocks)),
        "Cfb8Encrypt" | "Cfb8Decrypt" => Some(last_block(state, ciphertext)),
        _ if !data.len().is_multiple_of(16) => None,
        "CbcEncrypt" | "CbcDecrypt" | "Cfb128Encrypt" | "Cfb128Decrypt" => {
            Some(last_block(state, ciphertext))
        }
        "Ofb" | "PcbcEncrypt" | "PcbcDecrypt" => Some(last_block(state, &xor(symbols, data, output))),
        _ => None,
    }
}

/// Seals or opens messages with inputs and tags. Returns the verdict.
fn run_fused(
    session: &mut Session<Symbols>,
    (fused, in_place): (usize, bool),
    messages: &[(&Input, Vec<Symbol>)],
    tags: Option<&[Vec<Symbol>]>,
) -> Result<bool, Stop> {
    let mut list = Vec::new();
    for (index, (input, data)) in messages.iter().enumerate() {
        let key = session.buffer(buffer(0, index), input.key.clone(), false);
        let tag = tags.map_or_else(|| public(&[0xee; 16]), |tags| tags[index].clone());
        // The nonce has 12 of 16 bytes; the tag follows.
        let state = [&nonce(input)[..], &public(&[0; 4]), &tag].concat();
        let state = session.buffer(buffer(2, index), state, tags.is_none());
        let aad = session.buffer(buffer(5, index), input.aad.clone(), false);
        let (from, to) = place_data(session, buffer(3, index), buffer(4, index), data, in_place);
        let (key_len, len, aad_len) = (input.key.len() as u64, data.len() as u64, input.aad.len() as u64);
        list.extend([key, key_len, 0, state, from, to, len, aad, aad_len]);
    }
    let (place, kernel) = (session.structure(LIST, &list), session.kernel);
    let verdict = session.invoke("proof_fused", &[kernel, fused as u64, place, messages.len() as u64])?;
    Ok(verdict & 0xff == 1)
}

/// The nonce of a message. Its last byte is public, as the definition of OCB3 demands.
fn nonce(input: &Input) -> Vec<Symbol> {
    [&input.state[..11], &public(&[input.aad.len() as u8 * 37])].concat()
}

fn aead_of(fused: usize) -> Aead {
    match FUSED[fused] {
        name if name.starts_with("GcmSiv") => Aead::GcmSiv,
        name if name.starts_with("Gcm") => Aead::Gcm,
        _ => Aead::Ocb,
    }
}

/// The tags in the buffers of messages after they have been sealed.
fn tags_of(session: &Session<Symbols>, count: usize) -> Vec<Vec<Symbol>> {
    (0..count).map(|index| session.bytes(buffer(2, index))[16..].to_vec()).collect()
}

/// The outputs in the buffers of messages.
fn outputs_of(session: &Session<Symbols>, count: usize) -> Vec<Vec<Symbol>> {
    (0..count).map(|index| session.bytes(buffer(4, index)).to_vec()).collect()
}

fn prove_fused(
    prover: &Prover,
    session: &Session<Symbols>,
    fused: usize,
    known: &[Input],
    lens: &[usize],
    in_place: bool,
) -> Differences {
    let form = (fused & !1, in_place);
    let plaintexts: Vec<Vec<Symbol>> =
        known.iter().zip(lens).map(|(input, len)| input.data[..*len].to_vec()).collect();
    let with = |data: &[Vec<Symbol>]| -> Vec<(&Input, Vec<Symbol>)> {
        known.iter().zip(data.iter().cloned()).collect()
    };
    if fused.is_multiple_of(2) {
        let mut sealed = session.clone();
        if !run_fused(&mut sealed, form, &with(&plaintexts), None)? {
            return Ok(vec!["the task fails".into()]);
        }
        let (outputs, tags) = (outputs_of(&sealed, lens.len()), tags_of(&sealed, lens.len()));
        return Ok(check(prover, fused, known, &plaintexts, &outputs, &tags));
    }
    let mut differences = Vec::new();
    let opened = (fused, in_place);
    // The ciphertext of GCM-SIV is that of the plaintext, because the computed tag depends on the tag to compare with.
    let (ciphertexts, tags) = if aead_of(fused) == Aead::GcmSiv {
        let mut sealed = session.clone();
        run_fused(&mut sealed, form, &with(&plaintexts), None)?;
        (outputs_of(&sealed, lens.len()), tags_of(&sealed, lens.len()))
    } else {
        (plaintexts.clone(), computed_tags(prover, session, opened, &with(&plaintexts))?)
    };
    if tags.len() < lens.len() {
        return Ok(vec!["a tag is not compared".into()]);
    }
    let mut right = session.clone();
    if !run_fused(&mut right, opened, &with(&ciphertexts), Some(&tags))? {
        differences.push("the right tag is refused".into());
    }
    let outputs = outputs_of(&right, lens.len());
    differences.extend(check(prover, fused, known, &outputs, &ciphertexts, &tags));
    for bit in (0..128).step_by(if lens == [0] { 1 } else { 61 }) {
        // One of the bits of the last tag changes.
        let Some((last, before)) = tags.split_last() else { break };
        let (mut forged, mut session) = (last.clone(), session.clone());
        forged[bit / 8] = prover.symbols.clone().xor(forged[bit / 8], Symbols::constant(1 << (bit % 8)));
        let is_accepted =
            run_fused(&mut session, opened, &with(&ciphertexts), Some(&[before, &[forged]].concat()))?;
        let output = session.bytes(buffer(4, lens.len() - 1));
        // The tag that GCM-SIV computes depends on the tag to compare with, so that it is unknown here, and the verdict shows nothing.
        if is_accepted && aead_of(fused) != Aead::GcmSiv {
            differences.push(format!("a tag that differs in bit {bit} is accepted"));
        }
        if output.iter().any(|byte| *byte != Symbols::constant(0)) {
            differences.push(format!("output remains after a tag that differs in bit {bit}"));
        }
    }
    Ok(differences)
}

/// The tags that an opening computes, which become visible by a run with new inputs as tags.
fn computed_tags(
    prover: &Prover,
    session: &Session<Symbols>,
    form: (usize, bool),
    messages: &[(&Input, Vec<Symbol>)],
) -> Result<Vec<Vec<Symbol>>, Stop> {
    let inputs = prover.symbols.inputs(16 * messages.len());
    prover.symbols.table().watch(&inputs);
    let tags: Vec<Vec<Symbol>> = inputs.chunks(16).map(<[_]>::to_vec).collect();
    run_fused(&mut session.clone(), form, messages, Some(&tags))?;
    let computed = prover.symbols.table().compared().unwrap_or_default();
    prover.symbols.table().watch(&[]);
    Ok(computed.chunks(16).map(<[_]>::to_vec).collect())
}

/// Compares the results of all messages with the definition.
fn check(
    prover: &Prover,
    fused: usize,
    known: &[Input],
    plaintexts: &[Vec<Symbol>],
    ciphertexts: &[Vec<Symbol>],
    tags: &[Vec<Symbol>],
) -> Vec<String> {
    let mut differences = Vec::new();
    for (index, tag) in tags.iter().enumerate() {
        let input = &known[index];
        let cipher = Cipher::new(&prover.symbols, &input.key);
        let message = Message {
            aead: aead_of(fused),
            cipher: &cipher,
            key_len: input.key.len(),
            iv: &nonce(input),
            aad: &input.aad,
            plaintext: &plaintexts[index],
            ciphertext: &ciphertexts[index],
            tag,
        };
        let found = message.differences();
        differences.extend(found.into_iter().map(|what| format!("{what} of message {index}")));
    }
    differences
}
