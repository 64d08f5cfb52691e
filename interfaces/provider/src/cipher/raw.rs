//! The parts that all contexts without authentication have: the key, and the parameters of OpenSSL's generic ciphers.

use lockstep::hazmat::inline::Block;

use super::{Common, copy_iv};
use crate::key::{ContextKey, Runner};
use crate::libcrypto::{GetParam, Param, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};

/// Gettable parameters of a context without authentication.
pub(super) const GETTABLE: Parameters = list!(KeyLen IvLen Padding Num Iv UpdatedIv TlsMac);

/// Settable parameters of a context without authentication.
pub(super) const SETTABLE: Parameters = list!(Padding Num UseBits TlsVersion TlsMacSize);

/// The key of a context without authentication, and its parameters.
#[derive(Clone)]
pub(super) struct Raw {
    pub(super) common: Common,
    pub(super) key: Option<ContextKey>,
    /// The IV as it was set, filled up with zeros if it is shorter than a block; all zeros if no IV has been set. The type is
    /// not `Option<Block>`, because the compiler copies an `Option` in several pieces, and the processor cannot forward these
    /// stores to the load of a vector.
    pub(super) iv: Block,
    pub(super) has_iv: bool,
    /// The parameter `padding`. It has an effect on ECB and CBC. For other modes it is stored only so that it can be read back.
    pub(super) padding: bool,
    /// The parameter `num`. For modes without a partial block it is stored only so that it can be read back.
    pub(super) num: usize,
}

impl Raw {
    pub(super) fn new(common: Common) -> Raw {
        Raw { common, key: None, iv: [0; 16], has_iv: false, padding: true, num: 0 }
    }

    #[inline(always)]
    pub(super) fn key(&self) -> Outcome<Runner<'_>> {
        Ok(self.key.as_ref().ok_or(Reason::NoKey)?.with(&self.common.instance.resources))
    }

    /// Handles an update without input and output. Only length 0 is accepted, and the update has no effect.
    pub(super) fn set_message_len(&self, len: usize) -> Outcome<()> {
        self.key()?;
        if len == 0 { Ok(()) } else { Err(Reason::NullBuffer) }
    }

    /// Replaces the key if a key is given. The key is expanded for decryption only if `decrypts` is true. After a failure, the context
    /// has no key.
    #[inline(always)]
    pub(super) fn replace_key(&mut self, key: Option<&[u8]>, decrypts: bool) -> Outcome<()> {
        if let Some(key) = key {
            ContextKey::replace(&mut self.key, &self.common.instance.resources, key, decrypts)?;
            if self.common.is_of_generator {
                self.key.iter_mut().for_each(ContextKey::use_for_generator);
            }
        }
        if decrypts && !self.key.as_mut().is_none_or(|key| key.inline.ensure_decryption()) {
            self.key = None;
            return Err(Reason::OutOfMemory);
        }
        Ok(())
    }

    /// Sets the IV if an IV is given. The IV has the length of a block, except in key wrap.
    #[inline(always)]
    pub(super) fn set_iv(&mut self, iv: Option<&[u8]>) -> Outcome<()> {
        let Some(iv) = iv else { return Ok(()) };
        if iv.len() != self.common.algorithm.iv_len {
            return Err(Reason::IvLength);
        }
        copy_iv::<16>(iv, &mut self.iv);
        self.has_iv = true;
        Ok(())
    }

    /// Gets a parameter. `updated_iv` is the value of the parameter of that name: its first bytes are the IV with which the
    /// message continues.
    pub(super) fn get(&self, param: &mut GetParam<'_>, updated_iv: &[u8]) -> Outcome<()> {
        let iv_len = self.common.algorithm.iv_len;
        match param.name() {
            Param::KeyLen => param.number(self.common.algorithm.key_len as u64),
            Param::IvLen => param.number(iv_len as u64),
            Param::Padding => param.number(u64::from(self.padding)),
            Param::Num => param.number(self.num as u64),
            Param::Iv => param.octets(&self.iv[..iv_len]),
            Param::UpdatedIv => param.octets(&updated_iv[..iv_len]),
            Param::TlsMac => param.octets(&[]),
            _ => Ok(()),
        }
    }

    /// Sets a parameter of [`SETTABLE`].
    #[inline(always)]
    pub(super) fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::Padding => self.padding = param.number::<u32>()? != 0,
            Param::Num => match param.number::<u32>()? {
                num @ 0..16 => self.num = num as usize,
                _ => return Err(Reason::ParameterType),
            },
            Param::UseBits | Param::TlsVersion => _ = param.number::<u32>()?,
            Param::TlsMacSize => _ = param.number::<usize>()?,
            _ => {}
        }
        Ok(())
    }
}
