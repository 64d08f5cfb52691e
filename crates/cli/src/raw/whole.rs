//! Modes that need the whole input before the first byte of output, and decryption with a tag: nothing is written before the
//! tag has been checked.

use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use lockstep::hazmat::mode::executor::Executor;
use lockstep::hazmat::mode::hctr2::{self, Hctr2Key};
use lockstep::hazmat::mode::siv::{self, SivKey, SivMessage};
use lockstep::hazmat::mode::{ccm, gcm, gcm_siv, key_wrap, ocb, xaes};
use lockstep::hazmat::work::{AeadMessage, Status, Tag};
use lockstep::hazmat::{self, Key};
use zeroize::Zeroizing;

use super::{Pipe, Raw, write};
use crate::error::{Error, Result, failed};
use crate::text;

/// Texts for error messages: the reason why the whole input must be in memory, and an alternative.
const FOR_TAG: &str = "to hold the input until its tag has been checked; `lockstep encrypt` makes files that are \
                       decrypted in little memory";
const FOR_MODE: &str =
    "to hold the input, all of which this mode needs at once; GCM encrypts in little memory";

/// A mode that processes whole messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WholeMode {
    Gcm,
    Ccm,
    GcmSiv,
    Ocb,
    Siv,
    Xaes,
    Hctr2,
    CbcCts(Variant),
    KeyWrap,
    KeyWrapPadded,
}

/// The functions of key wrap.
type Wrap = fn(&dyn Executor, &Key, &[u8]) -> hazmat::Result<Vec<u8>>;
type Unwrap = fn(&dyn Executor, &Key, &[u8]) -> hazmat::Result<Zeroizing<Vec<u8>>>;

/// The function of an AEAD that seals or opens messages.
type Aead = fn(&dyn Executor, &mut [AeadMessage<'_>]) -> hazmat::Result<()>;

impl Raw {
    /// Runs a mode on the whole input. The tag follows the ciphertext; the synthetic IV of SIV precedes it.
    pub(crate) fn whole(&self, mode: WholeMode, pipe: Pipe<'_>) -> Result<u64> {
        let aead: (Aead, Aead) = match mode {
            WholeMode::Gcm => (gcm::seal, gcm::open),
            WholeMode::Ccm => (ccm::seal, ccm::open),
            WholeMode::GcmSiv => (gcm_siv::seal, gcm_siv::open),
            WholeMode::Ocb => (ocb::seal, ocb::open),
            WholeMode::Xaes => (xaes::seal, xaes::open),
            WholeMode::Siv if self.decrypt => return self.open_siv(pipe),
            WholeMode::Siv => return self.seal_siv(pipe),
            WholeMode::Hctr2 => return self.hctr2(pipe),
            WholeMode::CbcCts(variant) => return self.cbc_cts(variant, pipe),
            WholeMode::KeyWrap => return self.key_wrap(key_wrap::wrap, key_wrap::unwrap, pipe),
            WholeMode::KeyWrapPadded => {
                return self.key_wrap(key_wrap::wrap_padded, key_wrap::unwrap_padded, pipe);
            }
        };
        if self.decrypt { self.open(aead.1, pipe) } else { self.seal(aead.0, pipe) }
    }

    fn seal(&self, seal: Aead, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let mut tag = vec![0; self.tag_len];
        let key = Key::new(&self.key)?;
        let mut messages = [self.message(&key, &mut data, Tag::Write(&mut tag))];
        seal(&self.planner, &mut messages)?;
        check_done(messages[0].status)?;
        write(pipe.output, &data)?;
        write(pipe.output, &tag)?;
        Ok(data.len() as u64)
    }

    fn open(&self, open: Aead, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_TAG)?;
        let len = self.len_without_tag(data.len())?;
        let key = Key::new(&self.key)?;
        let (ciphertext, tag) = data.split_at_mut(len);
        let mut messages = [self.message(&key, ciphertext, Tag::Expect(tag))];
        open(&self.planner, &mut messages)?;
        check_done(messages[0].status)?;
        write(pipe.output, &data[..len])?;
        Ok(len as u64)
    }

    fn seal_siv(&self, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let mut tag = [0; 16];
        let (key, aad) = (SivKey::new(&self.key)?, self.strings());
        let (tag_place, status) = (Tag::Write(&mut tag), Status::Pending);
        let data_place = Data::in_place(&mut data);
        let mut messages = [SivMessage { key: &key, aad: &aad, data: data_place, tag: tag_place, status }];
        siv::seal(&self.planner, &mut messages)?;
        check_done(messages[0].status)?;
        write(pipe.output, &tag)?;
        write(pipe.output, &data)?;
        Ok(data.len() as u64)
    }

    fn open_siv(&self, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_TAG)?;
        let len = self.len_without_tag(data.len())?;
        let (key, aad) = (SivKey::new(&self.key)?, self.strings());
        let (tag, ciphertext) = data.split_at_mut(16);
        let (tag, status) = (Tag::Expect(tag), Status::Pending);
        let data_place = Data::in_place(ciphertext);
        let mut messages = [SivMessage { key: &key, aad: &aad, data: data_place, tag, status }];
        siv::open(&self.planner, &mut messages)?;
        check_done(messages[0].status)?;
        write(pipe.output, &data[16..])?;
        Ok(len as u64)
    }

    fn hctr2(&self, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let key = Hctr2Key::new(&self.planner, Key::new(&self.key)?)?;
        hctr2::run(&self.planner, self.direction(), &key, &self.iv, Data::in_place(&mut data))?;
        write(pipe.output, &data)?;
        Ok(data.len() as u64)
    }

    fn cbc_cts(&self, variant: Variant, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let (key, mut iv) = (Key::new(&self.key)?, self.block("CBC-CTS")?);
        match self.decrypt {
            false => cbc_cts::encrypt(&self.planner, &key, variant, &mut iv, &mut data)?,
            true => cbc_cts::decrypt(&self.planner, &key, variant, &mut iv, &mut data)?,
        }
        write(pipe.output, &data)?;
        Ok(data.len() as u64)
    }

    fn key_wrap(&self, wrap: Wrap, unwrap: Unwrap, pipe: Pipe<'_>) -> Result<u64> {
        let data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let key = Key::new(&self.key)?;
        if self.decrypt {
            let unwrapped = unwrap(&self.planner, &key, &data)?;
            write(pipe.output, &unwrapped)?;
            return Ok(unwrapped.len() as u64);
        }
        write(pipe.output, &wrap(&self.planner, &key, &data)?)?;
        Ok(data.len() as u64)
    }

    /// The strings of associated data of SIV, with the nonce as the last one.
    fn strings(&self) -> Vec<&[u8]> {
        let nonce = (!self.iv.is_empty()).then_some(self.iv.as_slice());
        self.aad.iter().map(Vec::as_slice).chain(nonce).collect()
    }

    fn message<'d>(&'d self, key: &'d Key, data: &'d mut [u8], tag: Tag<'d>) -> AeadMessage<'d> {
        let aad = self.aad.first().map_or(&[][..], Vec::as_slice);
        let status = Status::Pending;
        AeadMessage { key, nonce: &self.iv, aad, data: Data::in_place(data), tag, status }
    }

    fn len_without_tag(&self, len: usize) -> Result<usize> {
        len.checked_sub(self.tag_len).ok_or_else(|| {
            let got = text::bytes(len as u64);
            Error::NotAuthentic(format!("the input has {got}, less than a tag: it was cut off"))
        })
    }
}

/// Checks that the device has processed a message. The message is written only after this check.
fn check_done(status: Status) -> Result<()> {
    if status == Status::Done {
        return Ok(());
    }
    Err(failed(
        "the device has not processed the data: nothing was written; use another device and report this",
    ))
}
