//! A message that the device and the CPU both process.

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag, Task, Tweak};
use lockstep_core::{Block, Key, KeySize};
use lockstep_testkit::suite::random_bytes;

use super::Result;
use super::bench::{Bench, fastest};

/// An operation with its keys. If the width of a counter permits it, the counter starts at such a value that it wraps around within
/// the message.
pub(crate) struct Message {
    pub(crate) operation: Operation,
    pub(crate) key: Key,
    tweak: Key,
}

/// The results of a message in addition to its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Results {
    /// The chaining state after the message.
    state: Block,
    tag: Block,
}

const STATE: Block = [0x24, 0xFF, 0xFF, 0xFF, 0, 1, 2, 3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xF0];

impl Message {
    pub(crate) fn new(operation: Operation, size: KeySize) -> Result<Message> {
        let keys = random_bytes(2 * size.bytes());
        let (key, tweak) = keys.split_at(size.bytes());
        Ok(Message { operation, key: Key::new(key)?, tweak: Key::new(tweak)? })
    }

    /// Runs the operation. Decryption compares the tag of the message with `tag`.
    fn run(&self, device: &dyn Device, kernel: KernelId, data: Data<'_>, tag: Block) -> Result<Results> {
        let mut results = Results { state: STATE, tag };
        match self.operation {
            Operation::Pass(pass) => {
                let tweak = pass.is_xts().then_some(Tweak { key: &self.tweak, position: 0 });
                let mut segments = [Segment { key: &self.key, tweak, state: &mut results.state, data }];
                device.submit(kernel, Task::Pass(pass, &mut segments).into())?.wait()?;
            }
            Operation::Fused(fused) => {
                let tag = match fused.opens() {
                    true => Tag::Expect(&tag),
                    false => Tag::Write(&mut results.tag),
                };
                let status = Status::Pending;
                let message =
                    AeadMessage { key: &self.key, nonce: &STATE[..12], aad: b"", data, tag, status };
                let mut messages = [message];
                device.submit(kernel, Task::Fused(fused, &mut messages).into())?.wait()?;
                if messages[0].status != Status::Done {
                    return Err(format!("the status is {:?}", messages[0].status).into());
                }
            }
        }
        Ok(results)
    }

    /// True if the pass only reads. The chaining state is then its only result.
    fn is_read_only(&self) -> bool {
        self.operation.is_read_only()
    }

    fn opens(&self) -> bool {
        matches!(self.operation, Operation::Fused(fused) if fused.opens())
    }

    /// Computes the results with the CPU. For decryption of an AEAD, encrypts the input and copies the ciphertext to the device.
    pub(crate) fn prepare(&self, bench: &mut Bench, len: usize) -> Result<Results> {
        let operation = match self.operation {
            Operation::Fused(fused) => Operation::Fused(fused.sealing()),
            pass => pass,
        };
        let message = Message { operation, key: self.key.clone(), tweak: self.tweak.clone() };
        let kernel = fastest(&*bench.cpu, operation, self.key.size())
            .ok_or_else(|| format!("no kernel of the CPU for {operation}"))?;
        let (input, output) = (&bench.input[..len], &mut bench.expected[..len]);
        let data = if self.is_read_only() { Data::read_only(input) } else { Data::copy(input, output)? };
        let results = message.run(&*bench.cpu, kernel, data, [0; 16])?;
        if self.opens() {
            bench.upload_expected(len)?;
        }
        Ok(results)
    }

    /// Runs the operation on data in device memory.
    pub(crate) fn run_on_device(
        &self,
        bench: &Bench,
        kernel: KernelId,
        len: usize,
        expected: Results,
    ) -> Result<Results> {
        let from = if self.opens() { bench.sealed(len) } else { bench.from(len) };
        let to = if self.is_read_only() { from.clone() } else { bench.to(len) };
        self.run(&*bench.device, kernel, Data::on_device(from, to)?, expected.tag)
    }

    /// Runs the operation on the device and compares all results.
    pub(crate) fn check(
        &self,
        bench: &mut Bench,
        kernel: KernelId,
        len: usize,
        expected: Results,
    ) -> Result<()> {
        if !self.is_read_only() {
            bench.poison(len)?;
        }
        let results = self.run_on_device(bench, kernel, len, expected)?;
        let is_hash = self.is_read_only();
        if is_hash && results.state != expected.state || results.tag != expected.tag {
            return Err("the hash or the tag is WRONG".into());
        }
        if is_hash { Ok(()) } else { bench.check(len, self.opens()) }
    }
}

/// All operations except the serial passes. The most important operations are at the start.
pub(crate) fn parallel() -> Vec<Operation> {
    let first = [
        Operation::Pass(Pass::Ctr),
        Operation::Pass(Pass::EcbEncrypt),
        Operation::Fused(FusedAead::GcmSeal),
        Operation::Fused(FusedAead::GcmOpen),
        Operation::Pass(Pass::Ghash),
    ];
    let is_parallel = |operation: &Operation| !matches!(operation, Operation::Pass(pass) if pass.is_serial());
    let others = Operation::all().filter(is_parallel).filter(|operation| !first.contains(operation));
    first.into_iter().chain(others).collect()
}

/// The key sizes to be measured. 192 bits are left out, because the rate lies between those of 128 and 256 bits.
pub(crate) fn key_sizes(operation: Operation) -> impl Iterator<Item = KeySize> {
    [KeySize::Aes128, KeySize::Aes256].into_iter().filter(move |&size| operation.takes_key(size))
}
