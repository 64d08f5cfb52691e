//! The cases of the analysis: each public function of the kernels with each key size, in both directions, in place and out of place, over a
//! range of lengths.
//!
//! A [`Group`] is a kernel, a key size and an operation. The keys of a group are set once, and the operation is run with each length.

pub(crate) mod aead;
pub mod controls;
pub(crate) mod modes;
pub(crate) mod session;
pub(crate) mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::contracts;
use crate::image::Image;
use crate::machine::{Change, Finding, Program, Stop};
use crate::semantics;
use crate::taint::Taint;
pub use session::{Buffer, Session};

/// A kernel that may be chosen by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The name by which users select the kernel.
    pub name: &'static str,
    /// For `cpu/soft`: the index of the register width, and the name of the width.
    pub width: Option<(u64, &'static str)>,
    /// The number of bytes that a parallel pass processes in its widest step.
    pub step: usize,
    /// The number of bytes from which the fused loop of GCM is used, and the number of bytes that an iteration processes.
    pub gcm: (usize, usize),
}

impl Kernel {
    /// True for the kernels with the AES instructions of 64-bit Arm.
    pub(crate) fn is_arm(self) -> bool {
        self.name.starts_with("cpu/armv8")
    }
}

impl std::fmt::Display for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)?;
        self.width.map_or(Ok(()), |(_, name)| write!(f, "@{name}"))
    }
}

/// All kernels of 64-bit Arm.
pub const ARM_KERNELS: [Kernel; 4] = [
    Kernel { name: "cpu/armv8-sha3", width: None, step: 128, gcm: (128, 128) },
    Kernel { name: "cpu/armv8", width: None, step: 128, gcm: (128, 128) },
    Kernel { name: "cpu/soft", width: Some((1, "neon")), step: 128, gcm: (0, 128) },
    Kernel { name: "cpu/soft", width: Some((0, "portable")), step: 128, gcm: (0, 128) },
];

/// All kernels of x86-64.
pub const KERNELS: [Kernel; 7] = [
    Kernel { name: "cpu/vaes512", width: None, step: 512, gcm: (2048, 512) },
    Kernel { name: "cpu/vaes256", width: None, step: 256, gcm: (192, 192) },
    Kernel { name: "cpu/aesni", width: None, step: 128, gcm: (96, 96) },
    Kernel { name: "cpu/soft", width: Some((3, "avx512")), step: 512, gcm: (0, 512) },
    Kernel { name: "cpu/soft", width: Some((2, "avx2")), step: 256, gcm: (0, 256) },
    Kernel { name: "cpu/soft", width: Some((1, "ssse3")), step: 128, gcm: (0, 128) },
    Kernel { name: "cpu/soft", width: Some((0, "portable")), step: 128, gcm: (0, 128) },
];

/// The lengths with which operations are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Every length that the documentation names.
    Full,
    /// Every number of whole blocks, and a few lengths with a partial block.
    Short,
}

/// The operation of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Expansion of a key, and wiping of the key when it is dropped.
    Key,
    /// A mode of a key, by its index in `modes::MODES`.
    Mode(usize),
    /// Incremental GCM.
    Gcm(bool),
    /// GCM of a whole message.
    GcmMessage(bool),
    /// Incremental OCB3.
    Ocb(bool),
    /// A pass over several messages, by its index in `Pass::ALL`.
    Pass(usize),
    /// A fused AEAD over several messages, by its index in `FusedAead::ALL`.
    Fused(usize),
}

impl Operation {
    /// All operations.
    pub fn all() -> Vec<Operation> {
        let mut all = vec![Operation::Key];
        let is_function = |index: &usize| !modes::MODES[*index].function.is_empty();
        all.extend((0..modes::MODES.len()).filter(is_function).map(Operation::Mode));
        for encrypts in [true, false] {
            all.extend([Operation::Gcm, Operation::GcmMessage, Operation::Ocb].map(|make| make(encrypts)));
        }
        all.extend((0..tasks::PASSES.len()).map(Operation::Pass));
        all.extend((0..tasks::FUSED.len()).map(Operation::Fused));
        all
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let direction = |encrypts: bool| if encrypts { "encryption" } else { "decryption" };
        match self {
            Operation::Key => f.write_str("key"),
            Operation::Mode(index) => f.write_str(modes::MODES[*index].name),
            Operation::Gcm(encrypts) => write!(f, "GCM {}", direction(*encrypts)),
            Operation::GcmMessage(encrypts) => write!(f, "GCM message {}", direction(*encrypts)),
            Operation::Ocb(encrypts) => write!(f, "OCB3 {}", direction(*encrypts)),
            Operation::Pass(index) => write!(f, "task {}", tasks::PASSES[*index].name),
            Operation::Fused(index) => write!(f, "task {}", tasks::FUSED[*index]),
        }
    }
}

/// A kernel, a key size and an operation.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The kernel.
    pub kernel: Kernel,
    /// The size of the key in bytes.
    pub key_len: usize,
    /// The operation.
    pub operation: Operation,
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} AES-{} {}", self.kernel, 8 * self.key_len, self.operation)
    }
}

/// The kernels of the architecture of a program.
pub fn kernels(image: &Image) -> &'static [Kernel] {
    if image.is_arm { &ARM_KERNELS } else { &KERNELS }
}

/// All groups of kernels.
pub fn groups(kernels: &[Kernel]) -> Vec<Group> {
    let mut groups = Vec::new();
    for operation in Operation::all() {
        for kernel in kernels.iter().copied() {
            // The key of POLYVAL is a hash key, which has 16 bytes.
            let sizes = if operation.takes_hash_key() { &[16][..] } else { &[16, 24, 32] };
            groups.extend(sizes.iter().map(|key_len| Group { kernel, key_len: *key_len, operation }));
        }
    }
    groups
}

impl Operation {
    /// True if the operation computes GHASH or POLYVAL.
    pub(crate) fn multiplies(self) -> bool {
        match self {
            Operation::Gcm(_) | Operation::GcmMessage(_) => true,
            Operation::Pass(index) => matches!(tasks::PASSES[index].name, "Ghash" | "Polyval"),
            Operation::Fused(index) => tasks::FUSED[index].starts_with("Gcm"),
            Operation::Key | Operation::Mode(_) | Operation::Ocb(_) => false,
        }
    }

    pub(crate) fn takes_hash_key(self) -> bool {
        matches!(self, Operation::Pass(index) if tasks::PASSES[index].name == "Polyval")
    }
}

/// The findings and totals of the runs of one or more groups.
#[derive(Default)]
pub struct Outcome {
    /// The runs, each with the number of executed instructions.
    pub names: Vec<String>,
    /// Number of executed instructions.
    pub steps: u64,
    /// The greatest number of executed instructions of a run.
    pub most_steps: u64,
    /// Each finding, with the number of runs that have it and the first of them.
    pub findings: BTreeMap<Finding, (u64, String)>,
    /// The places and reasons of stops, each with the first run that stopped there.
    pub stops: BTreeMap<String, String>,
    /// The addresses of instructions that have been executed.
    pub visited: BTreeSet<u64>,
}

impl Outcome {
    /// Adds the findings of other runs.
    pub fn merge(&mut self, other: Outcome) {
        self.names.extend(other.names);
        self.steps += other.steps;
        self.most_steps = self.most_steps.max(other.most_steps);
        self.visited.extend(other.visited);
        for (finding, (count, example)) in other.findings {
            self.findings.entry(finding).or_insert((0, example)).0 += count;
        }
        for (stop, example) in other.stops {
            self.stops.entry(stop).or_insert(example);
        }
    }

    /// Adds the findings and the totals of a run.
    pub(crate) fn add<T>(&mut self, session: &Session, result: Result<T, Stop>, example: String) {
        self.names.push(format!("{example}: {} instructions", session.machine.steps));
        self.steps += session.machine.steps;
        self.most_steps = self.most_steps.max(session.machine.steps);
        for finding in session.machine.findings.keys() {
            self.findings.entry(finding.clone()).or_insert_with(|| (0, example.clone())).0 += 1;
        }
        if let Err(stop) = result {
            self.stops.entry(stop.to_string()).or_insert(example);
        }
    }
}

/// The lengths up to `most` that are run: multiples of `unit`. With [`Extent::Short`], `cpu/soft` is run with every third number of blocks
/// only, because its code takes the most instructions. Every remainder of blocks after the last whole step still occurs, because the
/// number of blocks in a step is a power of two. Each remainder of bytes occurs without a whole block and after one block, and, except for
/// `cpu/soft`, after each of the two largest numbers of whole blocks.
fn lengths(kernel: Kernel, extent: Extent, unit: usize, most: usize) -> Vec<usize> {
    let is_soft = kernel.width.is_some();
    let is_short = |len: &usize| match len % 16 {
        0 => !is_soft || len.is_multiple_of(48) || *len == 16,
        1 | 15 => *len < 80 && (!is_soft || *len < 32) || len + if is_soft { 20 } else { 36 } > most,
        _ => *len < 32 || !is_soft && len + 36 > most,
    };
    (0..=most).step_by(unit).filter(|len| extent == Extent::Full || is_short(len)).collect()
}

/// Runs the operation of a group with each length. A run stops after `most_steps` instructions. With a change and a seed of keys and data,
/// the findings are the effects of the change on runs with these keys and data.
pub fn run(
    image: &Arc<Image>,
    group: Group,
    extent: Extent,
    most_steps: u64,
    change: Option<(&Change, u64)>,
) -> Outcome {
    let mut program = Program::<Taint>::new(Arc::clone(image), semantics::all(), contracts::answer);
    program.most_steps = most_steps;
    if let Some((change, seed)) = change {
        (program.change, program.seed) = (Some(change.clone()), seed);
    }
    let program = Rc::new(program);
    let mut outcome = Outcome::default();
    match Session::new(&program, group.kernel) {
        Ok(session) => match group.operation {
            Operation::Key => modes::run_key(&session, group, &mut outcome),
            Operation::Mode(index) => {
                modes::run(&session, group, extent, &modes::MODES[index], &mut outcome);
            }
            Operation::Gcm(_) | Operation::GcmMessage(_) | Operation::Ocb(_) => {
                aead::run(&session, group, extent, &mut outcome);
            }
            Operation::Pass(_) | Operation::Fused(_) => tasks::run(&session, group, extent, &mut outcome),
        },
        Err(stop) => {
            outcome.stops.insert(stop.to_string(), group.to_string());
        }
    }
    outcome.visited = program.visited().collect();
    outcome
}
