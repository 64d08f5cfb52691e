//! Incremental GCM and OCB3, and GCM of whole messages.

use lockstep_reference::{Aes, gcm, ocb};

use super::session::{Buffer, Session, sample};
use super::{Extent, Group, Operation, Outcome, lengths};
use crate::machine::{Kind, Stop};

const KEY: Buffer = Buffer(16);
const IV: Buffer = Buffer(17);
const AAD: Buffer = Buffer(18);
const TAG: Buffer = Buffer(19);
const INPUT: Buffer = Buffer(20);
const OUTPUT: Buffer = Buffer(21);
const MESSAGE: Buffer = Buffer(1);

/// A message: input and output, additional data, IV and tag.
struct Message {
    encrypts: bool,
    in_place: bool,
    iv: Vec<u8>,
    aad: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    tag: [u8; 16],
}

impl Message {
    /// A message of `len` bytes, and its result by the reference implementation.
    fn new(group: Group, aes: &Aes, len: usize, aad_len: usize, in_place: bool) -> Message {
        let (encrypts, is_ocb) = match group.operation {
            Operation::Ocb(encrypts) => (encrypts, true),
            Operation::Gcm(encrypts) | Operation::GcmMessage(encrypts) => (encrypts, false),
            _ => unreachable!("an AEAD"),
        };
        let (iv, aad, plaintext) = (sample(12, 7), sample(aad_len, 8), sample(len, 3));
        let (ciphertext, tag) = if is_ocb {
            let (ciphertext, tag) = ocb::seal(aes, &iv, &aad, &plaintext, 16);
            (ciphertext, tag.try_into().expect("16 bytes"))
        } else {
            gcm::seal(aes, &iv, &aad, &plaintext)
        };
        let (input, output) = if encrypts { (plaintext, ciphertext) } else { (ciphertext, plaintext) };
        Message { encrypts, in_place, iv, aad, input, output, tag }
    }
}

/// Runs an AEAD.
pub(super) fn run(session: &Session, group: Group, extent: Extent, outcome: &mut Outcome) {
    let key = sample(group.key_len, 5);
    let aes = Aes::new(&key);
    let mut keyed = session.clone();
    let bytes = keyed.secret(KEY, &key, false);
    let is_ocb = matches!(group.operation, Operation::Ocb(_));
    let made =
        if is_ocb { new_ocb(&mut keyed, bytes, key.len()) } else { new_gcm(&mut keyed, bytes, key.len()) };
    keyed.remove(KEY);
    outcome.add(&keyed, made.as_ref().map(|_| ()).map_err(Clone::clone), format!("{group}: set-up"));
    let Ok(object) = made else { return };
    (keyed.machine.steps, keyed.machine.findings) = (0, Default::default());
    let (from, step) = group.kernel.gcm;
    let most = if is_ocb { 3 * group.kernel.step + 48 } else { from + 2 * step + 48 };
    for (index, len) in lengths(group.kernel, extent, 1, most).into_iter().enumerate() {
        // Additional data of several lengths, up to more than eight blocks, at no further cost.
        let aad_len = [0, 13, 16, 45, 140, 300][index % 6];
        for in_place in [true, false] {
            let mut session = keyed.clone();
            let message = Message::new(group, &aes, len, aad_len, in_place);
            session.results = if message.encrypts {
                vec![message.output.clone(), message.tag.to_vec()]
            } else {
                vec![message.input.clone()]
            };
            let result = match group.operation {
                Operation::Gcm(_) => incremental_gcm(&mut session, object, &message, index),
                Operation::GcmMessage(_) => whole_gcm(&mut session, object, &message),
                _ => incremental_ocb(&mut session, object, &message),
            };
            if result.is_ok() {
                session.check(OUTPUT, "the output", &message.output);
                if message.encrypts {
                    session.check(TAG, "the tag", &message.tag);
                }
            }
            let place = if in_place { "in place" } else { "not in place" };
            outcome.add(&session, result, format!("{group}, {len} bytes, {place}"));
        }
    }
    let drop = if is_ocb { "proof_ocb_drop" } else { "proof_gcm_drop" };
    let result = keyed.call(drop, &[object]);
    keyed.check_heap();
    outcome.add(&keyed, result, format!("{group}: end of the key"));
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
        session.public(TAG, &[0xee; 16], true)
    } else {
        session.public(TAG, &message.tag, false)
    }
}

/// The verdict on a right tag must be true.
fn check_verdict(session: &mut Session, result: u64) {
    if result & 0xff != 1 {
        session.found(Kind::Result, "the right tag is refused".into());
    }
}

/// Lengths of the first of two pieces: none, and some that are not whole blocks.
fn first_piece(index: usize, len: usize) -> usize {
    [0, 1, 16, 37, 0, 0, 0][index % 7].min(len)
}

fn incremental_gcm(session: &mut Session, gcm: u64, message: &Message, index: usize) -> Result<(), Stop> {
    let iv = session.public(IV, &message.iv, false);
    let aad = session.secret(AAD, &message.aad, false);
    let (from, to) = session.data(INPUT, OUTPUT, &message.input, message.in_place);
    session.call_well("proof_gcm_start", &[gcm, u64::from(message.encrypts), iv, message.iv.len() as u64])?;
    session.call_well("proof_gcm_aad", &[gcm, aad, message.aad.len() as u64])?;
    let (first, len) = (first_piece(index, message.input.len()) as u64, message.input.len() as u64);
    if first > 0 {
        session.call_well("proof_gcm_update", &[gcm, from, to, first])?;
    }
    session.call_well("proof_gcm_update", &[gcm, from + first, to + first, len - first])?;
    let tag = tag_place(session, message);
    if message.encrypts {
        session.call_well("proof_gcm_seal", &[gcm, tag])?;
    } else {
        let verdict = session.call_for("proof_gcm_open", &[gcm, tag])?;
        check_verdict(session, verdict);
    }
    Ok(())
}

fn whole_gcm(session: &mut Session, gcm: u64, message: &Message) -> Result<(), Stop> {
    let iv = session.public(IV, &message.iv, false);
    let aad = session.secret(AAD, &message.aad, false);
    let (from, to) = session.data(INPUT, OUTPUT, &message.input, message.in_place);
    let tag = tag_place(session, message);
    let (aad_len, len) = (message.aad.len() as u64, message.input.len() as u64);
    let parts = [iv, aad, aad_len, from, to, len, tag, u64::from(message.encrypts)];
    let structure = session.structure(MESSAGE, &parts);
    let verdict = session.call_for("proof_gcm_message", &[gcm, structure])?;
    check_verdict(session, verdict);
    Ok(())
}

fn incremental_ocb(session: &mut Session, ocb: u64, message: &Message) -> Result<(), Stop> {
    let iv = session.public(IV, &message.iv, false);
    let aad = session.secret(AAD, &message.aad, false);
    let (from, to) = session.data(INPUT, OUTPUT, &message.input, message.in_place);
    session.call("proof_ocb_start", &[ocb, u64::from(message.encrypts), iv, message.iv.len() as u64])?;
    session.call("proof_ocb_aad", &[ocb, aad, message.aad.len() as u64])?;
    let len = message.input.len() as u64;
    let (whole, rest) = (len / 16 * 16, len % 16);
    session.call("proof_ocb_blocks", &[ocb, from, to, whole])?;
    if rest > 0 {
        session.call("proof_ocb_last", &[ocb, from + whole, to + whole, rest])?;
    }
    let tag = tag_place(session, message);
    if message.encrypts {
        return session.call("proof_ocb_seal", &[ocb, tag]);
    }
    let verdict = session.call_for("proof_ocb_open", &[ocb, tag])?;
    check_verdict(session, verdict);
    Ok(())
}
