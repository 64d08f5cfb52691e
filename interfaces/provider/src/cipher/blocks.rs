//! Contexts of ECB and CBC. A partial block is buffered between updates, and the last block is padded. CBC with ciphertext
//! stealing (addendum to SP 800-38A) requires the whole message in one update.

use std::ffi::CStr;

use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use lockstep::hazmat::mode::incremental::{BlockBuffer, BlockIo, Hold, KeyedExecutor};
use lockstep::hazmat::mode::{self, Direction};
use lockstep::hazmat::work::Pass;

use super::raw::{self, Raw};
use super::tls_cbc::{self, Records};
use super::{Cipher, Common};
use crate::algorithm::Mode;
use crate::libcrypto::{Buffers, GetParam, Param, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};

/// The values of the parameter `cts_mode`, in the order of [`Variant`].
const CTS_MODES: [&CStr; 3] = [c"CS1", c"CS2", c"CS3"];

/// A context of ECB, CBC, or CBC with ciphertext stealing, as `MODE` states (a [`Mode`]). With ciphertext stealing, an update is a
/// whole message. As in the default provider, `EVP_Cipher` then computes plain CBC, and ending a message without an update is not an
/// error.
#[derive(Clone)]
pub(crate) struct Blocks<const MODE: u8> {
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

impl<const MODE: u8> Cipher for Blocks<MODE> {
    const GETTABLE: Parameters =
        if Self::CTS { list!(KeyLen IvLen Padding Num Iv UpdatedIv CtsMode TlsMac) } else { raw::GETTABLE };
    const SETTABLE: Parameters =
        if Self::CTS { list!(Padding Num UseBits TlsVersion TlsMacSize CtsMode) } else { raw::SETTABLE };

    fn new(common: Common) -> Self {
        const { assert!(MODE == Mode::Ecb as u8 || MODE == Mode::Cbc as u8 || Self::CTS) };
        let buffer = BlockBuffer::new(Self::CIPHER, [0; 16]);
        let (raw, records, variant) = (Raw::new(common), Records::default(), Variant::default());
        Blocks { raw, buffer, records, variant, ended: false }
    }

    fn common(&self) -> &Common {
        &self.raw.common
    }

    fn duplicate(&self) -> Outcome<impl FnOnce() -> Self> {
        Ok(|| self.clone())
    }

    #[inline(always)]
    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.raw.common.observe_init(key, iv);
        if !self.buffer.pending().is_empty() {
            self.buffer.discard();
        }
        (self.raw.num, self.ended) = (0, false);
        if Self::CIPHER == mode::Cipher::Cbc {
            self.raw.set_iv(iv)?;
            // If no new IV is given, the message starts with the IV that was set last, as in OpenSSL 1.1.1.
            if self.raw.has_iv {
                *self.buffer.state_mut() = self.raw.iv;
            }
        }
        self.raw.common.encrypts = encrypts;
        self.raw.replace_key(key, !encrypts)
    }

    fn holds_text(&self) -> bool {
        !self.buffer.pending().is_empty() || self.records.version != 0
    }

    #[inline(always)]
    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        let hold = Hold::of(Self::CIPHER, self.raw.padding, self.raw.common.direction());
        let is_plain = !Self::CTS && self.records.version == 0;
        let is_single_pass = is_plain && self.buffer.is_single_pass(data.len(), hold);
        if is_single_pass { self.one_shot(data) } else { self.update_other(data, hold) }
    }

    fn query_output_len(&self, _has_input: bool, len: usize) -> Option<Outcome<usize>> {
        Self::CTS.then_some(if len < 16 { Err(Reason::CtsTooShort) } else { Ok(len) })
    }

    fn set_message_len(&mut self, len: usize) -> Outcome<()> {
        self.raw.set_message_len(len)
    }

    #[inline(always)]
    fn finish(&mut self, output: Buffers<'_>) -> Outcome<usize> {
        if Self::CTS {
            return Ok(0);
        }
        self.raw.key()?;
        if self.records.version != 0 {
            return Err(Reason::TlsRecord);
        }
        if !self.raw.padding && self.buffer.pending().is_empty() { Ok(0) } else { self.finish_held(output) }
    }

    #[inline(always)]
    fn one_shot(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let mut key = self.raw.key()?;
        let len = data.len();
        if !len.is_multiple_of(16) {
            return Err(Reason::WrongFinalBlockLength);
        }
        let pass = if self.raw.common.encrypts { Self::PASSES[0] } else { Self::PASSES[1] };
        key.run(pass, self.buffer.state_mut(), data.whole()?)?;
        Ok(len)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::TlsMac => param.octets(self.records.mac()),
            Param::CtsMode if Self::CTS => param.text(CTS_MODES[self.variant as usize]),
            _ => self.raw.get(param, self.buffer.state()),
        }
    }

    #[inline(always)]
    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::TlsVersion => self.records.version = param.number::<u32>()?,
            Param::TlsMacSize => self.records.mac_size = param.number::<usize>()?,
            Param::CtsMode if Self::CTS => {
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

impl<const MODE: u8> Blocks<MODE> {
    const CTS: bool = MODE == Mode::CbcCts as u8;
    const CIPHER: mode::Cipher = if MODE == Mode::Ecb as u8 { mode::Cipher::Ecb } else { mode::Cipher::Cbc };
    const PASSES: [Pass; 2] = [Self::CIPHER.pass(Direction::Encrypt), Self::CIPHER.pass(Direction::Decrypt)];

    /// Makes an update with ciphertext stealing, an update that is a TLS record, or an update that holds bytes back.
    #[inline(never)]
    fn update_other(&mut self, mut data: Buffers<'_>, hold: Hold) -> Outcome<usize> {
        let (mut key, direction) = (self.raw.key()?, self.raw.common.direction());
        if Self::CTS {
            return self.update_with_stealing(data);
        }
        if self.records.version != 0 {
            return self.record(data);
        }
        let outcome = self.buffer.update(&mut key, direction, hold, &mut data);
        if outcome == Err(Reason::Device) {
            data.zero_output(self.buffer.output_len(data.len(), hold));
        }
        outcome
    }

    /// Ends a message with bytes that are held back, or with padding.
    #[inline(never)]
    fn finish_held(&mut self, mut output: Buffers<'_>) -> Outcome<usize> {
        if self.raw.common.encrypts && self.raw.padding && output.room() < 16 {
            return Err(Reason::OutputTooSmall);
        }
        let (direction, padding) = (self.raw.common.direction(), self.raw.padding);
        let (last, len) = self.buffer.finish(&mut self.raw.key()?, direction, padding)?;
        if output.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        output.write(0, &last[..len]);
        Ok(len)
    }

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
