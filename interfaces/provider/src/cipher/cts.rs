//! CBC with ciphertext stealing (addendum to SP 800-38A): the whole message is one update.

use std::ffi::CStr;

use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use lockstep::hazmat::mode::incremental::BlockIo;

use super::{Blocks, Cipher, Common};
use crate::libcrypto::{Buffers, GetParam, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};

/// The values of `cts_mode`, in the order of the variants.
const NAMES: [&CStr; 3] = [c"CS1", c"CS2", c"CS3"];

/// A context of CBC with ciphertext stealing. As in the default provider, a message without an update is not an error.
pub(crate) struct Cts {
    /// Key, IV and parameters are those of CBC. `EVP_Cipher` is plain CBC, as in the default provider.
    cbc: Blocks,
    variant: Variant,
    /// True once the message has been processed.
    ended: bool,
}

impl Cipher for Cts {
    const GETTABLE: Parameters = list!(KEYLEN IVLEN PADDING NUM IV UPDATED_IV CTS_MODE TLS_MAC);
    const SETTABLE: Parameters = list!(PADDING NUM USE_BITS TLS_VERSION TLS_MAC_SIZE CTS_MODE);

    fn new(common: Common) -> Self {
        Cts { cbc: Blocks::new(common), variant: Variant::default(), ended: false }
    }

    fn common(&self) -> &Common {
        self.cbc.common()
    }

    fn duplicate(&self) -> Outcome<Self> {
        Ok(Cts { cbc: self.cbc.duplicate()?, variant: self.variant, ended: self.ended })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.ended = false;
        self.cbc.init(encrypts, key, iv)
    }

    fn has_key(&self) -> bool {
        self.cbc.has_key()
    }

    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let (len, direction) = (data.len(), self.common().direction());
        let mut key = self.cbc.raw.key()?;
        if len < 16 {
            return Err(Reason::CtsTooShort);
        }
        if self.ended {
            return Err(Reason::CtsSecondUpdate);
        }
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        // After a failure of a device, the chaining state is invalid.
        self.ended = true;
        cbc_cts::run(&mut key, direction, self.variant, self.cbc.buffer.state_mut(), &mut data)?;
        Ok(len)
    }

    fn query_output_len(&self, _has_input: bool, len: usize) -> Option<Outcome<usize>> {
        Some(if len < 16 { Err(Reason::CtsTooShort) } else { Ok(len) })
    }

    fn one_shot(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        self.cbc.one_shot(data)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"cts_mode" => param.text(NAMES[self.variant as usize]),
            _ => self.cbc.get(param),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        if param.name() != b"cts_mode" {
            return self.cbc.set(param);
        }
        let text = param.text().map_err(|_| Reason::CtsMode)?;
        let is_named = |variant: &Variant| text.eq_ignore_ascii_case(NAMES[*variant as usize].to_bytes());
        self.variant = Variant::ALL.into_iter().find(is_named).ok_or(Reason::CtsMode)?;
        Ok(())
    }
}
