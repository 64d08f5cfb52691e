//! The operations that run under valgrind.

use std::hint::black_box;
use std::process::exit;
use std::sync::Arc;

use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, Status, Tag};
use lockstep_core::{Block, Key};
use lockstep_cpu::kernel::Kernel;
use lockstep_cpu::soft::{Soft, Width};
use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_modes::cmac::{CmacMessage, cmac};
use lockstep_modes::stream::{CipherStream, CmacStream, Padding, Sealer};
use lockstep_modes::{Aead, AeadKey, Cipher, CipherKey, Direction, Executor, Message, padding};
use lockstep_planner::{Planner, Selection};

use crate::valgrind::{hide, hide_shared, is_hidden, is_running, reports, reveal};

const USAGE: &str = "usage: valgrind leak_probe cpu/soft[@WIDTH]|cpu/aesni|core|table|branch [OPERATION]
       (WIDTH limits the registers: Portable, Ssse3 or Avx2)
       valgrind leak_probe verdicts|early-exit
       valgrind leak_probe operations";

/// Number of blocks of a message. The message is long enough for the widest loops of both kernels (32 and 8 blocks), for all narrower
/// loops, and for a tail.
const BLOCKS: usize = 64 + 32 + 15;

/// Number of messages of a batch. It is larger than the number of messages that any kernel interleaves.
const MESSAGES: usize = 19;

type Operation = fn(&Probe);

/// The operations, by name.
const OPERATIONS: [(&str, Operation); 13] = [
    ("ciphers", Probe::ciphers),
    ("batches", Probe::batches),
    ("streams", Probe::streams),
    ("padding", Probe::padding),
    ("gcm", Probe::gcm),
    ("gcm-batches", Probe::gcm_batches),
    ("gcm-siv", Probe::gcm_siv),
    ("gcm-siv-batches", Probe::gcm_siv_batches),
    ("ocb", Probe::ocb),
    ("ocb-batches", Probe::ocb_batches),
    ("ccm", Probe::ccm),
    ("cmac", Probe::cmac),
    ("mac-streams", Probe::mac_streams),
];

pub(crate) fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if arguments == ["operations"] {
        OPERATIONS.iter().for_each(|(name, _)| println!("{name}"));
        return;
    }
    if !is_running() {
        eprintln!("leak_probe: must be run under valgrind\n{USAGE}");
        exit(3);
    }
    match arguments[..] {
        ["table"] => table(),
        ["branch"] => branch(),
        ["core"] => core(),
        ["verdicts"] => verdicts(),
        ["early-exit"] => early_exit(),
        [kernel] if is_kernel(kernel) => {
            let probe = Probe::new(kernel);
            for (name, operation) in OPERATIONS {
                // The name is printed first, so that it precedes memcheck's reports on the operation.
                eprintln!("{kernel} {name}");
                operation(&probe);
            }
        }
        [kernel, name] if is_kernel(kernel) => {
            match OPERATIONS.iter().find(|(operation, _)| *operation == name) {
                Some((_, operation)) => operation(&Probe::new(kernel)),
                None => usage(),
            }
        }
        _ => usage(),
    }
}

fn is_kernel(argument: &str) -> bool {
    matches!(argument.split('@').next(), Some("cpu/soft" | "cpu/aesni"))
}

fn usage() -> ! {
    eprintln!("{USAGE}");
    exit(2);
}

/// Secret bytes. Their values do not matter.
fn secret(len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|i| (i * 167 + len) as u8).collect();
    hide(&mut bytes);
    bytes
}

fn secret_key(len: usize) -> Key {
    Key::new(&secret(len)).expect("a length of AES")
}

/// Secret keys of a cipher. The keys are marked as secret only after their construction, because the construction of an XTS key
/// compares its two halves and branches on the result. This branch reveals neither half.
fn cipher_keys(cipher: Cipher) -> Vec<CipherKey> {
    let lengths: &[usize] = if cipher == Cipher::Xts { &[32, 64] } else { &[16, 24, 32] };
    let make = |&len: &usize| {
        let mut bytes = secret(len);
        reveal(&mut bytes);
        CipherKey::new(cipher, &bytes).expect("a length of the cipher")
    };
    let keys: Vec<_> = lengths.iter().map(make).collect();
    for key in &keys {
        hide_shared(key.data().bytes());
        key.tweak().into_iter().for_each(|tweak| hide_shared(tweak.bytes()));
    }
    keys
}

/// Checks that a result depends on the secrets, and then marks it as public.
fn taken(what: &str, result: &mut [u8]) {
    if !is_hidden(result) {
        eprintln!(
            "leak_probe: {what}: bytes of the result do not depend on key or data: the probe does not work"
        );
        exit(4);
    }
    reveal(result);
    black_box(result);
}

struct Probe {
    planner: Arc<Planner>,
}

impl Probe {
    /// Selects a kernel by its name. The name may be followed by `@` and the maximum width of the registers that the
    /// kernel uses.
    fn new(kernel: &str) -> Self {
        let (kernel, widest) = kernel.split_once('@').unwrap_or((kernel, ""));
        match Width::ALL.iter().find(|width| format!("{width:?}") == widest) {
            Some(width) => Soft::limit(*width),
            None if widest.is_empty() => {}
            None => usage(),
        }
        eprintln!("cpu/soft has the width {:?}", Soft::detect().expect("it runs on every processor").width());
        let device = Arc::new(Cpu::new(&CpuOptions { threads: Some(1) }));
        let selection = Selection { device: Some("cpu".into()), kernel: Some(kernel.into()) };
        match Planner::new(vec![device], &selection) {
            Ok(planner) => Probe { planner: Arc::new(planner) },
            Err(error) => {
                eprintln!("leak_probe: {error}");
                exit(5);
            }
        }
    }

    /// Number of bytes of a test message. Messages of CFB8 and CFB1 are shorter, because these modes need 16 and 128 block encryptions
    /// for each block.
    fn len(cipher: Cipher) -> usize {
        match cipher {
            Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc => 16 * BLOCKS,
            Cipher::Cfb8 => 53,
            Cipher::Cfb1 => 11,
            _ => 16 * BLOCKS + 7,
        }
    }

    /// Runs each cipher in both directions on one message.
    fn ciphers(&self) {
        for cipher in Cipher::ALL {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                for key in cipher_keys(cipher) {
                    let mut data = secret(Self::len(cipher));
                    cipher
                        .one(&*self.planner, direction, &key, &mut [0x5a; 16], Data::in_place(&mut data))
                        .expect("valid arguments");
                    taken(cipher.name(), &mut data);
                }
            }
        }
    }

    /// Runs each cipher in both directions on a batch of messages.
    fn batches(&self) {
        for cipher in Cipher::ALL {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let keys: Vec<_> = (0..MESSAGES).flat_map(|_| cipher_keys(cipher)).collect();
                let mut ivs = vec![[3; 16]; MESSAGES];
                let unit = if cipher.takes_padding() { 16 } else { 1 };
                let least = if cipher == Cipher::Xts { 16 } else { 0 };
                let mut data: Vec<_> = (0..MESSAGES).map(|i| secret(least + unit * (i % 7))).collect();
                let mut messages: Vec<_> = keys
                    .iter()
                    .zip(&mut ivs)
                    .zip(&mut data)
                    .map(|((key, iv), data)| Message { key, iv, data: Data::in_place(data) })
                    .collect();
                cipher.run(&*self.planner, direction, &mut messages).expect("valid arguments");
                data.iter_mut().for_each(|data| taken(cipher.name(), data));
            }
        }
    }

    /// Runs each cipher in both directions as a stream. The pieces of the stream do not end at the ends of blocks.
    fn streams(&self) {
        for cipher in Cipher::ALL {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                for key in cipher_keys(cipher) {
                    let planner: Arc<dyn Executor> = self.planner.clone();
                    let mut stream =
                        CipherStream::new(planner, cipher, direction, Padding::None, key, &[9; 16])
                            .expect("valid arguments");
                    let data = secret(if cipher.takes_padding() { 16 * 9 } else { 150 });
                    let mut output = vec![0; data.len() + 32];
                    let mut len = 0;
                    for piece in data.chunks(21) {
                        len += stream.update(piece, &mut output[len..]).expect("valid arguments");
                    }
                    len += stream.finish(&mut output[len..]).expect("valid arguments");
                    assert_eq!(len, data.len());
                    taken(cipher.name(), &mut output[..len]);
                    drop(stream);
                }
            }
        }
    }

    /// Encrypts with padding. [`verdicts`] tests the removal of padding.
    fn padding(&self) {
        for cipher in [Cipher::Ecb, Cipher::Cbc, Cipher::Pcbc] {
            for key in cipher_keys(cipher) {
                let planner: Arc<dyn Executor> = self.planner.clone();
                let (encrypt, padding) = (Direction::Encrypt, Padding::Pkcs7);
                let mut stream = CipherStream::new(planner, cipher, encrypt, padding, key, &[9; 16])
                    .expect("valid arguments");
                let mut output = [0; 64];
                let len = stream.update(&secret(37), &mut output).expect("valid arguments");
                let last = stream.finish(&mut output[len..]).expect("valid arguments");
                taken("padding", &mut output[..len + last]);
            }
        }
    }

    /// Seals with fused GCM and nonces of 12 bytes, and with GCM composed of passes and a nonce of 8 bytes. [`verdicts`] tests
    /// opening.
    fn gcm(&self) {
        for (key, nonce) in [(16, 12), (24, 8), (32, 12)] {
            let key = secret_key(key);
            let nonce = vec![7; nonce];
            let aad = secret(45);
            let mut data = secret(16 * BLOCKS + 5);
            let mut tag = [0; 16];
            Aead::Gcm
                .run_messages(
                    &*self.planner,
                    Direction::Encrypt,
                    &mut [message(&key, &nonce, &aad, &mut data, Tag::Write(&mut tag))],
                )
                .expect("valid arguments");
            taken("GCM", &mut data);
            taken("GCM's tag", &mut tag);
        }
    }

    fn gcm_batches(&self) {
        self.aead_batches(Aead::Gcm);
    }

    /// Runs a fused AEAD on messages that each have their own key. The batch contains both short messages and messages that are long enough
    /// for the fused loop.
    fn aead_batches(&self, mode: Aead) {
        for size in [16, 24, 32] {
            let keys: Vec<_> = (0..MESSAGES).map(|_| secret_key(size)).collect();
            let aad = secret(13);
            let mut data: Vec<_> = (0..MESSAGES).map(|i| secret(1 + i * i)).collect();
            let mut tags = vec![[0; 16]; MESSAGES];
            let work = keys.iter().zip(&mut data).zip(&mut tags);
            let mut messages: Vec<_> =
                work.map(|((key, data), tag)| message(key, &[7; 12], &aad, data, Tag::Write(tag))).collect();
            mode.run_messages(&*self.planner, Direction::Encrypt, &mut messages).expect("valid arguments");
            data.iter_mut().for_each(|data| taken(mode.name(), data));
            tags.iter_mut().for_each(|tag| taken(mode.name(), tag));
        }
    }

    fn gcm_siv(&self) {
        self.aead(Aead::GcmSiv);
    }

    fn gcm_siv_batches(&self) {
        self.aead_batches(Aead::GcmSiv);
    }

    fn ocb_batches(&self) {
        self.aead_batches(Aead::Ocb);
    }

    fn ocb(&self) {
        self.aead(Aead::Ocb);
    }

    fn aead(&self, mode: Aead) {
        for key in [16, 24, 32] {
            let key = secret_key(key);
            let aad = secret(45);
            let mut data = secret(16 * BLOCKS + 5);
            let mut tag = [0; 16];
            mode.run_messages(
                &*self.planner,
                Direction::Encrypt,
                &mut [message(&key, &[7; 12], &aad, &mut data, Tag::Write(&mut tag))],
            )
            .expect("valid arguments");
            taken(mode.name(), &mut data);
            taken(mode.name(), &mut tag);
        }
    }

    fn ccm(&self) {
        for key in [16, 24, 32] {
            let key = secret_key(key);
            let aad = secret(45);
            let mut data = secret(16 * BLOCKS + 5);
            let mut tag = [0; 16];
            Aead::Ccm
                .run_messages(
                    &*self.planner,
                    Direction::Encrypt,
                    &mut [message(&key, &[7; 12], &aad, &mut data, Tag::Write(&mut tag))],
                )
                .expect("valid arguments");
            taken("CCM", &mut data);
            taken("CCM's tag", &mut tag);
        }
    }

    fn cmac(&self) {
        for key in [16, 24, 32] {
            let key = secret_key(key);
            let data: Vec<_> = (0..MESSAGES).map(|i| secret(5 * i)).collect();
            let mut macs: Vec<Block> = vec![[0; 16]; MESSAGES];
            let mut messages: Vec<_> =
                data.iter().zip(&mut macs).map(|(data, mac)| CmacMessage { key: &key, data, mac }).collect();
            cmac(&*self.planner, &mut messages).expect("valid arguments");
            macs.iter_mut().for_each(|mac| taken("CMAC", mac));
        }
    }

    fn mac_streams(&self) {
        for key in [16, 24, 32] {
            let mut stream = CmacStream::new(self.planner.clone() as Arc<dyn Executor>, secret_key(key));
            secret(100).chunks(21).for_each(|piece| stream.update(piece).expect("valid arguments"));
            taken("CMAC", &mut stream.finish().expect("valid arguments"));

            let executor: Arc<dyn Executor> = self.planner.clone();
            let key = AeadKey::new(Aead::Gcm, &secret(key)).expect("a length of AES");
            let mut stream = Sealer::new(executor, &key, &[1; 12], None).expect("valid arguments");
            secret(40).chunks(7).for_each(|piece| stream.aad(piece).expect("valid arguments"));
            let mut data = secret(300);
            data.chunks_mut(37).for_each(|piece| stream.update_in_place(piece).expect("valid arguments"));
            let mut tag = [0; 16];
            stream.finish(&mut tag).expect("valid arguments");
            taken("GCM", &mut data);
            taken("GCM's tag", &mut tag);
        }
    }
}

fn message<'d>(
    key: &'d Key,
    nonce: &'d [u8],
    aad: &'d [u8],
    data: &'d mut [u8],
    tag: Tag<'d>,
) -> AeadMessage<'d> {
    AeadMessage { key, nonce, aad, data: Data::in_place(data), tag, status: Status::Pending }
}

/// Runs the portable key expansion, which no CPU kernel uses.
fn core() {
    for len in [16, 24, 32] {
        let key = secret_key(len);
        let mut round_keys = key.round_keys().as_blocks().to_vec();
        taken("round keys", round_keys.as_flattened_mut());
    }
}

/// Runs operations that branch on a verdict, such as whether a tag is right. These branches are permitted and cause a few reports, but
/// the number of reports must not depend on the position of the wrong byte.
fn verdicts() {
    let mut unpads = Vec::new();
    for fill in [0u8, 1, 2, 9, 15, 16, 17, 0x80, 0xff] {
        for wrong in (0..16).step_by(3) {
            let mut block = [fill; 16];
            block[wrong] ^= 0x40;
            let is_good = (1..=16).contains(&fill) && wrong < 16 - usize::from(fill);
            hide(&mut block);
            unpads.push((is_good, count(|| padding::unpad(black_box(&block)).is_ok())));
        }
    }
    constant("unpad", &unpads);

    let kernels: &[&str] = if has_aes() { &["cpu/soft", "cpu/aesni"] } else { &["cpu/soft"] };
    for kernel in kernels {
        let probe = Probe::new(kernel);
        for mode in [Aead::Gcm, Aead::Ccm, Aead::GcmSiv, Aead::Ocb] {
            // The number of reports must not depend on the length of the message either. Therefore, a short message and a long one
            // are opened. Only the long message is processed by the widest loops.
            let mut opens = Vec::new();
            for len in [40, 16 * BLOCKS + 5] {
                probe.open(len, mode, &mut opens);
            }
            constant(&format!("{kernel} {mode}"), &opens);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_aes() -> bool {
    false
}

impl Probe {
    /// Opens a message with its tag and with wrong tags. Adds the expected verdicts, the actual verdicts and their numbers of reports to
    /// `opens`.
    fn open(&self, len: usize, mode: Aead, opens: &mut Vec<(bool, (bool, u64))>) {
        let plain_key = Key::new(&[8; 16]).expect("16 bytes");
        let mut sealed = vec![1; len];
        let mut tag = [0; 16];
        mode.run_messages(
            &*self.planner,
            Direction::Encrypt,
            &mut [message(&plain_key, &[7; 12], b"", &mut sealed, Tag::Write(&mut tag))],
        )
        .expect("valid arguments");
        for wrong in [None, Some(0), Some(1), Some(7), Some(14), Some(15)] {
            let mut bytes = [8; 16];
            hide(&mut bytes);
            let key = Key::new(&bytes).expect("16 bytes");
            let mut data = sealed.clone();
            let mut tag = tag;
            if let Some(wrong) = wrong {
                tag[wrong] ^= 1;
            }
            let mut messages = [message(&key, &[7; 12], b"", &mut data, Tag::Expect(&tag))];
            opens.push((
                wrong.is_none(),
                count(|| mode.run_messages(&*self.planner, Direction::Decrypt, &mut messages).is_ok()),
            ));
        }
    }
}

/// A comparison that leaks on purpose, because it returns at the first difference. [`constant`] must detect this leak.
fn early_exit() {
    let expected = [8; 16];
    let mut counts = Vec::new();
    for wrong in [0, 1, 7, 14, 15] {
        let mut found = expected;
        found[wrong] ^= 1;
        hide(&mut found);
        let equal = || {
            for i in 0..16 {
                if black_box(&found)[i] != black_box(&expected)[i] {
                    return false;
                }
            }
            true
        };
        counts.push((false, count(equal)));
    }
    constant("a comparison that stops early", &counts);
}

/// Returns the verdict, and the number of reports that its computation causes.
fn count(verdict: impl FnOnce() -> bool) -> (bool, u64) {
    let before = reports();
    let mut verdict = [u8::from(verdict())];
    reveal(&mut verdict);
    (black_box(verdict)[0] != 0, reports() - before)
}

/// Checks that all verdicts are right, and that the numbers of reports do not differ between accepted inputs or between
/// refused inputs. `found` contains, for each input, the expected verdict, the actual verdict and the number of
/// reports.
fn constant(what: &str, found: &[(bool, (bool, u64))]) {
    for (should, (is, _)) in found {
        assert_eq!(should, is, "{what}: wrong verdict");
    }
    for good in [true, false] {
        let counts: Vec<u64> =
            found.iter().filter(|(is, _)| *is == good).map(|(_, (_, reports))| *reports).collect();
        let word = if good { "good" } else { "bad" };
        println!("{what}, {word}: branches on secrets {counts:?}");
        if counts.windows(2).any(|pair| pair[0] != pair[1]) {
            println!("{what}: branches depend on the place of the fault");
            exit(9);
        }
    }
}

static TABLE: [u8; 256] = [0x63; 256];

/// Leaks on purpose: the address of a table lookup depends on a secret, as in implementations of AES with tables.
fn table() {
    let key = secret(16);
    let mut result = [0];
    for byte in key {
        result[0] ^= black_box(&TABLE)[usize::from(byte)];
    }
    reveal(&mut result);
    black_box(result);
}

/// The control for branches.
fn branch() {
    let key = secret(16);
    let mut count = 0u32;
    for byte in key {
        if byte & 1 == 1 {
            count = black_box(count) + 1;
        }
    }
    black_box(count);
}
