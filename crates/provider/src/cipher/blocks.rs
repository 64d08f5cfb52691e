//! ECB and CBC: whole blocks, with a part of one kept back between updates, and padding at the end.

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, Span};
use lockstep::hazmat::mode::incremental::{BlockBuffer, Hold};
use lockstep::hazmat::mode::{self, Direction};
use lockstep::hazmat::work::Pass;

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
    /// The last ciphertext block, and the bytes that are kept back.
    buffer: BlockBuffer,
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
        if self.algorithm.mode == Mode::Cbc {
            if let Some(iv) = iv {
                self.first_iv = Some(iv_of(iv)?);
            }
            // Without a new one the message begins with the old one, as in OpenSSL 1.1.1.
            if let Some(first) = self.first_iv {
                self.buffer.restart(first);
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

    fn once(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        let len = data.len();
        if !len.is_multiple_of(16) {
            return Err(Reason::WrongFinalBlockLength);
        }
        key.run(self.pass(), self.buffer.state_mut(), data.whole()?)?;
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
            b"updated-iv" => asked.octets(&self.buffer.state()[..iv_len]),
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
    fn direction(&self) -> Direction {
        if self.encrypts { Direction::Encrypt } else { Direction::Decrypt }
    }

    fn pass(&self) -> Pass {
        cipher_of(self.algorithm.mode).pass(self.direction())
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
        key.run(pass, self.buffer.state_mut(), Span::in_place(record))?;
        if self.encrypts { Ok(whole) } else { self.records.open(record) }
    }
}

fn cipher_of(mode: Mode) -> mode::Cipher {
    if mode == Mode::Cbc { mode::Cipher::Cbc } else { mode::Cipher::Ecb }
}
