//! GCM (SP 800-38D), and its TLS 1.2 records (RFC 5288).

mod ahead;

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, InlineGcm, InlineKernel, Span};
use lockstep::hazmat::stack;
use zeroize::Zeroize;

use self::ahead::Ahead;
use super::Cipher;
use crate::algorithm::Algorithm;
use crate::instance::Instance;
use crate::key::ContextKey;
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{GetParam, Kind, Parameters, SIZE, SetParam, UINT, entry, list};
use crate::reason::{Outcome, Reason};

/// The longest IV, as in OpenSSL.
const MAX_IV: usize = 128;

/// Bytes of the additional data of a TLS 1.2 record: sequence number, type, version, length.
pub(super) const TLS_AAD: usize = 13;

/// Bytes of the IV that are sent in a record.
const TLS_EXPLICIT_IV: usize = 8;
/// Bytes of the IV that are not sent.
const TLS_FIXED_IV: usize = 4;
const TLS_TAG: usize = 16;

/// The state of an IV. No IV is used to encrypt two messages of a context, unless the caller sets it again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IvState {
    /// Not set. Encryption then generates a random IV.
    Missing,
    /// Set, and not used yet.
    Fresh,
    /// The message has started.
    InUse,
    /// The message has ended.
    Used,
}

/// A context of GCM.
pub(crate) struct Gcm {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    gcm: Option<InlineGcm>,
    ahead: Ahead,
    iv: [u8; MAX_IV],
    iv_len: usize,
    iv_state: IvState,
    /// True if a message was started with the current IV.
    iv_is_used: bool,
    /// True if a part of the IV was set for decryption. The IV may then be that of a message that was encrypted before.
    iv_is_received: bool,
    /// True if the IV was generated at random.
    iv_is_random: bool,
    /// True if the IVs of records consist of a fixed part and a counter.
    iv_counts: bool,
    /// The tag: the result of encryption, or the tag to compare with.
    tag: Block,
    tag_len: Option<usize>,
    /// True if `tag` is the tag of the last encrypted message and no other message has been started.
    tag_is_made: bool,
    /// The additional data of the next record.
    record_aad: Option<[u8; TLS_AAD]>,
    record_growth: usize,
    /// Number of records encrypted under this key.
    records: u64,
}

impl Cipher for Gcm {
    const GETTABLE: Parameters = list!(
        entry(c"keylen", Kind::Unsigned, SIZE),
        entry(c"ivlen", Kind::Unsigned, SIZE),
        entry(c"taglen", Kind::Unsigned, SIZE),
        entry(c"iv", Kind::Octets, 0),
        entry(c"updated-iv", Kind::Octets, 0),
        entry(c"tag", Kind::Octets, 0),
        entry(c"tlsaadpad", Kind::Unsigned, SIZE),
        entry(c"tlsivgen", Kind::Octets, 0),
        entry(c"iv-generated", Kind::Unsigned, UINT),
    );
    const SETTABLE: Parameters = list!(
        entry(c"ivlen", Kind::Unsigned, SIZE),
        entry(c"tag", Kind::Octets, 0),
        entry(c"tlsaad", Kind::Octets, 0),
        entry(c"tlsivfixed", Kind::Octets, 0),
        entry(c"tlsivinv", Kind::Octets, 0),
    );

    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self {
        Gcm {
            instance: Arc::clone(instance),
            algorithm,
            encrypts: true,
            gcm: None,
            ahead: Ahead::none(),
            iv: [0; MAX_IV],
            iv_len: 12,
            iv_state: IvState::Missing,
            iv_is_used: false,
            iv_is_received: false,
            iv_is_random: false,
            iv_counts: false,
            tag: [0; 16],
            tag_len: None,
            tag_is_made: false,
            record_aad: None,
            record_growth: 0,
            records: 0,
        }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let gcm = match &self.gcm {
            Some(gcm) => Some(gcm.duplicate().ok_or(Reason::OutOfMemory)?),
            None => None,
        };
        Ok(Gcm { instance: Arc::clone(&self.instance), gcm, ahead: self.ahead.duplicate(), ..*self })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        if self.encrypts != encrypts && self.iv_state == IvState::InUse {
            // A message cannot change direction.
            self.iv_state = IvState::Used;
        }
        if let Some(iv) = iv {
            if !(1..=MAX_IV).contains(&iv.len()) {
                return Err(Reason::IvLength);
            }
            self.iv_len = iv.len();
            self.set_iv(0, iv);
        } else if encrypts && self.iv_is_received {
            self.iv_state = IvState::Used;
            self.iv_counts = false;
        }
        self.encrypts = encrypts;
        if let Some(key) = key {
            self.ahead.clear();
            match &mut self.gcm {
                Some(gcm) => {
                    if !gcm.set_key(key) {
                        self.gcm = None;
                        return Err(Reason::OutOfMemory);
                    }
                }
                gcm => {
                    let new = InlineGcm::new(self.instance.resources.kernel()?, key);
                    *gcm = Some(new.ok_or(Reason::OutOfMemory)?);
                }
            }
            if self.instance.keystream_pool.is_some() {
                self.ahead = Ahead::allocate(ContextKey::new(&self.instance.resources, key));
            }
            if self.iv_state == IvState::InUse {
                // The message has ended. Its IV is not used again, because the new key may be the same.
                self.iv_state = IvState::Used;
            }
            self.records = 0;
        }
        Ok(())
    }

    fn has_key(&self) -> bool {
        self.gcm.is_some()
    }

    fn encrypts(&self) -> bool {
        self.encrypts
    }

    fn rekeys_in_place(&self) -> bool {
        let in_place = || match &self.gcm {
            Some(gcm) => gcm.rekeys_in_place(),
            None => self.instance.resources.kernel().is_ok_and(InlineKernel::expands_in_place),
        };
        self.instance.keystream_pool.is_none() && in_place()
    }

    fn copies_in_place(&self) -> bool {
        self.ahead.is_empty() && self.gcm.as_ref().is_none_or(InlineGcm::copies_in_place)
    }

    #[inline(always)]
    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        if self.record_aad.is_some() {
            return self.record(data);
        }
        let len = data.len();
        if len == 0 {
            return Ok(0);
        }
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        self.ensure_started()?;
        let gcm = self.gcm.as_mut().ok_or(Reason::NoKey)?;
        let span = data.whole()?;
        let done = match (&self.instance.keystream_pool, self.ahead.get_mut()) {
            (Some(keystream_pool), Some(ahead)) => {
                let done = ahead.update(gcm, keystream_pool, &self.instance.resources, span);
                if self.iv_len != 12 {
                    // The counter, which is a hash with the secret H, may have been copied to the stack.
                    stack::wipe_below();
                }
                done
            }
            _ => gcm.update(span),
        };
        if done { Ok(len) } else { Err(Reason::MessageTooLong) }
    }

    fn aad(&mut self, aad: &[u8]) -> Outcome<()> {
        if aad.is_empty() {
            return Ok(());
        }
        if self.record_aad.is_some() {
            return Err(Reason::NotInPlace);
        }
        if self.ensure_started()?.aad(aad) { Ok(()) } else { Err(Reason::AadAfterData) }
    }

    fn set_message_len(&mut self, _len: usize) -> Outcome<()> {
        // GCM does not need the length in advance.
        Ok(())
    }

    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        if self.record_aad.take().is_some() {
            self.iv_state = IvState::Used;
            return Err(Reason::NotInPlace);
        }
        self.ensure_started()?;
        self.ahead.stop();
        let gcm = self.gcm.as_mut().ok_or(Reason::NoKey)?;
        if self.encrypts {
            self.tag = gcm.finish_seal().ok_or(Reason::Internal)?;
            self.tag_len = Some(16);
            self.tag_is_made = true;
        } else {
            let len = self.tag_len.ok_or(Reason::TagNotSet)?;
            // The message has ended, even if the tag is wrong.
            self.iv_state = IvState::Used;
            if !gcm.finish_open(&self.tag[..len]) {
                return Err(Reason::TagMismatch);
            }
        }
        self.iv_state = IvState::Used;
        Ok(0)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" => param.number(self.algorithm.key_len as u64),
            b"ivlen" => param.number(self.iv_len as u64),
            b"taglen" => param.number(self.tag_len.unwrap_or(16) as u64),
            b"iv" | b"updated-iv" => {
                if self.iv_state == IvState::Missing {
                    self.draw_iv()?;
                }
                if !param.is_size_query() && param.room() < self.iv_len {
                    return Err(Reason::IvLength);
                }
                param.octets(&self.iv[..self.iv_len])
            }
            b"tag" => {
                if !self.encrypts || !self.tag_is_made {
                    return Err(Reason::NoTag);
                }
                let len = if param.is_size_query() { 16 } else { param.room() };
                if !(1..=16).contains(&len) {
                    return Err(Reason::TagLength);
                }
                param.octets(&self.tag[..len])
            }
            b"tlsaadpad" => param.number(self.record_growth as u64),
            b"tlsivgen" => {
                let made = param.octets_into(self.iv_len, |part| self.next_iv(part));
                made.map_err(|reason| if reason == Reason::ParameterType { Reason::TlsIv } else { reason })
            }
            b"iv-generated" => param.number(u64::from(self.iv_is_random)),
            _ => Ok(()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"tag" => {
                let tag = param.octets()?;
                match tag.len() {
                    17.. => return Err(Reason::TagLength),
                    _ if self.encrypts => return Err(Reason::TagNotNeeded),
                    0 => return Err(Reason::TagEmpty),
                    _ => {}
                }
                self.tag_is_made = false;
                self.tag[..tag.len()].copy_from_slice(tag);
                self.tag_len = Some(tag.len());
            }
            b"ivlen" => {
                let len = param.size()?;
                if !(1..=MAX_IV).contains(&len) {
                    return Err(Reason::IvLength);
                }
                if len != self.iv_len {
                    self.iv_len = len;
                    self.iv_counts = false;
                    if self.iv_state != IvState::Missing {
                        self.iv_state = IvState::Used;
                    }
                }
            }
            b"tlsaad" => {
                let (aad, growth) = record_aad(param.octets()?, self.encrypts, TLS_EXPLICIT_IV, TLS_TAG)?;
                self.record_aad = Some(aad);
                self.record_growth = growth;
            }
            b"tlsivfixed" => self.set_fixed_iv(param)?,
            b"tlsivinv" => self.set_invocation(param.octets().map_err(|_| Reason::TlsIv)?)?,
            _ => {}
        }
        Ok(())
    }
}

/// Returns the additional data of a record in the form in which they are authenticated: the length field contains the
/// length of the plaintext instead of the length of the record. Also returns the number of bytes that are added to the
/// record.
pub(super) fn record_aad(
    aad: &[u8],
    encrypts: bool,
    explicit_iv: usize,
    tag: usize,
) -> Outcome<([u8; TLS_AAD], usize)> {
    let mut aad: [u8; TLS_AAD] = aad.try_into().map_err(|_| Reason::TlsAad)?;
    let len = usize::from(u16::from_be_bytes([aad[11], aad[12]]));
    let extra = if encrypts { explicit_iv } else { explicit_iv + tag };
    let len = len.checked_sub(extra).ok_or(Reason::TlsAad)? as u16;
    aad[11..].copy_from_slice(&len.to_be_bytes());
    Ok((aad, tag))
}

impl Gcm {
    #[cfg(test)]
    pub(crate) fn tag(&self) -> Block {
        self.tag
    }

    /// Returns the current message. Starts it if necessary.
    #[inline(always)]
    fn ensure_started(&mut self) -> Outcome<&mut InlineGcm> {
        if self.iv_state != IvState::InUse || self.gcm.is_none() {
            self.begin()?;
        }
        self.gcm.as_mut().ok_or(Reason::NoKey)
    }

    #[inline(never)]
    fn begin(&mut self) -> Outcome<()> {
        let encrypts = self.encrypts;
        if self.gcm.is_none() {
            return Err(Reason::NoKey);
        }
        match self.iv_state {
            IvState::Missing if encrypts => self.draw_iv()?,
            IvState::Missing => return Err(Reason::NoIv),
            IvState::Used => return Err(Reason::Finished),
            IvState::Fresh | IvState::InUse => {}
        }
        self.start()
    }

    /// Starts a message with the current IV.
    fn start(&mut self) -> Outcome<()> {
        let gcm = self.gcm.as_mut().ok_or(Reason::NoKey)?;
        if !gcm.start(self.encrypts, &self.iv[..self.iv_len]) {
            return Err(Reason::IvLength);
        }
        self.iv_state = IvState::InUse;
        self.iv_is_used = true;
        self.tag_is_made = false;
        self.ahead.stop();
        Ok(())
    }

    /// Generates a random IV (SP 800-38D, 8.2.2), which must have at least 96 bits.
    fn draw_iv(&mut self) -> Outcome<()> {
        if !self.encrypts || self.record_aad.is_some() || self.iv_len < 12 {
            return Err(Reason::NoIv);
        }
        let mut iv = [0; MAX_IV];
        let iv = &mut iv[..self.iv_len];
        getrandom::fill(iv).map_err(|_| Reason::Random)?;
        self.set_iv(0, iv);
        self.iv_is_random = true;
        Ok(())
    }

    /// Replaces a part of the IV.
    fn set_iv(&mut self, at: usize, part: &[u8]) {
        self.iv[at..at + part.len()].copy_from_slice(part);
        self.iv_state = IvState::Fresh;
        (self.iv_is_used, self.iv_is_received, self.iv_is_random) = (false, false, false);
    }

    /// Sets the fixed part of the IVs of records. The rest of the IV is a counter. For encryption, it starts at a
    /// random value.
    fn set_fixed_iv(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        if let Some(iv) = param.octets_without_len(self.iv_len)? {
            // EVP_CTRL_GCM_SET_IV_FIXED with length -1 sets all of the IV.
            self.set_iv(0, iv);
            self.iv_counts = true;
            return Ok(());
        }
        let part = param.octets()?;
        if part.len() < TLS_FIXED_IV || self.iv_len < part.len() + TLS_EXPLICIT_IV {
            return Err(Reason::TlsFixedIv);
        }
        if self.encrypts {
            getrandom::fill(&mut self.iv[part.len()..self.iv_len]).map_err(|_| Reason::Random)?;
        }
        self.set_iv(0, part);
        (self.iv_is_random, self.iv_is_received) = (self.encrypts, !self.encrypts);
        self.iv_counts = true;
        Ok(())
    }

    /// Starts a message with the next IV, and writes the last bytes of that IV to `part`.
    fn next_iv(&mut self, part: &mut [u8]) -> Outcome<()> {
        if !self.iv_counts || self.gcm.is_none() || part.is_empty() || self.iv_len < TLS_EXPLICIT_IV {
            return Err(Reason::TlsIv);
        }
        if self.encrypts && self.iv_is_used {
            // A message that this function has not started has used this IV.
            self.increment_iv();
        }
        self.start()?;
        let iv = &self.iv[..self.iv_len];
        let len = part.len().min(iv.len());
        part[..len].copy_from_slice(&iv[iv.len() - len..]);
        self.increment_iv();
        Ok(())
    }

    /// Increments the last 8 bytes of the IV, a counter that does not overflow in practice.
    fn increment_iv(&mut self) {
        let counter = &mut self.iv[self.iv_len - TLS_EXPLICIT_IV..self.iv_len];
        let next = u64::from_be_bytes((&*counter).try_into().expect("8 bytes")).wrapping_add(1);
        counter.copy_from_slice(&next.to_be_bytes());
        self.iv_is_used = false;
    }

    /// Starts a message with the IV that ends with `part`, which was received in a record.
    fn set_invocation(&mut self, part: &[u8]) -> Outcome<()> {
        if !self.iv_counts || self.gcm.is_none() || self.encrypts || part.len() > self.iv_len {
            return Err(Reason::TlsIv);
        }
        self.set_iv(self.iv_len - part.len(), part);
        self.iv_is_received = true;
        self.start()
    }

    /// Processes a TLS 1.2 record in place: explicit IV, data, tag.
    fn record(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let aad = self.record_aad.take().ok_or(Reason::TlsAad)?;
        // A record is a complete message. Its IV is not used again, even if this call fails.
        let result = self.run_record(&aad, &mut data);
        self.iv_state = IvState::Used;
        result
    }

    fn run_record(&mut self, aad: &[u8], data: &mut Buffers<'_>) -> Outcome<usize> {
        let len = data.len();
        if self.gcm.is_none() {
            return Err(Reason::NoKey);
        }
        let inner = len.checked_sub(TLS_EXPLICIT_IV + TLS_TAG).ok_or(Reason::TlsRecord)?;
        let record = data.as_in_place(len)?;
        let (explicit_iv, rest) = record.split_at_mut(TLS_EXPLICIT_IV);
        let (text, tag) = rest.split_at_mut(inner);
        if self.encrypts {
            self.records = self.records.checked_add(1).ok_or(Reason::TooManyRecords)?;
            self.next_iv(explicit_iv)?;
        } else {
            self.set_invocation(explicit_iv)?;
        }
        let gcm = self.gcm.as_mut().ok_or(Reason::NoKey)?;
        if !gcm.aad(aad) || !gcm.update(Span::in_place(text)) {
            return Err(Reason::MessageTooLong);
        }
        if self.encrypts {
            tag.copy_from_slice(&gcm.finish_seal().ok_or(Reason::Internal)?);
            return Ok(len);
        }
        if !gcm.finish_open(tag) {
            text.zeroize();
            return Err(Reason::TagMismatch);
        }
        Ok(inner)
    }
}
