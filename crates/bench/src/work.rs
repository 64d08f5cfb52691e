//! What is measured: works by name, each a call that can be made any number of times on the same buffer.

use std::sync::Arc;

use lockstep::Engine;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction, Message, gcm, xts};
use lockstep::hazmat::work::{AeadMessage, FusedAead, Operation, Pass, Status, Tag};
use lockstep::hazmat::{self, Block, Key};

/// A call on a buffer, in place, by its number, on which IVs and nonces depend: no call undoes the one before, so that a
/// buffer after many calls is right only if each of them was. Returns what does not lie in the buffer: a digest of tags, or of
/// what a call that comes to the same bytes each time has written.
pub(crate) type Run = Box<dyn FnMut(&mut [u8], u64) -> hazmat::Result<u128>>;

/// A work by name, such as `ctr-128` or `cbc-256-decrypt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Work {
    /// Its name on the command line.
    pub(crate) name: String,
    /// What it is.
    pub(crate) what: What,
    /// Key bytes (of each of two keys for XTS).
    pub(crate) key: usize,
}

/// What a work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A mode without authentication.
    Cipher(Cipher, Direction),
    /// GCM.
    Gcm(Direction),
}

/// How much is worked on in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of a message.
    pub(crate) size: usize,
    /// Messages of a call: with more than one, each has a key of its own, which is new in each call.
    pub(crate) messages: usize,
}

impl Shape {
    /// One message.
    pub(crate) const fn one(size: usize) -> Shape {
        Shape { size, messages: 1 }
    }

    /// Bytes of a call.
    pub(crate) const fn bytes(self) -> usize {
        self.size.saturating_mul(self.messages)
    }

    /// True if a call of it can be measured: several buffers of that size are held in memory.
    pub(crate) const fn is_held(self) -> bool {
        self.bytes() <= MAX_CALL_BYTES
    }
}

/// The most bytes of a call.
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

/// All works.
pub(crate) fn all() -> Vec<Work> {
    let mut works = Vec::new();
    for (mode, cipher) in MODES {
        for bits in [128, 192, 256] {
            // SP 800-38E has no XTS with AES-192.
            if cipher == Cipher::Xts && bits == 192 {
                continue;
            }
            let key = bits / 8;
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let what = What::Cipher(cipher, direction);
                let name = match (cipher, direction) {
                    (_, Direction::Encrypt) => format!("{mode}-{bits}"),
                    // The same as the other way.
                    (Cipher::Ctr | Cipher::Ofb, _) => continue,
                    _ => format!("{mode}-{bits}-decrypt"),
                };
                works.push(Work { name, what, key });
            }
        }
    }
    for bits in [128, 192, 256] {
        for (direction, end) in [(Direction::Encrypt, ""), (Direction::Decrypt, "-open")] {
            let name = format!("gcm-{bits}{end}");
            works.push(Work { name, what: What::Gcm(direction), key: bits / 8 });
        }
    }
    works
}

/// The works whose names begin with one of these, in the order in which they are named.
pub(crate) fn beginning_with(names: &[&str]) -> Vec<Work> {
    let all = all();
    let mut works: Vec<Work> = Vec::new();
    for work in names.iter().flat_map(|name| all.iter().filter(|work| work.name.starts_with(*name))) {
        if !works.contains(work) {
            works.push(work.clone());
        }
    }
    works
}

/// The work of exactly this name.
pub(crate) fn named(name: &str) -> Option<Work> {
    all().into_iter().find(|work| work.name == name)
}

/// Messages to open: what a work that opens works on, rather than on the data of its calls.
#[derive(Clone)]
pub(super) struct Sealed {
    pub(super) nonce: [u8; 12],
    /// All, one after the other.
    pub(super) bytes: Arc<[u8]>,
    pub(super) tags: Arc<[Block]>,
}

/// Keys for all messages, and for opening what is opened.
pub(crate) struct Inputs {
    keys: Arc<[u8]>,
    /// Bytes of a message's keys.
    each: usize,
    sealed: Sealed,
}

impl Work {
    /// True if messages of `size` bytes are ones that the mode takes.
    pub(crate) fn takes(&self, size: usize) -> bool {
        match self.what {
            What::Cipher(Cipher::Xts, _) => (16..=xts::MAX_DATA_UNIT).contains(&(size as u64)),
            What::Cipher(Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc, _) => size.is_multiple_of(16),
            _ => true,
        }
    }

    /// True if the cipher is given the data of a call as they are: not counters, nor what it made before, nor the data changed by
    /// either.
    pub(super) fn enciphers_its_data(&self) -> bool {
        matches!(
            self.what,
            What::Cipher(Cipher::Ecb, _)
                | What::Cipher(Cipher::Cbc | Cipher::Pcbc | Cipher::Cfb128, Direction::Decrypt)
        )
    }

    /// Random keys; and messages to open, sealed by `sealer`.
    pub(crate) fn inputs(&self, shape: Shape, sealer: &Engine) -> hazmat::Result<Inputs> {
        let each = self.key * if matches!(self.what, What::Cipher(Cipher::Xts, _)) { 2 } else { 1 };
        let keys: Arc<[u8]> = random(each * shape.messages).into();
        let sealed = Sealed { nonce: NONCE, bytes: Arc::default(), tags: Arc::default() };
        let mut inputs = Inputs { keys, each, sealed };
        if self.what == What::Gcm(Direction::Decrypt) {
            let mut sealed = random(shape.bytes());
            let mut tags = vec![[0; 16]; shape.messages];
            let keys = inputs.aes_keys();
            let mut messages = gcm_messages(&keys, &NONCE, shape.size, &mut sealed, &mut tags);
            gcm::seal(sealer.planner(), &mut messages)?;
            inputs.sealed = Sealed { nonce: NONCE, bytes: sealed.into(), tags: tags.into() };
        }
        Ok(inputs)
    }

    /// What the engine's planner is asked for: the one operation, or those that it is composed of.
    fn operations(&self) -> (Operation, &'static [Operation]) {
        const COMPOSED: &[Operation] = &[Operation::Pass(Pass::Ctr32), Operation::Pass(Pass::Ghash)];
        match self.what {
            What::Cipher(cipher, direction) => (Operation::Pass(cipher.pass(direction)), &[]),
            What::Gcm(Direction::Encrypt) => (Operation::Fused(FusedAead::GcmSeal), COMPOSED),
            What::Gcm(Direction::Decrypt) => (Operation::Fused(FusedAead::GcmOpen), COMPOSED),
        }
    }

    /// True if the engine's devices and kernels do this work.
    pub(crate) fn is_done_by(&self, engine: &Engine) -> bool {
        let size = Key::new(&vec![0; self.key]).expect("a length of AES").size();
        let does = |operation: &Operation| engine.planner().supports(*operation, size);
        let (whole, composed) = self.operations();
        does(&whole) || !composed.is_empty() && composed.iter().all(does)
    }

    /// Has the engine's planner find out now what it would while it is at work.
    pub(crate) fn settle(&self, engine: &Engine) {
        let size = Key::new(&vec![0; self.key]).expect("a length of AES").size();
        let (whole, composed) = self.operations();
        for operation in std::iter::once(&whole).chain(composed) {
            engine.planner().settle(*operation, size);
        }
    }

    /// The kernel that the planner takes for it, and the device.
    pub(crate) fn kernel(&self, engine: &Engine, shape: Shape) -> (&'static str, String) {
        let size = Key::new(&vec![0; self.key]).expect("a length of AES").size();
        let (whole, composed) = self.operations();
        let operations = std::iter::once(&whole).chain(composed);
        let plan = operations
            .filter_map(|operation| engine.planner().plan(*operation, size, shape.bytes(), None).ok())
            .next();
        plan.map_or(("-", "-".into()), |plan| (plan.kernel_name(), plan.device.id().to_string()))
    }

    /// The work by this library.
    pub(crate) fn ours(&self, engine: &Engine, inputs: &Inputs, shape: Shape) -> hazmat::Result<Run> {
        let planner = Arc::clone(engine.planner());
        let (all, each) = (Arc::clone(&inputs.keys), inputs.each);
        match self.what {
            What::Cipher(cipher, direction) if shape.messages == 1 => {
                let key = CipherKey::new(cipher, &all)?;
                Ok(Box::new(move |data, call| {
                    let mut iv = iv(call);
                    cipher.one(&planner, direction, &key, &mut iv, Data::in_place(data))?;
                    Ok(0)
                }))
            }
            What::Cipher(cipher, direction) => Ok(Box::new(move |data, call| {
                let keys: Vec<_> =
                    all.chunks(each).map(|key| CipherKey::new(cipher, key)).collect::<Result<_, _>>()?;
                let mut ivs = vec![iv(call); keys.len()];
                let parts = data.chunks_exact_mut(shape.size).zip(&keys).zip(&mut ivs);
                let mut messages: Vec<_> =
                    parts.map(|((data, key), iv)| Message { key, iv, data: Data::in_place(data) }).collect();
                cipher.run(&planner, direction, &mut messages)?;
                Ok(0)
            })),
            What::Gcm(Direction::Encrypt) if shape.messages == 1 => {
                let key = Key::new(&all)?;
                Ok(Box::new(move |data, call| {
                    let mut tag = [0; 16];
                    let (nonce, status) = (nonce(call), Status::Pending);
                    let (data, tag_to) = (Data::in_place(data), Tag::Write(&mut tag));
                    let message =
                        AeadMessage { key: &key, nonce: &nonce, aad: &[], data, tag: tag_to, status };
                    gcm::seal(&planner, &mut [message])?;
                    Ok(u128::from_le_bytes(tag))
                }))
            }
            What::Gcm(Direction::Encrypt) => {
                let mut tags = vec![[0; 16]; shape.messages];
                Ok(Box::new(move |data, call| {
                    let keys: Vec<_> = all.chunks(each).map(Key::new).collect::<Result<_, _>>()?;
                    let nonce = nonce(call);
                    let mut messages = gcm_messages(&keys, &nonce, shape.size, data, &mut tags);
                    gcm::seal(&planner, &mut messages)?;
                    Ok(folded(tags.iter().map(|tag| u128::from_le_bytes(*tag))))
                }))
            }
            // The same messages each time: their tags are checked in each call.
            What::Gcm(Direction::Decrypt) => {
                let Sealed { nonce, bytes: sealed, tags } = inputs.sealed();
                let mut prepared = if shape.messages == 1 { inputs.aes_keys() } else { Vec::new() };
                Ok(written_each_time(
                    shape.size,
                    Box::new(move |data, _| {
                        if shape.messages > 1 {
                            prepared = all.chunks(each).map(Key::new).collect::<Result<_, _>>()?;
                        }
                        let parts = sealed.chunks_exact(shape.size).zip(data.chunks_exact_mut(shape.size));
                        let mut messages = Vec::with_capacity(prepared.len());
                        for (((from, to), key), tag) in parts.zip(&prepared).zip(&*tags) {
                            messages.push(AeadMessage {
                                key,
                                nonce: &nonce,
                                aad: &[],
                                data: Data::copy(from, to)?,
                                tag: Tag::Expect(tag),
                                status: Status::Pending,
                            });
                        }
                        gcm::open(&planner, &mut messages)?;
                        Ok(0)
                    }),
                ))
            }
        }
    }
}

impl Inputs {
    /// The bytes of each message's keys.
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

/// A call that comes to the same bytes each time: what the one before left there must not pass for what this one made.
/// Before each call a block of each message is spoiled, another one in each call; what stands there afterwards is told.
pub(super) fn written_each_time(size: usize, mut run: Run) -> Run {
    Box::new(move |data, call| {
        let begin = (call % size.div_ceil(16).max(1) as u64) as usize * 16;
        let block = begin..size.min(begin + 16);
        for message in data.chunks_exact_mut(size) {
            // Never back to what it was, until it was spoiled 256 times.
            message[block.clone()].iter_mut().for_each(|byte| *byte = byte.wrapping_add(0x35));
        }
        let digest = run(data, call)?;
        let blocks = data.chunks_exact(size).map(|message| {
            let mut whole = [0; 16];
            whole[..block.len()].copy_from_slice(&message[block.clone()]);
            u128::from_le_bytes(whole)
        });
        Ok(digest ^ folded(blocks))
    })
}

fn gcm_messages<'d>(
    keys: &'d [Key],
    nonce: &'d [u8; 12],
    size: usize,
    data: &'d mut [u8],
    tags: &'d mut [Block],
) -> Vec<AeadMessage<'d>> {
    let parts = data.chunks_exact_mut(size).zip(keys).zip(tags);
    parts
        .map(|((data, key), tag)| AeadMessage {
            key,
            nonce,
            aad: &[],
            data: Data::in_place(data),
            tag: Tag::Write(tag),
            status: Status::Pending,
        })
        .collect()
}

/// One number of many, that depends on their order.
pub(super) fn folded(values: impl Iterator<Item = u128>) -> u128 {
    values.fold(0, |sum, value| sum.rotate_left(1) ^ value)
}

/// Any IV does: nothing made here is kept.
const IV: Block = *b"benchmark iv 016";
const NONCE: [u8; 12] = *b"benchmark iv";

/// The IV of a call. The upper half differs, so that counters of different calls are far from each other.
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

    /// Each work, as one message and as several, by two kernels: the same after several calls, and never what it was before.
    #[test]
    fn calls_do_not_undo_each_other() {
        let (ours, judge) = (engine("auto"), engine("cpu/soft"));
        for work in all() {
            for shape in [Shape::one(96), Shape { size: 48, messages: 3 }] {
                let inputs = work.inputs(shape, &judge).unwrap();
                let mut runs = [&ours, &judge].map(|engine| work.ours(engine, &inputs, shape).unwrap());
                let start = random(shape.bytes());
                let mut buffers = [start.clone(), start.clone()];
                for call in 0..4 {
                    let told: Vec<_> = runs
                        .iter_mut()
                        .zip(&mut buffers)
                        .map(|(run, buffer)| run(buffer, call).unwrap())
                        .collect();
                    assert!(told[0] == told[1] && buffers[0] == buffers[1], "{} call {call}", work.name);
                    assert!(buffers[0] != start, "{} call {call}", work.name);
                }
            }
        }
    }

    /// The control of works that come to the same bytes each time: calls that do nothing, all but the first or a single one, are
    /// found by what is told, though the right bytes lie there already.
    #[test]
    fn an_opening_that_does_nothing_is_found() {
        let judge = engine("cpu/soft");
        let work = named("gcm-128-open").unwrap();
        for shape in [Shape::one(40), Shape { size: 40, messages: 3 }] {
            let inputs = work.inputs(shape, &judge).unwrap();
            let mut plaintext = random(shape.bytes());
            work.ours(&judge, &inputs, shape).unwrap()(&mut plaintext, 0).unwrap();
            for idle in [1..9, 4..5, 9..9] {
                let mut right = work.ours(&judge, &inputs, shape).unwrap();
                let (plaintext, skipped) = (plaintext.clone(), idle.clone());
                let mut wrong = written_each_time(
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
                    let told = [right(&mut buffers[0], call), wrong(&mut buffers[1], call)];
                    let [right, wrong] = told.map(|told| told.unwrap());
                    right != wrong
                };
                let found: Vec<u64> = (0..9).filter(|call| differ(*call)).collect();
                assert_eq!(found, idle.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn names() {
        assert_eq!(beginning_with(&["xts", "ctr-1"]).len(), 4 + 2);
        let sees: Vec<_> = all().into_iter().filter(Work::enciphers_its_data).collect();
        assert_eq!(sees.len(), 3 * (2 + 3));
        assert!(sees.iter().all(|work| work.name.starts_with("ecb") || work.name.ends_with("decrypt")));
        assert!(beginning_with(&["abacus"]).is_empty() && named("ctr").is_none());
        assert!(!named("xts-128").unwrap().takes(32 << 20) && !named("ecb-128").unwrap().takes(17));
    }
}
