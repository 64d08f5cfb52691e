//! Runs a raw mode: reads the input, encrypts or decrypts it, and writes the output. Most modes process the input piece by piece; other
//! modes need the whole input in memory. A mode with a tag writes no plaintext before the tag has been checked.

use lockstep::Engine;
use lockstep::aead::{self, Aead, AeadKey, Sealer};
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use lockstep::hazmat::mode::hctr2::{self, Hctr2Key};
use lockstep::hazmat::mode::key_wrap::{self, Icv};
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction};
use lockstep::hazmat::stream::{CipherStream, CmacStream, Padding};
use lockstep::hazmat::{self, Block, Key};
use zeroize::Zeroizing;

use crate::error::{Result, ensure, not_authentic};
use crate::input::Input;
use crate::job::{PIECE, Report};
use crate::output::Writer;
use crate::{memory, text};

/// Texts for error messages. They state why the whole input must be in memory, and name an alternative.
const FOR_TAG: &str = "to hold the input until its tag has been checked; `lockstep encrypt` makes files that are \
                       decrypted in little memory";
const FOR_MODE: &str =
    "to hold the input, all of which this mode needs at once; GCM encrypts in little memory";

/// A raw mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A mode without authentication.
    Cipher(Cipher),
    Aead(Aead),
    Hctr2,
    CbcCts,
    KeyWrap(Icv),
    Cmac,
    Gmac,
}

/// A raw mode with its options and the values that the options give. The mode allows all these options.
pub(super) struct Raw<'a> {
    pub(super) args: &'a super::Cipher,
    pub(super) input: Input,
    pub(super) engine: Engine,
    pub(super) key: Zeroizing<Vec<u8>>,
    pub(super) iv: Vec<u8>,
    /// The strings of associated data. Modes other than SIV have at most one string.
    pub(super) aad: Vec<Vec<u8>>,
}

impl Raw<'_> {
    /// Runs the mode; returns the number of input or plaintext bytes.
    pub(super) fn run(&self, output: &mut Writer, report: Report<'_>) -> Result<u64> {
        match self.args.mode {
            Mode::Cipher(cipher) => self.cipher(cipher, output, report),
            Mode::Cmac => self.cmac(output, report),
            Mode::Gmac => self.gcm(true, output, report),
            Mode::Aead(Aead::Gcm) if !self.args.decrypt => self.gcm(false, output, report),
            _ => self.whole(output, report),
        }
    }

    /// Runs a mode without authentication, piece by piece; returns the number of input bytes.
    fn cipher(&self, cipher: Cipher, output: &mut Writer, report: Report<'_>) -> Result<u64> {
        let iv = if cipher == Cipher::Ecb { [0; 16] } else { self.block(cipher.name())? };
        let padding = if self.args.no_padding { Padding::None } else { Padding::Pkcs7 };
        let key = CipherKey::new(cipher, &self.key)?;
        let mut stream = CipherStream::new(&self.engine, cipher, self.direction(), padding, key, &iv)?;
        let mut processed = Zeroizing::new(vec![0; PIECE + 64]);
        let total = self.input.for_each_piece(PIECE, report, |piece| {
            let done = if cipher.is_stream() {
                stream.update_in_place(piece)?;
                &*piece
            } else {
                let len = stream.update(piece, &mut processed)?;
                &processed[..len]
            };
            write(output, done)
        })?;
        if self.args.decrypt && padding == Padding::Pkcs7 && cipher.takes_padding() {
            check_padded(cipher, total)?;
        }
        let len = stream.finish(&mut processed)?;
        write(output, &processed[..len])?;
        Ok(total)
    }

    /// Writes the CMAC of the input in hex.
    fn cmac(&self, output: &mut Writer, report: Report<'_>) -> Result<u64> {
        let mut stream = CmacStream::new(&self.engine, Key::new(&self.key)?);
        let total = self.input.for_each_piece(PIECE, report, |piece| Ok(stream.update(piece)?))?;
        self.write_mac(&stream.finish()?, output)?;
        Ok(total)
    }

    /// Encrypts with GCM, piece by piece, and writes the tag after the ciphertext. If `is_mac` is true, computes GMAC: the input is
    /// the associated data, and only the tag is written, in hex.
    fn gcm(&self, is_mac: bool, output: &mut Writer, report: Report<'_>) -> Result<u64> {
        let key = AeadKey::new(Aead::Gcm, &self.key)?;
        let mut stream = Sealer::new(&self.engine, &key, &self.iv, None)?;
        self.aad.iter().try_for_each(|aad| stream.aad(aad))?;
        let total = self.input.for_each_piece(PIECE, report, |piece| {
            if is_mac {
                return Ok(stream.aad(piece)?);
            }
            stream.update_in_place(piece)?;
            write(output, piece)
        })?;
        let mut tag = [0; 16];
        stream.finish(&mut tag[..self.args.tag_len()])?;
        if is_mac {
            self.write_mac(&tag, output)?
        } else {
            write(output, &tag[..self.args.tag_len()])?
        }
        Ok(total)
    }

    fn write_mac(&self, mac: &Block, output: &mut Writer) -> Result<()> {
        write(output, format!("{}\n", text::hex(&mac[..self.args.tag_len()])).as_bytes())
    }

    /// Runs a mode on the whole input, and returns the number of plaintext bytes. The tag follows the ciphertext, but the
    /// synthetic IV of SIV, which is its tag, precedes the ciphertext.
    fn whole(&self, output: &mut Writer, report: Report<'_>) -> Result<u64> {
        let planner = self.engine.planner();
        let opens = self.args.decrypt && matches!(self.args.mode, Mode::Aead(_));
        let mut data = self.input.read_all(report, if opens { FOR_TAG } else { FOR_MODE })?;
        let len = data.len();
        match self.args.mode {
            Mode::Aead(mode) => {
                let key = aead::Key::new(mode, &self.key)?;
                let aad: Vec<_> = self.aad.iter().map(Vec::as_slice).collect();
                if !self.args.decrypt {
                    let mut tag = vec![0; self.args.tag_len()];
                    key.seal_in_place(&self.engine, &self.iv, &aad, &mut data, &mut tag)?;
                    mode.in_order(&data, &tag).into_iter().try_for_each(|part| write(output, part))?;
                    return Ok(len as u64);
                }
                let got = text::bytes(len as u64);
                let (ciphertext, tag) = mode.split_mut(&mut data, self.args.tag_len()).ok_or_else(|| {
                    not_authentic(format!("the input has {got}, less than a tag: it was cut off"))
                })?;
                key.open_in_place(&self.engine, &self.iv, &aad, ciphertext, tag)?;
                write(output, ciphertext)?;
                return Ok(ciphertext.len() as u64);
            }
            Mode::Hctr2 => {
                let key = Hctr2Key::new(planner, Key::new(&self.key)?)?;
                hctr2::run(planner, self.direction(), &key, &self.iv, Data::in_place(&mut data))?;
            }
            Mode::KeyWrap(icv) => {
                let key = Key::new(&self.key)?;
                data = match self.args.decrypt {
                    false => key_wrap::wrap(planner, &key, icv, &data)?.into(),
                    true => key_wrap::unwrap(planner, &key, icv, &data)?,
                };
            }
            // This branch is CBC-CTS. The remaining modes are processed in pieces and do not reach this function.
            _ => {
                let (key, mut iv) = (Key::new(&self.key)?, self.block("CBC-CTS")?);
                let order = self.args.cts_mode.unwrap_or(Variant::Cs1);
                cbc_cts::run_in_place(planner, self.direction(), &key, order, &mut iv, &mut data)?;
            }
        }
        write(output, &data)?;
        Ok(if self.args.decrypt { data.len() } else { len } as u64)
    }

    fn direction(&self) -> Direction {
        if self.args.decrypt { Direction::Decrypt } else { Direction::Encrypt }
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
    let rule = format_args!("ciphertext of {name} with padding has at least 16 bytes");
    ensure(total > 0, format_args!("the input is empty: {rule}"))?;
    let rule = format_args!("ciphertext of {name} is a multiple of 16 bytes");
    let message =
        format_args!("the input has {total} bytes: {rule}, so this was cut off or is something else");
    ensure(total.is_multiple_of(16), message)
}

fn write(output: &mut Writer, bytes: &[u8]) -> Result<()> {
    Ok(output.write_all(bytes).map_err(lockstep::Error::Write)?)
}

impl Input {
    /// Reads all input into memory. If there is too little memory, the error message contains `purpose`.
    pub(super) fn read_all(&self, report: Report<'_>, purpose: &str) -> Result<Zeroizing<Vec<u8>>> {
        let mut all = Zeroizing::new(Vec::new());
        memory::reserve(&mut all, self.len.unwrap_or(0), purpose)?;
        self.for_each_piece(PIECE, report, |piece| {
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
