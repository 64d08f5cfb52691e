//! `lockstep cipher`: the command line of the raw modes, which [`crate::raw`] runs.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use lockstep::aead::Aead;
use lockstep::hazmat::mode;
use lockstep::hazmat::mode::cbc_cts::Variant;
use lockstep::quoted;
use lockstep::text::to_utf8;
use serde_json::json;
use zeroize::Zeroizing;

use crate::error::{Result, failed};
use crate::input::{Input, read_small};
use crate::job::{self, Done};
use crate::options::{EngineArgs, OutputArgs, ProgressArgs, SparseArgs};
use crate::output::{Content, Output};
use crate::permissions::warn_if_open_to_others;
use crate::raw::{self, Raw, WholeMode};
use crate::sources;
use crate::text;

const WARNING: &str = "\
WARNING: these are raw AES modes, for interoperability (`openssl enc`), tests and study. Use `lockstep encrypt` \
for anything you want to keep safe.

- Most of these modes do not authenticate: changes of the ciphertext change the plaintext and are not detected. \
ECB also reveals which blocks are equal.
- An IV that is used twice with the same key reveals plaintexts in CTR, OFB, GCM, OCB, CCM and EAX; with GCM and OCB it also allows \
forgery.
- A key given by --key-hex is visible to all users of this machine while the command runs, and remains in the history \
of the shell. Use --key-file for secret keys.";

/// Use a raw AES mode, for interoperability only: easy to use unsafely
#[derive(Args)]
#[command(before_long_help = WARNING, before_help = "WARNING: raw modes; see --help. Use `lockstep encrypt` to keep data safe.")]
pub struct Cipher {
    /// The mode; kw and kwp wrap a key (RFC 3394, RFC 5649); cmac and gmac print a MAC in hex
    #[arg(short, long, value_name = "MODE")]
    mode: Mode,

    /// Decrypt
    ///
    /// The modes with a tag, and key wrap, keep the whole plaintext in memory until it has been checked. The output of the
    /// other modes is not authenticated.
    #[arg(short, long)]
    decrypt: bool,

    /// The key in hex: 16, 24 or 32 bytes; for XAES 32 bytes; for XTS and SIV two keys of equal length. Other users can see
    /// it: prefer --key-file
    #[arg(long, value_name = "HEX", required_unless_present = "key_file")]
    key_hex: Option<String>,

    /// A file that contains the key as raw bytes (`xxd -r -p` converts hex to raw bytes)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "key_hex")]
    key_file: Option<PathBuf>,

    /// The IV, nonce, initial counter or tweak in hex: 16 bytes; for GCM and GMAC any length (12 bytes recommended); for
    /// GCM-SIV 12 bytes; for CCM 7 to 13; for OCB 1 to 15; for XAES 24; for EAX and HCTR2 any length; for SIV any length or none
    #[arg(long, value_name = "HEX")]
    iv_hex: Option<String>,

    /// For modes with a tag: associated data in hex, authenticated but not encrypted. SIV takes several strings
    #[arg(long, value_name = "HEX")]
    aad_hex: Vec<String>,

    /// For GCM, CCM, OCB, EAX and the MACs: length of the tag in bytes [default: 16]
    ///
    /// The tag follows the ciphertext; that of SIV precedes it.
    #[arg(long, value_name = "BYTES")]
    tag_len: Option<usize>,

    /// For ECB, CBC and PCBC: do not use PKCS#7 padding; the data must be whole blocks of 16 bytes
    #[arg(long)]
    no_padding: bool,

    /// For CBC-CTS: the order of the last two ciphertext blocks [default: cs1]
    #[arg(long, value_name = "MODE")]
    cts_mode: Option<CtsMode>,

    /// The input; `-` is standard input
    #[arg(value_name = "INPUT", default_value = "-", value_hint = ValueHint::FilePath)]
    input: PathBuf,

    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    sparse: SparseArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    messages: ProgressArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Ecb,
    Cbc,
    Pcbc,
    Cfb,
    Cfb8,
    Cfb1,
    Ofb,
    Ctr,
    Xts,
    Gcm,
    Ccm,
    GcmSiv,
    Ocb,
    Siv,
    Xaes,
    Eax,
    Hctr2,
    CbcCts,
    Kw,
    Kwp,
    Cmac,
    Gmac,
}

/// The order of the last two ciphertext blocks in CBC with ciphertext stealing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CtsMode {
    Cs1,
    Cs2,
    Cs3,
}

impl Mode {
    /// The modes without authentication.
    fn cipher(self) -> Option<mode::Cipher> {
        Some(match self {
            Mode::Ecb => mode::Cipher::Ecb,
            Mode::Cbc => mode::Cipher::Cbc,
            Mode::Pcbc => mode::Cipher::Pcbc,
            Mode::Cfb => mode::Cipher::Cfb128,
            Mode::Cfb8 => mode::Cipher::Cfb8,
            Mode::Cfb1 => mode::Cipher::Cfb1,
            Mode::Ofb => mode::Cipher::Ofb,
            Mode::Ctr => mode::Cipher::Ctr,
            Mode::Xts => mode::Cipher::Xts,
            _ => return None,
        })
    }

    /// The authenticated modes.
    fn aead(self) -> Option<Aead> {
        Some(match self {
            Mode::Gcm => Aead::Gcm,
            Mode::Ccm => Aead::Ccm,
            Mode::GcmSiv => Aead::GcmSiv,
            Mode::Ocb => Aead::Ocb,
            Mode::Siv => Aead::Siv,
            Mode::Xaes => Aead::Xaes,
            Mode::Eax => Aead::Eax,
            _ => return None,
        })
    }

    /// The modes that process the whole input at once. GCM does so only to decrypt.
    fn whole(self, cts: Option<CtsMode>) -> Option<WholeMode> {
        Some(match self {
            Mode::Hctr2 => WholeMode::Hctr2,
            Mode::CbcCts => WholeMode::CbcCts(match cts.unwrap_or(CtsMode::Cs1) {
                CtsMode::Cs1 => Variant::Cs1,
                CtsMode::Cs2 => Variant::Cs2,
                CtsMode::Cs3 => Variant::Cs3,
            }),
            Mode::Kw => WholeMode::KeyWrap,
            Mode::Kwp => WholeMode::KeyWrapPadded,
            _ => return self.aead().map(WholeMode::Aead),
        })
    }

    fn is_mac(self) -> bool {
        matches!(self, Mode::Cmac | Mode::Gmac)
    }

    fn takes_iv(self) -> bool {
        !matches!(self, Mode::Ecb | Mode::Kw | Mode::Kwp | Mode::Cmac)
    }

    /// Checks the length of a tag. The error has the possible lengths, in words.
    fn check_tag_len(self, bytes: usize) -> std::result::Result<(), &'static str> {
        let (is_lawful, expected) = match self.aead() {
            Some(aead) => (aead.row().tags.contains(bytes), aead.row().tags.words),
            None => (matches!(bytes, 1..=16), "1 to 16"),
        };
        if is_lawful { Ok(()) } else { Err(expected) }
    }

    fn name(self) -> String {
        match self {
            Mode::GcmSiv => "GCM-SIV".into(),
            Mode::CbcCts => "CBC-CTS".into(),
            _ => format!("{self:?}").to_uppercase(),
        }
    }
}

pub(crate) fn run(args: &Cipher) -> Result<()> {
    check(args)?;
    let key_file: Vec<_> = args.key_file.iter().map(|path| ("key file", path.as_path())).collect();
    sources::check(&args.output, &args.input, &key_file)?;
    let raw = Raw {
        engine: args.engine.engine_for(&args.messages)?,
        decrypt: args.decrypt,
        key: key(args)?,
        iv: hex("--iv-hex", args.iv_hex.as_deref())?.to_vec(),
        aad: args
            .aad_hex
            .iter()
            .map(|digits| Ok(hex("--aad-hex", Some(digits))?.to_vec()))
            .collect::<Result<_>>()?,
        tag_len: args.tag_len.unwrap_or(16),
    };
    let content = if args.decrypt || args.mode.is_mac() { Content::Unknown } else { Content::Binary };
    let input = Input::open(&args.input)?;
    let output = Output::open(&args.output, &input, content, args.sparse.sparse())?;
    let verb = if args.decrypt {
        "decrypted"
    } else if args.mode.is_mac() {
        "authenticated"
    } else {
        "encrypted"
    };
    job::run(raw.engine.planner(), &args.messages, input.len(), verb, output, |output, report| {
        let pipe = raw::Pipe { input: &input, output, report };
        let plaintext = match (args.mode, args.mode.cipher()) {
            (_, Some(cipher)) => raw.cipher(cipher, !args.no_padding, pipe),
            (Mode::Cmac, _) => raw.cmac(pipe),
            (Mode::Gmac, _) => raw.gmac(pipe),
            (Mode::Gcm, _) if !args.decrypt => raw.seal_gcm(pipe),
            (mode, _) => {
                raw.whole(mode.whole(args.cts_mode).expect("all other modes are whole-message modes"), pipe)
            }
        }?;
        Ok(Done { plaintext, details: json!({ "mode": args.mode.name() }) })
    })
}

/// Refuses options that have no effect in the mode. For example, CBC ignores associated data, and a user who gives such
/// data would believe that they are authenticated.
fn check(args: &Cipher) -> Result<()> {
    let mode = args.mode;
    let aead = mode.aead().map(Aead::row);
    let name = mode.name();
    let nonce_is_optional = aead.is_some_and(|row| row.nonce_is_optional);
    if mode.takes_iv() && !nonce_is_optional && args.iv_hex.is_none() {
        return Err(failed(format!("{name} needs an IV: give --iv-hex")));
    }
    if !mode.takes_iv() && args.iv_hex.is_some() {
        return Err(failed(format!("{name} has no IV: leave out --iv-hex")));
    }
    if !args.aad_hex.is_empty() && aead.is_none() {
        return Err(failed(format!("{name} takes no associated data: leave out --aad-hex")));
    }
    if args.aad_hex.len() > 1 && aead.is_some_and(|row| row.max_strings == 1) {
        return Err(failed(format!("{name} takes one string of associated data: give --aad-hex once")));
    }
    if nonce_is_optional && args.iv_hex.as_deref() == Some("") {
        return Err(failed("an empty nonce is no nonce: leave out --iv-hex, or give a nonce"));
    }
    if args.cts_mode.is_some() && mode != Mode::CbcCts {
        return Err(failed(format!("{name} has no ciphertext stealing of CBC: leave out --cts-mode")));
    }
    if args.tag_len.is_some() && aead.is_none() && !mode.is_mac() {
        return Err(failed(format!("{name} has no tag: leave out --tag-len")));
    }
    if let Some(bytes) = args.tag_len
        && let Err(expected) = mode.check_tag_len(bytes)
    {
        return Err(failed(format!("{name} has tags of {expected} bytes, not of {bytes}")));
    }
    if args.decrypt && mode.is_mac() {
        return Err(failed(format!("{name} encrypts nothing: leave out -d, and compare what is printed")));
    }
    Ok(())
}

fn hex(option: &str, digits: Option<&str>) -> Result<Zeroizing<Vec<u8>>> {
    text::parse_hex(digits.unwrap_or_default()).map_err(|reason| failed(format!("{option}: {reason}")))
}

fn key(args: &Cipher) -> Result<Zeroizing<Vec<u8>>> {
    let Some(path) = &args.key_file else {
        return hex("--key-hex", args.key_hex.as_deref());
    };
    read_raw_key(path, args.messages.quiet)
}

/// Reads a key from a file that contains it as raw bytes.
pub(super) fn read_raw_key(path: &Path, quiet: bool) -> Result<Zeroizing<Vec<u8>>> {
    let name = quoted(path);
    let bytes = read_small(path, "file with a raw key", 256)?;
    warn_if_open_to_others(path, "key file", quiet);
    let text = to_utf8(&bytes).unwrap_or_default();
    if text.starts_with(b"lockstep-key-") {
        return Err(failed(format!(
            "{name} is a key file for `lockstep encrypt`: raw modes take the raw bytes of a key"
        )));
    }
    // The probability that a random key consists of hex digits and white space is less than 2^-48.
    if text.len() >= 16 && text.iter().all(|byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace()) {
        return Err(failed(format!(
            "{name} holds hex digits: make raw bytes of them (`xxd -r -p`), or give --key-hex"
        )));
    }
    Ok(bytes)
}
