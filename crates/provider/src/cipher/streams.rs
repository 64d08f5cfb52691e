//! CTR, OFB and the CFBs: modes that put out as much as they take, in any split.

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, Span};
use lockstep::hazmat::work::Pass;
use zeroize::Zeroize;

use super::Cipher;
use crate::ahead::Ahead;
use crate::algorithm::{Algorithm, Mode};
use crate::ffi::buffers::Buffers;
use crate::ffi::param::{Asked, Given, Kind, Parameters, SIZE, UINT, entry, list};
use crate::instance::Instance;
use crate::key::ContextKey;
use crate::reason::{Outcome, Reason};

/// What can be asked of a context without authentication.
pub(super) const GETTABLE: Parameters = list!(
    entry(c"keylen", Kind::Unsigned, SIZE),
    entry(c"ivlen", Kind::Unsigned, SIZE),
    entry(c"padding", Kind::Unsigned, UINT),
    entry(c"num", Kind::Unsigned, UINT),
    entry(c"iv", Kind::Octets, 0),
    entry(c"updated-iv", Kind::Octets, 0),
    entry(c"tls-mac", Kind::OctetPointer, 0),
);

/// What can be set of a context without authentication.
pub(super) const SETTABLE: Parameters = list!(
    entry(c"padding", Kind::Unsigned, UINT),
    entry(c"num", Kind::Unsigned, UINT),
    entry(c"use-bits", Kind::Unsigned, UINT),
    entry(c"tls-version", Kind::Unsigned, UINT),
    entry(c"tls-mac-size", Kind::Unsigned, SIZE),
);

/// An IV of one block.
pub(super) fn iv_of(iv: &[u8]) -> Outcome<Block> {
    iv.try_into().map_err(|_| Reason::IvLength)
}

/// A context of CTR, OFB, CFB, CFB8 or CFB1.
pub(crate) struct Streams {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    padding: bool,
    counts_bits: bool,
    key: Option<ContextKey>,
    /// As it was set, if it was.
    first_iv: Option<Block>,
    /// As it has moved on. CTR: the counter of the next block. OFB: the keystream block under way. CFB: the ciphertext of
    /// the block under way, with keystream in the place of what has not come yet.
    iv: Block,
    /// Bytes of the block under way that are used; 0 if none is under way.
    used: usize,
    /// CTR: the keystream block under way.
    keystream: Block,
    /// CTR: keystream that others make, if they do.
    pub(crate) ahead: Option<Ahead>,
}

impl Cipher for Streams {
    const GETTABLE: Parameters = GETTABLE;
    const SETTABLE: Parameters = SETTABLE;

    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self {
        Streams {
            instance: Arc::clone(instance),
            algorithm,
            encrypts: true,
            padding: true,
            counts_bits: false,
            key: None,
            first_iv: None,
            iv: [0; 16],
            used: 0,
            keystream: [0; 16],
            ahead: None,
        }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let key = self.key.as_ref().map(ContextKey::duplicate).transpose()?;
        let Streams { algorithm, encrypts, padding, counts_bits, first_iv, iv, used, keystream, .. } = *self;
        let instance = Arc::clone(&self.instance);
        // Keystream made ahead is not shared: the copy makes its own if it comes to need it.
        let ahead = None;
        Ok(Streams {
            instance,
            algorithm,
            encrypts,
            padding,
            counts_bits,
            key,
            first_iv,
            iv,
            used,
            keystream,
            ahead,
        })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.encrypts = encrypts;
        self.used = 0;
        self.ahead = None;
        match (iv, self.first_iv) {
            (Some(iv), _) => {
                self.iv = iv_of(iv)?;
                self.first_iv = Some(self.iv);
            }
            // All but CTR begin again with the IV they had, as they did in OpenSSL 1.1.1.
            (None, Some(first)) if self.algorithm.mode != Mode::Ctr => self.iv = first,
            (None, _) => {}
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
        let (len, bits) = (data.len(), data.bits());
        let span = data.whole()?;
        match self.algorithm.mode {
            Mode::Ctr if self.used == 0 && len.is_multiple_of(16) && self.instance.workshop.is_none() => {
                key.run(Pass::Ctr, &mut self.iv, span)?;
            }
            Mode::Ctr => self.ctr(span)?,
            Mode::Ofb => self.ofb(span)?,
            Mode::Cfb128 => self.cfb128(span)?,
            Mode::Cfb8 => {
                let pass = if self.encrypts { Pass::Cfb8Encrypt } else { Pass::Cfb8Decrypt };
                key.run(pass, &mut self.iv, span)?;
            }
            _ if self.encrypts => key.inline().cfb1_encrypt(&mut self.iv, span, bits),
            _ => key.inline().cfb1_decrypt(&mut self.iv, span, bits),
        }
        Ok(len)
    }

    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        if self.key.is_none() { Err(Reason::NoKey) } else { Ok(0) }
    }

    fn counts_bits(&self) -> bool {
        self.counts_bits
    }

    fn get(&mut self, asked: &mut Asked<'_>) -> Outcome<()> {
        match asked.name() {
            b"keylen" => asked.number(self.algorithm.key_len as u64),
            b"ivlen" => asked.number(16),
            b"padding" => asked.number(u64::from(self.padding)),
            b"num" => asked.number(self.used as u64),
            b"iv" => asked.octets(self.first_iv.as_ref().unwrap_or(&[0; 16])),
            b"updated-iv" => asked.octets(&self.iv),
            b"tls-mac" => asked.octets(&[]),
            _ => Ok(()),
        }
    }

    fn set(&mut self, given: &Given<'_>) -> Outcome<()> {
        match given.name() {
            // Without effect, as for every stream cipher of OpenSSL; remembered for those who ask.
            b"padding" => self.padding = given.uint()? != 0,
            b"use-bits" => self.counts_bits = given.uint()? != 0 && self.algorithm.mode == Mode::Cfb1,
            b"num" => {
                let used = given.uint()? as usize;
                if used >= 16 {
                    return Err(Reason::ParameterType);
                }
                self.resume(used);
            }
            b"tls-version" => _ = given.uint()?,
            b"tls-mac-size" => _ = given.size()?,
            _ => {}
        }
        Ok(())
    }
}

impl Streams {
    /// Goes to within a block, of which so many bytes are used. For OFB and CFB the IV tells all; CTR's counter is that
    /// of the block after.
    fn resume(&mut self, used: usize) {
        self.used = used;
        self.ahead = None;
        if let (Mode::Ctr, 1.., Some(key)) = (self.algorithm.mode, used, &self.key) {
            self.keystream = u128::from_be_bytes(self.iv).wrapping_sub(1).to_be_bytes();
            key.inline().encrypt_block(&mut self.keystream);
        }
    }

    fn ctr(&mut self, data: Span<'_>) -> Outcome<()> {
        let left = if self.used == 0 { 0 } else { data.len().min(16 - self.used) };
        let (mut head, rest) = data.split_at(left);
        head.xor(&self.keystream[self.used..self.used + left]);
        self.used = (self.used + left) % 16;
        let whole = rest.len() & !15;
        let (blocks, mut tail) = rest.split_at(whole);
        self.ctr_blocks(blocks)?;
        if !tail.is_empty() {
            let mut keystream = [0; 16];
            self.ctr_blocks(Span::in_place(&mut keystream))?;
            self.used = tail.len();
            tail.xor(&keystream[..self.used]);
            self.keystream = keystream;
            keystream.zeroize();
        }
        Ok(())
    }

    /// Whole blocks, with keystream made ahead if that is on.
    fn ctr_blocks(&mut self, blocks: Span<'_>) -> Outcome<()> {
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        match &self.instance.workshop {
            Some(workshop) if !blocks.is_empty() && !self.instance.is_large(blocks.len()) => {
                let ahead = self.ahead.get_or_insert_with(|| Ahead::new(Pass::Ctr));
                ahead.apply(workshop, &self.instance, key, &mut self.iv, blocks);
                Ok(())
            }
            _ => key.run(Pass::Ctr, &mut self.iv, blocks),
        }
    }

    fn ofb(&mut self, data: Span<'_>) -> Outcome<()> {
        let left = if self.used == 0 { 0 } else { data.len().min(16 - self.used) };
        let (mut head, rest) = data.split_at(left);
        head.xor(&self.iv[self.used..self.used + left]);
        self.used = (self.used + left) % 16;
        let whole = rest.len() & !15;
        let (blocks, mut tail) = rest.split_at(whole);
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        key.run(Pass::Ofb, &mut self.iv, blocks)?;
        if !tail.is_empty() {
            key.inline().encrypt_block(&mut self.iv);
            self.used = tail.len();
            tail.xor(&self.iv[..self.used]);
        }
        Ok(())
    }

    fn cfb128(&mut self, data: Span<'_>) -> Outcome<()> {
        let left = if self.used == 0 { 0 } else { data.len().min(16 - self.used) };
        let (head, rest) = data.split_at(left);
        self.feed(head);
        let whole = rest.len() & !15;
        let (blocks, tail) = rest.split_at(whole);
        let pass = if self.encrypts { Pass::Cfb128Encrypt } else { Pass::Cfb128Decrypt };
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        key.run(pass, &mut self.iv, blocks)?;
        if !tail.is_empty() {
            key.inline().encrypt_block(&mut self.iv);
            self.feed(tail);
        }
        Ok(())
    }

    /// CFB within the block under way: the IV takes up ciphertext in the place of keystream.
    fn feed(&mut self, mut data: Span<'_>) {
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..data.len()];
        data.read(bytes);
        for byte in &mut *bytes {
            let input = *byte;
            *byte ^= self.iv[self.used];
            self.iv[self.used] = if self.encrypts { *byte } else { input };
            self.used = (self.used + 1) % 16;
        }
        data.write(bytes);
        bytes.zeroize();
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        // In OFB and CFB the IV holds keystream.
        self.iv.zeroize();
        self.keystream.zeroize();
    }
}
