//! Key wrap, with and without padding (SP 800-38F; RFC 3394, RFC 5649). Each update wraps or unwraps a whole key.

use std::sync::Arc;

use lockstep::hazmat::mode::incremental::BlockIo;
use lockstep::hazmat::mode::key_wrap::{self, CipherFunction, Icv, Semiblock};

use zeroize::Zeroize;

use super::Cipher;
use super::streams::GETTABLE;
use crate::algorithm::{Algorithm, Mode};
use crate::instance::Instance;
use crate::key::{ContextKey, Inline};
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{GetParam, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};

/// A context of key wrap.
pub(crate) struct Wrap {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    key: Option<ContextKey>,
    /// The integrity check value that was set as IV; `None` for that of the standard. With padding, only the first 4 bytes
    /// are used.
    icv: Option<Semiblock>,
}

impl Cipher for Wrap {
    const MODES: &'static [Mode] = &[Mode::Wrap, Mode::WrapPad, Mode::WrapInv, Mode::WrapPadInv];
    const GETTABLE: Parameters = GETTABLE;
    /// All of these parameters except the length of the key are ignored, as in the default provider.
    const SETTABLE: Parameters = list!(KEYLEN PADDING NUM USE_BITS TLS_VERSION TLS_MAC_SIZE);
    /// The default provider does not have this function either. `EVP_Cipher` therefore returns the status of the update
    /// instead of a length.
    const HAS_ONE_SHOT: bool = false;

    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self {
        Wrap { instance: Arc::clone(instance), algorithm, encrypts: true, key: None, icv: None }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let key = self.key.as_ref().map(ContextKey::duplicate).transpose()?;
        let Wrap { algorithm, encrypts, icv, .. } = *self;
        Ok(Wrap { instance: Arc::clone(&self.instance), algorithm, encrypts, key, icv })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.encrypts = encrypts;
        if let Some(iv) = iv {
            if iv.len() != self.algorithm.mode.iv_len() {
                return Err(Reason::IvLength);
            }
            self.icv.insert([0; 8])[..iv.len()].copy_from_slice(iv);
        }
        ContextKey::replace(&mut self.key, &self.instance.resources, key)
    }

    fn has_key(&self) -> bool {
        self.key.is_some()
    }

    fn encrypts(&self) -> bool {
        self.encrypts
    }

    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        if data.len() == 0 {
            return Ok(0);
        }
        self.check(data.len())?;
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        if self.encrypts { self.wrap(key, data) } else { self.unwrap(key, data) }
    }

    /// As output space, OpenSSL passes the length of the input plus 8 bytes, which is too little for the padding. The
    /// caller has to provide the space that [`query_output_len`](Cipher::query_output_len) returns (EVP_EncryptInit(3),
    /// "wrap cipher modes").
    fn output_room(&self, room: usize, len: usize) -> usize {
        if self.encrypts && room >= len { room.max(self.wrapped_len(len)) } else { room }
    }

    fn query_output_len(&self, has_input: bool, len: usize) -> Option<Outcome<usize>> {
        Some(match len {
            0 => Ok(0),
            _ if !has_input => Err(Reason::NullBuffer),
            _ => self.check(len).map(|()| if self.encrypts { self.wrapped_len(len) } else { len - 8 }),
        })
    }

    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        Ok(0)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        let mode = self.algorithm.mode;
        match param.name() {
            b"keylen" => param.number(self.algorithm.key_len as u64),
            b"ivlen" => param.number(mode.iv_len() as u64),
            b"padding" => param.number(u64::from(mode.pads_semiblocks())),
            b"num" => param.number(0),
            b"iv" | b"updated-iv" => param.octets(&self.icv.as_ref().unwrap_or(&[0; 8])[..mode.iv_len()]),
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

impl Wrap {
    /// Checks the length of a key that is wrapped, or of a wrapped key. The modes refuse some more lengths.
    fn check(&self, len: usize) -> Outcome<()> {
        let any = self.encrypts && self.algorithm.mode.pads_semiblocks();
        let valid =
            len <= i32::MAX as usize && (any || len.is_multiple_of(8)) && (self.encrypts || len >= 16);
        if valid { Ok(()) } else { Err(Reason::WrapLength) }
    }

    /// The length of a wrapped key. `len` may be any number.
    fn wrapped_len(&self, len: usize) -> usize {
        let pads = self.algorithm.mode.pads_semiblocks();
        let padded = if pads { len.checked_next_multiple_of(8).unwrap_or(len) } else { len };
        padded.saturating_add(8)
    }

    fn function(&self) -> CipherFunction {
        match self.algorithm.mode {
            Mode::WrapInv | Mode::WrapPadInv => CipherFunction::Inverse,
            _ => CipherFunction::Forward,
        }
    }

    /// The integrity check value.
    fn icv(&self) -> Icv {
        match (self.algorithm.mode.pads_semiblocks(), self.icv) {
            (true, Some([a, b, c, d, ..])) => Icv::Padded([a, b, c, d]),
            (true, None) => Icv::KWP,
            (false, Some(icv)) => Icv::Whole(icv),
            (false, None) => Icv::KW,
        }
    }

    fn wrap(&self, key: &ContextKey, mut data: Buffers<'_>) -> Outcome<usize> {
        // Key wrap encrypts single blocks one after another, so it never runs on a device.
        let mut key = Inline(key.inline());
        let (len, wrapped) = (data.len(), self.wrapped_len(data.len()));
        let rest = data.copy_input(0, 8, len, wrapped - 8)?;
        let first = key_wrap::wrap_in_place(&mut key, self.function(), self.icv(), len, rest);
        // The plaintext was copied to the output. Wipe it there after a failure.
        let first = first.inspect_err(|_| rest.zeroize())?;
        data.write(0, &first);
        Ok(wrapped)
    }

    fn unwrap(&self, key: &ContextKey, mut data: Buffers<'_>) -> Outcome<usize> {
        let mut key = Inline(key.inline());
        let rest_len = data.len() - 8;
        let mut first = Semiblock::default();
        data.read(0, &mut first);
        let rest = data.copy_input(8, 0, rest_len, rest_len)?;
        key_wrap::unwrap_in_place(&mut key, self.function(), self.icv(), first, rest)
    }
}
