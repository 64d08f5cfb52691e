//! ECB and CBC: whole blocks, with a part of one kept back between updates, and padding at the end.

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, Span};
use lockstep::hazmat::work::Pass;
use subtle::{Choice, ConstantTimeEq, ConstantTimeLess};
use zeroize::Zeroize;

use super::Cipher;
use super::streams::{GETTABLE, SETTABLE, iv_of};
use super::tls_cbc::{self, Records};
use crate::algorithm::{Algorithm, Mode};
use crate::ffi::buffers::Buffers;
use crate::ffi::param::{Asked, Given, Parameters};
use crate::instance::Instance;
use crate::key::ContextKey;
use crate::reason::{Outcome, Reason};

/// A context of ECB or CBC.
pub(crate) struct Blocks {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    padding: bool,
    key: Option<ContextKey>,
    /// As it was set, if it was.
    first_iv: Option<Block>,
    /// The last ciphertext block.
    iv: Block,
    /// What came without a block being full, or the block that may be the padded last one.
    pending: Block,
    pending_len: usize,
    /// Without effect on blocks; remembered for those who ask.
    num: u32,
    /// Set if updates are TLS records.
    records: Records,
}

impl Cipher for Blocks {
    const GETTABLE: Parameters = GETTABLE;
    const SETTABLE: Parameters = SETTABLE;

    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self {
        Blocks {
            instance: Arc::clone(instance),
            algorithm,
            encrypts: true,
            padding: true,
            key: None,
            first_iv: None,
            iv: [0; 16],
            pending: [0; 16],
            pending_len: 0,
            num: 0,
            records: Records::default(),
        }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let key = self.key.as_ref().map(ContextKey::duplicate).transpose()?;
        let Blocks { algorithm, encrypts, padding, first_iv, iv, pending, pending_len, num, .. } = *self;
        let (instance, records) = (Arc::clone(&self.instance), self.records.clone());
        Ok(Blocks {
            instance,
            algorithm,
            encrypts,
            padding,
            key,
            first_iv,
            iv,
            pending,
            pending_len,
            num,
            records,
        })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.encrypts = encrypts;
        self.pending_len = 0;
        self.num = 0;
        if self.algorithm.mode == Mode::Cbc {
            if let Some(iv) = iv {
                self.first_iv = Some(iv_of(iv)?);
            }
            // Without a new one the message begins with the old one, as in OpenSSL 1.1.1.
            if let Some(first) = self.first_iv {
                self.iv = first;
            }
        }
        if let Some(key) = key {
            if key.len() != self.algorithm.key_len {
                return Err(Reason::KeyLength);
            }
            self.key = None;
            self.key = Some(ContextKey::new(&self.instance, key)?);
        }
        Ok(())
    }

    fn has_key(&self) -> bool {
        self.key.is_some()
    }

    fn encrypts(&self) -> bool {
        self.encrypts
    }

    #[inline(always)]
    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let Some(key) = &self.key else { return Err(Reason::NoKey) };
        if self.records.version != 0 {
            return self.record(data);
        }
        let len = data.len();
        // Of whole blocks and nothing pending all goes straight through, unless the last block may be padded.
        if self.pending_len == 0 && len.is_multiple_of(16) && (self.encrypts || !self.padding) {
            let pass = self.pass();
            key.run(pass, &mut self.iv, data.whole()?)?;
            return Ok(len);
        }
        self.update_buffered(data)
    }

    fn finish(&mut self, mut output: Buffers<'_>) -> Outcome<usize> {
        if self.key.is_none() {
            return Err(Reason::NoKey);
        }
        if self.records.version != 0 {
            return Err(Reason::TlsRecord);
        }
        let len = self.pending_len;
        let mut last = self.pending;
        let out = match (self.padding, self.encrypts) {
            (false, _) if len == 0 => return Ok(0),
            (true, true) => {
                let missing = (16 - len) as u8;
                last[len..].fill(missing);
                16
            }
            _ if len != 16 => return Err(Reason::WrongFinalBlockLength),
            // Without padding no full block is kept back, so this one has been deciphered under another setting.
            (_, encrypts) => usize::from(encrypts) * 16,
        };
        if out == 16 && output.room() < 16 {
            return Err(Reason::OutputTooSmall);
        }
        self.single(&mut last)?;
        self.pending_len = 0;
        let result = if self.encrypts || !self.padding {
            Ok(16)
        } else {
            unpadded_len(&last).ok_or(Reason::BadDecrypt)
        };
        let result = result.and_then(|len| {
            if output.room() < len {
                return Err(Reason::OutputTooSmall);
            }
            output.write(0, &last[..len]);
            Ok(len)
        });
        last.zeroize();
        self.pending.zeroize();
        result
    }

    fn once(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        let len = data.len();
        if !len.is_multiple_of(16) {
            return Err(Reason::WrongFinalBlockLength);
        }
        key.run(self.pass(), &mut self.iv, data.whole()?)?;
        Ok(len)
    }

    fn get(&mut self, asked: &mut Asked<'_>) -> Outcome<()> {
        let iv_len = self.algorithm.mode.iv_len();
        match asked.name() {
            b"keylen" => asked.number(self.algorithm.key_len as u64),
            b"ivlen" => asked.number(iv_len as u64),
            b"padding" => asked.number(u64::from(self.padding)),
            b"num" => asked.number(u64::from(self.num)),
            b"iv" => asked.octets(&self.first_iv.as_ref().unwrap_or(&[0; 16])[..iv_len]),
            b"updated-iv" => asked.octets(&self.iv[..iv_len]),
            b"tls-mac" => asked.octets(self.records.mac()),
            _ => Ok(()),
        }
    }

    fn set(&mut self, given: &Given<'_>) -> Outcome<()> {
        match given.name() {
            b"padding" => self.padding = given.uint()? != 0,
            b"num" => {
                let num = given.uint()?;
                if num >= 16 {
                    return Err(Reason::ParameterType);
                }
                self.num = num;
            }
            b"use-bits" => _ = given.uint()?,
            b"tls-version" => self.records.version = given.uint()?,
            b"tls-mac-size" => self.records.mac_size = given.size()?,
            _ => {}
        }
        Ok(())
    }
}

impl Blocks {
    fn pass(&self) -> Pass {
        match (self.algorithm.mode, self.encrypts) {
            (Mode::Cbc, true) => Pass::CbcEncrypt,
            (Mode::Cbc, false) => Pass::CbcDecrypt,
            (_, true) => Pass::EcbEncrypt,
            (_, false) => Pass::EcbDecrypt,
        }
    }

    fn single(&mut self, block: &mut Block) -> Outcome<()> {
        let pass = self.pass();
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        key.run(pass, &mut self.iv, Span::in_place(block))
    }

    /// Updates that leave or find something pending.
    fn update_buffered(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let (old, len) = (self.pending_len, data.len());
        let total = old + len;
        let out = if self.padding && !self.encrypts {
            // The last full block stays: it may be the padded one.
            total.saturating_sub(1) & !15
        } else {
            total & !15
        };
        if data.room() < out {
            return Err(Reason::OutputTooSmall);
        }
        if out == 0 {
            data.read(0, &mut self.pending[old..total]);
            self.pending_len = total;
            return Ok(0);
        }
        // The output may lie on any of the input. So the input's beginning, which fills up the pending block, and its
        // end, which is pending next, are read before anything is written.
        let head = if old == 0 { 0 } else { 16 - old };
        let keep = total - out;
        let mut first = self.pending;
        data.read(0, &mut first[old..old + head]);
        let mut next = [0; 16];
        data.read(len - keep, &mut next[..keep]);
        if head > 0 || old == 16 {
            self.single(&mut first)?;
        }
        let start = if old == 0 { 0 } else { 16 };
        let pass = self.pass();
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        key.run(pass, &mut self.iv, data.part(head, start, out - start))?;
        data.write(0, &first[..start]);
        first.zeroize();
        self.pending = next;
        self.pending_len = keep;
        next.zeroize();
        Ok(out)
    }

    /// A TLS record, in place: padded when encrypting; freed of IV, padding and MAC when decrypting.
    fn record(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let len = data.len();
        if !self.padding {
            return Err(Reason::TlsRecord);
        }
        let whole = if self.encrypts { (len / 16 + 1) * 16 } else { len };
        if !whole.is_multiple_of(16) || whole == 0 {
            return Err(Reason::TlsRecord);
        }
        let record = data.as_in_place(whole)?;
        if self.encrypts {
            tls_cbc::pad(self.records.version, record, len);
        }
        let pass = self.pass();
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        key.run(pass, &mut self.iv, Span::in_place(record))?;
        if self.encrypts { Ok(whole) } else { self.records.open(record) }
    }
}

/// Length without PKCS #7 padding, if that is right: in constant time, but for the one bit that the caller learns.
fn unpadded_len(block: &Block) -> Option<usize> {
    let pad = block[15];
    let mut good = !pad.ct_eq(&0) & !16u8.ct_lt(&pad);
    for (i, byte) in block.iter().enumerate() {
        let is_data: Choice = (i as u8).ct_lt(&16u8.wrapping_sub(pad));
        good &= is_data | byte.ct_eq(&pad);
    }
    bool::from(good).then(|| 16 - usize::from(pad))
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.pending.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_what_pkcs_7_says_and_nothing_else() {
        for pad in 0..=255u8 {
            for wrong in 0..=16usize {
                let mut block = [0xEE; 16];
                let len = usize::from(pad);
                if (1..=16).contains(&len) {
                    block[16 - len..].fill(pad);
                } else {
                    block[15] = pad;
                }
                if wrong < 16 {
                    block[wrong] ^= 0x20;
                }
                // Taken from the definition, byte by byte.
                let last = usize::from(block[15]);
                let expected = (1..=16).contains(&last)
                    && block[16 - last..].iter().all(|byte| usize::from(*byte) == last);
                assert_eq!(unpadded_len(&block), expected.then(|| 16 - last), "{block:?}");
            }
        }
    }
}
