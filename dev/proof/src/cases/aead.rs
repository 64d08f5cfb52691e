//! Incremental GCM and OCB3, and GCM of whole messages.

use lockstep_reference::{Aes, gcm, ocb};

use super::session::{Buffer, Session, sample};
use super::{Extent, Group, Operation, Outcome, lengths};
use crate::machine::Stop;

const KEY: Buffer = Buffer(16);
const IV: Buffer = Buffer(17);
const AAD: Buffer = Buffer(18);
const TAG: Buffer = Buffer(19);
const INPUT: Buffer = Buffer(20);
const OUTPUT: Buffer = Buffer(21);
const MESSAGE: Buffer = Buffer(1);

/// A way to process a message.
#[derive(Clone, Copy)]
struct Form {
    in_place: bool,
    /// The byte of the tag to compare with that is wrong.
    wrong_byte: Option<usize>,
    /// True if a copy of the object continues the message after the additional data.
    is_copied: bool,
    /// True if the object has processed another message before, which was not completed.
    is_reused: bool,
    iv_len: usize,
    /// Number of bytes of the tag of OCB3 in a decryption.
    tag_len: usize,
}

/// The ways in which the message with this index is processed.
fn forms(operation: Operation, index: usize) -> Vec<Form> {
    let plain = Form {
        in_place: true,
        wrong_byte: None,
        is_copied: false,
        is_reused: false,
        iv_len: 12,
        tag_len: 16,
    };
    let (is_ocb, opens) = (matches!(operation, Operation::Ocb(_)), !encrypts(operation));
    // If the length of the IV is not 12 bytes, GCM computes the first counter block with the key, so the counter is secret.
    let iv_len = match operation {
        Operation::Gcm(_) => [12, 1, 16, 60][index % 4],
        Operation::Ocb(_) => [12, 1, 15][index % 3],
        _ => 12,
    };
    let tag_len = if is_ocb && opens { [16, 8, 1, 12][index % 4] } else { 16 };
    let is_copied = index % 8 == 1 && !matches!(operation, Operation::GcmMessage(_));
    let is_reused = index % 4 == 2;
    let mut forms = vec![plain, Form { in_place: false, is_copied, is_reused, iv_len, tag_len, ..plain }];
    if opens && index.is_multiple_of(4) {
        // A comparison by two numbers of 64 bits may ignore one of them.
        let in_place = index.is_multiple_of(8);
        forms.push(Form { wrong_byte: Some(if in_place { 15 } else { 0 }), in_place, ..plain });
    }
    forms
}

fn encrypts(operation: Operation) -> bool {
    match operation {
        Operation::Gcm(encrypts) | Operation::GcmMessage(encrypts) | Operation::Ocb(encrypts) => encrypts,
        _ => unreachable!("an AEAD"),
    }
}

/// A message: input and output, additional data, IV and tag.
struct Message {
    form: Form,
    is_ocb: bool,
    encrypts: bool,
    iv: Vec<u8>,
    aad: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    tag: Vec<u8>,
}

impl Message {
    /// A message of `len` bytes, and its result by the reference implementation.
    fn new(group: Group, aes: &Aes, len: usize, aad_len: usize, form: Form) -> Message {
        let encrypts = encrypts(group.operation);
        let (iv, aad, plaintext) = (sample(form.iv_len, 7), sample(aad_len, 8), sample(len, 3));
        let is_ocb = matches!(group.operation, Operation::Ocb(_));
        let (ciphertext, tag) = if is_ocb {
            ocb::seal(aes, &iv, &aad, &plaintext, form.tag_len)
        } else {
            let (ciphertext, tag) = gcm::seal(aes, &iv, &aad, &plaintext);
            (ciphertext, tag.to_vec())
        };
        let (input, output) = if encrypts { (plaintext, ciphertext) } else { (ciphertext, plaintext) };
        Message { form, is_ocb, encrypts, iv, aad, input, output, tag }
    }
}

/// Runs the AEAD of a group with each length.
pub(super) fn run(session: &Session, group: Group, extent: Extent, outcome: &mut Outcome) {
    let key = sample(group.key_len, 5);
    let aes = Aes::new(&key);
    let mut keyed = session.clone();
    let bytes = keyed.secret(KEY, &key, false);
    let is_ocb = matches!(group.operation, Operation::Ocb(_));
    let made =
        if is_ocb { new_ocb(&mut keyed, bytes, key.len()) } else { new_gcm(&mut keyed, bytes, key.len()) };
    keyed.remove(KEY);
    outcome.add(&keyed, made.clone(), format!("{group}: set-up"));
    let Ok(object) = made else { return };
    (keyed.machine.steps, keyed.machine.findings) = (0, Default::default());
    let (from, step) = group.kernel.gcm;
    let most = if is_ocb { 3 * group.kernel.step + 48 } else { from + 2 * step + 48 };
    for (index, len) in lengths(group.kernel, extent, 1, most).into_iter().enumerate() {
        // The length of the additional data changes with the length of the data, so that no additional run is needed. The longest have more
        // than eight blocks.
        let aad_len = [0, 13, 16, 45, 140, 300][index % 6];
        for form in forms(group.operation, index) {
            let mut session = keyed.clone();
            let message = Message::new(group, &aes, len, aad_len, form);
            run_message(&mut session, group, (object, &message, index), outcome);
        }
    }
    // Two of the longest messages, the second with another key.
    if !is_ocb {
        let other = sample(group.key_len, 6);
        let message = |aes| Message::new(group, aes, most, 45, forms(group.operation, 0)[0]);
        let messages = [message(&aes), message(&Aes::new(&other))];
        let mut session = keyed.clone();
        let result = run_with_new_key(&mut session, group, (object, &messages), &other);
        outcome.add(&session, result, format!("{group}, {most} bytes, a new key and a second message"));
    }
    let result = end(&mut keyed, object, is_ocb);
    outcome.add(&keyed, result, format!("{group}: end of the key"));
}

/// Processes a message, and checks its results.
fn process(
    session: &mut Session,
    group: Group,
    (object, message, index): (u64, &Message, usize),
) -> Result<(), Stop> {
    session.results = if message.encrypts {
        vec![message.output.clone(), message.tag.clone()]
    } else {
        vec![message.input.clone()]
    };
    match group.operation {
        Operation::Gcm(_) => incremental_gcm(session, object, message, index),
        Operation::GcmMessage(_) => whole_gcm(session, object, message),
        _ => incremental_ocb(session, object, message, index),
    }?;
    session.check(OUTPUT, "the output", &message.output);
    if message.encrypts {
        session.check(TAG, "the tag", &message.tag);
    }
    Ok(())
}

fn run_message(
    session: &mut Session,
    group: Group,
    (object, message, index): (u64, &Message, usize),
    outcome: &mut Outcome,
) {
    let result = process(session, group, (object, message, index));
    let Form { in_place, wrong_byte, is_copied, is_reused, iv_len, tag_len } = message.form;
    let place = if in_place { "in place" } else { "not in place" };
    let forged = if wrong_byte.is_some() { ", a wrong tag" } else { "" };
    let copied = if is_copied { ", by a copy" } else { "" };
    let reused = if is_reused { ", after another message" } else { "" };
    let len = message.input.len();
    let lens = format!("{len} bytes, IV of {iv_len} bytes, tag of {tag_len} bytes");
    outcome.add(session, result, format!("{group}, {lens}, {place}{copied}{reused}{forged}"));
}

/// Processes a message, sets another key of GCM, and processes a message with this key.
fn run_with_new_key(
    session: &mut Session,
    group: Group,
    (object, messages): (u64, &[Message; 2]),
    key: &[u8],
) -> Result<(), Stop> {
    process(session, group, (object, &messages[0], 0))?;
    let bytes = session.secret(KEY, key, false);
    session.call_well("proof_gcm_set_key", &[object, bytes, key.len() as u64])?;
    session.remove(KEY);
    process(session, group, (object, &messages[1], 0))
}

/// Drops the object.
fn end(session: &mut Session, object: u64, is_ocb: bool) -> Result<(), Stop> {
    session.call(if is_ocb { "proof_ocb_drop" } else { "proof_gcm_drop" }, &[object])?;
    session.check_heap();
    Ok(())
}

fn new_gcm(session: &mut Session, key: u64, len: usize) -> Result<u64, Stop> {
    let kernel = session.kernel;
    session.call_well("proof_gcm_new", &[kernel, key, len as u64])
}

fn new_ocb(session: &mut Session, key: u64, len: usize) -> Result<u64, Stop> {
    let (place, kernel) = (session.call_well("proof_ocb_place", &[])?, session.kernel);
    session.call_well("proof_ocb_set", &[place, kernel, key, len as u64])?;
    Ok(place)
}

/// The place of a tag: it is written, or it is public and compared.
fn tag_place(session: &mut Session, message: &Message) -> u64 {
    if message.encrypts {
        return session.public(TAG, &[0xee; 16], true);
    }
    let mut tag = message.tag.clone();
    if let Some(place) = message.form.wrong_byte {
        tag[place] ^= 0x40;
    }
    session.public(TAG, &tag, false)
}

/// Lengths of the first of two pieces: none, and some that are not whole blocks.
fn first_piece(index: usize, len: usize) -> usize {
    [0, 1, 16, 37, 0, 0, 0][index % 7].min(len)
}

/// Lengths of two pieces of the additional data. The first piece is empty, or does not consist of whole blocks.
fn pieces_of_aad(index: usize, message: &Message) -> (u64, u64) {
    let len = message.aad.len() as u64;
    let first = [0, 7, 0, 19][index % 4].min(len);
    (first, len - first)
}

/// Number of bytes of the data and of the additional data of a message that is not completed: not whole blocks.
const ABANDONED: u64 = 21;

/// Starts a message that is not completed.
fn abandon(session: &mut Session, object: u64, message: &Message) -> Result<(), Stop> {
    let iv = session.public(IV, &[0x5d; 12], false);
    let data = session.secret(OUTPUT, &sample(ABANDONED as usize, 11), true);
    if message.is_ocb {
        session.call("proof_ocb_start", &[object, u64::from(message.encrypts), iv, 12, 16])?;
        session.call("proof_ocb_aad", &[object, data, ABANDONED])?;
        session.call("proof_ocb_blocks", &[object, data, data, 16])?;
        session.call("proof_ocb_last", &[object, data + 16, data + 16, ABANDONED - 16])?;
        return Ok(());
    }
    session.call_well("proof_gcm_start", &[object, u64::from(message.encrypts), iv, 12])?;
    session.call_well("proof_gcm_aad", &[object, data, ABANDONED])?;
    session.call_well("proof_gcm_update", &[object, data, data, ABANDONED])?;
    Ok(())
}

fn incremental_gcm(session: &mut Session, gcm: u64, message: &Message, index: usize) -> Result<(), Stop> {
    if message.form.is_reused {
        abandon(session, gcm, message)?;
    }
    let iv = session.public(IV, &message.iv, false);
    let aad = session.secret(AAD, &message.aad, false);
    let (from, to) = session.data(INPUT, OUTPUT, &message.input, message.form.in_place);
    session.call_well("proof_gcm_start", &[gcm, u64::from(message.encrypts), iv, message.iv.len() as u64])?;
    let (start, end) = pieces_of_aad(index, message);
    if start > 0 {
        session.call_well("proof_gcm_aad", &[gcm, aad, start])?;
    }
    session.call_well("proof_gcm_aad", &[gcm, aad + start, end])?;
    let original = gcm;
    let gcm = if message.form.is_copied { session.call_well("proof_gcm_copy", &[gcm])? } else { gcm };
    let (first, len) = (first_piece(index, message.input.len()) as u64, message.input.len() as u64);
    if first > 0 {
        session.call_well("proof_gcm_update", &[gcm, from, to, first])?;
    }
    session.call_well("proof_gcm_update", &[gcm, from + first, to + first, len - first])?;
    let tag = tag_place(session, message);
    if message.encrypts {
        session.call_well("proof_gcm_seal", &[gcm, tag])?;
    } else {
        session.check_verdict("proof_gcm_open", &[gcm, tag], message.form.wrong_byte.is_none())?;
    }
    if message.form.is_copied {
        for object in [gcm, original] {
            session.call("proof_gcm_drop", &[object])?;
        }
        session.check_heap();
    }
    Ok(())
}

fn whole_gcm(session: &mut Session, gcm: u64, message: &Message) -> Result<(), Stop> {
    let iv = session.public(IV, &message.iv, false);
    let aad = session.secret(AAD, &message.aad, false);
    let (from, to) = session.data(INPUT, OUTPUT, &message.input, message.form.in_place);
    let tag = tag_place(session, message);
    let (aad_len, len) = (message.aad.len() as u64, message.input.len() as u64);
    let parts = [iv, aad, aad_len, from, to, len, tag, u64::from(message.encrypts)];
    let structure = session.structure(MESSAGE, &parts);
    session.check_verdict("proof_gcm_message", &[gcm, structure], message.form.wrong_byte.is_none())
}

fn incremental_ocb(session: &mut Session, ocb: u64, message: &Message, index: usize) -> Result<(), Stop> {
    if message.form.is_reused {
        abandon(session, ocb, message)?;
    }
    let Form { in_place, is_copied, tag_len, .. } = message.form;
    let iv = session.public(IV, &message.iv, false);
    let aad = session.secret(AAD, &message.aad, false);
    let (from, to) = session.data(INPUT, OUTPUT, &message.input, in_place);
    let iv_len = message.iv.len() as u64;
    session.call("proof_ocb_start", &[ocb, u64::from(message.encrypts), iv, iv_len, tag_len as u64])?;
    let (start, end) = pieces_of_aad(index, message);
    if start > 0 {
        session.call("proof_ocb_aad", &[ocb, aad, start])?;
    }
    session.call("proof_ocb_aad", &[ocb, aad + start, end])?;
    let original = ocb;
    let ocb = if is_copied { session.call_well("proof_ocb_place", &[])? } else { original };
    if is_copied {
        session.call_well("proof_ocb_copy", &[ocb, original])?;
    }
    let len = message.input.len() as u64;
    let (whole, rest) = (len / 16 * 16, len % 16);
    session.call("proof_ocb_blocks", &[ocb, from, to, whole])?;
    if rest > 0 {
        session.call("proof_ocb_last", &[ocb, from + whole, to + whole, rest])?;
    }
    let tag = tag_place(session, message);
    if message.encrypts {
        session.call("proof_ocb_seal", &[ocb, tag])?;
    } else {
        session.check_verdict(
            "proof_ocb_open",
            &[ocb, tag, tag_len as u64],
            message.form.wrong_byte.is_none(),
        )?;
    }
    if is_copied {
        for object in [ocb, original] {
            session.call("proof_ocb_drop", &[object])?;
        }
        session.check_heap();
    }
    Ok(())
}
