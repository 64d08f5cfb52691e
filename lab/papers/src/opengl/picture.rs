//! The pictures of the chapter's Figures 36-11 and 36-13: a texture of 256 by 256 texels with letters, and its ciphertexts in
//! the modes ECB and CBC. The letters can still be read in the ciphertext in ECB mode.

use lockstep_core::backend::Device;
use lockstep_core::data::Data;
use lockstep_core::work::Pass;
use lockstep_core::{Key, Result};

use super::Error;
use super::measure::Subject;

/// Width and height of a picture in pixels.
pub const EDGE: usize = 256;

/// Letters of 5 by 7 squares, row by row; bit 4 is the leftmost square.
const LETTERS: [[u8; 7]; 3] = [
    [0b01110, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001],
    [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111],
    [0b01111, 0b10000, 0b10000, 0b01110, 0b00001, 0b00001, 0b11110],
];
/// Pixels of the edge of a square, and of the space beside and above the letters.
const SQUARE: usize = 14;
const LEFT: usize = 8;
const TOP: usize = (EDGE - 7 * SQUARE) / 2;

/// The key of FIPS 197, appendix C.1, and an IV of zeros. They are fixed, so that each run draws the same pictures.
const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const IV: [u8; 16] = [0; 16];

/// Pictures of [`EDGE`] by `EDGE` pixels: red, green, blue and opacity, a byte each, row by row.
pub struct Pictures {
    /// The picture before encryption.
    pub plain: Vec<u8>,
    /// The picture, encrypted in ECB mode by the device.
    pub ecb: Vec<u8>,
    /// The picture, encrypted in CBC mode. This mode encrypts one block after the other, so the CPU encrypts, and the
    /// device decrypts the result.
    pub cbc: Vec<u8>,
}

/// A picture with the letters AES in white on blue.
fn plain() -> Vec<u8> {
    let mut pixels = Vec::with_capacity(4 * EDGE * EDGE);
    for y in 0..EDGE {
        for x in 0..EDGE {
            // A letter and the space after it take six squares.
            let (column, row) = (x.wrapping_sub(LEFT) / SQUARE, y.wrapping_sub(TOP) / SQUARE);
            let letter = LETTERS.get(column / 6).and_then(|rows| rows.get(row));
            let is_white =
                column % 6 < 5 && letter.is_some_and(|squares| squares >> (4 - column % 6) & 1 == 1);
            pixels.extend(if is_white { [255, 255, 255, 255] } else { [32, 64, 160, 255] });
        }
    }
    pixels
}

/// Encrypts the picture with a kernel of the device, and has the device decrypt both ciphertexts. `encrypt_cbc` encrypts a
/// buffer in CBC mode with a key and an IV.
///
/// # Errors
/// [`Error::Device`], also if there is no such kernel; [`Error::WrongPicture`] if the device decrypts wrongly.
pub fn pictures(
    device: &dyn Device,
    kernel: &str,
    encrypt_cbc: impl FnOnce(&Key, &[u8; 16], &mut [u8]) -> Result<()>,
) -> std::result::Result<Pictures, Error> {
    let id = lockstep_core::backend::kernel_by_name(device, kernel)?;
    let name = device.kernels()[usize::from(id.0)].name;
    let subject = Subject { device, kernel: id, name };
    let key = Key::new(&KEY)?;
    let plain = plain();
    let mut ecb = plain.clone();
    subject.run(Pass::EcbEncrypt, &key, &mut [0; 16], Data::in_place(&mut ecb))?;
    let mut cbc = plain.clone();
    encrypt_cbc(&key, &IV, &mut cbc)?;
    for (pass, ciphertext) in [(Pass::EcbDecrypt, &ecb), (Pass::CbcDecrypt, &cbc)] {
        let mut back = vec![0; plain.len()];
        subject.run(pass, &key, &mut IV.clone(), Data::copy(ciphertext, &mut back)?)?;
        if back != plain {
            return Err(Error::WrongPicture { kernel: kernel.into() });
        }
    }
    Ok(Pictures { plain, ecb, cbc })
}

#[cfg(test)]
mod tests;
