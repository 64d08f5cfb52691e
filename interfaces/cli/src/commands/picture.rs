//! `lockstep picture`: reads a PNG, encrypts its pixels, and writes the result as a PNG.

use std::io::{Cursor, Read};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use lockstep::Sparse;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction, Message};
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::{self, Block};
use png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, Limits, OutputInfo, Transformations};
use zeroize::Zeroizing;

use super::cipher::read_raw_key;
use crate::error::{Error, Result, ensure, failed};
use crate::input::{Input, check_sources, names};
use crate::options::{EngineArgs, OutputArgs, choice};
use crate::output::{Content, Output};
use crate::{job, memory};

/// Encrypt the pixels of a picture, to show what a mode hides
///
/// The colours are encrypted: in XTS in sectors of 512 bytes, as on a disk; in other modes as one message with an all-zero
/// IV. Size and transparency do not change. The resulting picture shows what an attacker learns from the ciphertext alone;
/// docs/modes.md has examples.
///
/// For demonstration only: nothing is authenticated. There is no padding: ECB and CBC leave a partial last block
/// unencrypted, and XTS leaves a last sector of less than 16 bytes unencrypted.
#[derive(Args)]
#[command(after_long_help = "Examples:\n  lockstep picture --mode ecb photo.png encrypted.png")]
pub struct PictureArgs {
    /// The mode
    #[arg(short, long, value_name = "MODE", value_parser = choice(&MODES))]
    mode: Cipher,

    /// A file that contains the key: 16, 24 or 32 raw bytes; for XTS two keys of 16 or 32 bytes each [default: a random
    /// key, which is not stored]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    key_file: Option<PathBuf>,

    /// The input PNG; `-` is standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    input: PathBuf,

    /// The output PNG; `-` is standard output
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Replace the output file if it exists
    #[arg(short, long)]
    force: bool,

    /// Show errors only: no warnings
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

const MODES: [(&str, Cipher); 4] =
    [("ecb", Cipher::Ecb), ("cbc", Cipher::Cbc), ("ctr", Cipher::Ctr), ("xts", Cipher::Xts)];

/// Maximum length of a file that is read.
const MAX_LEN: u64 = 256 << 20;

pub(crate) fn run(args: &PictureArgs) -> Result<()> {
    let output = OutputArgs { output: Some(args.output.clone()), force: args.force, sync: false };
    let keys: Vec<_> = args.key_file.iter().map(|path| ("key file", path.as_path())).collect();
    check_sources(&output, &args.input, &keys)?;
    let key = CipherKey::new(args.mode, &key(args)?)?;
    let engine = args.engine.engine(false, None)?;
    let input = Input::open(&args.input)?;
    Output::check(&output, &input, Content::Binary)?;
    let mut png = Vec::new();
    Read::take(&input, MAX_LEN + 1).read_to_end(&mut png).map_err(lockstep::Error::Read)?;
    let name = names(std::slice::from_ref(&args.input));
    let has_room = png.len() as u64 <= MAX_LEN;
    ensure(has_room, format_args!("{name}: it is longer than 256 MiB: take a smaller picture"))?;
    let mut picture = Picture::decode(&png).map_err(|why| failed(format!("{name}: {why}")))?;
    drop(png);
    picture.encrypt(engine.planner(), args.mode, &key)?;
    let encoded = picture.encode().map_err(failed)?;
    // The output is opened last: a mistake in the arguments or in the input leaves no output.
    let mut out = Output::open(&output, &input, Content::Binary, Sparse::default())?;
    out.writer().write_all(&encoded).map_err(|error| match output.file() {
        Some(path) => Error::io("write", path)(error),
        None => lockstep::Error::Write(error).into(),
    })?;
    out.commit()?;
    job::report_incidents(engine.planner(), args.quiet);
    job::report_assisted(engine.planner(), args.quiet);
    Ok(())
}

fn key(args: &PictureArgs) -> Result<Zeroizing<Vec<u8>>> {
    if let Some(path) = &args.key_file {
        return read_raw_key(path, args.quiet);
    }
    let mut key = Zeroizing::new(vec![0; if args.mode == Cipher::Xts { 64 } else { 32 }]);
    getrandom::fill(&mut key).map_err(|error| failed(format!("no random key: {error}")))?;
    Ok(key)
}

/// Maximum number of pixels. The limit bounds the memory, which holds all pixels. Pictures for viewing have fewer pixels.
const MAX_PIXELS: u64 = 1 << 26;

/// Maximum number of bytes that a decoder allocates for metadata chunks, in addition to the pixels.
const MAX_METADATA: usize = 16 << 20;

/// Size of a disk sector in bytes.
const SECTOR: usize = 512;

#[derive(Debug)]
struct Picture {
    info: OutputInfo,
    /// All pixels, row by row, without gaps.
    pixels: Vec<u8>,
}

impl Picture {
    /// Decodes a PNG of any type. Palettes become colours, grey values of less than 8 bits become 8 bits, and values of 16 bits keep
    /// 16 bits.
    fn decode(png: &[u8]) -> std::result::Result<Picture, String> {
        let mut decoder = Decoder::new_with_limits(Cursor::new(png), Limits { bytes: MAX_METADATA });
        decoder.set_transformations(Transformations::EXPAND);
        // Colour profiles and texts are ignored. The picture does not need them, and a short compressed chunk with them
        // may inflate to gigabytes.
        decoder.set_ignore_iccp_chunk(true);
        decoder.set_ignore_text_chunk(true);
        // Only the header is read before the size is checked.
        let header = decoder.read_header_info().map_err(|error| why(&error))?;
        let (width, height) = (header.width, header.height);
        if u64::from(width) * u64::from(height) > MAX_PIXELS {
            let limit = "more than 64 Mi (8192 x 8192) are not taken: make it smaller";
            return Err(format!("it has {width} x {height} pixels, and {limit}"));
        }
        // The decoder also holds one row of pixels, with up to four channels of 16 bits.
        decoder.set_limits(Limits { bytes: MAX_METADATA + 8 * width as usize });
        let mut reader = decoder.read_info().map_err(|error| why(&error))?;
        let size = reader.output_buffer_size().ok_or("it is too large for this machine")?;
        // The memory must hold the pixels, their colours without transparency, and the resulting PNG.
        let purpose = "to work on its pixels; make it smaller";
        memory::check((size as u64).saturating_mul(5), purpose).map_err(|error| error.to_string())?;
        let mut pixels = vec![0; size];
        let info = reader.next_frame(&mut pixels).map_err(|error| why(&error))?;
        // The rest of the file is read too, since a truncated file may lack only the part after the pixels.
        reader.finish().map_err(|error| why(&error))?;
        pixels.truncate(info.buffer_size());
        Ok(Picture { info, pixels })
    }

    /// Encrypts the colours. In XTS mode the colours are divided into sectors; in other modes they are one message. In ECB and
    /// CBC mode a partial block at the end remains unencrypted. In XTS mode the last sector remains unencrypted if it is shorter
    /// than a block.
    fn encrypt(&mut self, planner: &Planner, cipher: Cipher, key: &CipherKey) -> hazmat::Result<()> {
        let bytes = if self.info.bit_depth == BitDepth::Sixteen { 2 } else { 1 };
        let has_alpha = matches!(self.info.color_type, ColorType::GrayscaleAlpha | ColorType::Rgba);
        let pixel = self.info.color_type.samples() * bytes;
        let opaque = if has_alpha { pixel - bytes } else { pixel };
        // `colours` has the colours of all pixels without their transparency, which is not encrypted.
        let mut colours = Vec::with_capacity(self.pixels.len());
        self.pixels.chunks(pixel).for_each(|pixel| colours.extend_from_slice(&pixel[..opaque]));
        if cipher == Cipher::Xts {
            // The number of a sector is its tweak (IEEE 1619).
            let sectors = colours.len().div_ceil(SECTOR);
            let mut tweaks: Vec<Block> = (0..sectors).map(|number| (number as u128).to_le_bytes()).collect();
            let parts = colours.chunks_mut(SECTOR).filter(|part| part.len() >= 16).zip(&mut tweaks);
            let mut messages: Vec<_> =
                parts.map(|(part, iv)| Message { key, iv, data: Data::in_place(part) }).collect();
            cipher.run(planner, Direction::Encrypt, &mut messages)?;
        } else {
            let len = if cipher == Cipher::Ctr { colours.len() } else { colours.len() / 16 * 16 };
            // The IV is always zero. A random key is not used with this IV twice, because it encrypts only one picture. A user who
            // encrypts two pictures with the same key can see what a repeated IV reveals.
            let data = Data::in_place(&mut colours[..len]);
            cipher.one(planner, Direction::Encrypt, key, &mut [0; 16], data)?;
        }
        for (pixel, colour) in self.pixels.chunks_mut(pixel).zip(colours.chunks(opaque)) {
            pixel[..opaque].copy_from_slice(colour);
        }
        Ok(())
    }

    /// Encodes a PNG.
    fn encode(&self) -> std::result::Result<Vec<u8>, String> {
        let cannot = |error: png::EncodingError| format!("cannot make a PNG: {error}");
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out, self.info.width, self.info.height);
        encoder.set_color(self.info.color_type);
        encoder.set_depth(self.info.bit_depth);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header().map_err(cannot)?;
        writer.write_image_data(&self.pixels).map_err(cannot)?;
        writer.finish().map_err(cannot)?;
        Ok(out)
    }
}

/// The reason why a file is not accepted, with advice for the user.
fn why(error: &DecodingError) -> String {
    match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "it is cut off: the end of the PNG is missing".into()
        }
        DecodingError::IoError(error) => format!("cannot be read: {error}"),
        DecodingError::LimitsExceeded => "its metadata exceed 16 MiB: save it without metadata".into(),
        DecodingError::Format(error) if error.to_string().contains("signature") => {
            "it is not a PNG: convert it to one".into()
        }
        DecodingError::Format(error) => format!("it is damaged, or not a PNG: {error}"),
        DecodingError::Parameter(error) => format!("it cannot be decoded: {error}"),
    }
}
