//! Raw modes between an input and an output.

use std::io::Write;
use std::sync::Arc;

use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction, ccm, gcm};
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::stream::{CipherStream, CmacStream, GcmStream, Padding};
use lockstep::hazmat::work::{AeadMessage, Status, Tag};
use lockstep::hazmat::{self, Block, Key};
use zeroize::Zeroizing;

use crate::error::{Error, Result, failed};
use crate::input::{Input, read_full};
use crate::job::Report;
use crate::output::Output;
use crate::{memory, signals, text};

/// Number of bytes that are processed in one call.
const PIECE: usize = 1 << 20;

/// Texts for error messages: the reason why the whole input must be in memory, and an alternative.
const WHOLE_FOR_TAG: &str = "to hold the input until its tag has been checked; `lockstep encrypt` makes files that are \
                             decrypted in little memory";
const WHOLE_FOR_CCM: &str =
    "to hold the input, whose length CCM must know first; GCM encrypts in little memory";

/// A raw mode's parameters.
pub(crate) struct Raw {
    pub(crate) planner: Arc<Planner>,
    pub(crate) decrypt: bool,
    pub(crate) key: Zeroizing<Vec<u8>>,
    pub(crate) iv: Vec<u8>,
    pub(crate) aad: Vec<u8>,
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
            CipherStream::new(self.planner.clone(), cipher, self.direction(), padding, key, &iv)?;
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

    /// Runs GCM or CCM. The tag follows the ciphertext.
    pub(crate) fn aead(&self, is_ccm: bool, pipe: Pipe<'_>) -> Result<u64> {
        match (self.decrypt, is_ccm) {
            (true, _) => self.open(is_ccm, pipe),
            (false, true) => self.seal_ccm(pipe),
            (false, false) => self.seal_gcm(pipe),
        }
    }

    /// Writes the CMAC of the input in hex.
    pub(crate) fn cmac(&self, mut pipe: Pipe<'_>) -> Result<u64> {
        if !(1..=16).contains(&self.tag_len) {
            return Err(failed(format!("--tag-len is {}: a MAC has 1 to 16 bytes", self.tag_len)));
        }
        let mut stream = CmacStream::new(self.planner.clone(), Key::new(&self.key)?);
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

    fn seal_gcm(&self, pipe: Pipe<'_>) -> Result<u64> {
        let mut stream = self.gcm_stream()?;
        stream.aad(&self.aad)?;
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

    /// Encrypts with CCM. The whole input is read first, since CCM needs the length of the data before the first byte.
    fn seal_ccm(&self, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, WHOLE_FOR_CCM)?;
        let len = data.len();
        let mut tag = [0; 16];
        let key = Key::new(&self.key)?;
        let message = self.message(&key, &mut data, Tag::Write(self.tag_place(&mut tag)?));
        let mut messages = [message];
        ccm::seal(&self.planner, &mut messages)?;
        check_done(&messages)?;
        write(pipe.output, &data)?;
        write(pipe.output, &tag[..self.tag_len])?;
        Ok(len as u64)
    }

    /// Decrypts with GCM or CCM. Nothing is written before the tag is verified, so all of the data are held in memory.
    fn open(&self, is_ccm: bool, pipe: Pipe<'_>) -> Result<u64> {
        let mut data = pipe.input.read_all(pipe.report, WHOLE_FOR_TAG)?;
        let len = data.len().checked_sub(self.tag_len);
        let len = len.ok_or_else(|| {
            let got = text::bytes(data.len() as u64);
            Error::NotAuthentic(format!("the input has {got}, less than a tag: it was cut off"))
        })?;
        let key = Key::new(&self.key)?;
        let (ciphertext, tag) = data.split_at_mut(len);
        let mut messages = [self.message(&key, ciphertext, Tag::Expect(tag))];
        if is_ccm {
            ccm::open(&self.planner, &mut messages)
        } else {
            gcm::open(&self.planner, &mut messages)
        }?;
        check_done(&messages)?;
        write(pipe.output, &data[..len])?;
        Ok(len as u64)
    }

    fn message<'d>(&'d self, key: &'d Key, data: &'d mut [u8], tag: Tag<'d>) -> AeadMessage<'d> {
        let status = Status::Pending;
        AeadMessage { key, nonce: &self.iv, aad: &self.aad, data: Data::in_place(data), tag, status }
    }

    fn gcm_stream(&self) -> Result<GcmStream> {
        Ok(GcmStream::new(self.planner.clone(), Direction::Encrypt, Key::new(&self.key)?, &self.iv)?)
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

impl Input {
    /// Reads the input in pieces and passes each to `work`; returns the number of input bytes.
    fn for_each_piece(
        &self,
        report: Report<'_>,
        mut work: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut reader = self.reader();
        let mut piece = Zeroizing::new(vec![0; PIECE]);
        let mut total = 0;
        loop {
            let got = read_full(&mut reader, &mut piece)?;
            if signals::stopped() {
                return Err(Error::Stopped);
            }
            if got > 0 {
                work(&mut piece[..got])?;
            }
            total += got as u64;
            report(total);
            if got < PIECE {
                return Ok(total);
            }
        }
    }

    /// Reads all input into memory. `purpose` is used in the error message if there is too little memory.
    fn read_all(&self, report: Report<'_>, purpose: &str) -> Result<Zeroizing<Vec<u8>>> {
        let mut all = Zeroizing::new(Vec::new());
        memory::reserve(&mut all, self.len().unwrap_or(0), purpose)?;
        self.for_each_piece(report, |piece| {
            if all.capacity() - all.len() < piece.len() {
                all = enlarged(&all, purpose)?;
            }
            all.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(all)
    }
}

/// Copies the bytes to a larger buffer, with space for at least one more piece. A vector that grows by itself would
/// leave a copy that is not wiped.
fn enlarged(bytes: &[u8], purpose: &str) -> Result<Zeroizing<Vec<u8>>> {
    let mut larger = Zeroizing::new(Vec::new());
    let least = bytes.len() + 4 * PIECE;
    let double = 2 * bytes.len();
    if double <= least || memory::reserve(&mut larger, double as u64, purpose).is_err() {
        memory::reserve(&mut larger, (least + bytes.len() / 8) as u64, purpose)?;
    }
    larger.extend_from_slice(bytes);
    Ok(larger)
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

/// Checks that the device has processed all messages. The caller writes them only after this check.
fn check_done(messages: &[AeadMessage<'_>]) -> Result<()> {
    if messages.iter().all(|message| message.status == Status::Done) {
        return Ok(());
    }
    Err(failed(
        "the device has not processed the data: nothing was written; use another device and report this",
    ))
}
