//! ECB and CBC: whole blocks, with a partial block buffered between updates, and padding at the end.

use lockstep::hazmat::mode::incremental::{BlockBuffer, BlockIo, Hold};

use super::raw::{Raw, iv_of};
use super::tls_cbc::{self, Records};
use super::{Cipher, Common, cipher_of};
use crate::algorithm::Mode;
use crate::libcrypto::{Buffers, GetParam, SetParam};
use crate::reason::{Outcome, Reason};

/// A context of ECB or CBC.
pub(crate) struct Blocks {
    pub(super) raw: Raw,
    /// The last ciphertext block, and the buffered bytes.
    pub(super) buffer: BlockBuffer,
    /// The format of TLS records. Its version is 0 if updates are not TLS records.
    records: Records,
}

impl Cipher for Blocks {
    fn new(common: Common) -> Self {
        let buffer = BlockBuffer::new(cipher_of(common.algorithm.mode), [0; 16]);
        Blocks { raw: Raw::new(common), buffer, records: Records::default() }
    }

    fn common(&self) -> &Common {
        &self.raw.common
    }

    fn duplicate(&self) -> Outcome<Self> {
        let (buffer, records) = (self.buffer.clone(), self.records.clone());
        Ok(Blocks { raw: self.raw.duplicate()?, buffer, records })
    }

    fn observe_init(&mut self, key: Option<&[u8]>, iv: Option<&[u8]>) {
        self.raw.observe_init(key, iv);
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.raw.common.encrypts = encrypts;
        self.buffer.discard();
        self.raw.num = 0;
        if self.raw.common.algorithm.mode != Mode::Ecb {
            if let Some(iv) = iv {
                self.raw.iv = Some(iv_of(iv)?);
            }
            // If no new IV is given, the message starts with the IV that was set last, as in OpenSSL 1.1.1.
            if let Some(first) = self.raw.iv {
                self.buffer.restart(first);
            }
        }
        self.raw.replace_key(key)
    }

    fn has_key(&self) -> bool {
        self.raw.key.is_some()
    }

    #[inline(always)]
    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let mut key = self.raw.key()?;
        if self.records.version != 0 {
            return self.record(data);
        }
        let Common { algorithm, .. } = self.raw.common;
        let direction = self.raw.common.direction();
        let hold = Hold::of(cipher_of(algorithm.mode), self.raw.padding, direction);
        self.buffer.update(&mut key, direction, hold, &mut data)
    }

    fn finish(&mut self, mut output: Buffers<'_>) -> Outcome<usize> {
        let mut key = self.raw.key()?;
        if self.records.version != 0 {
            return Err(Reason::TlsRecord);
        }
        if self.raw.common.encrypts && self.raw.padding && output.room() < 16 {
            return Err(Reason::OutputTooSmall);
        }
        let (last, len) = self.buffer.finish(&mut key, self.raw.common.direction(), self.raw.padding)?;
        if output.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        output.write(0, &last[..len]);
        Ok(len)
    }

    fn one_shot(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let key = self.raw.key()?;
        let len = data.len();
        if !len.is_multiple_of(16) {
            return Err(Reason::WrongFinalBlockLength);
        }
        let pass = cipher_of(self.raw.common.algorithm.mode).pass(self.raw.common.direction());
        key.run(pass, self.buffer.state_mut(), data.whole()?)?;
        Ok(len)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"tls-mac" => param.octets(self.records.mac()),
            _ => self.raw.get(param, self.buffer.state()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"tls-version" => self.records.version = param.number::<u32>()?,
            b"tls-mac-size" => self.records.mac_size = param.number::<usize>()?,
            _ => self.raw.set(param)?,
        }
        Ok(())
    }
}

impl Blocks {
    /// Processes a TLS record in place. Encryption adds the padding; decryption removes IV, padding and MAC.
    fn record(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let (len, encrypts) = (data.len(), self.raw.common.encrypts);
        let whole = if encrypts { (len / 16 + 1) * 16 } else { len };
        if !self.raw.padding || !whole.is_multiple_of(16) || whole == 0 {
            return Err(Reason::TlsRecord);
        }
        let record = data.as_in_place(whole)?;
        if encrypts {
            tls_cbc::pad(self.records.version, record, len);
        }
        self.one_shot(Buffers::in_place_of(record))?;
        if encrypts { Ok(whole) } else { self.records.open(record) }
    }
}
