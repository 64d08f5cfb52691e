//! Incremental GCM and OCB3, and GCM of whole messages.

use super::definition::{Aead, Sealed};
use super::{Differences, Prover, lengths};
use crate::cases::aead::{Message, OUTPUT, TAG, finish, new_object, parameters, update};
use crate::cases::{Operation, Session};
use crate::machine::Stop;
use crate::symbols::{Symbol, Symbols};
use crate::value::Domain;

/// True if GCM is proved for a length. Proofs of the other lengths are left out, because the time grows faster than the number of products.
/// Every length of at most 40 blocks is proved, which is more than the longest step has, and every fifth number of blocks to the start of
/// the fused loop. In the first step of this loop, each even number of blocks after the start is proved, and in the second step each odd
/// number, so that each number of blocks after a step occurs once.
fn is_proved(len: usize, (from, step): (usize, usize)) -> bool {
    let blocks = len / 16;
    match blocks.checked_sub(from / 16) {
        _ if blocks <= 40 => true,
        None => blocks.is_multiple_of(5),
        Some(after) => after >= step / 8 || after % 2 == after / (step / 16),
    }
}

/// Proves the AEAD of a group for each length.
pub(super) fn prove(prover: &mut Prover) -> Result<(), Stop> {
    let (operation, key) = (prover.group.operation, prover.key.clone());
    let object = new_object(&mut prover.session, operation, key)?;
    let (most, marks) = operation.aead_lengths(prover.group.kernel);
    let (ivs, aads) = (prover.symbols.inputs(60), prover.symbols.inputs(300));
    let mut lens = lengths(prover.extent, 1, most, &marks);
    if !operation.is_ocb() {
        lens.retain(|len| is_proved(*len, prover.group.kernel.gcm));
    }
    for (index, len) in lens.into_iter().enumerate() {
        let (aad_len, pieces, iv_len, tag_len) = parameters(operation, index);
        let iv = match operation {
            // If the IV of GCM does not have 12 bytes, the proof derives J_0 from a whole block of ciphertext. Shorter
            // messages therefore have an IV of 12 bytes.
            Operation::Gcm(_) if len < 16 => ivs[..12].to_vec(),
            // The last 6 bits of the nonce of OCB3 are public.
            Operation::Ocb(_) => [&ivs[..iv_len - 1], &[Symbols::constant(index as u8 * 29)]].concat(),
            _ => ivs[..iv_len].to_vec(),
        };
        let (data, aad, in_place) = (prover.data(len), aads[..aad_len].to_vec(), index % 2 == 0);
        let (is_copied, is_shared) = (false, operation.is_whole() && index % 3 == 1);
        let message = Message { operation, in_place, is_copied, is_shared, iv, aad, data, tag_len, pieces };
        // Each run has its own copy of the table of expressions, because runs with other lengths do not use its expressions.
        let forked = prover.fork();
        let result = prove_message(&forked, &mut forked.session.clone(), object, &message);
        let iv_len = message.iv.len();
        let run = format!(
            "{len} bytes, IV of {iv_len}, {aad_len} of additional data, in place: {in_place}, shared: {is_shared}"
        );
        prover.add(&run, result);
    }
    Ok(())
}

/// Processes a message and compares its result. A decryption is run several times. In the first run, the expected tag consists of new
/// symbols, so that the comparison reveals the computed tag. The expected tag of the second run is the computed tag. In each further run,
/// it differs from the computed tag in one bit.
fn prove_message(
    prover: &Prover,
    session: &mut Session<Symbols>,
    object: u64,
    message: &Message<Symbol>,
) -> Differences {
    let (operation, symbols) = (message.operation, &prover.symbols);
    let object = update(session, object, message)?;
    let (tag, mut differences) = if operation.encrypts() {
        finish(session, object, message, None)?;
        (session.bytes(TAG).to_vec(), Vec::new())
    } else {
        let inputs = symbols.inputs(message.tag_len);
        symbols.table().watch(&inputs);
        finish(&mut session.clone(), object, message, Some(&inputs))?;
        let computed = symbols.table().compared();
        symbols.table().watch(&[]);
        let Some(computed) = computed else { return Ok(vec!["the tag is not compared".into()]) };
        let mut differences = Vec::new();
        let step = if message.data.len() < 32 && !operation.is_whole() { 1 } else { 37 };
        for bit in (0..8 * message.tag_len).step_by(step) {
            let mut forged = computed.clone();
            forged[bit / 8] = symbols.clone().xor(forged[bit / 8], Symbols::constant(1 << (bit % 8)));
            if finish(&mut session.clone(), object, message, Some(&forged))? {
                differences.push(format!("a tag that differs in bit {bit} is accepted"));
            }
        }
        if !finish(session, object, message, Some(&computed))? {
            differences.push("the right tag is refused".into());
        }
        (computed, differences)
    };
    let (data, output) = (&message.data[..], session.bytes(OUTPUT));
    let (plaintext, ciphertext) = if operation.encrypts() { (data, output) } else { (output, data) };
    let (aead, is_opened) = (if operation.is_ocb() { Aead::Ocb } else { Aead::Gcm }, !operation.encrypts());
    let (key_len, cipher) = (prover.group.key_len, &prover.cipher);
    let (iv, aad) = (&message.iv[..], &message.aad[..]);
    let (tag, received) = (&tag, &tag);
    let sealed = Sealed { aead, is_opened, cipher, key_len, iv, aad, plaintext, ciphertext, tag, received };
    differences.extend(sealed.differences());
    Ok(differences)
}
