//! Raw modes between an input and an output. The modes in this file process the input piece by piece; the modes in `whole`
//! need all of it.

mod input;
mod whole;

use std::io::Write;

use lockstep::Engine;
use lockstep::hazmat::mode::{Aead, AeadKey, Cipher, CipherKey, Direction};
use lockstep::hazmat::stream::{AeadStream, CipherStream, CmacStream, Padding};
use lockstep::hazmat::{self, Block, Key};
use zeroize::Zeroizing;

use crate::error::{Result, failed};
use crate::input::Input;
use crate::job::Report;
use crate::output::Output;
use crate::text;
use input::PIECE;
pub(crate) use whole::WholeMode;

/// A raw mode's parameters.
pub(crate) struct Raw {
    pub(crate) engine: Engine,
    pub(crate) decrypt: bool,
    pub(crate) key: Zeroizing<Vec<u8>>,
    pub(crate) iv: Vec<u8>,
    /// The strings of associated data; one at most, except for SIV.
    pub(crate) aad: Vec<Vec<u8>>,
    pub(crate) tag_len: usize,
}

/// Input and output.
pub(crate) struct Pipe<'a> {
    pub(crate) input: &'a Input,
    pub(crate) output: &'a mut Output,
    pub(crate) report: Report<'a>,
}

impl Raw {
    /// Runs a mode without authentication, piece by piece; returns the number of input bytes.
    pub(crate) fn cipher(&self, cipher: Cipher, padding: bool, pipe: Pipe<'_>) -> Result<u64> {
        let iv = if cipher == Cipher::Ecb { [0; 16] } else { self.block(cipher.name())? };
        let padding = if padding { Padding::Pkcs7 } else { Padding::None };
        let key = CipherKey::new(cipher, &self.key)?;
        let mut stream =
            CipherStream::new(self.engine.planner().clone(), cipher, self.direction(), padding, key, &iv)?;
        let mut output = Zeroizing::new(vec![0; PIECE + 64]);
        let total = pipe.input.for_each_piece(pipe.report, |piece| {
            let done = if cipher.is_stream() {
                stream.update_in_place(piece)?;
                &*piece
            } else {
                let len = stream.update(piece, &mut output)?;
                &output[..len]
            };
            write(pipe.output, done)
        })?;
        if self.decrypt && padding == Padding::Pkcs7 && cipher.takes_padding() {
            check_padded(cipher, total)?;
        }
        let len = stream.finish(&mut output)?;
        write(pipe.output, &output[..len])?;
        Ok(total)
    }

    /// Writes the CMAC of the input in hex.
    pub(crate) fn cmac(&self, mut pipe: Pipe<'_>) -> Result<u64> {
        if !(1..=16).contains(&self.tag_len) {
            return Err(failed(format!("--tag-len is {}: a MAC has 1 to 16 bytes", self.tag_len)));
        }
        let mut stream = CmacStream::new(self.engine.planner().clone(), Key::new(&self.key)?);
        let total = pipe.input.for_each_piece(pipe.report, |piece| Ok(stream.update(piece)?))?;
        self.print_mac(&stream.finish()?, &mut pipe)?;
        Ok(total)
    }

    /// Writes the GMAC of the input in hex.
    pub(crate) fn gmac(&self, mut pipe: Pipe<'_>) -> Result<u64> {
        let mut stream = self.gcm_stream()?;
        let total = pipe.input.for_each_piece(pipe.report, |piece| Ok(stream.aad(piece)?))?;
        let mut tag = [0; 16];
        stream.finish(self.tag_place(&mut tag)?)?;
        self.print_mac(&tag, &mut pipe)?;
        Ok(total)
    }

    fn print_mac(&self, mac: &Block, pipe: &mut Pipe<'_>) -> Result<()> {
        write(pipe.output, format!("{}\n", text::hex(&mac[..self.tag_len])).as_bytes())
    }

    /// Encrypts with GCM, piece by piece. The tag follows the ciphertext.
    pub(crate) fn seal_gcm(&self, pipe: Pipe<'_>) -> Result<u64> {
        let mut stream = self.gcm_stream()?;
        self.aad.iter().try_for_each(|aad| stream.aad(aad))?;
        let mut tag = [0; 16];
        let place = self.tag_place(&mut tag)?;
        let total = pipe.input.for_each_piece(pipe.report, |piece| {
            stream.update_in_place(piece)?;
            write(pipe.output, piece)
        })?;
        stream.finish(place)?;
        write(pipe.output, &tag[..self.tag_len])?;
        Ok(total)
    }

    fn gcm_stream(&self) -> Result<AeadStream> {
        let key = AeadKey::new(Aead::Gcm, &self.key)?;
        Ok(AeadStream::new(self.engine.planner().clone(), Direction::Encrypt, &key, &self.iv, None)?)
    }

    /// The part of `tag` with the requested length. Lengths that neither GCM nor CCM supports are an error, before
    /// anything is written.
    fn tag_place<'t>(&self, tag: &'t mut Block) -> Result<&'t mut [u8]> {
        match self.tag_len {
            4 | 6 | 8 | 10 | 12..=16 => Ok(&mut tag[..self.tag_len]),
            got => {
                Err(hazmat::Error::TagLength { mode: "this mode", expected: "4, 8 or 12 to 16", got }.into())
            }
        }
    }

    fn direction(&self) -> Direction {
        if self.decrypt { Direction::Decrypt } else { Direction::Encrypt }
    }

    fn block(&self, mode: &'static str) -> Result<Block> {
        let got = self.iv.len();
        let block = self.iv.as_slice().try_into();
        block.map_err(|_| hazmat::Error::IvLength { mode, expected: "16", got }.into())
    }
}

/// Refuses input whose length is impossible for ciphertext with padding. A wrong key cannot be the cause of such a
/// length, so the error is not an authentication failure.
fn check_padded(cipher: Cipher, total: u64) -> Result<()> {
    let name = cipher.name();
    match total {
        0 => Err(failed(format!(
            "the input is empty: ciphertext of {name} with padding has at least 16 bytes"
        ))),
        _ if !total.is_multiple_of(16) => Err(failed(format!(
            "the input has {total} bytes: ciphertext of {name} is a multiple of 16 bytes, so this was cut off or is \
             something else"
        ))),
        _ => Ok(()),
    }
}

fn write(output: &mut Output, bytes: &[u8]) -> Result<()> {
    Ok(output.write_all(bytes).map_err(lockstep::Error::Write)?)
}
