//! The chunks of an encrypted file.

use js_sys::Uint8Array;
use lockstep::aead::{self, Aead, CallingThread, Data, Direction, Message, Status, Tag};
use lockstep::cobblestone::{CHUNK, ENCRYPTED_CHUNK, HEADER, MAX_CHUNKS, MessageKey, TAG};
use lockstep::envelope::{MAGIC, MAX_PAYLOAD};
use lockstep::hazmat::inline::InlineKernel;
use lockstep::{Envelope, Error};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::{Zeroize, Zeroizing};

use crate::errors::{of_file, of_mode};
use crate::wrapping::FileKey;
use crate::{copy, kernel};

/// The format: the bytes of a chunk, of its tag, of both, and of the header; the bytes of the first line of an envelope; and the maximum
/// number of chunks. All numbers are exact.
#[wasm_bindgen]
pub fn layout() -> Vec<f64> {
    let bytes = [CHUNK, TAG, ENCRYPTED_CHUNK, HEADER, MAGIC.len()].map(|bytes| bytes as f64);
    [&bytes[..], &[MAX_CHUNKS as f64]].concat()
}

/// The length in bytes of the envelope at the start of a file; 0 if the file has no envelope. If `start` does not contain the whole
/// envelope, the result can be smaller than this length, but it is greater than the length of `start`.
#[wasm_bindgen(js_name = envelopeLength)]
pub fn envelope_length(start: &[u8]) -> Result<usize, JsValue> {
    let (magic, rest) = start.split_at(start.len().min(MAGIC.len()));
    if magic != &MAGIC[..magic.len()] {
        return Ok(0);
    }
    let Some((length, _)) = rest.split_first_chunk::<4>() else { return Ok(MAGIC.len() + 4) };
    let payload = u32::from_le_bytes(*length) as usize;
    if payload > MAX_PAYLOAD {
        // Returns the error.
        Envelope::read(&mut &start[..]).map_err(of_file)?;
    }
    Ok(MAGIC.len() + 4 + payload)
}

/// The length of the plaintext of a message of this length, in bytes. `before` is the length of the envelope before it.
#[wasm_bindgen(js_name = plaintextLength)]
pub fn plaintext_length(message: f64, before: f64) -> Result<f64, JsValue> {
    let length = lockstep::plaintext_len(message as u64).map(|len| len as f64);
    length.map_err(|cause| of_file(after(before as u64, cause)))
}

/// Converts the positions in an error, which count from the start of the message, to positions in the file. The message starts after
/// `before` bytes of the file.
fn after(before: u64, cause: Error) -> Error {
    match cause {
        Error::Truncated { got } => Error::Truncated { got: before + got },
        other => other,
    }
}

/// A message, as the key of its chunks.
#[wasm_bindgen]
pub struct Chunks {
    key: MessageKey,
    header: Vec<u8>,
    /// The length of the envelope before the message.
    before: u64,
    kernel: InlineKernel,
}

#[wasm_bindgen]
impl Chunks {
    /// A new message.
    pub fn create(key: &FileKey, context: &[u8]) -> Result<Chunks, JsValue> {
        let (header, key) = MessageKey::create(&key.0, context).map_err(of_file)?;
        Ok(Chunks { key, header, before: context.len() as u64, kernel: kernel()? })
    }

    /// The message that follows the envelope `context`. `start` has the bytes of the message's header and, if there are any, bytes after
    /// the header.
    pub fn check(key: &FileKey, context: &[u8], start: &[u8]) -> Result<Chunks, JsValue> {
        let (header, more) = start.split_at(start.len().min(HEADER));
        let before = context.len() as u64;
        let key = MessageKey::check(&key.0, context, header, |start| start.extend(more))
            .map_err(|cause| of_file(after(before, cause)))?;
        Ok(Chunks { key, header: header.to_vec(), before, kernel: kernel()? })
    }

    /// The header.
    pub fn header(&self) -> Uint8Array {
        copy(&self.header)
    }

    /// The key of AES-GCM, for WebCrypto.
    #[wasm_bindgen(js_name = rawKey)]
    pub fn raw_key(&self) -> Uint8Array {
        copy(self.key.aead_key().key().map_or(&[], |key| key.bytes()))
    }

    /// The nonce of a chunk.
    pub fn nonce(&self, chunk: f64) -> Uint8Array {
        copy(&self.key.nonce(chunk as u64))
    }

    /// Seals plaintext, whose first chunk has the number `first`. If `ends` is true, the message ends with this plaintext. Otherwise the
    /// plaintext consists of full chunks.
    pub fn seal(&self, first: f64, plain: &[u8], ends: bool) -> Result<Uint8Array, JsValue> {
        let count = plain.len() / CHUNK + usize::from(ends);
        let mut sealed = vec![0; plain.len() + count * TAG];
        // Leaves room for the tag after each chunk.
        for (chunk, plain) in sealed.chunks_mut(ENCRYPTED_CHUNK).zip(plain.chunks(CHUNK)) {
            chunk[..plain.len()].copy_from_slice(plain);
        }
        if let Err((cause, _)) = self.run(Direction::Encrypt, first, &mut sealed) {
            // It has plaintext.
            sealed.zeroize();
            return Err(of_mode(cause));
        }
        Ok(copy(&sealed))
    }

    /// Opens chunks, the first of which has the number `first`. `ends` is true if the message ends with these chunks.
    pub fn open(&self, first: f64, sealed: &[u8], ends: bool) -> Result<Uint8Array, JsValue> {
        if ends && sealed.len() % ENCRYPTED_CHUNK < TAG {
            let got = HEADER as u64 + first as u64 * ENCRYPTED_CHUNK as u64 + sealed.len() as u64;
            return Err(of_file(after(self.before, Error::Truncated { got })));
        }
        let mut chunks = Zeroizing::new(sealed.to_vec());
        self.run(Direction::Decrypt, first, &mut chunks).map_err(|(cause, bad)| match cause {
            aead::Error::AuthenticationFailed => of_file(Error::Damaged { chunk: first as u64 + bad }),
            other => of_mode(other),
        })?;
        // Removes the tags between the chunks.
        let count = sealed.len().div_ceil(ENCRYPTED_CHUNK);
        for chunk in 1..count {
            let start = chunk * ENCRYPTED_CHUNK;
            chunks.copy_within(start..sealed.len().min(start + CHUNK), chunk * CHUNK);
        }
        Ok(copy(&chunks[..sealed.len() - count * TAG]))
    }

    /// Seals or opens chunks in place. The error has the index of the first chunk that has no result.
    fn run(&self, direction: Direction, first: f64, data: &mut [u8]) -> Result<(), (aead::Error, u64)> {
        let nonces =
            (first as u64..).take(data.len().div_ceil(ENCRYPTED_CHUNK)).map(|chunk| self.key.nonce(chunk));
        let nonces = nonces.collect::<Vec<_>>();
        let messages = data.chunks_mut(ENCRYPTED_CHUNK).zip(&nonces).map(|(chunk, nonce)| {
            let (body, tag) = Aead::Gcm.split_mut(chunk, TAG).expect("a chunk ends with a tag");
            let tag = match direction {
                Direction::Encrypt => Tag::Write(tag),
                Direction::Decrypt => Tag::Expect(tag),
            };
            let (key, data) = (self.key.aead_key(), Data::in_place(body));
            Message { key, nonce, aad: &[], data, tag, status: Status::Pending }
        });
        let mut messages = messages.collect::<Vec<_>>();
        Aead::Gcm.run(&CallingThread(self.kernel), direction, &mut messages).map_err(|cause| {
            let bad = messages.iter().position(|message| message.status != Status::Done);
            (cause, bad.unwrap_or(0) as u64)
        })
    }
}
