//! Incremental GCM and OCB3, and GCM of whole messages: the sequence of calls, which is the same for both domains, and the runs
//! with secret values.

use lockstep_reference::{Aes, gcm, ocb};

use super::session::{Buffer, Session};
use super::{Extent, Group, Operation, Outcome, lengths};
use crate::machine::Stop;
use crate::taint::Tainted;
use crate::value::Domain;

const KEY: Buffer = Buffer(16);
const IV: Buffer = Buffer(17);
const AAD: Buffer = Buffer(18);
pub(crate) const TAG: Buffer = Buffer(19);
const INPUT: Buffer = Buffer(20);
pub(crate) const OUTPUT: Buffer = Buffer(21);
const MESSAGE: Buffer = Buffer(1);

/// A message, and how it is processed.
#[derive(Clone)]
pub(crate) struct Message<B> {
    pub(crate) operation: Operation,
    pub(crate) in_place: bool,
    /// True if a copy of the object continues the message after the additional data. A whole message is processed by a copy.
    pub(crate) is_copied: bool,
    /// True for a whole message during which other threads may use the object.
    pub(crate) is_shared: bool,
    pub(crate) iv: Vec<B>,
    pub(crate) aad: Vec<B>,
    pub(crate) data: Vec<B>,
    pub(crate) tag_len: usize,
    /// The lengths of the first piece of the additional data and of the first piece of the data of GCM. The second
    /// piece contains the remaining bytes. The data of OCB3 have two pieces if the second number is not 0.
    pub(crate) pieces: [usize; 2],
}

impl Operation {
    /// True if an AEAD seals, false if it opens.
    pub(crate) fn encrypts(self) -> bool {
        matches!(self, Operation::Gcm(true) | Operation::GcmMessage(true) | Operation::Ocb(true))
    }

    /// True for OCB3.
    pub(crate) fn is_ocb(self) -> bool {
        matches!(self, Operation::Ocb(_))
    }

    /// True for GCM of whole messages.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Operation::GcmMessage(_))
    }

    /// The maximum length of data and the lengths near which kernels change their method.
    pub(crate) fn aead_lengths(self, kernel: super::Kernel) -> (usize, [usize; 3]) {
        let ((from, step), wide) = (kernel.gcm, kernel.step);
        match self.is_ocb() {
            true => (3 * wide + 48, [wide, 2 * wide, 3 * wide]),
            false => (from + 2 * step + 48, [step, from, from + step]),
        }
    }

    /// Calls the function of an AEAD whose name ends with `name`.
    fn call<D: Domain>(self, session: &mut Session<D>, name: &str, arguments: &[u64]) -> Result<(), Stop> {
        match self.is_ocb() {
            true => session.call(&format!("proof_ocb_{name}"), arguments)?,
            // The functions of GCM return false on an error.
            false => session.call_well(&format!("proof_gcm_{name}"), arguments)?,
        };
        Ok(())
    }
}

/// Returns the length of the additional data, the lengths of the first pieces, the length of the IV and the length of the tag that is
/// compared, for the message with this index. These lengths change together with the length of the data, so that no additional runs are
/// needed. The longest additional data have more than eight blocks.
pub(crate) fn parameters(operation: Operation, index: usize) -> (usize, [usize; 2], usize, usize) {
    let aad_len = [0, 13, 16, 45, 100, 140, 291][index % 7];
    // Most of the first pieces do not consist of whole blocks. Three bytes complete the block after a piece of 13 bytes, and three bytes follow
    // the last whole block of the longest additional data.
    let pieces = [[0, 7, 13, 19][index % 4], [0, 1, 16, 37, 0, 0, 0, 0, 0][index % 9]];
    // If the length of the IV is not 12 bytes, GCM computes the first counter block with the key, so the counter is secret.
    let iv_len = match operation {
        Operation::Gcm(_) => [12, 1, 16, 60][index % 4],
        Operation::Ocb(_) => [12, 1, 15, 6, 3][index % 5],
        _ => 12,
    };
    let tag_len = if operation.is_ocb() && !operation.encrypts() { [16, 8, 1, 12][index % 4] } else { 16 };
    (aad_len, pieces, iv_len, tag_len)
}

/// Makes the object of an AEAD with a key.
pub(crate) fn new_object<D: Domain>(
    session: &mut Session<D>,
    operation: Operation,
    key: Vec<D::Byte>,
) -> Result<u64, Stop> {
    let (kernel, len) = (session.kernel, key.len() as u64);
    let key = session.buffer(KEY, key, false);
    let object = if operation.is_ocb() {
        let place = session.call_well("proof_ocb_place", &[])?;
        session.call_well("proof_ocb_set", &[place, kernel, key, len])?;
        place
    } else {
        session.call_well("proof_gcm_new", &[kernel, key, len])?
    };
    session.remove(KEY);
    Ok(object)
}

/// The start and the length of each piece: one piece if `first` is 0, otherwise two pieces.
fn pieces(first: usize, len: usize) -> impl Iterator<Item = (u64, u64)> {
    let (first, len) = (first.min(len) as u64, len as u64);
    [(0, first), (first, len - first)].into_iter().skip(usize::from(first == 0))
}

/// Starts a message, and processes its additional data and its data. Returns the object with which the message must be ended: the copy
/// if the object was copied, otherwise the object itself.
pub(crate) fn update<D: Domain>(
    session: &mut Session<D>,
    object: u64,
    message: &Message<D::Byte>,
) -> Result<u64, Stop> {
    let Message { operation, iv, aad, data, .. } = message;
    if operation.is_whole() {
        return if message.is_copied { session.call_well("proof_gcm_copy", &[object]) } else { Ok(object) };
    }
    let iv_place = session.buffer(IV, iv.clone(), false);
    let aad_place = session.buffer(AAD, aad.clone(), false);
    let (from, to) = session.data(INPUT, OUTPUT, data, message.in_place);
    let mut start = vec![object, u64::from(operation.encrypts()), iv_place, iv.len() as u64];
    start.extend(operation.is_ocb().then_some(message.tag_len as u64));
    operation.call(session, "start", &start)?;
    for (start, len) in pieces(message.pieces[0], aad.len()) {
        operation.call(session, "aad", &[object, aad_place + start, len])?;
    }
    let object = match (message.is_copied, operation.is_ocb()) {
        (false, _) => object,
        (true, false) => session.call_well("proof_gcm_copy", &[object])?,
        (true, true) => {
            let copy = session.call_well("proof_ocb_place", &[])?;
            session.call_well("proof_ocb_copy", &[copy, object])?;
            copy
        }
    };
    if !operation.is_ocb() {
        for (start, len) in pieces(message.pieces[1], data.len()) {
            operation.call(session, "update", &[object, from + start, to + start, len])?;
        }
        return Ok(object);
    }
    let (whole, rest) = (data.len() as u64 / 16 * 16, data.len() as u64 % 16);
    // OCB3 takes whole blocks. Its first piece is half of them, so that both pieces reach the loops of the kernels.
    let first = if message.pieces[1] > 0 { whole / 32 * 16 } else { 0 };
    for (start, len) in pieces(first as usize, whole as usize) {
        operation.call(session, "blocks", &[object, from + start, to + start, len])?;
    }
    if rest > 0 {
        operation.call(session, "last", &[object, from + whole, to + whole, rest])?;
    }
    Ok(object)
}

/// Ends a message, or processes a whole message. If no expected tag is passed, writes the tag. Returns the verdict.
pub(crate) fn finish<D: Domain>(
    session: &mut Session<D>,
    object: u64,
    message: &Message<D::Byte>,
    expected: Option<&[D::Byte]>,
) -> Result<bool, Stop> {
    let Message { operation, iv, aad, data, .. } = message;
    let tag = match expected {
        Some(tag) => session.buffer(TAG, tag.to_vec(), false),
        None => session.public(TAG, &[0xee; 16], true),
    };
    let verdict = if operation.is_whole() {
        let iv = session.buffer(IV, iv.clone(), false);
        let aad_place = session.buffer(AAD, aad.clone(), false);
        let (from, to) = session.data(INPUT, OUTPUT, data, message.in_place);
        let (aad_len, len) = (aad.len() as u64, data.len() as u64);
        let parts = [iv, aad_place, aad_len, from, to, len, tag, u64::from(operation.encrypts())];
        let structure = session.structure(MESSAGE, &parts);
        let function = if message.is_shared { "proof_gcm_shared_message" } else { "proof_gcm_message" };
        session.call(function, &[object, structure])?
    } else if operation.encrypts() {
        operation.call(session, "seal", &[object, tag])?;
        1
    } else if operation.is_ocb() {
        session.call("proof_ocb_open", &[object, tag, message.tag_len as u64])?
    } else {
        session.call("proof_gcm_open", &[object, tag])?
    };
    Ok(verdict & 0xff == 1)
}

/// A message with the result of the reference implementation.
struct Case {
    message: Message<Tainted>,
    output: Vec<u8>,
    tag: Vec<u8>,
    /// The index of the wrong byte in the tag that is passed for the comparison. `None` if the tag is right.
    wrong_byte: Option<usize>,
    /// True if the object has already started another message, which was not completed.
    is_reused: bool,
    description: String,
}

/// The message with this index of a group, once for each way in which it is processed.
fn cases(session: &Session, group: Group, aes: &Aes, index: usize, len: usize) -> Vec<Case> {
    let operation = group.operation;
    let (aad_len, pieces, iv_len, tag_len) = parameters(operation, index);
    let case = |in_place: bool, is_plain: bool, is_shared: bool, wrong_byte: Option<usize>| {
        let (iv_len, tag_len) = if is_plain { (12, 16) } else { (iv_len, tag_len) };
        // The first shared message of an object, or the first copy, computes the powers of H that are missing.
        let is_copied =
            if operation.is_whole() { is_shared && index % 2 == 1 } else { !is_plain && index % 8 == 1 };
        let is_reused = !is_plain && index % 4 == 2 && !operation.is_whole();
        let (mut iv, aad, plaintext) =
            (session.sample(iv_len, 7), session.sample(aad_len, 8), session.sample(len, 3));
        // The last six bits of the nonce of OCB3 are a number of bits to shift by. A shift by zero is run too.
        if let (true, Some(last)) = (operation.is_ocb() && index % 4 == 3, iv.last_mut()) {
            *last &= 0xc0;
        }
        let (ciphertext, tag) = if operation.is_ocb() {
            ocb::seal(aes, &iv, &aad, &plaintext, tag_len)
        } else {
            let (ciphertext, tag) = gcm::seal(aes, &iv, &aad, &plaintext);
            (ciphertext, tag.to_vec())
        };
        let (input, output) =
            if operation.encrypts() { (plaintext, ciphertext) } else { (ciphertext, plaintext) };
        let lens = format!("{len} bytes, IV of {iv_len} bytes, tag of {tag_len} bytes");
        let place = if in_place { "in place" } else { "not in place" };
        let copied = if is_copied { ", by a copy" } else { "" };
        let shared = if is_shared { ", shared" } else { "" };
        let reused = if is_reused { ", after another message" } else { "" };
        let forged = if wrong_byte.is_some() { ", a wrong tag" } else { "" };
        let description = format!("{group}, {lens}, {place}{copied}{shared}{reused}{forged}");
        let (aad, data) = (session.secrets(&aad), session.secrets(&input));
        let iv = session.publics(&iv);
        let message = Message { operation, in_place, is_copied, is_shared, iv, aad, data, tag_len, pieces };
        Case { message, output, tag, wrong_byte, is_reused, description }
    };
    let mut cases = vec![case(true, true, false, None), case(false, false, false, None)];
    if operation.is_whole() && index % 5 == 2 {
        cases.push(case(index.is_multiple_of(3), true, true, None));
    }
    if !operation.encrypts() && index.is_multiple_of(4) {
        // The wrong byte is in the first half of the tag or in the second half, because a faulty comparison by two
        // numbers of 64 bits may ignore one half.
        let in_place = index.is_multiple_of(8);
        let is_shared = operation.is_whole() && index % 16 == 4;
        cases.push(case(in_place, true, is_shared, Some(if in_place { 15 } else { 0 })));
    }
    cases
}

/// Runs the AEAD of a group with each length.
pub(super) fn run(session: &Session, group: Group, extent: Extent, outcome: &mut Outcome) {
    let (operation, key) = (group.operation, session.sample(group.key_len, 5));
    let aes = Aes::new(&key);
    let mut keyed = session.clone();
    let made = new_object(&mut keyed, operation, session.secrets(&key));
    outcome.add(&keyed, made.clone(), format!("{group}: set-up"));
    let Ok(object) = made else { return };
    (keyed.machine.steps, keyed.machine.findings) = (0, Default::default());
    let (most, _) = operation.aead_lengths(group.kernel);
    for (index, len) in lengths(group.kernel, extent, 1, most).into_iter().enumerate() {
        for case in cases(session, group, &aes, index, len) {
            let mut session = keyed.clone();
            let result = process(&mut session, object, &case);
            outcome.add(&session, result, case.description);
        }
    }
    if !operation.is_ocb() {
        let mut session = keyed.clone();
        let result = run_with_new_key(&mut session, group, (object, &aes), most);
        outcome.add(&session, result, format!("{group}, {most} bytes, a new key and a second message"));
    }
    // The object is dropped while a message is not complete.
    let result =
        abandon(&mut keyed, object, operation).and_then(|()| drop_objects(&mut keyed, operation, &[object]));
    outcome.add(&keyed, result, format!("{group}: end of the key"));
}

/// Processes a message, and checks its results.
fn process(session: &mut Session, object: u64, case: &Case) -> Result<(), Stop> {
    let Case { message, output, tag, wrong_byte, .. } = case;
    let operation = message.operation;
    session.results = if operation.encrypts() {
        vec![output.clone(), tag.clone()]
    } else {
        vec![message.data.iter().map(|byte| crate::taint::Taint::value(*byte)).collect()]
    };
    if case.is_reused {
        abandon(session, object, operation)?;
    }
    let last = update(session, object, message)?;
    let mut expected = session.publics(tag);
    if let Some(place) = *wrong_byte {
        expected[place] = session.publics(&[tag[place] ^ 0x40])[0];
    }
    let verdict = finish(session, last, message, (!operation.encrypts()).then_some(&expected))?;
    if operation.is_whole() || !operation.encrypts() {
        session.check_verdict(verdict, wrong_byte.is_none());
    }
    if message.is_copied {
        drop_objects(session, operation, &[last, object])?;
    }
    session.check(OUTPUT, "the output", output);
    if operation.encrypts() {
        session.check(TAG, "the tag", tag);
    }
    Ok(())
}

/// Drops all objects.
fn drop_objects(session: &mut Session, operation: Operation, objects: &[u64]) -> Result<(), Stop> {
    for object in objects {
        session.call(if operation.is_ocb() { "proof_ocb_drop" } else { "proof_gcm_drop" }, &[*object])?;
    }
    session.check_heap();
    Ok(())
}

/// Processes one of the longest messages, sets another key of GCM, and processes the message again with this key.
fn run_with_new_key(
    session: &mut Session,
    group: Group,
    (object, aes): (u64, &Aes),
    len: usize,
) -> Result<(), Stop> {
    process(session, object, &cases(session, group, aes, 3, len)[0])?;
    let other = session.sample(group.key_len, 6);
    let bytes = session.secret(KEY, &other, false);
    session.call_well("proof_gcm_set_key", &[object, bytes, other.len() as u64])?;
    session.remove(KEY);
    process(session, object, &cases(session, group, &Aes::new(&other), 3, len)[0])
}

/// Starts a message whose data do not end with a whole block, and does not complete the message.
fn abandon(session: &mut Session, object: u64, operation: Operation) -> Result<(), Stop> {
    let bytes = session.secrets(&session.sample(21, 11));
    let message = Message {
        operation,
        in_place: true,
        is_copied: false,
        is_shared: false,
        iv: session.publics(&[0x5d; 12]),
        aad: bytes.clone(),
        data: bytes,
        tag_len: 16,
        pieces: [0, 0],
    };
    update(session, object, &message)?;
    Ok(())
}
