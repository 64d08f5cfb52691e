//! GCM (SP 800-38D), and its records of TLS 1.2 (RFC 5288).

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, InlineGcm, Span};
use lockstep::hazmat::work::Pass;
use zeroize::Zeroize;

use super::Cipher;
use crate::ahead::Ahead;
use crate::algorithm::Algorithm;
use crate::ffi::buffers::Buffers;
use crate::ffi::param::{Asked, Given, Kind, Parameters, SIZE, UINT, entry, list};
use crate::instance::Instance;
use crate::key::ContextKey;
use crate::reason::{Outcome, Reason};

/// The longest IV, as in OpenSSL.
const MOST_IV: usize = 128;

/// Bytes of the additional data of a TLS 1.2 record: sequence number, type, version, length.
pub(super) const TLS_AAD: usize = 13;

/// The part of the IV that a record carries.
const TLS_EXPLICIT_IV: usize = 8;
/// The part that it does not.
const TLS_FIXED_IV: usize = 4;
const TLS_TAG: usize = 16;

/// The way of an IV: no message is begun twice with one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IvState {
    /// There is none. One is drawn if encryption begins nevertheless.
    Missing,
    /// Set, and not used.
    Fresh,
    /// The message is under way.
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
    /// Where keystream is made ahead: the key for it, and what is made.
    ahead: Option<(ContextKey, Ahead)>,
    iv: [u8; MOST_IV],
    iv_len: usize,
    iv_state: IvState,
    /// The IV was drawn at random.
    iv_is_random: bool,
    /// Records take their IVs from here: a fixed part and a counter.
    iv_counts: bool,
    /// The tag: what came out of encryption, or what to compare with.
    tag: Block,
    tag_len: Option<usize>,
    /// It is that of the message that was encrypted last, and no other was begun.
    tag_is_made: bool,
    /// Set for one record.
    record_aad: Option<[u8; TLS_AAD]>,
    record_growth: usize,
    /// Records encrypted under this key.
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
            ahead: None,
            iv: [0; MOST_IV],
            iv_len: 12,
            iv_state: IvState::Missing,
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
        let ahead = match &self.ahead {
            // The copy makes its own keystream if it comes to need it.
            Some((key, _)) => key.duplicate().ok().map(|key| (key, Ahead::new(Pass::Ctr32))),
            None => None,
        };
        Ok(Gcm { instance: Arc::clone(&self.instance), gcm, ahead, ..*self })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        if self.encrypts != encrypts && self.iv_state == IvState::InUse {
            // Half a message one way and half the other is none.
            self.iv_state = IvState::Used;
        }
        self.encrypts = encrypts;
        if let Some(iv) = iv {
            if !(1..=MOST_IV).contains(&iv.len()) {
                return Err(Reason::IvLength);
            }
            self.iv[..iv.len()].copy_from_slice(iv);
            self.iv_len = iv.len();
            self.iv_state = IvState::Fresh;
            self.iv_is_random = false;
        }
        if let Some(key) = key {
            if key.len() != self.algorithm.key_len {
                return Err(Reason::KeyLength);
            }
            self.ahead = None;
            match &mut self.gcm {
                Some(gcm) => {
                    if !gcm.set_key(key) {
                        self.gcm = None;
                        return Err(Reason::OutOfMemory);
                    }
                }
                gcm => {
                    let new = InlineGcm::new(self.instance.kernel()?, key);
                    *gcm = Some(new.ok_or(Reason::OutOfMemory)?);
                }
            }
            if self.instance.keystream_pool.is_some() {
                // Without it GCM goes on without keystream made ahead.
                let key = ContextKey::new(&self.instance, key).ok();
                self.ahead = key.map(|key| (key, Ahead::new(Pass::Ctr32)));
            }
            if self.iv_state == IvState::InUse {
                // The message began under another key: it begins anew.
                self.iv_state = IvState::Fresh;
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
        self.gcm.is_some() && self.instance.keystream_pool.is_none()
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
        self.begun()?;
        let gcm = self.gcm.as_mut().ok_or(Reason::NoKey)?;
        let span = data.whole()?;
        let done = match (&self.instance.keystream_pool, &mut self.ahead) {
            (Some(keystream_pool), Some((key, ahead))) => gcm.update_by(span, &mut |counter, blocks| {
                ahead.apply(keystream_pool, &self.instance, key, counter, blocks);
            }),
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
        if self.begun()?.aad(aad) { Ok(()) } else { Err(Reason::AadAfterData) }
    }

    fn announce(&mut self, _len: usize) -> Outcome<()> {
        // GCM does not need to know.
        Ok(())
    }

    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        if self.record_aad.take().is_some() {
            self.iv_state = IvState::Used;
            return Err(Reason::NotInPlace);
        }
        self.begun()?;
        if let Some((_, ahead)) = &mut self.ahead {
            ahead.stop();
        }
        let gcm = self.gcm.as_mut().ok_or(Reason::NoKey)?;
        if self.encrypts {
            self.tag = gcm.finish_seal().ok_or(Reason::Internal)?;
            self.tag_len = Some(16);
            self.tag_is_made = true;
        } else {
            let len = self.tag_len.ok_or(Reason::TagNotSet)?;
            // Whatever comes of it, this message is over.
            self.iv_state = IvState::Used;
            if !gcm.finish_open(&self.tag[..len]) {
                return Err(Reason::TagMismatch);
            }
        }
        self.iv_state = IvState::Used;
        Ok(0)
    }

    fn get(&mut self, asked: &mut Asked<'_>) -> Outcome<()> {
        match asked.name() {
            b"keylen" => asked.number(self.algorithm.key_len as u64),
            b"ivlen" => asked.number(self.iv_len as u64),
            b"taglen" => asked.number(self.tag_len.unwrap_or(16) as u64),
            b"iv" | b"updated-iv" => {
                if self.iv_state == IvState::Missing {
                    self.draw_iv()?;
                }
                if !asked.asks_size() && asked.room() < self.iv_len {
                    return Err(Reason::IvLength);
                }
                asked.octets(&self.iv[..self.iv_len])
            }
            b"tag" => {
                if !self.encrypts || !self.tag_is_made {
                    return Err(Reason::NoTag);
                }
                let len = if asked.asks_size() { 16 } else { asked.room() };
                if !(1..=16).contains(&len) {
                    return Err(Reason::TagLength);
                }
                asked.octets(&self.tag[..len])
            }
            b"tlsaadpad" => asked.number(self.record_growth as u64),
            b"tlsivgen" => asked.octets_into(self.iv_len, |part| self.next_iv(part)),
            b"iv-generated" => asked.number(u64::from(self.iv_is_random)),
            _ => Ok(()),
        }
    }

    fn set(&mut self, given: &Given<'_>) -> Outcome<()> {
        match given.name() {
            b"tag" => {
                let tag = given.octets()?;
                if self.encrypts {
                    return Err(Reason::TagNotNeeded);
                }
                if !(1..=16).contains(&tag.len()) {
                    return Err(Reason::TagLength);
                }
                self.tag_is_made = false;
                self.tag[..tag.len()].copy_from_slice(tag);
                self.tag_len = Some(tag.len());
            }
            b"ivlen" => {
                let len = given.size()?;
                if !(1..=MOST_IV).contains(&len) {
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
                let (aad, growth) = record_aad(given.octets()?, self.encrypts, TLS_EXPLICIT_IV, TLS_TAG)?;
                self.record_aad = Some(aad);
                self.record_growth = growth;
            }
            b"tlsivfixed" => self.set_fixed_iv(given)?,
            b"tlsivinv" => self.set_invocation(given.octets()?)?,
            _ => {}
        }
        Ok(())
    }
}

/// The additional data of a record as they are authenticated: with the length of the plaintext, where the caller has
/// given that of the record. And by how much the record grows.
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

    /// The message, begun if it has not been.
    #[inline(always)]
    fn begun(&mut self) -> Outcome<&mut InlineGcm> {
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

    /// Begins a message with the IV as it stands.
    fn start(&mut self) -> Outcome<()> {
        let gcm = self.gcm.as_mut().ok_or(Reason::NoKey)?;
        if !gcm.start(self.encrypts, &self.iv[..self.iv_len]) {
            return Err(Reason::IvLength);
        }
        self.iv_state = IvState::InUse;
        self.tag_is_made = false;
        if let Some((_, ahead)) = &mut self.ahead {
            ahead.stop();
        }
        Ok(())
    }

    /// A random IV (SP 800-38D, 8.2.2), which must have 96 bits or more.
    fn draw_iv(&mut self) -> Outcome<()> {
        if !self.encrypts || self.record_aad.is_some() || self.iv_len < 12 {
            return Err(Reason::NoIv);
        }
        getrandom::fill(&mut self.iv[..self.iv_len]).map_err(|_| Reason::Random)?;
        self.iv_state = IvState::Fresh;
        self.iv_is_random = true;
        Ok(())
    }

    /// The fixed part of the IVs of records; the rest is a counter, which begins anywhere.
    fn set_fixed_iv(&mut self, given: &Given<'_>) -> Outcome<()> {
        if let Some(iv) = given.octets_without_len(self.iv_len)? {
            // EVP_CTRL_GCM_SET_IV_FIXED with length -1 sets all of the IV.
            self.iv[..self.iv_len].copy_from_slice(iv);
            self.iv_is_random = false;
            self.iv_counts = true;
            self.iv_state = IvState::Fresh;
            return Ok(());
        }
        let part = given.octets()?;
        if part.len() < TLS_FIXED_IV || self.iv_len < part.len() + TLS_EXPLICIT_IV {
            return Err(Reason::TlsIv);
        }
        let (fixed, counter) = self.iv[..self.iv_len].split_at_mut(part.len());
        fixed.copy_from_slice(part);
        if self.encrypts {
            getrandom::fill(counter).map_err(|_| Reason::Random)?;
            self.iv_is_random = true;
        }
        self.iv_counts = true;
        self.iv_state = IvState::Fresh;
        Ok(())
    }

    /// Begins a message with the next IV, of which the last bytes are told.
    fn next_iv(&mut self, part: &mut [u8]) -> Outcome<()> {
        if !self.iv_counts || self.gcm.is_none() || part.is_empty() || self.iv_len < TLS_EXPLICIT_IV {
            return Err(Reason::TlsIv);
        }
        self.start()?;
        let iv = &mut self.iv[..self.iv_len];
        let len = part.len().min(iv.len());
        part[..len].copy_from_slice(&iv[iv.len() - len..]);
        // The counter is of 8 bytes at least, and nobody sends 2^64 records.
        let (_, counter) = iv.split_at_mut(iv.len() - 8);
        let next = u64::from_be_bytes(counter.try_into().expect("8 bytes")).wrapping_add(1);
        counter.copy_from_slice(&next.to_be_bytes());
        Ok(())
    }

    /// Begins a message with the IV that a record carries the end of.
    fn set_invocation(&mut self, part: &[u8]) -> Outcome<()> {
        if !self.iv_counts || self.gcm.is_none() || self.encrypts || part.len() > self.iv_len {
            return Err(Reason::TlsIv);
        }
        self.iv[self.iv_len - part.len()..self.iv_len].copy_from_slice(part);
        self.start()
    }

    /// A TLS 1.2 record, in place: explicit IV, data, tag.
    fn record(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let aad = self.record_aad.take().ok_or(Reason::TlsAad)?;
        // A record is a message of its own: nothing goes on with this IV, whatever comes of it.
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
