//! Workloads by name. A workload is a call that can be made any number of times on the same buffer.

use std::sync::Arc;

use lockstep::Engine;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{self, Cipher, CipherKey, Direction, Executor, Message, xts};
use lockstep::hazmat::work::{AeadMessage, FusedAead, Operation, Pass, Status, Tag};
use lockstep::hazmat::{self, Block, Key, KeySize};

/// A call on a buffer, in place. The second argument is the number of the call. IVs and nonces depend on this number,
/// so that no call reverses the previous one: the buffer is correct after many calls only if each call was correct.
/// Returns a digest of the tags, which are not in the buffer. If all calls write the same bytes, the digest covers a
/// part of these bytes instead (see [`checking_each_write`]).
pub(crate) type Run = Box<dyn FnMut(&mut [u8], u64) -> hazmat::Result<u128>>;

/// A workload by name, such as `ctr-128` or `cbc-256-decrypt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workload {
    /// The name on the command line.
    pub(crate) name: String,
    /// Mode and direction.
    pub(crate) kind: Kind,
    /// Bytes of the key. For XTS, bytes of each of the two keys.
    pub(crate) key_len: usize,
}

/// Mode and direction of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A mode without authentication.
    Cipher(Cipher, Direction),
    /// A mode with authentication.
    Aead(Aead, Direction),
}

/// A mode with authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aead {
    /// GCM.
    Gcm,
    /// GCM-SIV.
    GcmSiv,
    /// OCB3.
    Ocb,
}

impl Aead {
    const ALL: [(&str, Aead); 3] = [("gcm", Aead::Gcm), ("gcm-siv", Aead::GcmSiv), ("ocb", Aead::Ocb)];

    /// The mode.
    fn mode(self) -> mode::Aead {
        match self {
            Aead::Gcm => mode::Aead::Gcm,
            Aead::GcmSiv => mode::Aead::GcmSiv,
            Aead::Ocb => mode::Aead::Ocb,
        }
    }
}

/// Number and size of the messages of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of a message.
    pub(crate) size: usize,
    /// Messages of a call. If there is more than one, each message has its own key, which is expanded in each call.
    pub(crate) messages: usize,
}

impl Shape {
    /// One message of this size.
    pub(crate) const fn one(size: usize) -> Shape {
        Shape { size, messages: 1 }
    }

    /// Bytes of a call.
    pub(crate) const fn bytes(self) -> usize {
        self.size.saturating_mul(self.messages)
    }

    /// True if a call is small enough to be measured: several buffers of its size are held in memory.
    pub(crate) const fn fits_in_memory(self) -> bool {
        self.bytes() <= MAX_CALL_BYTES
    }
}

/// The maximum number of bytes of a call.
pub const MAX_CALL_BYTES: usize = 1 << 30;

const MODES: [(&str, Cipher); 7] = [
    ("ecb", Cipher::Ecb),
    ("ctr", Cipher::Ctr),
    ("xts", Cipher::Xts),
    ("cbc", Cipher::Cbc),
    ("cfb", Cipher::Cfb128),
    ("ofb", Cipher::Ofb),
    ("pcbc", Cipher::Pcbc),
];

/// All workloads.
pub(crate) fn all() -> Vec<Workload> {
    let mut works = Vec::new();
    for (mode, cipher) in MODES {
        for bits in [128, 192, 256] {
            // SP 800-38E does not specify XTS with AES-192.
            if cipher == Cipher::Xts && bits == 192 {
                continue;
            }
            let key_len = bits / 8;
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let kind = Kind::Cipher(cipher, direction);
                let name = match (cipher, direction) {
                    (_, Direction::Encrypt) => format!("{mode}-{bits}"),
                    // Decryption is the same as encryption.
                    (Cipher::Ctr | Cipher::Ofb, _) => continue,
                    _ => format!("{mode}-{bits}-decrypt"),
                };
                works.push(Workload { name, kind, key_len });
            }
        }
    }
    for (mode, aead) in Aead::ALL {
        for bits in [128, 192, 256] {
            for (direction, end) in [(Direction::Encrypt, ""), (Direction::Decrypt, "-open")] {
                let name = format!("{mode}-{bits}{end}");
                works.push(Workload { name, kind: Kind::Aead(aead, direction), key_len: bits / 8 });
            }
        }
    }
    works
}

/// The workloads whose names begin with one of these prefixes, in the order of the prefixes.
pub(crate) fn with_prefix(names: &[&str]) -> Vec<Workload> {
    let all = all();
    let mut works: Vec<Workload> = Vec::new();
    for work in names.iter().flat_map(|name| all.iter().filter(|work| work.name.starts_with(*name))) {
        if !works.contains(work) {
            works.push(work.clone());
        }
    }
    works
}

/// The workload with this name.
pub(crate) fn named(name: &str) -> Option<Workload> {
    all().into_iter().find(|work| work.name == name)
}

/// Sealed messages. A workload that opens messages reads these messages instead of the data of its calls.
#[derive(Clone)]
pub(super) struct Sealed {
    pub(super) nonce: [u8; 12],
    /// The ciphertexts, one after the other.
    pub(super) bytes: Arc<[u8]>,
    pub(super) tags: Arc<[Block]>,
}

/// Keys of all messages, and the messages to open.
pub(crate) struct Inputs {
    keys: Arc<[u8]>,
    /// Bytes of the keys of one message.
    each: usize,
    sealed: Sealed,
}

impl Workload {
    /// True if the mode accepts messages of `size` bytes.
    pub(crate) fn accepts(&self, size: usize) -> bool {
        match self.kind {
            Kind::Cipher(Cipher::Xts, _) => (16..=xts::MAX_DATA_UNIT).contains(&(size as u64)),
            Kind::Cipher(Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc, _) => size.is_multiple_of(16),
            _ => true,
        }
    }

    /// True if the inputs of the block cipher are the data of the call, and not counters, earlier outputs, or data
    /// combined with earlier outputs.
    pub(super) fn has_data_as_cipher_input(&self) -> bool {
        matches!(
            self.kind,
            Kind::Cipher(Cipher::Ecb, _)
                | Kind::Cipher(Cipher::Cbc | Cipher::Pcbc | Cipher::Cfb128, Direction::Decrypt)
        )
    }

    /// Creates random keys and, for a workload that opens messages, messages sealed by `sealer`.
    pub(crate) fn inputs(&self, shape: Shape, sealer: &Engine) -> hazmat::Result<Inputs> {
        let each = self.key_len * if matches!(self.kind, Kind::Cipher(Cipher::Xts, _)) { 2 } else { 1 };
        let keys: Arc<[u8]> = random(each * shape.messages).into();
        let sealed = Sealed { nonce: NONCE, bytes: Arc::default(), tags: Arc::default() };
        let mut inputs = Inputs { keys, each, sealed };
        if let Kind::Aead(aead, Direction::Decrypt) = self.kind {
            let mut sealed = random(shape.bytes());
            let mut tags = vec![[0; 16]; shape.messages];
            let mode = (aead.mode(), Direction::Encrypt);
            run_aead(mode, sealer.planner(), &inputs.aes_keys(), NONCE, &mut sealed, &mut tags, None)?;
            inputs.sealed = Sealed { nonce: NONCE, bytes: sealed.into(), tags: tags.into() };
        }
        Ok(inputs)
    }

    /// The operation of the workload, and the operations of which it can be composed.
    fn operations(&self) -> (Operation, &'static [Operation]) {
        const COMPOSED: &[Operation] = &[Operation::Pass(Pass::Ctr32), Operation::Pass(Pass::Ghash)];
        // A GCM-SIV that no kernel fuses is composed of this pass. POLYVAL is not in the list, because it has keys of
        // 16 bytes only. Each device that has the counter has POLYVAL too.
        const SIV: &[Operation] = &[Operation::Pass(Pass::CtrLittle32)];
        const ECB: &[Operation] = &[Operation::Pass(Pass::EcbEncrypt), Operation::Pass(Pass::EcbDecrypt)];
        let (aead, direction) = match self.kind {
            Kind::Cipher(cipher, direction) => return (Operation::Pass(cipher.pass(direction)), &[]),
            Kind::Aead(aead, direction) => (aead, direction),
        };
        let (fused, composed) = match aead {
            Aead::Gcm => ([FusedAead::GcmSeal, FusedAead::GcmOpen], COMPOSED),
            Aead::GcmSiv => ([FusedAead::GcmSivSeal, FusedAead::GcmSivOpen], SIV),
            Aead::Ocb => ([FusedAead::OcbSeal, FusedAead::OcbOpen], ECB),
        };
        (Operation::Fused(fused[usize::from(direction == Direction::Decrypt)]), composed)
    }

    fn key_size(&self) -> KeySize {
        Key::new(&[0; 32][..self.key_len]).expect("a length of AES").size()
    }

    /// True if the devices and kernels of the engine support this workload.
    pub(crate) fn is_supported_by(&self, engine: &Engine) -> bool {
        let size = self.key_size();
        let does = |operation: &Operation| engine.planner().supports(*operation, size);
        let (whole, composed) = self.operations();
        does(&whole) || !composed.is_empty() && composed.iter().all(does)
    }

    /// Runs the calibration that the planner would otherwise run during the measurement.
    pub(crate) fn settle(&self, engine: &Engine) {
        let size = self.key_size();
        let (whole, composed) = self.operations();
        for operation in std::iter::once(&whole).chain(composed) {
            engine.planner().discover_and_measure(*operation, size);
        }
    }

    /// The kernel and the device that the planner chooses.
    pub(crate) fn kernel(&self, engine: &Engine, shape: Shape) -> (&'static str, String) {
        let size = self.key_size();
        let (whole, composed) = self.operations();
        let operations = std::iter::once(&whole).chain(composed);
        let plan = operations
            .filter_map(|operation| engine.planner().plan(*operation, size, shape.bytes(), None).ok())
            .next();
        plan.map_or(("-", "-".into()), |plan| (plan.kernel_name(), plan.device.id().to_string()))
    }

    /// The workload as computed by this library.
    pub(crate) fn ours(&self, engine: &Engine, inputs: &Inputs, shape: Shape) -> hazmat::Result<Run> {
        let planner = Arc::clone(engine.planner());
        let (all, each) = (Arc::clone(&inputs.keys), inputs.each);
        match self.kind {
            Kind::Cipher(cipher, direction) if shape.messages == 1 => {
                let key = CipherKey::new(cipher, &all)?;
                Ok(Box::new(move |data, call| {
                    let mut iv = iv(call);
                    cipher.one(&planner, direction, &key, &mut iv, Data::in_place(data))?;
                    Ok(0)
                }))
            }
            Kind::Cipher(cipher, direction) => Ok(Box::new(move |data, call| {
                let keys: Vec<_> =
                    all.chunks(each).map(|key| CipherKey::new(cipher, key)).collect::<Result<_, _>>()?;
                let mut ivs = vec![iv(call); keys.len()];
                let parts = data.chunks_exact_mut(shape.size).zip(&keys).zip(&mut ivs);
                let mut messages: Vec<_> =
                    parts.map(|((data, key), iv)| Message { key, iv, data: Data::in_place(data) }).collect();
                cipher.run(&planner, direction, &mut messages)?;
                Ok(0)
            })),
            Kind::Aead(aead, direction) => {
                let mode = aead.mode();
                let prepared = if shape.messages == 1 { inputs.aes_keys() } else { Vec::new() };
                let expand = move || all.chunks(each).map(Key::new).collect::<Result<Vec<_>, _>>();
                // Each call of an opening workload opens the same messages and checks their tags.
                let opened = (direction == Direction::Decrypt).then(|| inputs.sealed());
                let mut tags =
                    opened.as_ref().map_or(vec![[0; 16]; shape.messages], |sealed| sealed.tags.to_vec());
                let opens = opened.is_some();
                let call: Run = Box::new(move |data, call| {
                    let expanded = if prepared.is_empty() { expand()? } else { Vec::new() };
                    let keys = if prepared.is_empty() { &expanded } else { &prepared };
                    let nonce = opened.as_ref().map_or_else(|| nonce(call), |sealed| sealed.nonce);
                    let sealed = opened.as_ref().map(|sealed| &*sealed.bytes);
                    run_aead((mode, direction), &planner, keys, nonce, data, &mut tags, sealed)?;
                    Ok(if opens { 0 } else { digest_of(tags.iter().map(|tag| u128::from_le_bytes(*tag))) })
                });
                Ok(if opens { checking_each_write(shape.size, call) } else { call })
            }
        }
    }
}

impl Inputs {
    /// The keys of all messages, one after the other.
    pub(super) fn keys(&self) -> Arc<[u8]> {
        Arc::clone(&self.keys)
    }

    pub(super) fn sealed(&self) -> Sealed {
        self.sealed.clone()
    }

    fn aes_keys(&self) -> Vec<Key> {
        self.keys.chunks(self.each).map(|key| Key::new(key).expect("a length of AES")).collect()
    }
}

/// For workloads whose calls all write the same bytes: makes sure that the output of the previous call is not mistaken
/// for the output of this call. Before each call, one block of each message is changed, a different block in each call.
/// The digest covers these blocks after the call.
pub(super) fn checking_each_write(size: usize, mut run: Run) -> Run {
    Box::new(move |data, call| {
        let begin = (call % size.div_ceil(16).max(1) as u64) as usize * 16;
        let block = begin..size.min(begin + 16);
        for message in data.chunks_exact_mut(size) {
            // A block returns to its old value only after 256 changes.
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

/// Seals the messages in `data` and sets their tags, or opens the messages in `sealed` to `data` and checks their tags.
fn run_aead(
    (mode, direction): (mode::Aead, Direction),
    executor: &dyn Executor,
    keys: &[Key],
    nonce: [u8; 12],
    data: &mut [u8],
    tags: &mut [Block],
    sealed: Option<&[u8]>,
) -> hazmat::Result<()> {
    let (size, nonce) = (data.len() / tags.len(), &nonce);
    let parts = data.chunks_exact_mut(size).zip(keys).zip(tags).enumerate();
    let mut messages = parts.map(|(index, ((data, key), tag))| {
        let (data, tag) = match sealed {
            Some(sealed) => {
                let from = &sealed[index * size..][..size];
                (Data::copy(from, data).expect("equal lengths"), Tag::Expect(tag))
            }
            None => (Data::in_place(data), Tag::Write(tag)),
        };
        AeadMessage { key, nonce, aad: &[], data, tag, status: Status::Pending }
    });
    // One message needs no allocation.
    match (keys.len(), messages.next()) {
        (1, Some(message)) => mode.run_messages(executor, direction, &mut [message]),
        (_, first) => {
            let mut all: Vec<_> = first.into_iter().chain(messages).collect();
            mode.run_messages(executor, direction, &mut all)
        }
    }
}

/// A digest of a sequence of numbers. It depends on their order.
pub(super) fn digest_of(values: impl Iterator<Item = u128>) -> u128 {
    values.fold(0, |sum, value| sum.rotate_left(1) ^ value)
}

/// Fixed values are sufficient because no output is kept.
const IV: Block = *b"benchmark iv 016";
const NONCE: [u8; 12] = *b"benchmark iv";

/// The IV of a call. The IVs of different calls differ in the upper half, so that their counter blocks do not overlap.
pub(super) fn iv(call: u64) -> Block {
    (u128::from_be_bytes(IV) ^ (u128::from(call) << 64)).to_be_bytes()
}

/// The nonce of a call.
pub(super) fn nonce(call: u64) -> [u8; 12] {
    iv(call)[..12].try_into().expect("12 bytes of 16")
}

/// Random bytes.
pub(crate) fn random(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(kernel: &str) -> Engine {
        Engine::builder().device("cpu").kernel(kernel).threads(1).build().unwrap()
    }

    /// Two kernels run each workload, with one message and with several. After each call, the outputs of the two
    /// kernels are equal and differ from the input.
    #[test]
    fn no_call_reverses_another() {
        let (ours, verifier) = (engine("auto"), engine("cpu/soft"));
        for work in all() {
            for shape in [Shape::one(96), Shape { size: 48, messages: 3 }] {
                let inputs = work.inputs(shape, &verifier).unwrap();
                let mut runs = [&ours, &verifier].map(|engine| work.ours(engine, &inputs, shape).unwrap());
                let start = random(shape.bytes());
                let mut buffers = [start.clone(), start.clone()];
                for call in 0..4 {
                    let digests: Vec<_> = runs
                        .iter_mut()
                        .zip(&mut buffers)
                        .map(|(run, buffer)| run(buffer, call).unwrap())
                        .collect();
                    assert!(
                        digests[0] == digests[1] && buffers[0] == buffers[1],
                        "{} call {call}",
                        work.name
                    );
                    assert!(buffers[0] != start, "{} call {call}", work.name);
                }
            }
        }
    }

    /// The digest detects a call that does nothing, even if the buffer contains the correct output of an earlier call.
    /// The test has three cases: all calls after the first do nothing, a single call does nothing, and no call does
    /// nothing.
    #[test]
    fn an_opening_that_does_nothing_is_found() {
        let verifier = engine("cpu/soft");
        let work = named("gcm-128-open").unwrap();
        for shape in [Shape::one(40), Shape { size: 40, messages: 3 }] {
            let inputs = work.inputs(shape, &verifier).unwrap();
            let mut plaintext = random(shape.bytes());
            work.ours(&verifier, &inputs, shape).unwrap()(&mut plaintext, 0).unwrap();
            for idle in [1..9, 4..5, 9..9] {
                let mut right = work.ours(&verifier, &inputs, shape).unwrap();
                let (plaintext, skipped) = (plaintext.clone(), idle.clone());
                let mut wrong = checking_each_write(
                    shape.size,
                    Box::new(move |data, call| {
                        if !skipped.contains(&call) {
                            data.copy_from_slice(&plaintext);
                        }
                        Ok(0)
                    }),
                );
                let mut buffers = [random(shape.bytes()), Vec::new()];
                buffers[1] = buffers[0].clone();
                let mut differ = |call: u64| {
                    let digests = [right(&mut buffers[0], call), wrong(&mut buffers[1], call)];
                    let [right, wrong] = digests.map(|digest| digest.unwrap());
                    right != wrong
                };
                let found: Vec<u64> = (0..9).filter(|call| differ(*call)).collect();
                assert_eq!(found, idle.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn names() {
        assert_eq!(with_prefix(&["xts", "ctr-1"]).len(), 4 + 2);
        let direct: Vec<_> = all().into_iter().filter(Workload::has_data_as_cipher_input).collect();
        assert_eq!(direct.len(), 3 * (2 + 3));
        assert!(direct.iter().all(|work| work.name.starts_with("ecb") || work.name.ends_with("decrypt")));
        assert!(with_prefix(&["abacus"]).is_empty() && named("ctr").is_none());
        assert!(!named("xts-128").unwrap().accepts(32 << 20) && !named("ecb-128").unwrap().accepts(17));
    }
}
