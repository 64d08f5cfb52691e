//! Tasks of the backend interface: passes and fused AEADs over several messages with one key or with different keys.

use super::cipher::{Block, Cipher, block, public, times_alpha, xor_blocks};
use super::definition::{Aead, Sealed};
use super::hash::{Hashed, ghash_key, reversed};
use super::{Differences, Prover, block_of, compare, modes};
use crate::cases::modes::{Form, Next};
use crate::cases::tasks::{
    FUSED, MIXED, Message, ODD_KEYS, PASSES, Pass, SHARED, buffer, call, key_owner, position, shapes,
};
use crate::cases::{Operation, Session};
use crate::machine::Stop;
use crate::symbols::{Symbol, Symbols};
use crate::value::Domain;

/// Makes messages of these lengths. The content of each message begins with the content that the message with the same
/// index had in earlier tasks, which `known` contains. Counters of CTR are public.
pub(super) fn messages(
    prover: &Prover,
    lens: &[usize],
    known: &mut Vec<Message<Symbol>>,
) -> Vec<Message<Symbol>> {
    let (symbols, key_len) = (&prover.symbols, prover.group.key_len);
    let mode = match prover.group.operation {
        Operation::Pass(index) => Some(PASSES[index].mode()),
        _ => None,
    };
    for (index, len) in lens.iter().enumerate() {
        if index == known.len() {
            let state = match mode {
                Some(mode) if mode.name.starts_with("CTR") => public(
                    &(u128::MAX - 2 - index as u128).rotate_left(40 * (index as u32 % 4)).to_le_bytes(),
                ),
                Some(_) => symbols.inputs(16),
                // The last byte of the nonce is public, because the definition of OCB3 is implemented only for nonces
                // whose last 6 bits are public.
                None => [&symbols.inputs(11)[..], &public(&[index as u8 * 19 % 70 * 37]), &public(&[0; 4])]
                    .concat(),
            };
            let is_xts = mode.is_some_and(|mode| mode.next == Next::Tweak);
            let (key, tweak_key) =
                (symbols.inputs(key_len), symbols.inputs(if is_xts { key_len } else { 0 }));
            let aad = symbols.inputs(index * 19 % 70);
            known.push(Message { key, tweak_key, state, aad, data: Vec::new() });
        }
        let missing = len.saturating_sub(known[index].data.len());
        known[index].data.extend(symbols.inputs(missing));
    }
    let mut messages = known[..lens.len()].to_vec();
    for (index, (message, len)) in messages.iter_mut().zip(lens).enumerate() {
        message.data.truncate(*len);
        let Message { key, tweak_key, .. } = &known[key_owner(lens.len(), index)];
        (message.key, message.tweak_key) = (key.clone(), tweak_key.clone());
    }
    messages
}

/// The greatest length of messages for which GHASH and POLYVAL of `cpu/soft` are proved: the time grows faster than the length. From 512
/// bytes on, products are looked up, and have no expressions.
const MOST_BY_INTEGERS: usize = 256;

/// Proves the pass or the fused AEAD of a group.
pub(super) fn prove(prover: &mut Prover) -> Result<(), Stop> {
    let mut known = Vec::new();
    let all = shapes(prover.group, prover.extent);
    // Of the tasks with a single message, only the first eight shapes and every fourth shape of the list are proved. For fused AEADs, the
    // tasks in which all messages share a key, and those with as many messages as tasks of mixed keys, are left out, because they take long.
    // So are the tasks of CBC whose messages have at least 128 blocks. All keys have the size of the group here, so that the tasks in which
    // single keys have another size would prove nothing more.
    let is_fused = matches!(prover.group.operation, Operation::Fused(_));
    let most = match () {
        () if is_fused => usize::MAX,
        () if prover.group.kernel.width.is_some() => MOST_BY_INTEGERS,
        () => 16 * 128 - 1,
    };
    let is_long = |lens: &[usize]| lens.iter().any(|len| *len > most);
    let shapes = all.into_iter().enumerate().filter(|(index, lens)| match lens.len() {
        _ if is_long(lens) => false,
        1 => *index < 8 || index % 4 == 0,
        MIXED | SHARED => !is_fused,
        ODD_KEYS => false,
        _ => true,
    });
    for (index, lens) in shapes {
        let messages = messages(prover, &lens, &mut known);
        let (forked, in_place) = (prover.fork(), index % 2 == 0);
        let result = match prover.group.operation {
            Operation::Pass(pass) => {
                prove_pass(&forked, &mut forked.session.clone(), &PASSES[pass], &messages, in_place)
            }
            Operation::Fused(fused) => prove_fused(&forked, fused, &messages, in_place),
            _ => unreachable!("a task"),
        };
        prover.add(&format!("messages of {lens:?} bytes"), result);
    }
    Ok(())
}

pub(super) fn prove_pass(
    prover: &Prover,
    session: &mut Session<Symbols>,
    pass: &Pass,
    messages: &[Message<Symbol>],
    in_place: bool,
) -> Differences {
    let mode = pass.mode();
    let is_hash = matches!(mode.name, "GHASH" | "POLYVAL");
    // For `cpu/soft`, the definition of AES has to be computed before the code runs.
    let hash_keys: Vec<HashKey> = messages
        .iter()
        .filter(|_| is_hash)
        .map(|message| HashKey::of(prover, mode.name == "GHASH", message))
        .collect();
    if !call(session, prover.group.operation, messages, in_place)? {
        return Ok(vec!["the task fails".into()]);
    }
    let mut differences = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let Message { key, tweak_key, state, data, .. } = message;
        if is_hash {
            let result = block_of(session, buffer(2, index));
            if !is_hash_right(prover, &hash_keys[index], state, data, result) {
                differences.push(format!("the hash of message {index}"));
            }
            continue;
        }
        let (cipher, mut start) = (Cipher::new(&prover.symbols, key), block(state));
        if mode.next == Next::Tweak {
            start = Cipher::new(&prover.symbols, tweak_key).encrypt(&start);
            let position = position(messages.len(), index);
            start = (0..position).fold(start, |tweak, _| times_alpha(&prover.symbols, &tweak));
        }
        let (output, next) = modes::expected(&cipher, mode, &start, data);
        if mode.form != Form::Read {
            compare(&mut differences, session, buffer(4, index), "the output", &output);
        }
        // The state of XTS is not compared, and that of some modes is not specified after a partial block.
        let has_state = mode.next != Next::Tweak && (data.len().is_multiple_of(16) || mode.unit == 1);
        if let Some(next) = next.filter(|_| has_state) {
            compare(&mut differences, session, buffer(2, index), "the chaining state", &next);
        }
    }
    Ok(differences)
}

/// The key of a hash.
pub(super) struct HashKey {
    is_ghash: bool,
    /// The factor in the field of POLYVAL.
    factor: Block,
}

impl HashKey {
    /// The key of GHASH for a message, which is E(0), or the key of POLYVAL.
    pub(super) fn of(prover: &Prover, is_ghash: bool, message: &Message<Symbol>) -> HashKey {
        let symbols = &prover.symbols;
        let factor = match is_ghash {
            true => ghash_key(symbols, &Cipher::new(symbols, &message.key).encrypt(&public(&[0; 16]))),
            false => block(&message.key),
        };
        HashKey { is_ghash, factor }
    }
}

/// True if the result is GHASH or POLYVAL of the data. The state before the data is added to the first block.
pub(super) fn is_hash_right(
    prover: &Prover,
    key: &HashKey,
    state: &[Symbol],
    data: &[Symbol],
    result: Block,
) -> bool {
    let (symbols, state) = (&prover.symbols, block(state));
    if data.is_empty() {
        return result == state;
    }
    let mut blocks: Vec<Block> = data.as_chunks().0.to_vec();
    blocks[0] = xor_blocks(symbols, &blocks[0], &state);
    let element = |block: &Block| if key.is_ghash { reversed(block) } else { *block };
    let blocks: Vec<Block> = blocks.iter().map(element).collect();
    let hashed =
        Hashed { symbols, key: key.factor, blocks: &blocks, result: element(&result), ignored: None };
    if prover.group.kernel.width.is_some() { hashed.is_right_by_integers() } else { hashed.is_right() }
}

fn aead_of(fused: usize) -> Aead {
    match FUSED[fused] {
        name if name.starts_with("GcmSiv") => Aead::GcmSiv,
        name if name.starts_with("Gcm") => Aead::Gcm,
        _ => Aead::Ocb,
    }
}

/// The content of one buffer of each message, from the byte `start` on.
fn parts(session: &Session<Symbols>, part: u64, count: usize, start: usize) -> Vec<Vec<Symbol>> {
    (0..count).map(|index| session.bytes(buffer(part, index))[start..].to_vec()).collect()
}

/// The verdict, the outputs and the tags of messages.
type Opened = (bool, Vec<Vec<Symbol>>, Vec<Vec<Symbol>>);

/// Seals or opens messages. Returns the verdict, the outputs and the tags.
fn run_fused(
    session: &mut Session<Symbols>,
    (fused, in_place): (usize, bool),
    messages: &[Message<Symbol>],
    data: &[Vec<Symbol>],
    tags: &[Vec<Symbol>],
) -> Result<Opened, Stop> {
    let mut messages = messages.to_vec();
    for ((message, data), tag) in messages.iter_mut().zip(data).zip(tags) {
        message.data.clone_from(data);
        message.state.extend(tag);
    }
    let verdict = call(session, Operation::Fused(fused), &messages, in_place)?;
    Ok((verdict, parts(session, 4, messages.len(), 0), parts(session, 2, messages.len(), 16)))
}

fn prove_fused(prover: &Prover, fused: usize, messages: &[Message<Symbol>], in_place: bool) -> Differences {
    let (symbols, aead) = (&prover.symbols, aead_of(fused));
    let (sealing, opening) = ((fused & !1, in_place), (fused | 1, in_place));
    let plaintexts: Vec<Vec<Symbol>> = messages.iter().map(|message| message.data.clone()).collect();
    // If a message of GCM-SIV has at least the length of a step of the fused loop, opening adds products in another order than sealing. The
    // two tags then have different expressions. The proof therefore assumes that the tags are equal: it shows that the computed tag is that
    // of the plaintext, and which plaintext is released if the verdict is that the tags are equal. It does not show what the verdict is.
    let assumes_equal =
        aead == Aead::GcmSiv && plaintexts.iter().any(|data| data.len() >= prover.group.kernel.gcm.1);
    let run_with = |form, data: &[Vec<Symbol>], tags: &[Vec<Symbol>], assumes_equal| {
        let mut session = prover.session.clone();
        session.machine.assumes_equal = assumes_equal;
        run_fused(&mut session, form, messages, data, tags)
    };
    let run = |form, data: &[Vec<Symbol>], tags: &[Vec<Symbol>]| run_with(form, data, tags, false);
    let places = vec![public(&[0xee; 16]); messages.len()];
    if fused.is_multiple_of(2) {
        let (is_sealed, outputs, tags) = run(sealing, &plaintexts, &places)?;
        if !is_sealed {
            return Ok(vec!["the task fails".into()]);
        }
        return Ok(check(prover, (aead, false), messages, (&plaintexts, &outputs), (&tags, &tags)));
    }
    let mut differences = Vec::new();
    // Shorter messages of GCM-SIV are sealed first: the tag that an opening computes depends on the received tag, so the right tag
    // cannot be found by opening.
    let (ciphertexts, tags, received) = if aead == Aead::GcmSiv && !assumes_equal {
        let (_, ciphertexts, tags) = run(sealing, &plaintexts, &places)?;
        (ciphertexts, tags.clone(), tags)
    } else {
        // In a first run, the received tags are new symbols. The comparisons then reveal the tags that the opening
        // computes.
        let tags_of = |bytes: &[Symbol]| -> Vec<_> { bytes.chunks(16).map(<[_]>::to_vec).collect() };
        let inputs = symbols.inputs(16 * messages.len());
        symbols.table().watch(&inputs);
        run(opening, &plaintexts, &tags_of(&inputs))?;
        let computed = symbols.table().compared().unwrap_or_default();
        symbols.table().watch(&[]);
        (plaintexts, tags_of(&computed), tags_of(if assumes_equal { &inputs } else { &computed }))
    };
    if tags.len() < messages.len() {
        return Ok(vec!["a tag is not compared".into()]);
    }
    let (is_accepted, outputs, _) = run_with(opening, &ciphertexts, &received, assumes_equal)?;
    if !is_accepted {
        differences.push("the right tag is refused".into());
    }
    differences.extend(check(prover, (aead, true), messages, (&outputs, &ciphertexts), (&tags, &received)));
    let is_short = messages.len() == 1 && messages[0].data.is_empty();
    // If the received tag consists of symbols, so do the tags that differ from it, and one of them is enough.
    let step = if assumes_equal { 128 } else { 61 };
    for bit in (0..128).step_by(if is_short { 1 } else { step }) {
        // One bit of the last tag is inverted.
        let mut tags = received.clone();
        let Some(forged) = tags.last_mut() else { break };
        forged[bit / 8] = symbols.clone().xor(forged[bit / 8], Symbols::constant(1 << (bit % 8)));
        let (is_accepted, outputs, _) = run(opening, &ciphertexts, &tags)?;
        // In GCM-SIV, the computed tag depends on the expected tag. After the change, its expression is therefore unknown, and the
        // verdict shows nothing.
        if is_accepted && aead != Aead::GcmSiv {
            differences.push(format!("a tag that differs in bit {bit} is accepted"));
        }
        if outputs.last().is_some_and(|output| output.iter().any(|byte| *byte != Symbols::constant(0))) {
            differences.push(format!("output remains after a tag that differs in bit {bit}"));
        }
    }
    Ok(differences)
}

/// Compares the results of all messages with the definition: the plaintexts and ciphertexts, and the computed and received tags.
fn check(
    prover: &Prover,
    (aead, is_opened): (Aead, bool),
    messages: &[Message<Symbol>],
    (plaintexts, ciphertexts): (&[Vec<Symbol>], &[Vec<Symbol>]),
    (tags, received): (&[Vec<Symbol>], &[Vec<Symbol>]),
) -> Vec<String> {
    let mut differences = Vec::new();
    for (index, (message, tag)) in messages.iter().zip(tags).enumerate() {
        let Message { key, state, aad, .. } = message;
        let (cipher, key_len, iv) = (&Cipher::new(&prover.symbols, key), key.len(), &state[..12]);
        let (plaintext, ciphertext, received) = (&plaintexts[index], &ciphertexts[index], &received[index]);
        let sealed =
            Sealed { aead, is_opened, cipher, key_len, iv, aad, plaintext, ciphertext, tag, received };
        differences.extend(sealed.differences().into_iter().map(|what| format!("{what} of message {index}")));
    }
    differences
}
