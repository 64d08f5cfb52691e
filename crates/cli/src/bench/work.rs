//! What is measured: works by name, each a closure over random data.

use std::sync::Arc;

use lockstep::Engine;
use lockstep::hazmat::Key;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction, Message, gcm, xts};
use lockstep::hazmat::work::{AeadMessage, Operation, Recipe, Status, Tag};

use super::peers;

/// A timed piece of work on a buffer; it may be run any number of times on the same buffer.
pub(crate) type Run = Box<dyn FnMut(&mut [u8])>;

/// Someone who does the work.
pub(crate) struct Contender {
    /// Who.
    pub(crate) name: &'static str,
    /// How.
    pub(crate) run: Run,
    /// False where outputs differ by design, such as a batch against one stream.
    pub(crate) comparable: bool,
}

/// A work by name.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) what: What,
    /// Key bytes (of each of two keys for XTS).
    pub(crate) key: usize,
    /// The name `openssl speed -evp` has for it, and whether it decrypts.
    pub(crate) openssl: Option<(&'static str, bool)>,
}

/// What a work is.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum What {
    /// One message.
    One(Cipher, Direction),
    /// One GCM message.
    Gcm(Direction),
    /// 64 messages as one batch.
    Batch(Cipher),
    /// Short GCM messages, each with a key of its own, as one batch.
    GcmBatch,
}

const fn one(
    name: &'static str,
    cipher: Cipher,
    direction: Direction,
    key: usize,
    openssl: &'static str,
) -> Work {
    let decrypts = matches!(direction, Direction::Decrypt);
    Work { name, what: What::One(cipher, direction), key, openssl: Some((openssl, decrypts)) }
}

const fn gcm_work(name: &'static str, direction: Direction, key: usize, openssl: &'static str) -> Work {
    let decrypts = matches!(direction, Direction::Decrypt);
    Work { name, what: What::Gcm(direction), key, openssl: Some((openssl, decrypts)) }
}

const ENCRYPT: Direction = Direction::Encrypt;
const DECRYPT: Direction = Direction::Decrypt;

/// All works.
pub(crate) const WORKS: &[Work] = &[
    one("ctr-128", Cipher::Ctr, ENCRYPT, 16, "aes-128-ctr"),
    one("ctr-256", Cipher::Ctr, ENCRYPT, 32, "aes-256-ctr"),
    gcm_work("gcm-128", ENCRYPT, 16, "aes-128-gcm"),
    gcm_work("gcm-256", ENCRYPT, 32, "aes-256-gcm"),
    gcm_work("gcm-256-open", DECRYPT, 32, "aes-256-gcm"),
    one("ecb-128", Cipher::Ecb, ENCRYPT, 16, "aes-128-ecb"),
    one("ecb-256", Cipher::Ecb, ENCRYPT, 32, "aes-256-ecb"),
    one("ecb-128-decrypt", Cipher::Ecb, DECRYPT, 16, "aes-128-ecb"),
    one("xts-128", Cipher::Xts, ENCRYPT, 16, "aes-128-xts"),
    one("xts-256", Cipher::Xts, ENCRYPT, 32, "aes-256-xts"),
    one("cbc-128-decrypt", Cipher::Cbc, DECRYPT, 16, "aes-128-cbc"),
    one("cbc-256-decrypt", Cipher::Cbc, DECRYPT, 32, "aes-256-cbc"),
    one("cfb-128-decrypt", Cipher::Cfb128, DECRYPT, 16, "aes-128-cfb"),
    one("cbc-128", Cipher::Cbc, ENCRYPT, 16, "aes-128-cbc"),
    Work {
        name: "cbc-128-x64",
        what: What::Batch(Cipher::Cbc),
        key: 16,
        openssl: Some(("aes-128-cbc", false)),
    },
    Work { name: "gcm-128-keys", what: What::GcmBatch, key: 16, openssl: None },
];

impl Work {
    /// True if messages of `size` bytes are ones that the mode takes.
    pub(crate) fn takes(self, size: usize) -> bool {
        !self.is_xts() || size as u64 <= xts::MAX_DATA_UNIT
    }

    /// Ours first, then the peers in this process.
    pub(crate) fn contenders(self, engine: &Engine, size: usize) -> Vec<Contender> {
        let key = random(self.key * if self.is_xts() { 2 } else { 1 });
        let mut all =
            vec![Contender { name: "lockstep", run: self.ours(engine, &key, size), comparable: true }];
        all.extend(peers::contenders(self, &key, size));
        all
    }

    /// Bytes that one run works on for messages of `size` bytes.
    pub(crate) fn bytes(self, size: usize) -> usize {
        match self.what {
            What::Batch(_) => 64 * size,
            // As many as a busy server has at hand, bounded where they are long.
            What::GcmBatch => 10_000.min((64 << 20) / size.max(1)).max(1) * size,
            _ => size,
        }
    }

    fn is_xts(self) -> bool {
        matches!(self.what, What::One(Cipher::Xts, _))
    }

    /// The kernel that the planner takes for it.
    pub(crate) fn kernel(self, engine: &Engine, size: usize) -> &'static str {
        let operation = match self.what {
            What::One(cipher, direction) => Operation::Pass(cipher.pass(direction)),
            What::Batch(cipher) => Operation::Pass(cipher.pass(ENCRYPT)),
            What::Gcm(DECRYPT) => Operation::Recipe(Recipe::GcmOpen),
            What::Gcm(ENCRYPT) | What::GcmBatch => Operation::Recipe(Recipe::GcmSeal),
        };
        let size_of_key = Key::new(&vec![0; self.key]).expect("a length of AES").size();
        engine
            .planner()
            .plan(operation, size_of_key, size, None)
            .map_or("composed", |plan| plan.kernel_name())
    }

    fn ours(self, engine: &Engine, key: &[u8], size: usize) -> Run {
        let engine = engine.clone();
        let opener = engine.clone();
        match self.what {
            What::One(cipher, direction) => {
                let key = CipherKey::new(cipher, key).expect("a random key");
                Box::new(move |data| {
                    let data = Data::in_place(data);
                    let mut iv = IV;
                    cipher.one(engine.planner(), direction, &key, &mut iv, data).expect("bench");
                })
            }
            What::Gcm(direction) => {
                let key = Key::new(key).expect("a length of AES");
                let mut tag = [0; 16];
                let mut sealed = random(size);
                let seal = move |key: &Key, data: &mut [u8], tag: &mut [u8]| {
                    let (data, tag) = (Data::in_place(data), Tag::Write(tag));
                    let nonce = &IV[..12];
                    let message = AeadMessage { key, nonce, aad: &[], data, tag, status: Status::Pending };
                    gcm::seal(engine.planner(), &mut [message]).expect("bench");
                };
                if direction == ENCRYPT {
                    return Box::new(move |data| seal(&key, data, &mut tag));
                }
                seal(&key, &mut sealed, &mut tag);
                Box::new(move |data| {
                    let (data, tag) = (Data::copy(&sealed, data).expect("one size"), Tag::Expect(&tag));
                    let nonce = &IV[..12];
                    let message =
                        AeadMessage { key: &key, nonce, aad: &[], data, tag, status: Status::Pending };
                    gcm::open(opener.planner(), &mut [message]).expect("bench");
                })
            }
            What::Batch(cipher) => {
                let keys: Vec<_> = (0..64)
                    .map(|_| CipherKey::new(cipher, &random(key.len())).expect("a random key"))
                    .collect();
                Box::new(move |data| {
                    let mut ivs = [IV; 64];
                    let mut messages: Vec<_> = data
                        .chunks_exact_mut(size)
                        .zip(&keys)
                        .zip(&mut ivs)
                        .map(|((data, key), iv)| Message { key, iv, data: Data::in_place(data) })
                        .collect();
                    cipher.run(engine.planner(), ENCRYPT, &mut messages).expect("bench");
                })
            }
            What::GcmBatch => {
                let keys: Arc<[u8]> = random(self.bytes(size) / size * key.len()).into();
                let length = key.len();
                let mut tags = vec![[0; 16]; keys.len() / length];
                Box::new(move |data| {
                    // New keys in each run: their expansion is part of the work.
                    let keys: Vec<_> =
                        keys.chunks(length).map(|key| Key::new(key).expect("a length")).collect();
                    let mut messages: Vec<_> = data
                        .chunks_exact_mut(size)
                        .zip(&keys)
                        .zip(&mut tags)
                        .map(|((data, key), tag)| AeadMessage {
                            key,
                            nonce: &IV[..12],
                            aad: &[],
                            data: Data::in_place(data),
                            tag: Tag::Write(tag),
                            status: Status::Pending,
                        })
                        .collect();
                    gcm::seal(engine.planner(), &mut messages).expect("bench");
                })
            }
        }
    }
}

/// Any IV does: nothing made here is kept.
pub(super) const IV: [u8; 16] = *b"benchmark iv 016";

/// Random bytes.
pub(crate) fn random(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes
}
