//! Measures calls that process many messages.

use lockstep_core::backend::{Device, DeviceBuffer, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{
    AeadMessage, FusedAead, Operation, Pass, Segment, Status, Stream, Table, Tag, Task,
};
use lockstep_core::{Block, Key, KeySize};
use lockstep_testkit::suite::random_bytes;
use serde_json::json;

use super::Result;
use super::bench::{Bench, compare, fastest};
use super::message::key_sizes;
use super::rows::{Rows, Subject, time};

/// Pairs of the number of messages and their length in bytes. The most important pair is at the start.
const SHAPES: [(usize, usize); 9] = [
    (100_000, 1 << 10),
    (1, 1 << 10),
    (100, 1 << 10),
    (10_000, 1 << 10),
    (1_000_000, 1 << 10),
    (100_000, 64),
    (1_000_000, 64),
    (10_000, 16 << 10),
    (100_000, 16 << 10),
];

const OPERATIONS: [FusedAead; 4] =
    [FusedAead::GcmSeal, FusedAead::GcmOpen, FusedAead::GcmSivSeal, FusedAead::GcmSivOpen];

/// The memory that contains the keys, nonces, tags and data of the messages.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Keys, nonces, tags and data in arrays on the device.
    Device,
    /// Keys, nonces and tags on the host, data on the device.
    HostKeys,
    /// Everything on the host.
    Host,
}

const PLACES: [(Place, &str); 3] =
    [(Place::Device, "messages"), (Place::HostKeys, "messages-host-keys"), (Place::Host, "messages-host")];

pub(crate) fn measure(bench: &mut Bench, rows: &mut Rows) -> Result<()> {
    for (count, each) in SHAPES {
        // Fewer messages are processed if the buffers are too small for them. This happens on devices for tests.
        let count = count.min(bench.largest / each);
        for operation in OPERATIONS.map(Operation::Fused) {
            for size in key_sizes(operation) {
                shape(bench, rows, operation, size, (count, each))?;
            }
        }
    }
    Ok(())
}

fn shape(
    bench: &mut Bench,
    rows: &mut Rows,
    operation: Operation,
    size: KeySize,
    (count, each): (usize, usize),
) -> Result<()> {
    let supports = |kernel: &KernelId| bench.device.cost(*kernel, operation, size).is_some();
    let kernels: Vec<_> = bench.kernels().into_iter().filter(|(kernel, _)| supports(kernel)).collect();
    let mut wanted = Vec::new();
    for (kernel, name) in kernels {
        for (place, what) in PLACES {
            let (kernel_name, operation_name) = (name.to_owned(), operation.to_string());
            let subject = Subject {
                what,
                kernel: kernel_name,
                operation: operation_name,
                bits: size.bits(),
                messages: count,
                bytes: count * each,
            };
            if rows.wants(&subject) {
                wanted.push((kernel, place, subject));
            }
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let batch = Batch::new(bench, operation, size, count, each, true)?;
    let seconds = bench.seconds(bench.largest) / if (count, each) == SHAPES[0] { 1.0 } else { 5.0 };
    for (kernel, place, subject) in wanted {
        let outcome = match place {
            Place::Device => batch
                .check_table(bench, kernel)
                .and_then(|()| time(seconds, 3, || batch.run_table(bench, kernel))),
            Place::HostKeys => batch
                .check_host_keys(bench, kernel)
                .and_then(|()| time(seconds, 3, || batch.run_host_keys(bench, kernel).map(|_| ()))),
            Place::Host => {
                let mut output = vec![0; count * each];
                batch.check_host(bench, kernel, &mut output).and_then(|()| {
                    time(seconds, 3, || batch.run_host(bench, kernel, &mut output).map(|_| ()))
                })
            }
        };
        rows.write(&subject, outcome, json!({"checked": "all", "own_keys": true}))?;
    }
    Ok(())
}

/// Messages of equal length, with their keys, nonces or chaining states, on the host and in arrays on the device.
pub(crate) struct Batch {
    operation: Operation,
    size: KeySize,
    count: usize,
    each: usize,
    keys: Vec<Key>,
    states: Vec<Block>,
    arrays: Arrays,
    /// The CPU's results.
    expected_states: Vec<Block>,
    tags: Vec<Block>,
}

struct Arrays {
    keys: Box<dyn DeviceBuffer>,
    states: Box<dyn DeviceBuffer>,
    offsets: Box<dyn DeviceBuffer>,
    lengths: Box<dyn DeviceBuffer>,
    tags: Box<dyn DeviceBuffer>,
    status: Box<dyn DeviceBuffer>,
}

fn upload(bench: &Bench, bytes: &[u8]) -> Result<Box<dyn DeviceBuffer>> {
    let memory = bench.memory()?;
    let buffer = memory.allocate(bytes.len())?;
    memory.upload(bytes, &buffer.slice(), Stream::default())?;
    Ok(buffer)
}

fn integers(values: impl Iterator<Item = usize>) -> Vec<u8> {
    values.flat_map(|value| (value as u64).to_le_bytes()).collect()
}

impl Batch {
    /// Makes random keys and nonces, and computes the results on the CPU. For decryption, also encrypts the input and copies the
    /// ciphertext to the device.
    pub(crate) fn new(
        bench: &mut Bench,
        operation: Operation,
        size: KeySize,
        count: usize,
        each: usize,
        own_keys: bool,
    ) -> Result<Batch> {
        let key_bytes = random_bytes(size.bytes() * if own_keys { count } else { 1 });
        let keys: Vec<Key> =
            key_bytes.chunks(size.bytes()).map(Key::new).collect::<std::result::Result<_, _>>()?;
        let states: Vec<Block> = random_bytes(16 * count).as_chunks().0.to_vec();
        let arrays = Arrays {
            keys: upload(bench, &key_bytes)?,
            states: upload(bench, states.as_flattened())?,
            offsets: upload(bench, &integers((0..count).map(|index| index * each)))?,
            lengths: upload(bench, &integers((0..count).map(|_| each)))?,
            tags: upload(bench, &vec![0; 16 * count])?,
            status: upload(bench, &vec![0; count])?,
        };
        let (expected_states, tags) = (states.clone(), vec![[0; 16]; count]);
        let mut batch = Batch { operation, size, count, each, keys, states, arrays, expected_states, tags };
        batch.prepare(bench)?;
        Ok(batch)
    }

    fn len(&self) -> usize {
        self.count * self.each
    }

    fn opens(&self) -> bool {
        matches!(self.operation, Operation::Fused(fused) if fused.opens())
    }

    fn key(&self, index: usize) -> &Key {
        &self.keys[index % self.keys.len()]
    }

    fn prepare(&mut self, bench: &mut Bench) -> Result<()> {
        let len = self.len();
        let (input, output) = (&bench.input[..len], &mut bench.expected[..len]);
        let pairs = input.chunks(self.each).zip(output.chunks_mut(self.each));
        match self.operation {
            Operation::Pass(pass) => {
                let kernel = fastest(&*bench.cpu, self.operation, self.size).ok_or("no kernel of the CPU")?;
                let mut states = self.states.clone();
                self.run_pass(&*bench.cpu, kernel, pass, &mut states, pairs)?;
                self.expected_states = states;
            }
            Operation::Fused(fused) => {
                let fused = fused.sealing();
                let kernel = fastest(&*bench.cpu, Operation::Fused(fused), self.size);
                let data = pairs.map(|(from, to)| Ok(Data::copy(from, to)?)).collect::<Result<_>>()?;
                self.tags =
                    self.run_fused(&*bench.cpu, kernel.ok_or("no kernel of the CPU")?, fused, data)?;
                if self.opens() {
                    bench.upload_expected(len)?;
                }
            }
        }
        Ok(())
    }

    fn run_pass<'d>(
        &self,
        device: &dyn Device,
        kernel: KernelId,
        pass: Pass,
        states: &mut [Block],
        pairs: impl Iterator<Item = (&'d [u8], &'d mut [u8])>,
    ) -> Result<()> {
        let mut segments = Vec::with_capacity(self.count);
        for (index, (state, (from, to))) in states.iter_mut().zip(pairs).enumerate() {
            let data = if pass.is_read_only() { Data::read_only(from) } else { Data::copy(from, to)? };
            segments.push(Segment { key: self.key(index), tweak: None, state, data });
        }
        Ok(device.submit(kernel, Task::Pass(pass, &mut segments).into())?.wait()?)
    }

    /// Seals or opens the messages. Returns their tags.
    fn run_fused(
        &self,
        device: &dyn Device,
        kernel: KernelId,
        fused: FusedAead,
        data: Vec<Data<'_>>,
    ) -> Result<Vec<Block>> {
        let mut tags = self.tags.clone();
        let places = tags.iter_mut().zip(&self.tags).map(|(place, tag)| match fused.opens() {
            true => Tag::Expect(tag),
            false => Tag::Write(place),
        });
        let message = |(index, (data, tag))| AeadMessage {
            key: self.key(index),
            nonce: &self.states[index][..12],
            aad: b"",
            data,
            tag,
            status: Status::Pending,
        };
        let mut messages: Vec<_> = data.into_iter().zip(places).enumerate().map(message).collect();
        device.submit(kernel, Task::Fused(fused, &mut messages).into())?.wait()?;
        if messages.iter().any(|message| message.status != Status::Done) {
            return Err("a message was not processed, or its tag was refused".into());
        }
        drop(messages);
        Ok(tags)
    }

    fn fused(&self) -> Result<FusedAead> {
        match self.operation {
            Operation::Fused(fused) => Ok(fused),
            Operation::Pass(_) => Err("only a fused AEAD has messages on the host".into()),
        }
    }

    /// Runs the messages that the arrays on the device describe.
    pub(crate) fn run_table(&self, bench: &Bench, kernel: KernelId) -> Result<()> {
        let (len, arrays) = (self.len(), &self.arrays);
        let from = if self.opens() { bench.sealed(len) } else { bench.from(len) };
        let table = Table {
            messages: self.count,
            key_size: self.size,
            keys: arrays.keys.slice(),
            states: arrays.states.slice(),
            offsets: arrays.offsets.slice(),
            lengths: arrays.lengths.slice(),
            longest: self.each,
            to: if self.operation.is_read_only() { from.clone() } else { bench.to(len) },
            from,
            tags: matches!(self.operation, Operation::Fused(_)).then(|| arrays.tags.slice()),
            status: arrays.status.slice(),
        };
        Ok(bench.device.submit_table(kernel, Stream::default(), self.operation, &table)?.wait()?)
    }

    /// Runs the table and compares all outputs, tags, chaining states and statuses.
    pub(crate) fn check_table(&self, bench: &mut Bench, kernel: KernelId) -> Result<()> {
        let (memory, stream) = (bench.memory()?, Stream::default());
        let tags = if self.opens() { self.tags.clone() } else { vec![[0xA5; 16]; self.count] };
        memory.upload(self.states.as_flattened(), &self.arrays.states.slice(), stream)?;
        memory.upload(tags.as_flattened(), &self.arrays.tags.slice(), stream)?;
        memory.upload(&vec![0; self.count], &self.arrays.status.slice(), stream)?;
        if !self.operation.is_read_only() {
            bench.poison(self.len())?;
        }
        self.run_table(bench, kernel)?;
        let (mut status, mut blocks) = (vec![0; self.count], vec![[0; 16]; self.count]);
        let memory = bench.memory()?;
        memory.download(&self.arrays.status.slice(), &mut status, stream)?;
        if status.iter().any(|&status| status != Status::Done as u8) {
            return Err("a message was not processed, or its tag was refused".into());
        }
        let (array, expected) = match self.operation {
            Operation::Fused(_) => (&self.arrays.tags, &self.tags),
            Operation::Pass(_) => (&self.arrays.states, &self.expected_states),
        };
        memory.download(&array.slice(), blocks.as_flattened_mut(), stream)?;
        if blocks != *expected {
            return Err("a tag or a chaining state is WRONG".into());
        }
        if self.operation.is_read_only() { Ok(()) } else { bench.check(self.len(), self.opens()) }
    }

    /// Runs messages whose data are on the device and whose keys, nonces and tags are on the host.
    fn run_host_keys(&self, bench: &Bench, kernel: KernelId) -> Result<Vec<Block>> {
        let len = self.len();
        let (from, to) = (if self.opens() { bench.sealed(len) } else { bench.from(len) }, bench.to(len));
        let data = (0..self.count).map(|index| {
            let range = index * self.each..(index + 1) * self.each;
            Ok(Data::on_device(from.slice(range.clone()), to.slice(range))?)
        });
        self.run_fused(&*bench.device, kernel, self.fused()?, data.collect::<Result<_>>()?)
    }

    fn check_host_keys(&self, bench: &mut Bench, kernel: KernelId) -> Result<()> {
        bench.poison(self.len())?;
        let tags = self.run_host_keys(bench, kernel)?;
        self.check_tags(&tags)?;
        bench.check(self.len(), self.opens())
    }

    /// Runs messages in ordinary memory of the host.
    fn run_host(&self, bench: &Bench, kernel: KernelId, output: &mut [u8]) -> Result<Vec<Block>> {
        let source = if self.opens() { &bench.expected } else { &bench.input };
        let pairs = source[..self.len()].chunks(self.each).zip(output.chunks_mut(self.each));
        let data = pairs.map(|(from, to)| Ok(Data::copy(from, to)?)).collect::<Result<_>>()?;
        self.run_fused(&*bench.device, kernel, self.fused()?, data)
    }

    fn check_host(&self, bench: &Bench, kernel: KernelId, output: &mut [u8]) -> Result<()> {
        let tags = self.run_host(bench, kernel, output)?;
        self.check_tags(&tags)?;
        let expected = if self.opens() { &bench.input } else { &bench.expected };
        compare(output, &expected[..self.len()])
    }

    fn check_tags(&self, tags: &[Block]) -> Result<()> {
        if self.opens() || tags == self.tags { Ok(()) } else { Err("a tag is WRONG".into()) }
    }
}
