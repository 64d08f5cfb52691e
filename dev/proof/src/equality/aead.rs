//! Incremental GCM and OCB3, and GCM of whole messages.

use super::definition::{Aead, Message};
use super::{Differences, Prover, lengths, place_data};
use crate::cases::{Buffer, Operation, Session};
use crate::machine::Stop;
use crate::symbols::{Symbol, Symbols};
use crate::value::Domain;

const KEY: Buffer = Buffer(16);
const IV: Buffer = Buffer(17);
const AAD: Buffer = Buffer(18);
const TAG: Buffer = Buffer(19);
const INPUT: Buffer = Buffer(20);
const OUTPUT: Buffer = Buffer(21);
const MESSAGE: Buffer = Buffer(1);

/// The input of a run.
struct Run {
    object: u64,
    encrypts: bool,
    in_place: bool,
    iv: Vec<Symbol>,
    aad: Vec<Symbol>,
    data: Vec<Symbol>,
    tag_len: usize,
    /// Number of bytes of the first of two pieces of the data.
    first: usize,
}

/// Proves the AEAD of a group for each length.
pub(super) fn prove(prover: &mut Prover) -> Result<(), Stop> {
    let key = prover.key.clone();
    let bytes = prover.session.buffer(KEY, key, false);
    let operation = prover.group.operation;
    let (is_ocb, encrypts) = match operation {
        Operation::Ocb(encrypts) => (true, encrypts),
        Operation::Gcm(encrypts) | Operation::GcmMessage(encrypts) => (false, encrypts),
        _ => unreachable!("an AEAD"),
    };
    let (session, key_len) = (&mut prover.session, prover.group.key_len as u64);
    let kernel = session.kernel;
    let object = if is_ocb {
        let place = session.invoke_well("proof_ocb_place", &[])?;
        session.invoke_well("proof_ocb_set", &[place, kernel, bytes, key_len])?;
        place
    } else {
        session.invoke_well("proof_gcm_new", &[kernel, bytes, key_len])?
    };
    session.remove(KEY);
    let (from, step) = prover.group.kernel.gcm;
    let wide = prover.group.kernel.step;
    let (most, marks) = if is_ocb {
        (3 * wide + 48, [wide, 2 * wide, 3 * wide])
    } else {
        (from + 2 * step + 48, [step, from, from + step])
    };
    let (ivs, aads) = (prover.symbols.inputs(60), prover.symbols.inputs(300));
    for (index, len) in lengths(prover.extent, 1, most, &marks).into_iter().enumerate() {
        let data = prover.data(len);
        let aad = aads[..[0, 13, 16, 45, 140, 300][index % 6]].to_vec();
        let iv = match operation {
            // For an IV of another length than 12 bytes, the proof computes J_0 from a whole block of ciphertext.
            Operation::Gcm(_) if len >= 16 => ivs[..[12, 1, 16, 60][index % 4]].to_vec(),
            // The last 6 bits of the nonce of OCB3 are public.
            Operation::Ocb(_) => {
                [&ivs[..[11, 14, 0][index % 3]], &[Symbols::constant(index as u8 * 29)]].concat()
            }
            _ => ivs[..12].to_vec(),
        };
        let first = [0, 1, 16, 37][index % 4].min(len);
        let tag_len = if is_ocb && !encrypts { [16, 8, 1, 12][index % 4] } else { 16 };
        let run = Run { object, encrypts, in_place: index % 2 == 0, iv, aad, data, tag_len, first };
        let mut session;
        let result = if is_ocb {
            session = prover.session.clone();
            prove_message(prover, &mut session, &run)
        } else {
            // The runs of other lengths do not use the products of this run, so it has its own copy of the table.
            let forked = prover.fork();
            session = forked.session.clone();
            prove_message(&forked, &mut session, &run)
        };
        let Run { iv, aad, in_place, .. } = &run;
        let (iv, aad) = (iv.len(), aad.len());
        prover
            .add(&format!("{len} bytes, IV of {iv}, {aad} of additional data, in place: {in_place}"), result);
    }
    Ok(())
}

/// Processes a message and compares its result. In a decryption, the tag to compare with consists of new inputs at first, so that the computed
/// tag becomes visible. A second run has the computed tag, and more runs have a tag that differs in one bit.
fn prove_message(prover: &Prover, session: &mut Session<Symbols>, run: &Run) -> Differences {
    let is_message = matches!(prover.group.operation, Operation::GcmMessage(_));
    let aead = if matches!(prover.group.operation, Operation::Ocb(_)) { Aead::Ocb } else { Aead::Gcm };
    if !is_message {
        update(session, run, aead)?;
    }
    let (tag, mut differences) = if run.encrypts {
        finish(session, run, aead, is_message, None)?;
        (session.bytes(TAG).to_vec(), Vec::new())
    } else {
        let inputs = prover.symbols.inputs(run.tag_len);
        prover.symbols.table().watch(&inputs);
        finish(&mut session.clone(), run, aead, is_message, Some(&inputs))?;
        let computed = prover.symbols.table().compared();
        prover.symbols.table().watch(&[]);
        let Some(computed) = computed else { return Ok(vec!["the tag is not compared".into()]) };
        let mut differences = Vec::new();
        for bit in (0..8 * run.tag_len).step_by(if run.data.len() < 32 && !is_message { 1 } else { 37 }) {
            let mut forged = computed.clone();
            forged[bit / 8] = prover.symbols.clone().xor(forged[bit / 8], Symbols::constant(1 << (bit % 8)));
            if finish(&mut session.clone(), run, aead, is_message, Some(&forged))? {
                differences.push(format!("a tag that differs in bit {bit} is accepted"));
            }
        }
        if !finish(session, run, aead, is_message, Some(&computed))? {
            differences.push("the right tag is refused".into());
        }
        (computed, differences)
    };
    let output = session.bytes(OUTPUT);
    let (plaintext, ciphertext) =
        if run.encrypts { (&run.data[..], output) } else { (output, &run.data[..]) };
    let (key_len, cipher) = (prover.group.key_len, &prover.cipher);
    let message =
        Message { aead, cipher, key_len, iv: &run.iv, aad: &run.aad, plaintext, ciphertext, tag: &tag };
    differences.extend(message.differences());
    Ok(differences)
}

/// Starts a message, and processes its additional data and its data.
fn update(session: &mut Session<Symbols>, run: &Run, aead: Aead) -> Result<(), Stop> {
    let Run { object, encrypts, iv, aad, data, first, .. } = run;
    let (object, encrypts, first, len) = (*object, u64::from(*encrypts), *first as u64, data.len() as u64);
    let iv_place = session.buffer(IV, iv.clone(), false);
    let aad_place = session.buffer(AAD, aad.clone(), false);
    let (from, to) = place_data(session, INPUT, OUTPUT, data, run.in_place);
    let (iv_len, aad_len) = (iv.len() as u64, aad.len() as u64);
    if aead == Aead::Ocb {
        session.invoke("proof_ocb_start", &[object, encrypts, iv_place, iv_len, run.tag_len as u64])?;
        session.invoke("proof_ocb_aad", &[object, aad_place, aad_len])?;
        let whole = len / 16 * 16;
        session.invoke("proof_ocb_blocks", &[object, from, to, whole])?;
        if whole < len {
            session.invoke("proof_ocb_last", &[object, from + whole, to + whole, len - whole])?;
        }
        return Ok(());
    }
    session.invoke_well("proof_gcm_start", &[object, encrypts, iv_place, iv_len])?;
    session.invoke_well("proof_gcm_aad", &[object, aad_place, aad_len])?;
    if first > 0 {
        session.invoke_well("proof_gcm_update", &[object, from, to, first])?;
    }
    session.invoke_well("proof_gcm_update", &[object, from + first, to + first, len - first])?;
    Ok(())
}

/// Ends a message, or processes a whole message. Returns the verdict.
fn finish(
    session: &mut Session<Symbols>,
    run: &Run,
    aead: Aead,
    is_message: bool,
    expected: Option<&[Symbol]>,
) -> Result<bool, Stop> {
    let tag = match expected {
        Some(tag) => session.buffer(TAG, tag.to_vec(), false),
        None => session.public(TAG, &[0xee; 16], true),
    };
    let object = run.object;
    let verdict = if is_message {
        let iv = session.buffer(IV, run.iv.clone(), false);
        let aad = session.buffer(AAD, run.aad.clone(), false);
        let (from, to) = place_data(session, INPUT, OUTPUT, &run.data, run.in_place);
        let (aad_len, len) = (run.aad.len() as u64, run.data.len() as u64);
        let parts = [iv, aad, aad_len, from, to, len, tag, u64::from(run.encrypts)];
        let structure = session.structure(MESSAGE, &parts);
        session.invoke("proof_gcm_message", &[object, structure])?
    } else {
        match (aead, run.encrypts) {
            (Aead::Ocb, true) => session.invoke("proof_ocb_seal", &[object, tag])?,
            (Aead::Ocb, false) => session.invoke("proof_ocb_open", &[object, tag, run.tag_len as u64])?,
            (_, true) => session.invoke("proof_gcm_seal", &[object, tag])?,
            (_, false) => session.invoke("proof_gcm_open", &[object, tag])?,
        }
    };
    Ok(verdict & 0xff == 1)
}
