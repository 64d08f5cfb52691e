//! Modes that need the whole input before the first byte of output, and decryption with a tag: nothing is written before the
//! tag has been checked.

use lockstep::aead;
use lockstep::hazmat::Key;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::hctr2::{self, Hctr2Key};
use lockstep::hazmat::mode::{cbc_cts, key_wrap};

use super::{Mode, Pipe, Raw, write};
use crate::error::{Error, Result};
use crate::text;

/// Texts for error messages: the reason why the whole input must be in memory, and an alternative.
const FOR_TAG: &str = "to hold the input until its tag has been checked; `lockstep encrypt` makes files that are \
                       decrypted in little memory";
const FOR_MODE: &str =
    "to hold the input, all of which this mode needs at once; GCM encrypts in little memory";

impl Raw {
    /// Runs a mode on the whole input; returns the number of plaintext bytes. The tag follows the ciphertext; the synthetic IV
    /// of SIV precedes it.
    pub(super) fn whole(&self, pipe: Pipe<'_>) -> Result<u64> {
        let planner = self.engine.planner();
        let opens = self.decrypt && matches!(self.mode, Mode::Aead(_));
        let mut data = pipe.input.read_all(pipe.report, if opens { FOR_TAG } else { FOR_MODE })?;
        let len = data.len();
        match self.mode {
            Mode::Aead(mode) => {
                let key = aead::Key::new(mode, &self.key)?;
                let aad: Vec<_> = self.aad.iter().map(Vec::as_slice).collect();
                if !self.decrypt {
                    let mut tag = vec![0; self.tag_len];
                    key.seal_in_place(&self.engine, &self.iv, &aad, &mut data, &mut tag)?;
                    mode.in_order(&data, &tag).into_iter().try_for_each(|part| write(pipe.output, part))?;
                    return Ok(len as u64);
                }
                let got = text::bytes(len as u64);
                let (ciphertext, tag) = mode.split_mut(&mut data, self.tag_len).ok_or_else(|| {
                    Error::NotAuthentic(format!("the input has {got}, less than a tag: it was cut off"))
                })?;
                key.open_in_place(&self.engine, &self.iv, &aad, ciphertext, tag)?;
                write(pipe.output, ciphertext)?;
                return Ok(ciphertext.len() as u64);
            }
            Mode::Hctr2 => {
                let key = Hctr2Key::new(planner, Key::new(&self.key)?)?;
                hctr2::run(planner, self.direction(), &key, &self.iv, Data::in_place(&mut data))?;
            }
            Mode::KeyWrap { padded } => {
                let key = Key::new(&self.key)?;
                data = match (padded, self.decrypt) {
                    (false, false) => key_wrap::wrap(planner, &key, &data)?.into(),
                    (true, false) => key_wrap::wrap_padded(planner, &key, &data)?.into(),
                    (false, true) => key_wrap::unwrap(planner, &key, &data)?,
                    (true, true) => key_wrap::unwrap_padded(planner, &key, &data)?,
                };
            }
            // The other modes are processed in pieces.
            _ => {
                let run = if self.decrypt { cbc_cts::decrypt } else { cbc_cts::encrypt };
                let (key, mut iv) = (Key::new(&self.key)?, self.block("CBC-CTS")?);
                run(planner, &key, self.cts, &mut iv, &mut data)?;
            }
        }
        write(pipe.output, &data)?;
        Ok(if self.decrypt { data.len() } else { len } as u64)
    }
}
