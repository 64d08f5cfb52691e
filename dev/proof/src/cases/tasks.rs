//! Tasks of the backend interface: passes and fused AEADs over several messages with one key or with different keys. The call of a task is
//! the same for both domains. This module also runs tasks with secret values.

use lockstep_reference::{Aes, Block, gcm, gcm_siv, ocb, xts};

use super::modes::{Form, MODES, Mode, Next, next_register};
use super::session::{Buffer, Session};
use super::{Extent, Group, Operation, Outcome};
use crate::machine::Stop;
use crate::value::Domain;

/// A pass: a mode that processes several messages, each with its own key.
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    mode: &'static str,
    /// Lengths are multiples of this number of bytes.
    pub(crate) unit: usize,
}

impl Pass {
    /// The mode of the pass. The mode of XTS starts from an encrypted tweak.
    pub(crate) fn mode(&self) -> &'static Mode {
        MODES.iter().find(|mode| mode.name == self.mode).expect("a mode of the list")
    }
}

/// The passes in the order of `lockstep_core::work::Pass::ALL`.
pub(crate) const PASSES: [Pass; 21] = {
    const fn pass(name: &'static str, mode: &'static str, unit: usize) -> Pass {
        Pass { name, mode, unit }
    }
    [
        pass("EcbEncrypt", "ECB encryption", 16),
        pass("EcbDecrypt", "ECB decryption", 16),
        pass("Ctr", "CTR", 1),
        pass("Ctr32", "CTR32", 1),
        pass("CtrLittle32", "CTR of GCM-SIV", 1),
        pass("CbcEncrypt", "CBC encryption", 16),
        pass("CbcDecrypt", "CBC decryption", 16),
        pass("Cfb128Encrypt", "CFB128 encryption", 1),
        pass("Cfb128Decrypt", "CFB128 decryption", 1),
        pass("Cfb8Encrypt", "CFB8 encryption", 1),
        pass("Cfb8Decrypt", "CFB8 decryption", 1),
        pass("Cfb1Encrypt", "CFB1 encryption", 1),
        pass("Cfb1Decrypt", "CFB1 decryption", 1),
        pass("Ofb", "OFB", 1),
        pass("PcbcEncrypt", "PCBC encryption", 16),
        pass("PcbcDecrypt", "PCBC decryption", 16),
        pass("CbcMac", "CBC-MAC", 16),
        pass("XtsEncrypt", "XTS encryption", 16),
        pass("XtsDecrypt", "XTS decryption", 16),
        pass("Ghash", "GHASH", 16),
        pass("Polyval", "POLYVAL", 16),
    ]
};

/// The fused AEADs in the order of `lockstep_core::work::FusedAead::ALL`.
pub(crate) const FUSED: [&str; 6] = ["GcmSeal", "GcmOpen", "OcbSeal", "OcbOpen", "GcmSivSeal", "GcmSivOpen"];

/// The buffers of message `index`: the key, the tweak key, the state, input, output and additional data.
pub(crate) fn buffer(part: u64, index: usize) -> Buffer {
    Buffer(32 + 8 * index as u64 + part)
}

const LIST: Buffer = Buffer(1);

/// A message of a task. The state of a fused AEAD is a nonce of 12 bytes, 4 unused bytes, and the tag.
#[derive(Clone)]
pub(crate) struct Message<B> {
    pub(crate) key: Vec<B>,
    /// Empty except for XTS.
    pub(crate) tweak_key: Vec<B>,
    pub(crate) state: Vec<B>,
    pub(crate) aad: Vec<B>,
    pub(crate) data: Vec<B>,
}

/// Runs a task. Returns the verdict: false on an error or a wrong tag.
pub(crate) fn call<D: Domain>(
    session: &mut Session<D>,
    operation: Operation,
    messages: &[Message<D::Byte>],
    in_place: bool,
) -> Result<bool, Stop> {
    let (function, number, only_reads, writes_state) = match operation {
        Operation::Pass(index) => ("proof_pass", index, PASSES[index].mode().form == Form::Read, true),
        Operation::Fused(index) => ("proof_fused", index, false, index.is_multiple_of(2)),
        _ => unreachable!("a task"),
    };
    let mut list = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let Message { key, tweak_key, state, aad, data } = message;
        let mut place = |part, bytes: &Vec<D::Byte>, is_writable| {
            session.buffer(buffer(part, index), bytes.clone(), is_writable)
        };
        let state = place(2, state, writes_state);
        let owner = key_owner(messages.len(), index);
        let mut key_place = |part, bytes: &Vec<D::Byte>| match bytes.len() {
            0 => 0,
            _ if owner == index => place(part, bytes, false),
            _ => buffer(part, owner).address(),
        };
        let [key_place, tweak_key] = [(0, key), (1, tweak_key)].map(|(part, bytes)| key_place(part, bytes));
        let aad_place = if function == "proof_fused" { place(5, aad, false) } else { 0 };
        let (from, to) = if only_reads {
            let place = place(4, data, false);
            (place, place)
        } else {
            session.data(buffer(3, index), buffer(4, index), data, in_place)
        };
        let [key_len, len, aad_len] = [key, data, aad].map(|bytes| bytes.len() as u64);
        let position = position(messages.len(), index) as u64;
        list.extend([key_place, key_len, tweak_key, state, from, to, len, aad_place, aad_len, position]);
    }
    let (place, kernel) = (session.structure(LIST, &list), session.kernel);
    Ok(session.call(function, &[kernel, number as u64, place, messages.len() as u64])? & 0xff == 1)
}

/// The shapes of the tasks that are run. A shape is the list of the lengths of the messages.
pub(crate) fn shapes(group: Group, extent: Extent) -> Vec<Vec<usize>> {
    let (is_serial, unit, mode) = match group.operation {
        Operation::Pass(index) => (PASSES[index].mode().is_serial(), PASSES[index].unit, PASSES[index].mode),
        _ => (false, 1, ""),
    };
    // CFB1 encrypts a block for each bit, so its messages are short.
    let is_cfb1 = mode.starts_with("CFB1 ");
    let step = group.kernel.step;
    let round = |len: usize| len / unit * unit;
    let mut shapes = vec![vec![], vec![0]];
    if !is_cfb1 {
        shapes.extend([vec![round(16)], vec![round(47)]]);
    }
    if is_serial {
        let is_cfb8 = mode.starts_with("CFB8 ");
        let most_at_once = step / 16;
        let step = if is_cfb1 || is_cfb8 { 1 } else { 16 };
        if !is_cfb1 {
            // After a step, the second of three messages has ended, and the third has as many steps as its index.
            shapes.push(vec![2 * step, step, 2 * step]);
            // The only steps of some messages are incomplete.
            shapes.push([5, 20, 1, 33].map(round).to_vec());
        }
        shapes.push(vec![step; ODD_KEYS]);
        let shortest = match unit {
            _ if is_cfb1 => 1,
            1 if is_cfb8 => 11,
            1 => 43,
            _ => 48,
        };
        if mode == "CBC encryption" && group.kernel.width.is_none() {
            // At least as many messages as a kernel encrypts at once. If most of them are in the same set of the L1 cache and each has at
            // least 128 blocks, groups of them first advance by different numbers of blocks.
            shapes.extend(
                [most_at_once, LONG_SHARED].map(|count| (0..count).map(|i| 16 * (128 + i % 3)).collect()),
            );
            // If one of the messages is shorter, none of them may advance first.
            shapes.extend((0..8).map(|case| {
                let count = if case < 4 { most_at_once } else { LONG_SHARED };
                let shorter = (4 * (case % 4) + 3) * most_at_once / 16;
                (0..count).map(|i| if i == shorter { 16 } else { 16 * 128 }).collect()
            }));
        }
        shapes.extend([1, 2, 3, 5, 8, 9, MIXED, 16, 17, SHARED, 33].map(|count| {
            // The number of steps of a message beyond those of the shortest, whose position varies with the number of messages. Of an even
            // number, only the last message is the shortest. If messages share a key, 12, 6, 4, 2 and 1 of them are left after some steps.
            let more = |index| match count % 2 {
                0 if index + 1 == count => 0,
                0 if count == SHARED => {
                    [6, 5, 4, 4, 3, 3].get(index).copied().unwrap_or(if index < 12 { 2 } else { 1 })
                }
                0 => 1 + index % 3,
                _ => (count + index) % 4,
            };
            (0..count).map(|i| round(shortest + step * more(i) + step / 16 * (i % 4))).collect()
        }));
        return shapes;
    }
    shapes.push(vec![round(step + 16), 0, round(2 * step + 31), round(37)]);
    if group.kernel.width.is_some() && group.operation.multiplies() {
        // From 32 blocks on, the bitsliced kernel looks products up, in groups of 16 blocks. Three blocks follow the groups.
        shapes.push(vec![16 * 35]);
    }
    match group.operation {
        Operation::Fused(index) if FUSED[index].starts_with("Gcm") => {
            // A message of GCM-SIV is encrypted while the next one is hashed, in steps of this many bytes. The ninth message uses the place
            // for the hash key of the first one, whose powers are erased.
            let step = group.kernel.gcm.1;
            let long = if FUSED[index] == "GcmSivSeal" { 3 } else { 1 };
            shapes.push([&[3 * step, 2 * step + 31, 2 * step - 1][..long], &[16; 8]].concat());
        }
        // Each number of eighths of the widest step, and 5 bytes.
        Operation::Pass(_) => shapes.push((1..8).map(|part| round(part * step / 8 + 5)).collect()),
        _ => {}
    }
    // Two messages of a block: the kernels of GCM encrypt four blocks for their hash keys and masks, and then two of keystream.
    shapes.push(vec![round(16); 2]);
    // Kernels interleave up to eight messages. They process the remaining messages in smaller groups.
    for count in [5, PARTLY_SHARED, MIXED, 17, SHARED] {
        shapes.push((0..count).map(|index| round(16 * (index % 5) + index)).collect());
    }
    if extent == Extent::Full {
        shapes.extend((0..3 * step + 48).step_by(unit * if unit == 1 { 7 } else { 1 }).map(|len| vec![len]));
    }
    shapes
}

/// The number of the sample that is the first key. No other sample of a task has this number or a greater one, so that a copy of a key is
/// not taken for a result.
const KEYS: u64 = 200;
/// The messages of a task of this many messages have keys of different sizes.
pub(crate) const MIXED: usize = 15;
/// The messages of a task of this many messages have one key.
pub(crate) const SHARED: usize = 20;
/// The messages of a task of this many messages have one key and are long. It is more than a kernel encrypts at once.
const LONG_SHARED: usize = 34;
/// In a task of this many messages, all keys have one size, except those of the messages in `ODD`.
pub(crate) const ODD_KEYS: usize = 48;
/// Kernels process 16 messages at once, and up to eight of these together whose keys have one size. They compare the sizes of eight keys with
/// that of the first: from messages 0, 2 and 5 of the first 16, 16 and 21 of the second, and 32 and 39 of the third. The key with another
/// size is the second of the eight, the third, and so on up to the eighth.
const ODD: [usize; 7] = [1, 4, 8, 16 + 4, 16 + 10, 32 + 6, 32 + 14];
/// In a task of this many messages, two messages have the same key. One message before them and three after them have keys of their own,
/// which GCM expands in two groups. The second group is the larger one.
const PARTLY_SHARED: usize = 6;

/// For XTS: the number of blocks before message `index` in its data unit, in a task of `count` messages.
pub(crate) fn position(count: usize, index: usize) -> usize {
    if count == MIXED { [0, 3, 20][index % 3] } else { 0 }
}

/// The first of the messages that have the same key as message `index` in a task of `count` messages.
pub(crate) fn key_owner(count: usize, index: usize) -> usize {
    match count {
        SHARED | LONG_SHARED => 0,
        PARTLY_SHARED if (1..3).contains(&index) => 1,
        _ => index,
    }
}

/// The size of the key of a message in a task of `count` messages.
fn key_len(group: Group, count: usize, index: usize) -> usize {
    if group.operation.takes_hash_key() {
        return group.key_len;
    }
    match count {
        ODD_KEYS if ODD.contains(&index) => return [16, 24, 32][(group.key_len / 8 - 1) % 3],
        MIXED => {}
        _ => return group.key_len,
    }
    // One key of a size, then two, three, four and five keys of the same size. Kernels expand up to four keys of the same size at once.
    let run = (1..).find(|run| index < run * (run + 1) / 2).expect("the runs grow");
    [16, 24, 32][(group.key_len / 8 + run) % 3]
}

/// Runs the pass or the fused AEAD of a group.
pub(super) fn run(session: &Session, group: Group, extent: Extent, outcome: &mut Outcome) {
    for lens in shapes(group, extent) {
        for in_place in [true, false] {
            let mut run = |is_forged: bool| {
                let mut session = session.clone();
                let result = match group.operation {
                    Operation::Pass(index) => run_pass(&mut session, group, &PASSES[index], &lens, in_place),
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

/// The output and the chaining state of a pass, computed by the reference implementation. The state is `None` if it is not specified after
/// a partial block, or if it is not compared.
fn expected(
    mode: &Mode,
    (key, tweak_key): (&[u8], &[u8]),
    (state, position): (&Block, usize),
    data: &[u8],
) -> (Vec<u8>, Option<Block>) {
    let aes = Aes::new(key);
    if mode.next == Next::Tweak {
        let compute = if mode.encrypts() { xts::encrypt } else { xts::decrypt };
        if data.is_empty() {
            return (Vec::new(), None);
        }
        // The blocks before the data may have any content, because XTS processes each block independently.
        let unit = [&vec![0; 16 * position], data].concat();
        return (compute(&aes, &Aes::new(tweak_key), state, &unit)[16 * position..].to_vec(), None);
    }
    let output = (mode.expected)(&aes, state, data);
    let has_state = data.len().is_multiple_of(16) || mode.unit == 1;
    let next = next_register(mode, state, data, &output).filter(|_| has_state);
    (output, next)
}

fn run_pass(
    session: &mut Session,
    group: Group,
    pass: &Pass,
    lens: &[usize],
    in_place: bool,
) -> Result<(), Stop> {
    let mode = pass.mode();
    let (mut messages, mut results) = (Vec::new(), Vec::new());
    for (index, len) in lens.iter().enumerate() {
        let owner = key_owner(lens.len(), index);
        let key = session.sample(key_len(group, lens.len(), index), KEYS + owner as u64);
        let tweak_key: Vec<u8> = match mode.next {
            Next::Tweak => key.iter().map(|byte| byte ^ 0x77).collect(),
            _ => Vec::new(),
        };
        let data = session.sample(*len, (3 + index) as u64);
        let mut state: Block = session.sample(16, (100 + index) as u64).try_into().expect("16 bytes");
        // The counter depends on the length too, so that tasks of one message also have counters that wrap.
        let counter = (index + len / 16) % 3;
        if mode.name.starts_with("CTR") && counter > 0 {
            // The first of these counters wraps at 2^64 and, read in little-endian order, at 2^32. The second wraps at
            // 2^32 and at 2^128. Both wrap in messages of three blocks.
            let (start, last) = [(8, 0xfe), (0, 0xff)][counter - 1];
            state[..4].fill(0xff);
            state[start..].fill(0xff);
            state[15] = last;
        }
        let position = position(lens.len(), index);
        let (output, next) = expected(mode, (&key, &tweak_key), (&state, position), &data);
        let has_secret_state = matches!(mode.next, Next::Result | Next::Difference);
        messages.push(Message {
            key: session.secrets(&key),
            tweak_key: session.secrets(&tweak_key),
            state: if has_secret_state { session.secrets(&state) } else { session.publics(&state) },
            aad: Vec::new(),
            data: session.secrets(&data),
        });
        if mode.name.ends_with("decryption") {
            session.results.push(data);
        } else if mode.encrypts() {
            session.results.push(output.clone());
        }
        results.push((output, next));
    }
    let verdict = call(session, group.operation, &messages, in_place)?;
    session.check_verdict(verdict, true);
    for (index, (output, next)) in results.iter().enumerate() {
        if mode.form != Form::Read {
            session.check(buffer(4, index), "the output", output);
        }
        if let Some(next) = next {
            session.check_values(buffer(2, index), "the chaining state", next);
        }
    }
    Ok(())
}

/// The ciphertext and the tag, computed by the reference implementation.
fn seal(index: usize, key: &[u8], nonce: &[u8; 12], aad: &[u8], plaintext: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (ciphertext, tag) = match index / 2 {
        0 => gcm::seal(&Aes::new(key), nonce, aad, plaintext),
        1 => return ocb::seal(&Aes::new(key), nonce, aad, plaintext, 16),
        _ => gcm_siv::seal(key, nonce, aad, plaintext),
    };
    (ciphertext, tag.to_vec())
}

fn run_fused(
    session: &mut Session,
    group: Group,
    index: usize,
    lens: &[usize],
    (in_place, is_forged): (bool, bool),
) -> Result<(), Stop> {
    let seals = index.is_multiple_of(2);
    let (mut messages, mut results) = (Vec::new(), Vec::new());
    for (number, len) in lens.iter().enumerate() {
        let owner = key_owner(lens.len(), number);
        let key = session.sample(key_len(group, lens.len(), number), KEYS + owner as u64);
        let plaintext = session.sample(*len, (3 + number) as u64);
        let (nonce, aad) = (session.sample(12, (100 + number) as u64), session.sample(number * 19 % 70, 8));
        let nonce: [u8; 12] = nonce.try_into().expect("12 bytes");
        let (ciphertext, tag) = seal(index, &key, &nonce, &aad, &plaintext);
        session.results.push(ciphertext.clone());
        if seals {
            session.results.push(tag.clone());
        }
        let sealed = [&nonce[..], &[0; 4], &tag].concat();
        let mut state = if seals { [&nonce[..], &[0; 4], &[0xee; 16]].concat() } else { sealed.clone() };
        // Only the last message has a wrong tag. The wrong byte is in the first half of the tag or in the second half,
        // because a faulty comparison by two numbers of 64 bits may ignore one half.
        let has_wrong_tag = is_forged && number + 1 == lens.len();
        state[if in_place { 31 } else { 16 }] ^= if has_wrong_tag { 0x40 } else { 0 };
        let (input, output) = if seals { (plaintext, ciphertext) } else { (ciphertext, plaintext) };
        messages.push(Message {
            key: session.secrets(&key),
            tweak_key: Vec::new(),
            state: session.publics(&state),
            aad: session.secrets(&aad),
            data: session.secrets(&input),
        });
        results
            .push((if has_wrong_tag { vec![0; *len] } else { output }, if seals { sealed } else { state }));
    }
    let verdict = call(session, group.operation, &messages, in_place)?;
    session.check_verdict(verdict, !is_forged);
    for (number, (output, state)) in results.iter().enumerate() {
        session.check(buffer(4, number), "the output", output);
        session.check_values(buffer(2, number), "the tag", state);
    }
    Ok(())
}
