//! Contexts of ECB and CBC. A partial block is buffered between updates, and the last block is padded. CBC with ciphertext
//! stealing (addendum to SP 800-38A) requires the whole message in one update.

use std::ffi::CStr;

use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use lockstep::hazmat::mode::incremental::{BlockBuffer, BlockIo, Hold};

use super::raw::{self, Raw};
use super::tls_cbc::{self, Records};
use super::{Cipher, Common, cipher_of};
use crate::algorithm::Mode;
use crate::libcrypto::{Buffers, GetParam, Param, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};

/// The values of the parameter `cts_mode`, in the order of [`Variant`].
const CTS_MODES: [&CStr; 3] = [c"CS1", c"CS2", c"CS3"];

/// A context of ECB or CBC. If `CTS` is true, an update is a whole message of CBC with ciphertext stealing. As in the default
/// provider, `EVP_Cipher` computes plain CBC even if `CTS` is true, and ending a message without an update is not an error.
#[derive(Clone)]
pub(crate) struct Blocks<const CTS: bool> {
    raw: Raw,
    /// The chaining state, which is the last ciphertext block, and the buffered bytes.
    buffer: BlockBuffer,
    /// The format of TLS records. Its version is 0 if updates are not TLS records.
    records: Records,
    /// The variant of ciphertext stealing.
    variant: Variant,
    /// True once a message with ciphertext stealing has been processed.
    ended: bool,
}

impl<const CTS: bool> Cipher for Blocks<CTS> {
    const GETTABLE: Parameters =
        if CTS { list!(KeyLen IvLen Padding Num Iv UpdatedIv CtsMode TlsMac) } else { raw::GETTABLE };
    const SETTABLE: Parameters =
        if CTS { list!(Padding Num UseBits TlsVersion TlsMacSize CtsMode) } else { raw::SETTABLE };

    fn new(common: Common) -> Self {
        let buffer = BlockBuffer::new(cipher_of(common.algorithm.mode), [0; 16]);
        let (raw, records, variant) = (Raw::new(common), Records::default(), Variant::default());
        Blocks { raw, buffer, records, variant, ended: false }
    }

    fn common(&self) -> &Common {
        &self.raw.common
    }

    fn duplicate(&self) -> Outcome<impl FnOnce() -> Self> {
        Ok(|| self.clone())
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.raw.common.observe_init(key, iv);
        self.buffer.discard();
        (self.raw.num, self.ended) = (0, false);
        if self.raw.common.algorithm.mode != Mode::Ecb {
            self.raw.set_iv(iv)?;
            // If no new IV is given, the message starts with the IV that was set last, as in OpenSSL 1.1.1.
            if self.raw.has_iv {
                self.buffer.restart(self.raw.iv);
            }
        }
        self.raw.common.encrypts = encrypts;
        self.raw.replace_key(key)
    }

    fn holds_text(&self) -> bool {
        !self.buffer.pending().is_empty() || self.records.version != 0
    }

    #[inline(always)]
    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let mut key = self.raw.key()?;
        if CTS {
            return self.update_with_stealing(data);
        }
        if self.records.version != 0 {
            return self.record(data);
        }
        let Common { algorithm, .. } = self.raw.common;
        let direction = self.raw.common.direction();
        let hold = Hold::of(cipher_of(algorithm.mode), self.raw.padding, direction);
        let outcome = self.buffer.update(&mut key, direction, hold, &mut data);
        if outcome == Err(Reason::Device) {
            data.zero_output(self.buffer.output_len(data.len(), hold));
        }
        outcome
    }

    fn query_output_len(&self, _has_input: bool, len: usize) -> Option<Outcome<usize>> {
        CTS.then_some(if len < 16 { Err(Reason::CtsTooShort) } else { Ok(len) })
    }

    fn set_message_len(&mut self, len: usize) -> Outcome<()> {
        self.raw.set_message_len(len)
    }

    fn finish(&mut self, mut output: Buffers<'_>) -> Outcome<usize> {
        if CTS {
            return Ok(0);
        }
        let mut key = self.raw.key()?;
        if self.records.version != 0 {
            return Err(Reason::TlsRecord);
        }
        if !self.raw.padding && self.buffer.pending().is_empty() {
            return Ok(0);
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
            Param::TlsMac => param.octets(self.records.mac()),
            Param::CtsMode if CTS => param.text(CTS_MODES[self.variant as usize]),
            _ => self.raw.get(param, self.buffer.state()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::TlsVersion => self.records.version = param.number::<u32>()?,
            Param::TlsMacSize => self.records.mac_size = param.number::<usize>()?,
            Param::CtsMode if CTS => {
                let text = param.text().map_err(|_| Reason::CtsMode)?;
                let is_named = |mode: &CStr| text.eq_ignore_ascii_case(mode.to_bytes());
                let named = Variant::ALL.into_iter().find(|variant| is_named(CTS_MODES[*variant as usize]));
                self.variant = named.ok_or(Reason::CtsMode)?;
            }
            _ => self.raw.set(param)?,
        }
        Ok(())
    }
}

impl<const CTS: bool> Blocks<CTS> {
    /// Processes a message with ciphertext stealing.
    fn update_with_stealing(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let (len, direction) = (data.len(), self.raw.common.direction());
        let mut key = self.raw.key()?;
        if len < 16 {
            return Err(Reason::CtsTooShort);
        }
        if self.ended {
            return Err(Reason::CtsSecondUpdate);
        }
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        // Set before the work, because the chaining state is invalid if a device fails.
        self.ended = true;
        let outcome = cbc_cts::run(&mut key, direction, self.variant, self.buffer.state_mut(), &mut data);
        outcome.inspect_err(|_| data.zero_output(len)).map(|()| len)
    }

    /// Processes a TLS record in place. Encryption adds the padding. Decryption removes the IV, the padding and the MAC.
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
