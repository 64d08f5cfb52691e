//! The authenticated modes.

use js_sys::{Array, Uint8Array};
use lockstep::Engine;
use lockstep::aead::{
    Aead, Caller, CallingThread, Data, Direction, Error, Key, Lengths, Message, Result, Status, Tag,
};
use lockstep::hazmat::inline::InlineKernel;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::{Zeroize, Zeroizing};

use crate::errors::{error, of_mode};
use crate::{copy, kernel};

/// Computes all messages on the calling thread.
struct ThisThread(InlineKernel);

impl Caller for ThisThread {
    fn inline_kernel(&self) -> Option<InlineKernel> {
        Some(self.0)
    }

    fn inline_limit(&self) -> usize {
        usize::MAX
    }

    fn engine(&self) -> Result<Engine> {
        Err(Error::Order { what: "an engine, which a browser does not have" })
    }
}

/// The table of modes, in JSON.
#[wasm_bindgen]
pub fn aeads() -> String {
    let rows = Aead::ALL.map(|mode| {
        let row = mode.row();
        format!(
            r#"{{"name":"{}","keyLengths":{:?},"nonceLengths":{},"nonceIsOptional":{},"tagLengths":{},"tagIsFirst":{},"maxStrings":{}}}"#,
            row.name,
            row.key_lengths,
            ranges(&row.nonces),
            row.nonce_is_optional,
            ranges(&row.tags),
            row.has_tag_first,
            row.max_strings,
        )
    });
    format!("[{}]", rows.join(","))
}

/// Ranges of lengths in JSON, as pairs. If a range has no end, the second element of the pair is `null`.
fn ranges(lengths: &Lengths) -> String {
    let pairs = lengths.ranges.iter().map(|range| match range.end() {
        &usize::MAX => format!("[{},null]", range.start()),
        end => format!("[{},{end}]", range.start()),
    });
    format!("[{}]", pairs.collect::<Vec<_>>().join(","))
}

/// A key of an authenticated mode.
#[wasm_bindgen]
pub struct AeadKey {
    key: Key,
    kernel: InlineKernel,
}

#[wasm_bindgen]
impl AeadKey {
    /// Makes a key for the mode of this name. `tag` is the length of its tags in bytes.
    #[wasm_bindgen(constructor)]
    pub fn new(name: &str, key: Vec<u8>, tag: usize) -> std::result::Result<AeadKey, JsValue> {
        let key = Zeroizing::new(key);
        let Some(mode) = Aead::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name)) else {
            let names = Aead::ALL.map(Aead::name).join(", ");
            return Err(error("argument", &format!("there is no mode of this name: use one of {names}")));
        };
        let key = Key::new(mode, &key).and_then(|key| key.with_tag_len(tag)).map_err(of_mode)?;
        Ok(AeadKey { key, kernel: kernel()? })
    }

    /// The bytes of the key, for WebCrypto; empty in a mode with two AES keys.
    #[wasm_bindgen(js_name = rawKey)]
    pub fn raw_key(&self) -> Uint8Array {
        copy(self.key.key().map_or(&[], |key| key.bytes()))
    }

    /// Seals a message. `aad` is the concatenation of all strings of associated data, and `lengths` are their lengths. Without `lengths`,
    /// `aad` is one string.
    pub fn seal(
        &self,
        nonce: &[u8],
        aad: &[u8],
        lengths: Option<Vec<u32>>,
        plain: &[u8],
    ) -> std::result::Result<Uint8Array, JsValue> {
        let sealed =
            with_strings(aad, lengths, |aad| self.key.seal(&ThisThread(self.kernel), nonce, aad, plain));
        Ok(copy(&sealed.map_err(of_mode)?))
    }

    /// Opens a message.
    pub fn open(
        &self,
        nonce: &[u8],
        aad: &[u8],
        lengths: Option<Vec<u32>>,
        sealed: &[u8],
    ) -> std::result::Result<Uint8Array, JsValue> {
        let plain =
            with_strings(aad, lengths, |aad| self.key.open(&ThisThread(self.kernel), nonce, aad, sealed));
        Ok(copy(&Zeroizing::new(plain.map_err(of_mode)?)))
    }

    /// Seals a batch. Each argument is the concatenation of the values of all messages. `lengths` has, for each message, the lengths of its
    /// nonce, associated data and plaintext. The result has the sealed messages, one after the other.
    #[wasm_bindgen(js_name = sealBatch)]
    pub fn seal_batch(
        &self,
        nonces: &[u8],
        aads: &[u8],
        plain: &[u8],
        lengths: &[u32],
    ) -> std::result::Result<Uint8Array, JsValue> {
        let (mode, tag, (lengths, _)) = (self.key.mode(), self.key.tag_len(), lengths.as_chunks::<3>());
        let mut sealed = vec![0; plain.len() + lengths.len() * tag];
        let mut places = &mut sealed[..];
        let mut rest = plain;
        let parts = lengths.iter().map(|&[_, _, len]| {
            let (place, later) = std::mem::take(&mut places).split_at_mut(len as usize + tag);
            places = later;
            let (body, tag) = mode.split_mut(place, tag).expect("the place has room for a tag");
            body.copy_from_slice(take(&mut rest, len));
            Some((body, Tag::Write(tag)))
        });
        let parts = parts.collect::<Vec<_>>();
        if let Err(cause) = self.run(Direction::Encrypt, nonces, aads, lengths, parts).0 {
            // It has plaintext.
            sealed.zeroize();
            return Err(of_mode(cause));
        }
        Ok(copy(&sealed))
    }

    /// Opens a batch, with arguments as in `sealBatch`. The result is an array of the plaintexts, one after the other, and a byte for
    /// each message: 1 if it is authentic, otherwise 0. The plaintext of a message that is not authentic is zeroed. A message that is
    /// shorter than its tag is not authentic, and its plaintext is empty.
    #[wasm_bindgen(js_name = openBatch)]
    pub fn open_batch(
        &self,
        nonces: &[u8],
        aads: &[u8],
        sealed: &[u8],
        lengths: &[u32],
    ) -> std::result::Result<Array, JsValue> {
        let (mode, tag, (lengths, _)) = (self.key.mode(), self.key.tag_len(), lengths.as_chunks::<3>());
        let size = lengths.iter().map(|&[_, _, len]| (len as usize).saturating_sub(tag)).sum();
        let mut plain = Zeroizing::new(vec![0; size]);
        let mut places = &mut plain[..];
        let mut rest = sealed;
        let parts = lengths.iter().map(|&[_, _, len]| {
            let (body, tag) = mode.split(take(&mut rest, len), tag)?;
            let (place, later) = std::mem::take(&mut places).split_at_mut(body.len());
            places = later;
            place.copy_from_slice(body);
            Some((place, Tag::Expect(tag)))
        });
        let parts = parts.collect::<Vec<_>>();
        let (outcome, done) = self.run(Direction::Decrypt, nonces, aads, lengths, parts);
        match outcome {
            Ok(()) | Err(Error::AuthenticationFailed) => Ok(Array::of2(&copy(&plain), &copy(&done))),
            Err(error) => Err(of_mode(error)),
        }
    }

    /// Runs a batch on bodies and tags. Messages without a body and a tag (`None`) are skipped. The second result has a 1 for each message
    /// whose status is `Done`.
    fn run(
        &self,
        direction: Direction,
        mut nonces: &[u8],
        mut aads: &[u8],
        lengths: &[[u32; 3]],
        parts: Vec<Option<(&mut [u8], Tag<'_>)>>,
    ) -> (Result<()>, Vec<u8>) {
        let heads = lengths.iter().map(|&[nonce, aad, _]| (take(&mut nonces, nonce), [take(&mut aads, aad)]));
        let heads = heads.collect::<Vec<_>>();
        let mut done = vec![0; lengths.len()];
        let (mut messages, mut rows) = (Vec::new(), Vec::new());
        for (row, ((nonce, aad), part)) in heads.iter().zip(parts).enumerate() {
            let Some((body, tag)) = part else { continue };
            let (data, status) = (Data::in_place(body), Status::Pending);
            messages.push(Message { key: &self.key, nonce, aad, data, tag, status });
            rows.push(row);
        }
        let outcome = self.key.mode().run(&CallingThread(self.kernel), direction, &mut messages);
        for (message, row) in messages.iter().zip(rows) {
            done[row] = u8::from(message.status == Status::Done);
        }
        (outcome, done)
    }
}

/// Calls `run` with the strings of associated data.
fn with_strings<T>(aad: &[u8], lengths: Option<Vec<u32>>, run: impl FnOnce(&[&[u8]]) -> T) -> T {
    let Some(lengths) = lengths else { return run(&[aad]) };
    let mut rest = aad;
    run(&lengths.iter().map(|&len| take(&mut rest, len)).collect::<Vec<_>>())
}

/// Removes the first `len` bytes from `bytes` and returns them. The JavaScript has ensured that `bytes` has this number of bytes.
fn take<'b>(bytes: &mut &'b [u8], len: u32) -> &'b [u8] {
    bytes.split_off(..len as usize).expect("the lengths are those of the arguments")
}
