//! OCB3 of one message that is too long for a chunk (RFC 7253, sections 4.1 to 4.3). The whole blocks are divided into chunks,
//! which are processed by the program of [`crate::ocb`]. A chunk can start at any block, and returns its checksum. The host
//! computes the masks, adds the checksums, and processes the partial block and the tag by encryptions of single blocks.

use std::sync::Arc;

use lockstep_core::data::Data;
use lockstep_core::gcm::settle;
use lockstep_core::ocb::{Masks, first_offset, nonce_block, xor};
use lockstep_core::work::{AeadMessage, Pass, Segment, Status};
use lockstep_core::{Block, Key, Result};
use lockstep_gpu_host::{Messages, submit, with_input, with_output};
use zeroize::Zeroizing;

use crate::calls::lock;
use crate::memory::{download, upload, zero};
use crate::offsets::Offsets;
use crate::task::Task;

/// Bytes of associated data that are hashed at once.
const HASHED_AT_ONCE: usize = 1 << 20;

/// Seals or opens a message. If the tag is wrong, the output is zeroed. After an error, the output is invalid.
///
/// # Errors
/// Errors of the device.
pub(crate) fn seal_or_open(task: &Task, opens: bool, message: &mut AeadMessage<'_>) -> Result<()> {
    let (key, len) = (message.key, message.data.len());
    let (nonce, bottom) = nonce_block(message.nonce, message.tag.len());
    let mut blocks = Zeroizing::new([Block::default(), nonce]);
    encrypt(task, key, blocks.as_flattened_mut())?;
    let offsets = Offsets::new(&blocks[0], &Zeroizing::new(first_offset(&blocks[1], bottom)));
    let hash = hash(task, key, &offsets.masks, message.aad)?;
    if len >= 16 {
        whole_blocks(task, opens, message, &offsets)?;
    }
    let Offsets { masks, first, checksum } = &*offsets;
    let mut checksum = lock(checksum).clone();
    let mut offset = Zeroizing::new(masks.offset(first, len as u64 / 16));
    if !len.is_multiple_of(16) {
        xor(&mut offset, &masks.star);
        let mut pad = offset.clone();
        encrypt(task, key, &mut pad[..])?;
        let plaintext = partial_block(task, opens, message, &pad)?;
        xor(&mut checksum, &plaintext);
        checksum[len % 16] ^= 0x80;
    }
    let mut tag = checksum;
    xor(&mut tag, &offset);
    xor(&mut tag, &masks.dollar);
    encrypt(task, key, &mut tag[..])?;
    xor(&mut tag, &hash);
    message.status = settle(&mut message.tag, &tag);
    if message.status == Status::Done {
        return Ok(());
    }
    match &mut message.data {
        Data::Device { to, .. } => zero(&task.pool, to),
        data => {
            with_output(data, |output| output.fill(0));
            Ok(())
        }
    }
}

/// Encrypts blocks in place, as a separate call of the device.
fn encrypt(task: &Task, key: &Key, blocks: &mut [u8]) -> Result<()> {
    let state = &mut Block::default();
    task.run(Pass::EcbEncrypt, Segment { key, tweak: None, state, data: Data::in_place(blocks) })
}

/// Encrypts or decrypts the whole blocks with their offsets.
fn whole_blocks(
    task: &Task,
    opens: bool,
    message: &mut AeadMessage<'_>,
    offsets: &Arc<Offsets>,
) -> Result<()> {
    let (key, whole, state) = (message.key, message.data.len() / 16 * 16, &mut Block::default());
    let pass = if opens { Pass::EcbDecrypt } else { Pass::EcbEncrypt };
    let task = Task { offsets: Some(Arc::clone(offsets)), ..task.with_pass(pass) };
    let (data, _) = message.data.reborrow().split_at(whole);
    submit(task, Messages::Pass(pass, &mut [Segment { key, tweak: None, state, data }]))?.wait()
}

/// Adds the pad to the partial block. Returns the plaintext, followed by zeros.
fn partial_block(
    task: &Task,
    opens: bool,
    message: &mut AeadMessage<'_>,
    pad: &Block,
) -> Result<Zeroizing<Block>> {
    let (len, gpu) = (message.data.len(), task.gpu());
    let (whole, tail) = (len / 16 * 16, len % 16);
    let (mut input, mut output) = (Zeroizing::new(Block::default()), Zeroizing::new(Block::default()));
    match &message.data {
        Data::Device { from, .. } => {
            download(&task.pool, &gpu.place(&from.slice(whole..len))?, &mut input[..tail])?;
        }
        data => with_input(data, |bytes| input[..tail].copy_from_slice(&bytes[whole..])),
    }
    for ((output, input), pad) in output.iter_mut().zip(&*input).zip(pad).take(tail) {
        *output = input ^ pad;
    }
    match &mut message.data {
        Data::Device { to, .. } => upload(&task.pool, &output[..tail], &gpu.place(&to.slice(whole..len))?)?,
        data => with_output(data, |bytes| bytes[whole..].copy_from_slice(&output[..tail])),
    }
    Ok(if opens { output } else { input })
}

/// HASH of the associated data (RFC 7253, section 4.1).
fn hash(task: &Task, key: &Key, masks: &Masks, aad: &[u8]) -> Result<Zeroizing<Block>> {
    let (mut sum, mut offset) = (Zeroizing::new(Block::default()), Zeroizing::new(Block::default()));
    let mut number = 0;
    for part in aad.chunks(HASHED_AT_ONCE) {
        let mut blocks = Zeroizing::new(vec![0; part.len().next_multiple_of(16)]);
        blocks[..part.len()].copy_from_slice(part);
        let (whole, last) = blocks.split_at_mut(part.len() / 16 * 16);
        for block in whole.as_chunks_mut().0 {
            number += 1;
            masks.advance(&mut offset, number);
            xor(block, &offset);
        }
        for block in last.as_chunks_mut().0 {
            block[part.len() % 16] = 0x80;
            xor(&mut offset, &masks.star);
            xor(block, &offset);
        }
        encrypt(task, key, &mut blocks)?;
        blocks.as_chunks().0.iter().for_each(|block| xor(&mut sum, block));
    }
    Ok(sum)
}

#[cfg(test)]
mod tests;
