//! Modes that need the whole input before the first byte of output, and decryption with a tag: nothing is written before the
//! tag has been checked.

use lockstep::aead::{self, Aead};
use lockstep::hazmat::Key;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use lockstep::hazmat::mode::hctr2::{self, Hctr2Key};
use lockstep::hazmat::mode::key_wrap::{self, Icv};

use super::{Pipe, Raw, write};
use crate::error::{Error, Result};
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

impl Raw {
    /// Runs a mode on the whole input. The tag follows the ciphertext; the synthetic IV of SIV precedes it.
    pub(crate) fn whole(&self, mode: WholeMode, pipe: Pipe<'_>) -> Result<u64> {
        match mode {
            WholeMode::Aead(aead) if self.decrypt => self.open(aead, pipe),
            WholeMode::Aead(aead) => self.seal(aead, pipe),
            WholeMode::Hctr2 => self.hctr2(pipe),
            WholeMode::CbcCts(variant) => self.cbc_cts(variant, pipe),
            WholeMode::KeyWrap => self.key_wrap(Icv::KW, pipe),
            WholeMode::KeyWrapPadded => self.key_wrap(Icv::KWP, pipe),
        }
    }

    fn seal(&self, aead: Aead, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let (key, mut tag) = (aead::Key::new(aead, &self.key)?, vec![0; self.tag_len]);
        key.seal_in_place(&self.engine, &self.iv, &self.strings(), &mut data, &mut tag)?;
        aead.in_order(&data, &tag).into_iter().try_for_each(|part| write(pipe.output, part))?;
        Ok(data.len() as u64)
    }

    fn open(&self, aead: Aead, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_TAG)?;
        let got = data.len();
        let (ciphertext, tag) = aead.split_mut(&mut data, self.tag_len).ok_or_else(|| {
            let got = text::bytes(got as u64);
            Error::NotAuthentic(format!("the input has {got}, less than a tag: it was cut off"))
        })?;
        let key = aead::Key::new(aead, &self.key)?;
        key.open_in_place(&self.engine, &self.iv, &self.strings(), ciphertext, tag)?;
        write(pipe.output, ciphertext)?;
        Ok(ciphertext.len() as u64)
    }

    fn hctr2(&self, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let key = Hctr2Key::new(self.engine.planner(), Key::new(&self.key)?)?;
        hctr2::run(self.engine.planner(), self.direction(), &key, &self.iv, Data::in_place(&mut data))?;
        write(pipe.output, &data)?;
        Ok(data.len() as u64)
    }

    fn cbc_cts(&self, variant: Variant, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let (key, mut iv) = (Key::new(&self.key)?, self.block("CBC-CTS")?);
        let planner = self.engine.planner();
        cbc_cts::run_in_place(planner, self.direction(), &key, variant, &mut iv, &mut data)?;
        write(pipe.output, &data)?;
        Ok(data.len() as u64)
    }

    fn key_wrap(&self, icv: Icv, pipe: Pipe<'_>) -> Result<u64> {
        let data = pipe.input.read_all(pipe.report, FOR_MODE)?;
        let key = Key::new(&self.key)?;
        if self.decrypt {
            let unwrapped = key_wrap::unwrap(self.engine.planner(), &key, icv, &data)?;
            write(pipe.output, &unwrapped)?;
            return Ok(unwrapped.len() as u64);
        }
        write(pipe.output, &key_wrap::wrap(self.engine.planner(), &key, icv, &data)?)?;
        Ok(data.len() as u64)
    }

    /// The strings of associated data.
    fn strings(&self) -> Vec<&[u8]> {
        self.aad.iter().map(Vec::as_slice).collect()
    }
}
