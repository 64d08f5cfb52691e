//! ECB and CBC: whole blocks, with a partial block buffered between updates, and padding at the end.

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, Span};
use lockstep::hazmat::mode::Direction;
use lockstep::hazmat::mode::incremental::{BlockBuffer, BlockIo, Hold};
use lockstep::hazmat::work::Pass;

use super::streams::{GETTABLE, SETTABLE, iv_of};
use super::tls_cbc::{self, Records};
use super::{Cipher, cipher_of};
use crate::algorithm::{Algorithm, Mode};
use crate::instance::Instance;
use crate::key::ContextKey;
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{GetParam, Parameters, SetParam};
use crate::reason::{Outcome, Reason};

/// A context of ECB or CBC.
pub(crate) struct Blocks {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    padding: bool,
    key: Option<ContextKey>,
    /// The IV as it was set; `None` if no IV has been set.
    first_iv: Option<Block>,
    /// The last ciphertext block, and the buffered bytes.
    buffer: BlockBuffer,
    /// The parameter `num`. It has no effect on block modes and is stored only so that it can be read back.
    num: u32,
    /// The format of TLS records. Its version is 0 if updates are not TLS records.
    records: Records,
}

impl Cipher for Blocks {
    const MODES: &'static [Mode] = &[Mode::Ecb, Mode::Cbc];
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
            buffer: BlockBuffer::new(cipher_of(algorithm.mode), [0; 16]),
            num: 0,
            records: Records::default(),
        }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let key = self.key.as_ref().map(ContextKey::duplicate).transpose()?;
        let Blocks { algorithm, encrypts, padding, first_iv, num, .. } = *self;
        let (instance, buffer, records) =
            (Arc::clone(&self.instance), self.buffer.clone(), self.records.clone());
        Ok(Blocks { instance, algorithm, encrypts, padding, key, first_iv, buffer, num, records })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.encrypts = encrypts;
        self.buffer.discard();
        self.num = 0;
        if self.algorithm.mode != Mode::Ecb {
            if let Some(iv) = iv {
                self.first_iv = Some(iv_of(iv)?);
            }
            // If no new IV is given, the message starts with the IV that was set last, as in OpenSSL 1.1.1.
            if let Some(first) = self.first_iv {
                self.buffer.restart(first);
            }
        }
        ContextKey::replace(&mut self.key, &self.instance.resources, key)
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
        let hold = Hold::of(cipher_of(self.algorithm.mode), self.padding, self.direction());
        self.buffer.update(&mut &*key, self.direction(), hold, &mut data)
    }

    fn finish(&mut self, mut output: Buffers<'_>) -> Outcome<usize> {
        if self.key.is_none() {
            return Err(Reason::NoKey);
        }
        if self.records.version != 0 {
            return Err(Reason::TlsRecord);
        }
        if self.encrypts && self.padding && output.room() < 16 {
            return Err(Reason::OutputTooSmall);
        }
        let (mut key, direction) = (self.key.as_ref().ok_or(Reason::NoKey)?, self.direction());
        let (last, len) = self.buffer.finish(&mut key, direction, self.padding)?;
        if output.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        output.write(0, &last[..len]);
        Ok(len)
    }

    fn one_shot(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        let len = data.len();
        if !len.is_multiple_of(16) {
            return Err(Reason::WrongFinalBlockLength);
        }
        key.run(self.pass(), self.buffer.state_mut(), data.whole()?)?;
        Ok(len)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        let iv_len = self.algorithm.mode.iv_len();
        match param.name() {
            b"keylen" => param.number(self.algorithm.key_len as u64),
            b"ivlen" => param.number(iv_len as u64),
            b"padding" => param.number(u64::from(self.padding)),
            b"num" => param.number(u64::from(self.num)),
            b"iv" => param.octets(&self.first_iv.as_ref().unwrap_or(&[0; 16])[..iv_len]),
            b"updated-iv" => param.octets(&self.buffer.state()[..iv_len]),
            b"tls-mac" => param.octets(self.records.mac()),
            _ => Ok(()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"padding" => self.padding = param.uint()? != 0,
            b"num" => {
                let num = param.uint()?;
                if num >= 16 {
                    return Err(Reason::ParameterType);
                }
                self.num = num;
            }
            b"use-bits" => _ = param.uint()?,
            b"tls-version" => self.records.version = param.uint()?,
            b"tls-mac-size" => self.records.mac_size = param.size()?,
            _ => {}
        }
        Ok(())
    }
}

impl Blocks {
    /// The key, and the chaining state, for a mode that is built on CBC.
    pub(super) fn key_and_state(&mut self) -> Outcome<(&ContextKey, &mut Block)> {
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        Ok((key, self.buffer.state_mut()))
    }

    pub(super) fn direction(&self) -> Direction {
        if self.encrypts { Direction::Encrypt } else { Direction::Decrypt }
    }

    fn pass(&self) -> Pass {
        cipher_of(self.algorithm.mode).pass(self.direction())
    }

    /// Processes a TLS record in place. Encryption adds the padding; decryption removes IV, padding and MAC.
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
        key.run(pass, self.buffer.state_mut(), Span::in_place(record))?;
        if self.encrypts { Ok(whole) } else { self.records.open(record) }
    }
}
