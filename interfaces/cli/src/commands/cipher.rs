//! `lockstep cipher`: defines and checks the command line of the raw modes. The module `raw` runs the modes.

mod raw;

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use lockstep::aead::Aead;
use lockstep::hazmat::Key;
use lockstep::hazmat::mode::cbc_cts::Variant;
use lockstep::hazmat::mode::key_wrap::Icv;
use lockstep::hazmat::mode::{self, Executor};
use lockstep::hazmat::work::Pass;
use lockstep::text::to_utf8;
use lockstep::{Sparse, quoted};
use serde_json::json;
use zeroize::Zeroizing;

use self::raw::{Mode, Raw};
use crate::error::{Result, ensure, failed};
use crate::input::{Input, check_sources, read_small, warn_if_open_to_others};
use crate::options::{EngineArgs, OutputArgs, ProgressArgs, SPARSE, choice, number};
use crate::output::{Content, Output};
use crate::{job, text};

const WARNING: &str = "\
WARNING: these are raw AES modes, for interoperability (`openssl enc`), tests and study. Use `lockstep encrypt` \
for anything you want to keep safe.

- Most of these modes do not authenticate: changes of the ciphertext change the plaintext and are not detected. \
ECB also reveals which blocks are equal.
- An IV that is used twice with the same key reveals plaintexts in CTR, OFB, GCM, OCB, CCM and EAX; with GCM and OCB it also allows \
forgery.
- A key given by --key-hex is visible to all users of this machine while the command runs, and remains in the history \
of the shell. Use --key-file for secret keys.";

const EXAMPLES: &str = "\
Examples:
  lockstep cipher -m ctr --key-file raw.key \\
    --iv-hex 000102030405060708090a0b0c0d0e0f data > data.ctr
  lockstep cipher -d -m ctr --key-file raw.key \\
    --iv-hex 000102030405060708090a0b0c0d0e0f data.ctr > data";

/// Use a raw AES mode, for interoperability only; incorrect use is unsafe
#[derive(Args)]
#[command(after_long_help = EXAMPLES, before_long_help = WARNING, before_help = "WARNING: raw modes; see --help. Use `lockstep encrypt` to keep data safe.")]
pub struct Cipher {
    /// The mode; kw and kwp wrap a key (RFC 3394, RFC 5649); cmac and gmac print a MAC in hex
    #[arg(short, long, value_name = "MODE", value_parser = choice(&MODES))]
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
    #[arg(long, value_name = "BYTES", value_parser = number::<usize>(1..=16))]
    tag_len: Option<usize>,

    /// For ECB, CBC and PCBC: do not use PKCS#7 padding; the data must be whole blocks of 16 bytes
    #[arg(long)]
    no_padding: bool,

    /// For CBC-CTS: the order of the last two ciphertext blocks [default: cs1]
    #[arg(long, value_name = "MODE", value_parser = choice(&CTS_MODES))]
    cts_mode: Option<Variant>,

    /// The input; `-` is standard input
    #[arg(value_name = "INPUT", default_value = "-", value_hint = ValueHint::FilePath)]
    input: PathBuf,

    #[command(flatten)]
    output: OutputArgs,
    /// With -o or -O: `always` skips blocks of 4096 zeros, so that they become holes, which take no space on the disk;
    /// `never` writes them
    #[arg(long, value_name = "WHEN", default_value = "always", value_parser = choice(&SPARSE))]
    sparse: Sparse,
    #[command(flatten)]
    engine: EngineArgs,
    /// Launch options of the named device and kernel, such as `threads=128,blocks=64` for --device cuda:0 --kernel
    /// cuda/coarse-shared, for study; docs/command.md lists them
    #[arg(long, value_name = "NAME=NUMBER,...", help_heading = "Devices")]
    launch: Option<String>,
    #[command(flatten)]
    messages: ProgressArgs,
}

/// The modes and their names on the command line. Messages use the names in upper case.
const MODES: [(&str, Mode); 22] = [
    ("ecb", Mode::Cipher(mode::Cipher::Ecb)),
    ("cbc", Mode::Cipher(mode::Cipher::Cbc)),
    ("pcbc", Mode::Cipher(mode::Cipher::Pcbc)),
    ("cfb", Mode::Cipher(mode::Cipher::Cfb128)),
    ("cfb8", Mode::Cipher(mode::Cipher::Cfb8)),
    ("cfb1", Mode::Cipher(mode::Cipher::Cfb1)),
    ("ofb", Mode::Cipher(mode::Cipher::Ofb)),
    ("ctr", Mode::Cipher(mode::Cipher::Ctr)),
    ("xts", Mode::Cipher(mode::Cipher::Xts)),
    ("gcm", Mode::Aead(Aead::Gcm)),
    ("ccm", Mode::Aead(Aead::Ccm)),
    ("gcm-siv", Mode::Aead(Aead::GcmSiv)),
    ("ocb", Mode::Aead(Aead::Ocb)),
    ("siv", Mode::Aead(Aead::Siv)),
    ("xaes", Mode::Aead(Aead::Xaes)),
    ("eax", Mode::Aead(Aead::Eax)),
    ("hctr2", Mode::Hctr2),
    ("cbc-cts", Mode::CbcCts),
    ("kw", Mode::KeyWrap(Icv::KW)),
    ("kwp", Mode::KeyWrap(Icv::KWP)),
    ("cmac", Mode::Cmac),
    ("gmac", Mode::Gmac),
];

const CTS_MODES: [(&str, Variant); 3] = [("cs1", Variant::Cs1), ("cs2", Variant::Cs2), ("cs3", Variant::Cs3)];

impl Cipher {
    /// The name of the mode in messages.
    fn mode_name(&self) -> String {
        let (name, _) = MODES.iter().find(|(_, mode)| *mode == self.mode).expect("a mode of the table");
        name.to_uppercase()
    }

    /// The length of the tag or MAC in bytes.
    fn tag_len(&self) -> usize {
        self.tag_len.unwrap_or(16)
    }
}

pub(crate) fn run(args: &Cipher) -> Result<()> {
    check(args)?;
    let key_file: Vec<_> = args.key_file.iter().map(|path| ("key file", path.as_path())).collect();
    check_sources(&args.output, &args.input, &key_file)?;
    let aad = args.aad_hex.iter().map(|digits| Ok(hex("--aad-hex", Some(digits))?.to_vec()));
    let raw = Raw {
        args,
        input: Input::open(&args.input)?,
        engine: args.engine.engine(args.messages.explain, args.launch.as_deref())?,
        key: match &args.key_file {
            Some(path) => read_raw_key(path, args.messages.quiet)?,
            None => hex("--key-hex", args.key_hex.as_deref())?,
        },
        iv: hex("--iv-hex", args.iv_hex.as_deref())?.to_vec(),
        aad: aad.collect::<Result<_>>()?,
    };
    check_mac(&raw)?;
    let (content, verb) = match args.mode {
        _ if args.decrypt => (Content::Unknown, "decrypted"),
        Mode::Cmac | Mode::Gmac => (Content::Unknown, "authenticated"),
        _ => (Content::Binary, "encrypted"),
    };
    let output = Output::open(&args.output, &raw.input, content, args.sparse)?;
    job::run(raw.engine.planner(), &args.messages, raw.input.len, verb, output, |output, report| {
        let plaintext = raw.run(output, report)?;
        Ok((plaintext, json!({ "mode": args.mode_name() })))
    })
}

/// Refuses options that the mode does not have, and checks that required options are given. For example, CBC has no associated
/// data: if the command ignored associated data, a user who gives them would believe that they are authenticated.
fn check(args: &Cipher) -> Result<()> {
    let (name, mode) = (args.mode_name(), args.mode);
    let aead = if let Mode::Aead(aead) = mode { Some(aead.row()) } else { None };
    let nonce_is_optional = aead.is_some_and(|row| row.nonce_is_optional);
    let takes_iv = !matches!(mode, Mode::Cipher(mode::Cipher::Ecb) | Mode::KeyWrap(_) | Mode::Cmac);
    let has_more_strings = args.aad_hex.len() > 1 && aead.is_some_and(|row| row.max_strings == 1);
    let is_mac = matches!(mode, Mode::Cmac | Mode::Gmac);
    let has_other_order = args.cts_mode.is_some() && mode != Mode::CbcCts;
    let tags = match mode {
        Mode::Gmac => Some(&Aead::Gcm.row().tags),
        _ => aead.map(|row| &row.tags),
    };
    let has_tag = tags.is_some() || mode == Mode::Cmac;
    let iv = args.iv_hex.as_deref();
    let mistakes = [
        (takes_iv && !nonce_is_optional && iv.is_none(), "needs an IV: give --iv-hex"),
        (!takes_iv && iv.is_some(), "has no IV: leave out --iv-hex"),
        (!args.aad_hex.is_empty() && aead.is_none(), "takes no associated data: leave out --aad-hex"),
        (has_more_strings, "takes one string of associated data: give --aad-hex once"),
        (nonce_is_optional && iv == Some(""), "has no empty nonces: leave out --iv-hex, or give a nonce"),
        (has_other_order, "has no ciphertext stealing of CBC: leave out --cts-mode"),
        (args.tag_len.is_some() && !has_tag, "has no tag: leave out --tag-len"),
        (args.decrypt && is_mac, "encrypts nothing: leave out -d, and compare what is printed"),
    ];
    for (is_made, mistake) in mistakes {
        ensure(!is_made, format_args!("{name} {mistake}"))?;
    }
    let Some((bytes, tags)) = args.tag_len.zip(tags) else { return Ok(()) };
    let message = format_args!("{name} has tags of {} bytes, not of {bytes}", tags.words);
    ensure(tags.contains(bytes), message)
}

/// For modes that compute only a MAC, refuses a device or kernel that the user named and that cannot compute the MAC. If the CPU computed
/// the MAC, the named device would have no work. Modes that also encrypt compute the MAC on the CPU in this case.
fn check_mac(raw: &Raw) -> Result<()> {
    let pass = match raw.args.mode {
        Mode::Cmac => Pass::CbcMac,
        Mode::Gmac => Pass::Ghash,
        _ => return Ok(()),
    };
    Ok(raw.engine.planner().check_mac(pass, Key::new(&raw.key)?.size())?)
}

fn hex(option: &str, digits: Option<&str>) -> Result<Zeroizing<Vec<u8>>> {
    text::parse_hex(digits.unwrap_or_default()).map_err(|reason| failed(format!("{option}: {reason}")))
}

/// Reads a key from a file that contains it as raw bytes.
pub(super) fn read_raw_key(path: &Path, quiet: bool) -> Result<Zeroizing<Vec<u8>>> {
    let name = quoted(path);
    let bytes = read_small(path, "file with a raw key", 256)?;
    warn_if_open_to_others(path, "key file", quiet);
    let text = to_utf8(&bytes).unwrap_or_default();
    ensure(
        !text.starts_with(b"lockstep-key-"),
        format_args!("{name} is a key file for `lockstep encrypt`: raw modes take the raw bytes of a key"),
    )?;
    // The probability that a random key consists of hex digits and white space is less than 2^-48.
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace();
    ensure(
        text.len() < 16 || !text.iter().all(is_hex),
        format_args!("{name} holds hex digits: make raw bytes of them (`xxd -r -p`), or give --key-hex"),
    )?;
    Ok(bytes)
}
