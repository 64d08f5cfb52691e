//! `lockstep picture`: the command line. Pictures themselves are in [`crate::picture`].

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use lockstep::hazmat::mode::{Cipher, CipherKey};
use lockstep::quoted;
use zeroize::Zeroizing;

use super::cipher::read_raw_key;
use crate::args::{EngineArgs, OutputArgs};
use crate::error::{Error, Result, failed};
use crate::input::Input;
use crate::output::{Content, Output};
use crate::picture::Picture;
use crate::{sources, terminal};

/// Encrypt the pixels of a picture, to see what a mode hides and what it does not
///
/// Size and transparency stay; colours are encrypted, for XTS in sectors of 512 bytes as a disk's, else as one message with an IV
/// of zeros. The picture that comes out shows what somebody learns who has the ciphertext only; docs/modes.md has examples.
/// This is for the eye: nothing is authenticated, and there is no room for padding, so that in ECB and CBC bytes at the end which
/// fill no block stay as they are, and in XTS a last sector of less than 16 bytes.
#[derive(Debug, Args)]
pub(crate) struct PictureArgs {
    /// Which mode
    #[arg(short, long, value_name = "MODE")]
    mode: Mode,

    /// The key in a file, as raw bytes: 16, 24 or 32; for XTS two of 16 or of 32 [default: a random one, which is not kept]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    key_file: Option<PathBuf>,

    /// The picture: a PNG; `-` is standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    input: PathBuf,

    /// Where the PNG goes; `-` is standard output
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Overwrite it if it exists
    #[arg(short, long)]
    force: bool,

    /// Errors only: no warnings
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Ecb,
    Cbc,
    Ctr,
    Xts,
}

impl Mode {
    fn cipher(self) -> Cipher {
        match self {
            Mode::Ecb => Cipher::Ecb,
            Mode::Cbc => Cipher::Cbc,
            Mode::Ctr => Cipher::Ctr,
            Mode::Xts => Cipher::Xts,
        }
    }
}

/// The longest file that is read.
const LONGEST: u64 = 256 << 20;

pub(crate) fn run(args: &PictureArgs) -> Result<()> {
    let output = OutputArgs { output: Some(args.output.clone()), force: args.force, sync: false };
    let keys: Vec<_> = args.key_file.iter().map(|path| ("key file", path.as_path())).collect();
    sources::check(&output, &args.input, &keys)?;
    let cipher = args.mode.cipher();
    let key = CipherKey::new(cipher, &key(args)?)?;
    let engine = args.engine.engine()?;
    let input = Input::open(&args.input)?;
    Output::check(&output, &input, Content::Binary)?;
    let mut png = Vec::new();
    input.reader().take(LONGEST + 1).read_to_end(&mut png).map_err(lockstep::Error::Read)?;
    let name =
        if args.input == Path::new("-") { "standard input".into() } else { quoted(&args.input).to_string() };
    if png.len() as u64 > LONGEST {
        return Err(failed(format!("{name}: it is longer than 256 MiB: take a smaller picture")));
    }
    let mut picture = Picture::decode(&png).map_err(|why| failed(format!("{name}: {why}")))?;
    drop(png);
    picture.encrypt(engine.planner(), cipher, &key)?;
    let encoded = picture.encode().map_err(failed)?;
    // From here on nothing but the writing can fail.
    let mut out = Output::open(&output, &input, Content::Binary)?;
    out.write_all(&encoded).map_err(|error| match args.output.as_path() {
        path if path == Path::new("-") => lockstep::Error::Write(error).into(),
        path => Error::io("write", path)(error),
    })?;
    out.commit()?;
    if let Some(incident) = engine.incidents().first() {
        terminal::warn(args.quiet, &format!("{incident}. The CPU has done that part again"));
    }
    Ok(())
}

fn key(args: &PictureArgs) -> Result<Zeroizing<Vec<u8>>> {
    match &args.key_file {
        Some(path) => read_raw_key(path, args.quiet),
        None => {
            let mut key = Zeroizing::new(vec![0; if args.mode == Mode::Xts { 64 } else { 32 }]);
            getrandom::fill(&mut key).map_err(|error| failed(format!("no random key: {error}")))?;
            Ok(key)
        }
    }
}
