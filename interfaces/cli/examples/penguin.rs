//! Draws the picture in docs/modes.md. The picture has areas of one colour with clear outlines, so a mode that encrypts equal blocks to
//! equal blocks reveals the whole figure.
//!
//!     cargo run -p lockstep-cli --example penguin -- FOLDER
//!
//! It writes `penguin.png`, and the keys of the encrypted pictures: `key` and `key-xts`.

use std::path::Path;
use std::process::ExitCode;

/// Width and height in pixels. A row has 30 blocks of 16 bytes.
pub(crate) const SIZE: usize = 160;

const SKY: [u8; 3] = [0x9c, 0xd3, 0xf0];
const SNOW: [u8; 3] = [0xff, 0xff, 0xff];
const BLACK: [u8; 3] = [0x20, 0x22, 0x2a];
const ORANGE: [u8; 3] = [0xf5, 0x9a, 0x23];

/// An ellipse: its centre (two coordinates), its two half axes, and its colour.
struct Ellipse(f64, f64, f64, f64, [u8; 3]);

/// From back to front.
const FIGURE: [Ellipse; 14] = [
    // Feet.
    Ellipse(64.0, 147.0, 15.0, 6.0, ORANGE),
    Ellipse(96.0, 147.0, 15.0, 6.0, ORANGE),
    // Wings, body, head.
    Ellipse(40.0, 92.0, 11.0, 34.0, BLACK),
    Ellipse(120.0, 92.0, 11.0, 34.0, BLACK),
    Ellipse(80.0, 98.0, 39.0, 49.0, BLACK),
    Ellipse(80.0, 43.0, 27.0, 28.0, BLACK),
    // Belly and face.
    Ellipse(80.0, 104.0, 27.0, 38.0, SNOW),
    Ellipse(71.0, 46.0, 12.0, 15.0, SNOW),
    Ellipse(89.0, 46.0, 12.0, 15.0, SNOW),
    // Eyes.
    Ellipse(73.0, 41.0, 4.0, 6.0, BLACK),
    Ellipse(87.0, 41.0, 4.0, 6.0, BLACK),
    Ellipse(74.0, 39.0, 1.6, 2.2, SNOW),
    Ellipse(88.0, 39.0, 1.6, 2.2, SNOW),
    // Beak.
    Ellipse(80.0, 54.0, 11.0, 5.0, ORANGE),
];

/// The pixels, row by row. Each pixel has three bytes.
pub(crate) fn pixels() -> Vec<u8> {
    let colour = |x: usize, y: usize| {
        let (x, y) = (x as f64 + 0.5, y as f64 + 0.5);
        let inside = |Ellipse(middle_x, middle_y, half_x, half_y, _): &&Ellipse| {
            ((x - middle_x) / half_x).powi(2) + ((y - middle_y) / half_y).powi(2) <= 1.0
        };
        let ground = if y > 132.0 { SNOW } else { SKY };
        FIGURE.iter().rev().find(inside).map_or(ground, |ellipse| ellipse.4)
    };
    (0..SIZE * SIZE).flat_map(|place| colour(place % SIZE, place / SIZE)).collect()
}

/// A key that is not secret. Its bytes are 0, 1, 2 and so on.
pub(crate) fn key(len: u8) -> Vec<u8> {
    (0..len).collect()
}

#[allow(dead_code, reason = "a test includes this file for its pixels")]
fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: penguin FOLDER");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("penguin: {error}");
            ExitCode::from(2)
        }
    }
}

fn write(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let file = std::fs::File::create(folder.join("penguin.png"))?;
    let mut encoder = png::Encoder::new(file, SIZE as u32, SIZE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels())?;
    writer.finish()?;
    std::fs::write(folder.join("key"), key(32))?;
    std::fs::write(folder.join("key-xts"), key(64))?;
    Ok(())
}
