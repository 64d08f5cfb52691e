//! Key wrap, with and without padding (SP 800-38F; RFC 3394, RFC 5649). Each update wraps or unwraps a whole key.

use lockstep::hazmat::mode::incremental::{BlockIo, KeyedExecutor};
use lockstep::hazmat::mode::key_wrap::{self, CipherFunction, Icv, Semiblock};
use zeroize::Zeroize;

use super::raw::Raw;
use super::{Cipher, Common};
use crate::algorithm::Mode;
use crate::key::PassFn;
use crate::libcrypto::{Buffers, GetParam, Parameters, list};
use crate::reason::{Outcome, Reason};

/// A context of key wrap. The IV is the integrity check value. If no IV is set, the integrity check value of the standard is
/// used. `padding` is true if the data are padded to whole semiblocks.
pub(crate) struct Wrap(Raw);

impl Cipher for Wrap {
    /// All of these parameters except the length of the key are ignored, as in the default provider.
    const SETTABLE: Parameters = list!(KeyLen Padding Num UseBits TlsVersion TlsMacSize);
    /// As in the default provider, key wrap has no function for `EVP_Cipher`. `EVP_Cipher` therefore returns the status of the
    /// update instead of a length.
    const HAS_ONE_SHOT: bool = false;

    fn new(common: Common) -> Self {
        let padding = matches!(common.algorithm.mode, Mode::WrapPad | Mode::WrapPadInv);
        Wrap(Raw { padding, ..Raw::new(common) })
    }

    fn common(&self) -> &Common {
        &self.0.common
    }

    fn duplicate(&self) -> Outcome<impl FnOnce() -> Self> {
        Ok(|| Wrap(self.0.clone()))
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.0.common.observe_init(key, iv);
        self.0.common.encrypts = encrypts;
        self.0.set_iv(iv)?;
        // The steps of key wrap decrypt in either direction.
        self.0.replace_key(key, true)
    }

    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        if data.len() == 0 {
            return Ok(0);
        }
        self.check(data.len())?;
        let key = self.0.key()?;
        // The steps of key wrap process 12 times as many bytes as there are bytes of data. The trace counts the bytes of the
        // data once.
        let mut counted = data.len();
        let mut steps = PassFn(|pass, state, block| {
            let rest = match key.key.is_large(block.len()) {
                true => key.run_by_planner(pass, state, None, block.into_host(), counted)?,
                false => Some(block.into_host()),
            };
            match rest {
                Some(block) => key.key.run_inline(pass, state, block.into_span()),
                None => counted = 0,
            }
            Ok(())
        });
        let encrypts = self.0.common.encrypts;
        if encrypts { self.wrap(&mut steps, data) } else { self.unwrap(&mut steps, data) }
    }

    /// OpenSSL passes the input length plus 8 bytes as the size of the output space. This is too small for padded data. The
    /// caller has to provide the space that [`query_output_len`](Cipher::query_output_len) returns (EVP_EncryptInit(3), "wrap
    /// cipher modes").
    fn output_room(&self, room: usize, len: usize) -> usize {
        if self.0.common.encrypts && room >= len { room.max(self.wrapped_len(len)) } else { room }
    }

    fn query_output_len(&self, has_input: bool, len: usize) -> Option<Outcome<usize>> {
        Some(match len {
            0 => Ok(0),
            _ if !has_input => Err(Reason::NullBuffer),
            _ if self.0.common.encrypts => self.check(len).map(|()| self.wrapped_len(len)),
            _ => self.check(len).map(|()| len - 8),
        })
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        self.0.get(param, &self.0.iv)
    }
}

impl Wrap {
    /// Checks the length of the input: of a key to wrap, or of a wrapped key. The library rejects further lengths, with other
    /// errors.
    fn check(&self, len: usize) -> Outcome<()> {
        let encrypts = self.0.common.encrypts;
        let any = encrypts && self.0.padding;
        let valid = len <= i32::MAX as usize && (any || len.is_multiple_of(8)) && (encrypts || len >= 16);
        if valid { Ok(()) } else { Err(Reason::WrapLength) }
    }

    /// Returns the length of the wrapped key for a key of `len` bytes. `len` may be any number.
    fn wrapped_len(&self, len: usize) -> usize {
        let padded = if self.0.padding { len.div_ceil(8).saturating_mul(8) } else { len };
        padded.saturating_add(8)
    }

    fn function(&self) -> CipherFunction {
        match self.0.common.algorithm.mode {
            Mode::WrapInv | Mode::WrapPadInv => CipherFunction::Inverse,
            _ => CipherFunction::Forward,
        }
    }

    /// The integrity check value.
    fn icv(&self) -> Icv {
        let icv = self.0.iv;
        match (self.0.padding, self.0.has_iv) {
            (true, true) => Icv::Padded(std::array::from_fn(|i| icv[i])),
            (true, false) => Icv::KWP,
            (false, true) => Icv::Whole(std::array::from_fn(|i| icv[i])),
            (false, false) => Icv::KW,
        }
    }

    fn wrap(&self, steps: &mut impl KeyedExecutor<Error = Reason>, mut data: Buffers<'_>) -> Outcome<usize> {
        let (len, wrapped) = (data.len(), self.wrapped_len(data.len()));
        let rest = data.copy_input(0, 8, len, wrapped - 8)?;
        let first = key_wrap::wrap_in_place(steps, self.function(), self.icv(), len, rest);
        // The plaintext was copied to the output. Wipe it there after a failure.
        let first = first.inspect_err(|_| rest.zeroize())?;
        data.write(0, &first);
        Ok(wrapped)
    }

    fn unwrap(
        &self,
        steps: &mut impl KeyedExecutor<Error = Reason>,
        mut data: Buffers<'_>,
    ) -> Outcome<usize> {
        let rest_len = data.len() - 8;
        let mut first = Semiblock::default();
        data.read(0, &mut first);
        let rest = data.copy_input(8, 0, rest_len, rest_len)?;
        key_wrap::unwrap_in_place(steps, self.function(), self.icv(), first, rest)
    }
}
