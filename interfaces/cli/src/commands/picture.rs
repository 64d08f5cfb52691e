//! `lockstep picture`: the command line. The encryption of pictures is in [`crate::picture`].

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use lockstep::hazmat::mode::{Cipher, CipherKey};
use lockstep::{Sparse, quoted};
use zeroize::Zeroizing;

use super::cipher::{read_raw_key, row};
use crate::error::{Error, Result, failed};
use crate::input::Input;
use crate::options::{EngineArgs, OutputArgs};
use crate::output::{Content, Output};
use crate::picture::Picture;
use crate::{sources, terminal};

/// Encrypt the pixels of a picture, to show what a mode hides and what it does not
///
/// The colours are encrypted: in XTS in sectors of 512 bytes, as on a disk; in other modes as one message with an all-zero
/// IV. Size and transparency do not change. The resulting picture shows what an attacker learns from the ciphertext alone;
/// docs/modes.md has examples.
///
/// For demonstration only: nothing is authenticated. There is no padding: ECB and CBC leave a partial last block
/// unencrypted, and XTS leaves a last sector of less than 16 bytes unencrypted.
#[derive(Args)]
pub struct PictureArgs {
    /// The mode
    #[arg(short, long, value_name = "MODE", value_parser = row(&MODES))]
    mode: (&'static str, Cipher),

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
    sources::check(&output, &args.input, &keys)?;
    let (_, cipher) = args.mode;
    let key = CipherKey::new(cipher, &key(args)?)?;
    let engine = args.engine.engine(false)?;
    let input = Input::open(&args.input)?;
    Output::check(&output, &input, Content::Binary)?;
    let mut png = Vec::new();
    input.reader().take(MAX_LEN + 1).read_to_end(&mut png).map_err(lockstep::Error::Read)?;
    let name =
        if args.input == Path::new("-") { "standard input".into() } else { quoted(&args.input).to_string() };
    if png.len() as u64 > MAX_LEN {
        return Err(failed(format!("{name}: it is longer than 256 MiB: take a smaller picture")));
    }
    let mut picture = Picture::decode(&png).map_err(|why| failed(format!("{name}: {why}")))?;
    drop(png);
    picture.encrypt(engine.planner(), cipher, &key)?;
    let encoded = picture.encode().map_err(failed)?;
    // After this point only the output can fail.
    let mut out = Output::open(&output, &input, Content::Binary, Sparse::default())?;
    out.write_all(&encoded).map_err(|error| match args.output.as_path() {
        path if path == Path::new("-") => lockstep::Error::Write(error).into(),
        path => Error::io("write", path)(error),
    })?;
    out.commit()?;
    if let Some(incident) = engine.incidents().first() {
        terminal::warn(args.quiet, &format!("{incident}. The CPU has repeated that part"));
    }
    Ok(())
}

fn key(args: &PictureArgs) -> Result<Zeroizing<Vec<u8>>> {
    match &args.key_file {
        Some(path) => read_raw_key(path, args.quiet),
        None => {
            let mut key = Zeroizing::new(vec![0; if args.mode.1 == Cipher::Xts { 64 } else { 32 }]);
            getrandom::fill(&mut key).map_err(|error| failed(format!("no random key: {error}")))?;
            Ok(key)
        }
    }
}
