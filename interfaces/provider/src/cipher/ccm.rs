//! CCM (SP 800-38C), and its TLS 1.2 records (RFC 6655). All data of a message must be passed in one update, because
//! the length of the data is authenticated before the data.

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, InlineKey, Span};
use lockstep::hazmat::mode::ccm;
use lockstep::hazmat::mode::incremental::{Keystream, Mac};
use lockstep::hazmat::work::Pass;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use super::Cipher;
use super::gcm::{TLS_AAD, record_aad};
use crate::algorithm::Algorithm;
use crate::instance::Instance;
use crate::key::{ContextKey, Inline};
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{GetParam, Kind, Parameters, SIZE, SetParam, entry, list};
use crate::reason::{Outcome, Reason};

const TLS_EXPLICIT_IV: usize = 8;
const TLS_FIXED_IV: usize = 4;

/// Bytes of a piece of data. The MAC and the cipher both process a piece before the next piece is read, so that the
/// piece stays in the cache.
const PIECE: usize = 8192;

/// A context of CCM.
pub(crate) struct Ccm {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    key: Option<ContextKey>,
    /// The nonce: `15 - length_bytes` bytes.
    iv: [u8; 13],
    iv_is_set: bool,
    /// Number of bytes in which the message's length is encoded: L of RFC 3610, q of SP 800-38C.
    length_bytes: usize,
    /// Bytes of the tag.
    tag_len: usize,
    /// The tag: the result of encryption, or the tag to compare with.
    tag: Block,
    /// True if `tag` is the tag to compare with.
    tag_is_set: bool,
    /// True if `tag` is the tag of the last encrypted message.
    tag_is_made: bool,
    /// The current message.
    message: Option<Message>,
    /// The additional data of the next record.
    record_aad: Option<[u8; TLS_AAD]>,
    record_growth: usize,
}

/// A message whose length is known.
#[derive(Clone)]
struct Message {
    len: usize,
    /// The first block of the MAC. Its flag for additional data is set later.
    first: Block,
    /// The counter block that masks the tag.
    counter: Block,
    mac: Mac,
    has_aad: bool,
}

impl Cipher for Ccm {
    const GETTABLE: Parameters = list!(
        entry(c"keylen", Kind::Unsigned, SIZE),
        entry(c"ivlen", Kind::Unsigned, SIZE),
        entry(c"taglen", Kind::Unsigned, SIZE),
        entry(c"iv", Kind::Octets, 0),
        entry(c"updated-iv", Kind::Octets, 0),
        entry(c"tag", Kind::Octets, 0),
        entry(c"tlsaadpad", Kind::Unsigned, SIZE),
    );
    const SETTABLE: Parameters = list!(
        entry(c"ivlen", Kind::Unsigned, SIZE),
        entry(c"tag", Kind::Octets, 0),
        entry(c"tlsaad", Kind::Octets, 0),
        entry(c"tlsivfixed", Kind::Octets, 0),
    );

    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self {
        Ccm {
            instance: Arc::clone(instance),
            algorithm,
            encrypts: true,
            key: None,
            iv: [0; 13],
            iv_is_set: false,
            length_bytes: 8,
            tag_len: 12,
            tag: [0; 16],
            tag_is_set: false,
            tag_is_made: false,
            message: None,
            record_aad: None,
            record_growth: 0,
        }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let key = self.key.as_ref().map(ContextKey::duplicate).transpose()?;
        let (instance, message) = (Arc::clone(&self.instance), self.message.clone());
        Ok(Ccm { instance, key, message, ..*self })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.encrypts = encrypts;
        if let Some(iv) = iv {
            if iv.len() != self.iv_len() {
                return Err(Reason::IvLength);
            }
            self.iv[..iv.len()].copy_from_slice(iv);
            self.iv_is_set = true;
            self.message = None;
            // A tag that was set for this message is kept; the tag of the previous encryption is discarded.
            self.tag_is_set &= !encrypts;
            self.tag_is_made = false;
        }
        ContextKey::replace(&mut self.key, &self.instance.resources, key)?;
        if key.is_some() {
            self.message = None;
        }
        Ok(())
    }

    fn has_key(&self) -> bool {
        self.key.is_some()
    }

    fn encrypts(&self) -> bool {
        self.encrypts
    }

    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        if self.key.is_none() {
            return Err(Reason::NoKey);
        }
        if data.has_no_input() && self.record_aad.is_none() {
            // A null input is a call of EVP_EncryptFinal or EVP_DecryptFinal, which returns no bytes.
            return Ok(0);
        }
        self.run(data)
    }

    fn aad(&mut self, aad: &[u8]) -> Outcome<()> {
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        if !self.iv_is_set {
            return Err(Reason::NoIv);
        }
        if aad.is_empty() {
            return Ok(());
        }
        let message = self.message.as_mut().ok_or(Reason::NoLength)?;
        if message.has_aad {
            return Err(Reason::SecondAad);
        }
        message.absorb_aad(key.inline(), aad)
    }

    fn set_message_len(&mut self, len: usize) -> Outcome<()> {
        if self.key.is_none() {
            return Err(Reason::NoKey);
        }
        if !self.iv_is_set {
            return Err(Reason::NoIv);
        }
        self.message = Some(self.begin(len)?);
        Ok(())
    }

    fn finish(&mut self, output: Buffers<'_>) -> Outcome<usize> {
        if self.key.is_none() {
            return Err(Reason::NoKey);
        }
        // A message without data may have had no update, so it is processed here.
        if self.iv_is_set && self.record_aad.is_none() {
            self.run(output)?;
        }
        Ok(0)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" => param.number(self.algorithm.key_len as u64),
            b"ivlen" => param.number(self.iv_len() as u64),
            b"taglen" => param.number(self.tag_len as u64),
            b"iv" | b"updated-iv" => {
                let len = self.iv_len();
                if !param.is_size_query() && param.room() < len {
                    return Err(Reason::IvLength);
                }
                param.octets(&self.iv[..len])
            }
            b"tag" => {
                if !self.encrypts || !self.tag_is_made {
                    return Err(Reason::NoTag);
                }
                let len = param.room();
                if param.is_size_query() || len > 16 || len != self.tag_len {
                    return Err(Reason::TagLength);
                }
                param.octets(&self.tag[..len])?;
                // The tag can be read once, as in OpenSSL. Reading it ends the message.
                self.tag_is_made = false;
                self.message = None;
                Ok(())
            }
            b"tlsaadpad" => param.number(self.record_growth as u64),
            _ => Ok(()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"tag" => {
                let (tag, len) = param.octets_or_len()?;
                if len % 2 != 0 || !(4..=16).contains(&len) {
                    return Err(Reason::TagLength);
                }
                if let Some(tag) = tag {
                    if self.encrypts {
                        return Err(Reason::TagNotNeeded);
                    }
                    self.tag[..len].copy_from_slice(tag);
                    (self.tag_is_set, self.tag_is_made) = (true, false);
                }
                self.tag_len = len;
            }
            b"ivlen" => {
                let len = param.size()?;
                if !(7..=13).contains(&len) {
                    return Err(Reason::IvLength);
                }
                if len != self.iv_len() {
                    self.length_bytes = 15 - len;
                    self.iv_is_set = false;
                }
            }
            b"tlsaad" => {
                let (aad, growth) =
                    record_aad(param.octets()?, self.encrypts, TLS_EXPLICIT_IV, self.tag_len)?;
                self.record_aad = Some(aad);
                self.record_growth = growth;
            }
            b"tlsivfixed" => {
                let fixed = param.octets()?;
                if fixed.len() != TLS_FIXED_IV {
                    return Err(Reason::IvLength);
                }
                self.iv[..TLS_FIXED_IV].copy_from_slice(fixed);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Ccm {
    /// Processes all data of a message, or a record.
    fn run(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        if let Some(aad) = self.record_aad.take() {
            // The additional data are valid for one record: a second record with the same sequence number would reuse
            // the nonce.
            return self.record(&aad, &mut data);
        }
        let len = data.len();
        if !self.iv_is_set {
            return Err(Reason::NoIv);
        }
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        if !self.encrypts && !self.tag_is_set {
            return Err(Reason::TagNotSet);
        }
        if self.message.is_none() {
            self.message = Some(self.begin(len)?);
        }
        let (Some(key), Some(message)) = (&self.key, self.message.take()) else { return Err(Reason::NoKey) };
        let counter = message.counter;
        if message.len != len {
            self.message = Some(message);
            return Err(Reason::WrongLength);
        }
        // The nonce must not be used again, even if this call fails.
        self.iv_is_set = false;
        let mac = run_data(key, message, self.encrypts, &mut data)?;
        let tag = finish(key.inline(), mac, counter)?;
        if self.encrypts {
            self.tag = *tag;
            (self.tag_is_set, self.tag_is_made) = (false, true);
            return Ok(len);
        }
        self.tag_is_set = false;
        if !bool::from(tag[..self.tag_len].ct_eq(&self.tag[..self.tag_len])) {
            data.wipe_output(len);
            return Err(Reason::TagMismatch);
        }
        Ok(len)
    }

    fn iv_len(&self) -> usize {
        15 - self.length_bytes
    }

    /// Starts a message of this length.
    fn begin(&self, len: usize) -> Outcome<Message> {
        let bits = 8 * self.length_bytes;
        if bits < 64 && (len as u64) >> bits != 0 {
            return Err(Reason::MessageTooLong);
        }
        let nonce = &self.iv[..self.iv_len()];
        Ok(Message {
            len,
            first: ccm::first_block(nonce, self.tag_len, false, len as u64),
            counter: ccm::counter_block(nonce, 0),
            mac: Mac::new(Pass::CbcMac, [0; 16]),
            has_aad: false,
        })
    }

    /// Processes a TLS 1.2 record in place: explicit IV, data, tag.
    fn record(&mut self, aad: &[u8; TLS_AAD], data: &mut Buffers<'_>) -> Outcome<usize> {
        let (len, tag_len) = (data.len(), self.tag_len);
        let inner = len.checked_sub(TLS_EXPLICIT_IV + tag_len).ok_or(Reason::TlsRecord)?;
        let record = data.as_in_place(len)?;
        let (explicit_iv, rest) = record.split_at_mut(TLS_EXPLICIT_IV);
        let (text, tag) = rest.split_at_mut(inner);
        if self.encrypts {
            // The explicit IV is the sequence number, which is unique per record.
            explicit_iv.copy_from_slice(&aad[..TLS_EXPLICIT_IV]);
        }
        if self.iv_len() != TLS_FIXED_IV + TLS_EXPLICIT_IV {
            return Err(Reason::TlsIv);
        }
        self.iv[TLS_FIXED_IV..TLS_FIXED_IV + TLS_EXPLICIT_IV].copy_from_slice(explicit_iv);
        let mut message = self.begin(inner)?;
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        message.absorb_aad(key.inline(), aad)?;
        let counter = message.counter;
        let mac = run_data(key, message, self.encrypts, &mut Buffers::in_place_of(text))?;
        let full = finish(key.inline(), mac, counter)?;
        if self.encrypts {
            tag.copy_from_slice(&full[..tag_len]);
            return Ok(len);
        }
        if !bool::from(full[..tag_len].ct_eq(tag)) {
            text.zeroize();
            return Err(Reason::TagMismatch);
        }
        Ok(inner)
    }
}

impl Message {
    /// Adds all additional data to the MAC: the first block, the length, the data, and zeros up to a block boundary.
    fn absorb_aad(&mut self, key: &InlineKey, aad: &[u8]) -> Outcome<()> {
        self.has_aad = true;
        // The flag Adata (SP 800-38C, A.2.1).
        self.first[0] |= 0x40;
        let (length, bytes) = ccm::aad_length(aad.len() as u64);
        let mut key = Inline(key);
        self.mac.update(&mut key, &self.first, false)?;
        self.mac.update(&mut key, &length[..bytes], false)?;
        self.mac.update(&mut key, aad, false)?;
        self.mac.pad(&mut key)
    }
}

/// Encrypts or decrypts the data of a message, and adds the plaintext to the MAC.
fn run_data(
    key: &ContextKey,
    mut message: Message,
    encrypts: bool,
    data: &mut Buffers<'_>,
) -> Outcome<Zeroizing<Block>> {
    let mut key = Inline(key.inline());
    let mac = &mut message.mac;
    if !message.has_aad {
        mac.update(&mut key, &message.first, false)?;
    }
    // The counter has `length_bytes` bytes, and the length check excludes overflow.
    let counter = u128::from_be_bytes(message.counter).wrapping_add(1).to_be_bytes();
    let mut keystream = Keystream::new(Pass::Ctr, counter);
    let len = data.len();
    data.resolve_overlap()?;
    for at in (0..len).step_by(PIECE) {
        let piece = PIECE.min(len - at);
        if encrypts {
            mac.update(&mut key, data.input(at, piece), false)?;
            keystream.apply(&mut key, data.part(at, at, piece))?;
        } else {
            keystream.apply(&mut key, data.part(at, at, piece))?;
            mac.update(&mut key, data.output(at, piece), false)?;
        }
    }
    mac.pad(&mut key)?;
    Ok(Zeroizing::new(*mac.state()))
}

/// The tag: the MAC, encrypted with counter block 0.
fn finish(key: &InlineKey, mac: Zeroizing<Block>, counter: Block) -> Outcome<Zeroizing<Block>> {
    let mut tag = mac;
    Keystream::new(Pass::Ctr, counter).apply(&mut Inline(key), Span::in_place(&mut *tag))?;
    Ok(tag)
}
