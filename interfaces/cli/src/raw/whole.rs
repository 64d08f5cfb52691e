//! Modes that need the whole input before the first byte of output, and decryption with a tag: nothing is written before the
//! tag has been checked.

use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::aead::{Aead, AeadKey, Message};
use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use lockstep::hazmat::mode::executor::Executor;
use lockstep::hazmat::mode::hctr2::{self, Hctr2Key};
use lockstep::hazmat::mode::key_wrap;
use lockstep::hazmat::work::{Status, Tag};
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
    Aead(Aead),
    Hctr2,
    CbcCts(Variant),
    KeyWrap,
    KeyWrapPadded,
}

/// The functions of key wrap.
type Wrap = fn(&dyn Executor, &Key, &[u8]) -> hazmat::Result<Vec<u8>>;
type Unwrap = fn(&dyn Executor, &Key, &[u8]) -> hazmat::Result<Zeroizing<Vec<u8>>>;

impl Raw {
    /// Runs a mode on the whole input. The tag follows the ciphertext; the synthetic IV of SIV precedes it.
    pub(crate) fn whole(&self, mode: WholeMode, pipe: Pipe<'_>) -> Result<u64> {
        match mode {
            WholeMode::Aead(aead) if self.decrypt => self.open(aead, pipe),
            WholeMode::Aead(aead) => self.seal(aead, pipe),
            WholeMode::Hctr2 => self.hctr2(pipe),
            WholeMode::CbcCts(variant) => self.cbc_cts(variant, pipe),
            WholeMode::KeyWrap => self.key_wrap(key_wrap::wrap, key_wrap::unwrap, pipe),
            WholeMode::KeyWrapPadded => self.key_wrap(key_wrap::wrap_padded, key_wrap::unwrap_padded, pipe),
        }
    }

    fn seal(&self, aead: Aead, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let mut tag = vec![0; self.tag_len];
        let (key, aad) = (AeadKey::new(aead, &self.key)?, self.strings());
        let mut messages = [self.message(&key, &aad, &mut data, Tag::Write(&mut tag))];
        aead.seal(&self.planner, &mut messages)?;
        check_done(messages[0].status)?;
        let parts = if aead == Aead::Siv { [&tag[..], &data[..]] } else { [&data[..], &tag[..]] };
        parts.into_iter().try_for_each(|part| write(pipe.output, part))?;
        Ok(data.len() as u64)
    }

    fn open(&self, aead: Aead, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_TAG)?;
        let len = self.len_without_tag(data.len())?;
        let (key, aad) = (AeadKey::new(aead, &self.key)?, self.strings());
        let (ciphertext, tag) = if aead == Aead::Siv {
            let (tag, ciphertext) = data.split_at_mut(self.tag_len);
            (ciphertext, tag)
        } else {
            data.split_at_mut(len)
        };
        let mut messages = [self.message(&key, &aad, ciphertext, Tag::Expect(tag))];
        aead.open(&self.planner, &mut messages)?;
        let [Message { status, .. }] = messages;
        check_done(status)?;
        write(pipe.output, ciphertext)?;
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

    /// The strings of associated data.
    fn strings(&self) -> Vec<&[u8]> {
        self.aad.iter().map(Vec::as_slice).collect()
    }

    fn message<'d>(
        &'d self,
        key: &'d AeadKey,
        aad: &'d [&'d [u8]],
        data: &'d mut [u8],
        tag: Tag<'d>,
    ) -> Message<'d> {
        Message { key, nonce: &self.iv, aad, data: Data::in_place(data), tag, status: Status::Pending }
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
