//! XTS (SP 800-38E, IEEE 1619): each update is a data unit, and the IV is the number of the data unit.

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, advance_tweak};
use lockstep::hazmat::mode::incremental::BlockIo;
use lockstep::hazmat::mode::xts::MAX_DATA_UNIT;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use super::Cipher;
use super::streams::{GETTABLE, iv_of};
use crate::algorithm::{Algorithm, Mode};
use crate::instance::Instance;
use crate::key::ContextKey;
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{GetParam, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};

/// A context of XTS.
pub(crate) struct Xts {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    /// The data key and the tweak key.
    keys: Option<[ContextKey; 2]>,
    iv: Option<Block>,
}

impl Cipher for Xts {
    const MODES: &'static [Mode] = &[Mode::Xts];
    const GETTABLE: Parameters = GETTABLE;
    const SETTABLE: Parameters = list!(KEYLEN);

    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self {
        Xts { instance: Arc::clone(instance), algorithm, encrypts: true, keys: None, iv: None }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let keys = match &self.keys {
            Some([data, tweak]) => Some([data.duplicate()?, tweak.duplicate()?]),
            None => None,
        };
        let Xts { algorithm, encrypts, iv, .. } = *self;
        Ok(Xts { instance: Arc::clone(&self.instance), algorithm, encrypts, keys, iv })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        let halves = key.map(|key| key.split_at(key.len() / 2));
        // If the halves of the key are equal, the first tweak leaks (FIPS guidance to SP 800-38E). Decryption is still
        // allowed, for existing data.
        if encrypts && halves.is_some_and(|(data, tweak)| bool::from(data.ct_eq(tweak))) {
            return Err(Reason::XtsEqualKeys);
        }
        if let Some(iv) = iv {
            self.iv = Some(iv_of(iv)?);
        }
        self.encrypts = encrypts;
        if let Some((data, tweak)) = halves {
            self.keys = None;
            self.keys = Some([
                ContextKey::new(&self.instance.resources, data)?,
                ContextKey::new(&self.instance.resources, tweak)?,
            ]);
        }
        Ok(())
    }

    fn has_key(&self) -> bool {
        self.keys.is_some()
    }

    fn encrypts(&self) -> bool {
        self.encrypts
    }

    #[inline(always)]
    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let Some([key, tweak_key]) = &self.keys else { return Err(Reason::NoKey) };
        let Some(iv) = &self.iv else { return Err(Reason::NoIv) };
        let len = data.len();
        if len < 16 {
            return Err(Reason::XtsTooShort);
        }
        if len as u64 > MAX_DATA_UNIT {
            return Err(Reason::XtsTooLong);
        }
        if !len.is_multiple_of(16) {
            return self.update_stealing(data);
        }
        key.xts(self.encrypts, tweak_key, iv, None, data.whole()?)?;
        Ok(len)
    }

    fn aad(&mut self, _aad: &[u8]) -> Outcome<()> {
        Err(Reason::NullBuffer)
    }

    fn set_message_len(&mut self, _len: usize) -> Outcome<()> {
        Err(Reason::NullBuffer)
    }

    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        Ok(0)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        let iv = self.iv.as_ref().unwrap_or(&[0; 16]);
        match param.name() {
            b"keylen" => param.number(self.algorithm.key_len as u64),
            b"ivlen" => param.number(16),
            b"padding" => param.number(1),
            b"num" => param.number(0),
            b"iv" | b"updated-iv" => param.octets(iv),
            b"tls-mac" => param.octets(&[]),
            _ => Ok(()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" if param.size()? != self.algorithm.key_len => Err(Reason::KeyLength),
            _ => Ok(()),
        }
    }
}

impl Xts {
    /// Processes a data unit that ends with a partial block, by ciphertext stealing: the last whole block is encrypted,
    /// the end of the result fills up the partial block, and the start of the result becomes the end of the ciphertext.
    /// Decryption processes the last whole block first, with the later of the last two tweaks.
    #[inline(never)]
    fn update_stealing(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let Some([key, tweak_key]) = &self.keys else { return Err(Reason::NoKey) };
        let iv = self.iv.as_ref().ok_or(Reason::NoIv)?;
        let len = data.len();
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        let tail = len % 16;
        let before = if self.encrypts { len - tail } else { len - tail - 16 };
        let mut last = [0; 32];
        let last = &mut last[..len - before];
        data.read(before, last);
        let mut tweak = [0; 16];
        key.xts(self.encrypts, tweak_key, iv, Some(&mut tweak), data.part(0, 0, before))?;
        let mut block: Block;
        if self.encrypts {
            let mut stolen = [0; 16];
            stolen.copy_from_slice(data.output(before - 16, 16));
            block = stolen;
            block[..tail].copy_from_slice(last);
            last.copy_from_slice(&stolen[..tail]);
            self.single(key, &mut tweak, &mut block);
            data.write(before - 16, &block);
            data.write(before, last);
        } else {
            let mut later = tweak;
            advance_tweak(&mut later, 1);
            let mut full: Block = last[..16].try_into().expect("16 bytes");
            self.single(key, &mut later, &mut full);
            block = full;
            block[..tail].copy_from_slice(&last[16..]);
            self.single(key, &mut tweak, &mut block);
            data.write(before, &block);
            data.write(before + 16, &full[..tail]);
            full.zeroize();
        }
        block.zeroize();
        last.zeroize();
        Ok(len)
    }

    /// Encrypts or decrypts one block with its tweak.
    fn single(&self, key: &ContextKey, tweak: &mut Block, block: &mut Block) {
        let data = lockstep::hazmat::inline::Span::in_place(block);
        if self.encrypts {
            key.inline().xts_encrypt(tweak, data);
        } else {
            key.inline().xts_decrypt(tweak, data);
        }
    }
}
