//! Proofs that the results of the kernels are equal to those of the standards, for all keys and data.
//!
//! A proof is a run with concrete lengths, addresses and counters, in which keys and data are symbols ([`crate::symbols`]). Its results
//! are compared with the results of the standard's definition on the same symbols (`cipher`, `hash`).

mod aead;
mod cipher;
pub mod controls;
mod definition;
mod hash;
mod loops;
mod modes;
mod tasks;

use std::rc::Rc;
use std::sync::Arc;

use self::cipher::{Block, Cipher};
use crate::cases::modes::{Form, MODES};
use crate::cases::tasks::PASSES;
use crate::cases::{Buffer, Extent, Group, Kernel, Operation, Session, groups};
use crate::contracts;
use crate::image::Image;
use crate::machine::{Program, Stop};
use crate::semantics;
use crate::symbols::{Symbol, Symbols};

/// The results of the proofs of one or more groups.
#[derive(Default)]
pub struct Outcome {
    /// The runs.
    pub names: Vec<String>,
    /// The runs for which equality has not been shown, with the reason.
    pub failures: Vec<String>,
}

/// The groups whose results are proved equal; docs/proof.md lists the others, with the reasons. With [`Extent::Short`], the groups with
/// keys of 192 and 256 bits and the groups of serial modes are left out, and for `cpu/soft` all groups except ECB and single blocks.
pub fn provable(kernels: &[Kernel], extent: Extent) -> Vec<Group> {
    let mut groups = groups(kernels);
    groups.retain(|group| {
        let is_soft = group.kernel.width.is_some();
        let is_serial = match group.operation {
            // Single blocks, CBC-MAC and CCM are not left out, because their proofs take little time.
            Operation::Mode(index) => {
                MODES[index].is_serial() && !matches!(MODES[index].form, Form::Read | Form::Block | Form::Mac)
            }
            Operation::Pass(index) => PASSES[index].mode().is_serial(),
            _ => false,
        };
        let is_chosen = match (extent, group.operation) {
            (_, Operation::Mode(index)) if MODES[index].is_of_bits() => false,
            // Proofs of circuits take long.
            (_, Operation::Mode(index)) if is_soft && (extent == Extent::Short || group.key_len != 16) => {
                let is_block = matches!(MODES[index].form, Form::Block | Form::Data);
                is_block && (extent == Extent::Full || group.key_len == 16)
            }
            _ if is_soft => extent == Extent::Full && group.key_len == 16,
            (Extent::Full, _) => true,
            (Extent::Short, _) => group.key_len == 16 && !is_serial,
        };
        let is_followed = match group.operation {
            Operation::Key => false,
            Operation::Mode(_) => true,
            // For `cpu/soft`, only the modes of a key, GHASH and POLYVAL are proved: other tasks take long, and the definitions of the
            // AEADs are computed after the code has run, so circuits are not recognised.
            Operation::Pass(_) if is_soft => group.operation.multiplies() && !group.kernel.is_arm(),
            _ if is_soft => false,
            // The proofs of GHASH and POLYVAL do not follow the products of the kernels for Arm, which exchange the halves of blocks.
            _ => !group.kernel.is_arm() || !group.operation.multiplies(),
        };
        is_chosen && is_followed
    });
    groups
}

/// The lengths of a group. All lengths are proved only for the modes of a key, for incremental OCB3, and for incremental GCM with keys of 128
/// bits. Longer keys have more rounds, but no other loops; GCM of whole messages has the loops of incremental GCM; and proofs of tasks and of
/// circuits take long.
fn extent_of(group: Group, extent: Extent) -> Extent {
    let is_full = match group.operation {
        Operation::Mode(_) => group.kernel.width.is_none(),
        Operation::Ocb(_) => true,
        Operation::Gcm(_) => group.key_len == 16,
        _ => false,
    };
    if is_full { extent } else { Extent::Short }
}

/// The state that all proofs of a group share.
struct Prover {
    /// A machine with the keys of the group.
    session: Session<Symbols>,
    symbols: Symbols,
    group: Group,
    extent: Extent,
    /// The bytes of the key, and the cipher with it.
    key: Vec<Symbol>,
    cipher: Cipher,
    /// Bytes of data. The data of each length are the first of these bytes.
    data: Vec<Symbol>,
    outcome: Outcome,
}

/// The result of a run: each difference from the standard.
type Differences = Result<Vec<String>, Stop>;

impl Prover {
    fn new(image: &Arc<Image>, group: Group, extent: Extent) -> Result<Prover, Stop> {
        let program =
            Rc::new(Program::<Symbols>::new(Arc::clone(image), semantics::all(), contracts::answer));
        let session = Session::new(&program, group.kernel)?;
        let symbols = session.machine.domain.clone();
        if group.kernel.width.is_some() {
            symbols.table().recognise_circuits();
            if group.operation.multiplies() {
                symbols.table().expand_products_of_bits();
            }
        }
        let key = symbols.inputs(group.key_len);
        let cipher = Cipher::new(&symbols, &key);
        let outcome = Outcome::default();
        Ok(Prover { session, symbols, group, extent, key, cipher, data: Vec::new(), outcome })
    }

    /// The same state with a copy of the symbols, for a run whose expressions no other run needs.
    fn fork(&self) -> Prover {
        let symbols = self.symbols.fork();
        let mut session = self.session.clone();
        session.machine.domain = symbols.clone();
        let (cipher, key, data) = (self.cipher.fork(&symbols), self.key.clone(), self.data.clone());
        Prover { session, symbols, key, cipher, data, outcome: Outcome::default(), ..*self }
    }

    /// The first bytes of the data.
    fn data(&mut self, len: usize) -> Vec<Symbol> {
        let missing = len.saturating_sub(self.data.len());
        let more = self.symbols.inputs(missing);
        self.data.extend(more);
        self.data[..len].to_vec()
    }

    /// Adds the differences that a run has found.
    fn add(&mut self, run: &str, result: Differences) {
        let group = self.group;
        self.outcome.names.push(format!("equality: {group}, {run}"));
        match result {
            Ok(differences) if differences.is_empty() => {}
            Ok(differences) => {
                self.outcome.failures.push(format!("{group}, {run}: {}", differences.join("; ")))
            }
            Err(stop) => self.outcome.failures.push(format!("{group}, {run}: {stop}")),
        }
    }
}

/// A block from a buffer.
fn block_of(session: &Session<Symbols>, buffer: Buffer) -> Block {
    cipher::block(session.bytes(buffer))
}

/// Describes how bytes differ from the expected bytes. `None` if they are equal.
fn difference(what: &str, bytes: &[Symbol], expected: &[Symbol]) -> Option<String> {
    let differs = |place: &usize| bytes.get(*place) != expected.get(*place);
    let places: Vec<usize> = (0..bytes.len().max(expected.len())).filter(differs).collect();
    let first = places.first()?;
    Some(format!("{} of {} bytes of {what} differ, from byte {first}", places.len(), expected.len()))
}

/// Adds a difference if a buffer does not have the expected bytes.
fn compare(
    differences: &mut Vec<String>,
    session: &Session<Symbols>,
    buffer: Buffer,
    what: &str,
    expected: &[Symbol],
) {
    differences.extend(difference(what, session.bytes(buffer), expected));
}

/// The lengths of a mode: whole blocks up to `most`. If the unit is one byte, also one length with a partial block after each number of
/// blocks, and all lengths of up to two blocks. With [`Extent::Short`], only the lengths near zero and near the lengths in `marks` are
/// included.
fn lengths(extent: Extent, unit: usize, most: usize, marks: &[usize]) -> Vec<usize> {
    let is_chosen = |len: &usize| {
        let (blocks, rest) = (len / 16, len % 16);
        let is_near = blocks <= 4 || marks.iter().any(|mark| len.abs_diff(*mark) < 16);
        let is_full = extent == Extent::Full;
        (is_full || is_near) && (rest == 0 || rest == blocks * 7 % 15 + 1 || is_full && *len < 32)
    };
    (0..=most).step_by(unit).filter(is_chosen).collect()
}

pub use loops::prove as prove_loops;

/// Proves the results of a group.
pub fn prove(image: &Arc<Image>, group: Group, extent: Extent) -> Outcome {
    let mut prover = match Prover::new(image, group, extent_of(group, extent)) {
        Ok(prover) => prover,
        Err(stop) => return Outcome { names: Vec::new(), failures: vec![format!("{group}: {stop}")] },
    };
    let result = match group.operation {
        Operation::Mode(index) => modes::prove(&mut prover, index),
        Operation::Gcm(_) | Operation::GcmMessage(_) | Operation::Ocb(_) => aead::prove(&mut prover),
        Operation::Pass(_) | Operation::Fused(_) => tasks::prove(&mut prover),
        Operation::Key => unreachable!("a group that `provable` returns"),
    };
    if let Err(stop) = result {
        prover.outcome.failures.push(format!("{group}: {stop}"));
    }
    prover.outcome
}
