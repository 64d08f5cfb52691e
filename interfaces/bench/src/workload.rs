//! The workloads and their names. A workload is a call that can be made any number of times on the same buffer.

use std::cell::Cell;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use lockstep::Engine;
use lockstep::aead::{self, Aead, AeadKey, Status, Tag};
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction, Message, xts};
use lockstep::hazmat::work::Operation;
use lockstep::hazmat::{self, Block, KeySize};

/// A call that processes a buffer in place. The second argument is the number of the call. IVs and nonces depend on this
/// number, so that no call reverses the previous call: the buffer is correct after many calls only if each call was correct.
/// The call returns a digest of the tags, which are not in the buffer. If all calls write the same bytes, the digest covers
/// a part of these bytes instead (see [`checking_each_write`]).
pub type Run = Box<dyn FnMut(&mut [u8], u64) -> hazmat::Result<u128>>;

/// A workload by name, such as `ctr-128` or `cbc-256-decrypt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// The name on the command line.
    pub name: String,
    /// The mode.
    pub mode: Mode,
    /// Encryption or decryption.
    pub direction: Direction,
    /// Bytes of the key. For XTS, bytes of each of the two keys.
    pub key_len: usize,
}

/// A mode of AES, without or with authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Without authentication.
    Cipher(Cipher),
    /// With authentication.
    Aead(Aead),
}

/// The number and the size of the messages of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a message.
    pub size: usize,
    /// Number of messages of a call. If there are several, each message has its own key, and each call expands the keys.
    pub messages: usize,
}

impl Shape {
    /// The shape of a call on one message of `size` bytes.
    pub const fn one(size: usize) -> Shape {
        Shape { size, messages: 1 }
    }

    /// Bytes of a call.
    pub const fn bytes(self) -> usize {
        self.size.saturating_mul(self.messages)
    }
}

/// The maximum number of bytes of a call. The limit bounds the memory, which holds several buffers of this size.
pub const MAX_CALL_BYTES: usize = 1 << 30;

const MODES: [(&str, Mode); 10] = [
    ("ecb", Mode::Cipher(Cipher::Ecb)),
    ("ctr", Mode::Cipher(Cipher::Ctr)),
    ("xts", Mode::Cipher(Cipher::Xts)),
    ("cbc", Mode::Cipher(Cipher::Cbc)),
    ("cfb", Mode::Cipher(Cipher::Cfb128)),
    ("ofb", Mode::Cipher(Cipher::Ofb)),
    ("pcbc", Mode::Cipher(Cipher::Pcbc)),
    ("gcm", Mode::Aead(Aead::Gcm)),
    ("gcm-siv", Mode::Aead(Aead::GcmSiv)),
    ("ocb", Mode::Aead(Aead::Ocb)),
];

/// All workloads.
pub fn all() -> Vec<Workload> {
    let mut works = Vec::new();
    for (mode_name, mode) in MODES {
        let (key_lens, reverse): (&[usize], _) = match mode {
            // SP 800-38E does not specify XTS with AES-192.
            Mode::Cipher(Cipher::Xts) => (&[16, 32], Some("-decrypt")),
            // In these modes decryption is the same as encryption, so only encryption is a workload.
            Mode::Cipher(Cipher::Ctr | Cipher::Ofb) => (&[16, 24, 32], None),
            Mode::Cipher(_) => (&[16, 24, 32], Some("-decrypt")),
            Mode::Aead(aead) => (aead.key_lengths(), Some("-open")),
        };
        for &key_len in key_lens {
            let name = format!("{mode_name}-{}", key_len * 8);
            let reverse = reverse.map(|end| (format!("{name}{end}"), Direction::Decrypt));
            let both = std::iter::once((name, Direction::Encrypt)).chain(reverse);
            works.extend(both.map(|(name, direction)| Workload { name, mode, direction, key_len }));
        }
    }
    works
}

/// The workload with this name, which must exist.
pub fn named(name: &str) -> Workload {
    all().into_iter().find(|work| work.name == name).expect("the name of a workload")
}

/// The keys of all messages, and the sealed messages of a workload that opens them.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The keys of all messages, one after the other.
    pub keys: Arc<[u8]>,
    /// Bytes of the keys of one message.
    pub each: usize,
    /// The ciphertexts of a workload that opens messages. Each call reads them instead of its buffer.
    pub source: Arc<[u8]>,
    /// The tags of the ciphertexts, which have the nonce [`NONCE`].
    pub tags: Arc<[Block]>,
}

impl Workload {
    /// True if the mode accepts messages of `size` bytes.
    pub fn accepts(&self, size: usize) -> bool {
        match self.mode {
            Mode::Cipher(Cipher::Xts) => (16..=xts::MAX_DATA_UNIT).contains(&(size as u64)),
            Mode::Cipher(Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc) => size.is_multiple_of(16),
            _ => true,
        }
    }

    /// Creates random keys and, for a workload that opens messages, messages sealed by `sealer`.
    ///
    /// # Errors
    /// If `sealer` cannot seal the messages.
    pub fn inputs(&self, shape: Shape, sealer: &Engine) -> hazmat::Result<Inputs> {
        let each = self.key_len * if self.mode == Mode::Cipher(Cipher::Xts) { 2 } else { 1 };
        let keys: Arc<[u8]> = random(each * shape.messages).into();
        let mut inputs = Inputs { keys, each, source: Arc::default(), tags: Arc::default() };
        if let (Mode::Aead(aead), Direction::Decrypt) = (self.mode, self.direction) {
            let (mut sealed, mut tags) = (random(shape.bytes()), vec![[0; 16]; shape.messages]);
            run_aead(sealer, &inputs.aead_keys(aead)?, &NONCE, &mut sealed, &mut tags, &[])?;
            (inputs.source, inputs.tags) = (sealed.into(), tags.into());
        }
        Ok(inputs)
    }

    /// Calls `supports` for the operations that can compute the workload: for a single operation, or for a fused operation and, if
    /// `supports` returns false for it, for the passes that compute the same. Returns true if the operations for which `supports`
    /// returned true can compute the workload.
    fn runs_with(&self, supports: impl Fn(Operation, KeySize) -> bool) -> bool {
        let size =
            KeySize::ALL.into_iter().find(|size| size.bytes() == self.key_len).expect("a length of AES");
        match self.mode {
            Mode::Cipher(cipher) => supports(Operation::Pass(cipher.pass(self.direction)), size),
            Mode::Aead(aead) => aead.is_supported(self.direction, size, supports),
        }
    }

    /// True if the devices and kernels of the engine support this workload.
    pub fn is_supported_by(&self, engine: &Engine) -> bool {
        self.runs_with(|operation, size| engine.planner().supports(operation, size))
    }

    /// Runs the calibration that the planner would otherwise run during the measurement.
    pub fn calibrate(&self, engine: &Engine) {
        self.runs_with(|operation, size| {
            engine.planner().discover_and_measure(operation, size);
            matches!(operation, Operation::Pass(_))
        });
    }

    /// The kernel that the planner chooses for the workload. If the workload is composed of passes, this is the kernel of the first pass.
    pub fn kernel(&self, engine: &Engine, shape: Shape) -> &'static str {
        let chosen = Cell::new("-");
        self.runs_with(|operation, size| {
            let plan = engine.planner().plan(operation, size, shape.bytes(), None);
            chosen.set(plan.as_ref().map_or("-", |plan| plan.kernel_name()));
            plan.is_ok() && matches!(operation, Operation::Fused(_))
        });
        chosen.get()
    }

    /// Returns calls of this library that compute the workload.
    ///
    /// # Errors
    /// If the mode refuses a key.
    pub fn ours(&self, engine: &Engine, inputs: &Inputs, shape: Shape) -> hazmat::Result<Run> {
        let (engine, direction, inputs) = (engine.clone(), self.direction, inputs.clone());
        match self.mode {
            Mode::Cipher(cipher) if shape.messages == 1 => {
                let key = CipherKey::new(cipher, &inputs.keys)?;
                Ok(Box::new(move |data, call| {
                    cipher.one(engine.planner(), direction, &key, &mut iv(call), Data::in_place(data))?;
                    Ok(0)
                }))
            }
            Mode::Cipher(cipher) => Ok(Box::new(move |data, call| {
                let keys = inputs.keys.chunks(inputs.each).map(|key| CipherKey::new(cipher, key));
                let keys = keys.collect::<Result<Vec<_>, _>>()?;
                let mut ivs = vec![iv(call); keys.len()];
                let parts = data.chunks_exact_mut(shape.size).zip(&keys).zip(&mut ivs);
                let mut messages: Vec<_> =
                    parts.map(|((data, key), iv)| Message { key, iv, data: Data::in_place(data) }).collect();
                cipher.run(engine.planner(), direction, &mut messages)?;
                Ok(0)
            })),
            Mode::Aead(aead) => {
                let prepared = if shape.messages == 1 { inputs.aead_keys(aead)? } else { Vec::new() };
                // Each call of an opening workload opens the same messages and checks their tags.
                let opens = direction == Direction::Decrypt;
                let mut tags = if opens { inputs.tags.to_vec() } else { vec![[0; 16]; shape.messages] };
                let call: Run = Box::new(move |data, call| {
                    let expanded = if prepared.is_empty() { inputs.aead_keys(aead)? } else { Vec::new() };
                    let keys = if prepared.is_empty() { &expanded } else { &prepared };
                    let nonce = if opens { NONCE } else { nonce(call) };
                    run_aead(&engine, keys, &nonce, data, &mut tags, &inputs.source)?;
                    Ok(if opens { 0 } else { digest_of(tags.iter().map(|tag| u128::from_le_bytes(*tag))) })
                });
                Ok(if opens { checking_each_write(shape.size, call) } else { call })
            }
        }
    }
}

impl Inputs {
    fn aead_keys(&self, aead: Aead) -> hazmat::Result<Vec<AeadKey>> {
        self.keys.chunks(self.each).map(|key| AeadKey::new(aead, key)).collect()
    }
}

/// Wraps calls that all write the same bytes, so that the output of the previous call cannot be mistaken for the output of the
/// current call. Before each call, one block of each message is changed; consecutive calls change different blocks. The digest
/// covers these blocks after the call.
pub fn checking_each_write(size: usize, mut run: Run) -> Run {
    Box::new(move |data, call| {
        let begin = (call % size.div_ceil(16).max(1) as u64) as usize * 16;
        let block = begin..size.min(begin + 16);
        for message in data.chunks_exact_mut(size) {
            // The addend is odd, so a byte returns to its first value only after 256 changes.
            message[block.clone()].iter_mut().for_each(|byte| *byte = byte.wrapping_add(0x35));
        }
        let digest = run(data, call)?;
        let blocks = data.chunks_exact(size).map(|message| {
            let mut whole = [0; 16];
            whole[..block.len()].copy_from_slice(&message[block.clone()]);
            u128::from_le_bytes(whole)
        });
        Ok(digest ^ digest_of(blocks))
    })
}

/// If `sealed` is empty, seals the messages in `data` and sets `tags`. Otherwise opens the messages in `sealed`, writes the plaintexts
/// to `data`, and checks `tags`.
fn run_aead(
    engine: &Engine,
    keys: &[AeadKey],
    nonce: &[u8],
    data: &mut [u8],
    tags: &mut [Block],
    sealed: &[u8],
) -> hazmat::Result<()> {
    let size = data.len() / tags.len();
    let parts = data.chunks_exact_mut(size).zip(keys).zip(tags).enumerate();
    let mut messages = parts.map(|(index, ((data, key), tag))| {
        let (data, tag) = match sealed.get(index * size..(index + 1) * size) {
            Some(from) if size > 0 => (Data::copy(from, data).expect("equal lengths"), Tag::Expect(&tag[..])),
            _ => (Data::in_place(data), Tag::Write(&mut tag[..])),
        };
        aead::Message { key, nonce, aad: &[], data, tag, status: Status::Pending }
    });
    let (aead, planner) = (keys[0].mode(), engine.planner());
    let direction = if sealed.is_empty() { Direction::Encrypt } else { Direction::Decrypt };
    // A single message is run without an allocation.
    match messages.next() {
        Some(message) if keys.len() == 1 => aead.run(planner, direction, &mut [message]),
        first => aead.run(planner, direction, &mut first.into_iter().chain(messages).collect::<Vec<_>>()),
    }
}

/// Makes the calls with these numbers. Returns a digest of `before` and of the values that the calls return. The loop is in this
/// optimised crate because its time is part of each measured time.
///
/// # Errors
/// Those of the calls.
pub fn repeat(run: &mut Run, data: &mut [u8], mut numbers: Range<u64>, before: u128) -> hazmat::Result<u128> {
    numbers.try_fold(before, |digest, number| Ok(digest.rotate_left(1) ^ run(black_box(data), number)?))
}

/// A digest of a sequence of numbers. It depends on their order.
pub fn digest_of(values: impl Iterator<Item = u128>) -> u128 {
    values.fold(0, |sum, value| sum.rotate_left(1) ^ value)
}

/// The first IV. A fixed value is sufficient because the benchmark discards all ciphertexts.
const IV: Block = *b"benchmark iv 016";
/// The nonce of messages that are opened.
pub const NONCE: [u8; 12] = *b"benchmark iv";

/// The IV of a call. The IVs of different calls differ in the upper half, so that their counter blocks do not overlap.
pub fn iv(call: u64) -> Block {
    (u128::from_be_bytes(IV) ^ (u128::from(call) << 64)).to_be_bytes()
}

/// The nonce of a call.
pub fn nonce(call: u64) -> [u8; 12] {
    iv(call)[..12].try_into().expect("12 bytes of 16")
}

/// Random bytes.
pub fn random(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes
}

/// Inverts all bits.
pub fn invert(data: &mut [u8]) {
    data.iter_mut().for_each(|byte| *byte = !*byte);
}

#[cfg(test)]
mod tests;
