//! The AES kernels. They are written as dataflow and compiled when they are first used.

mod aes;
mod field;
mod function;
mod ghash;
mod lookup;
pub mod measure;
mod modes;
mod named;
mod permutation;
mod plain;
mod published;
mod rolled;
mod tables;
mod vperm;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use aes::{AesRounds, Block};
pub use function::Function;
use lookup::Lookup;
pub use modes::{Mode, Parameter};
pub use named::{KERNELS, Named, PUBLISHED};
pub use plain::Hints;
use published::Published;
pub use published::{Columns, Substitution};
pub use rolled::RoundLoop;
use tables::{InverseTables, Tables};
use vperm::Vperm;
use zeroize::Zeroizing;

use crate::isa::Reg;
use crate::schedule::{Effort, Program, compile};
use crate::sim::{Fault, LOCAL_STORE, Machine, Observer, Run, Silent};

const fn r(number: u8) -> Reg {
    Reg::new(number)
}

/// The implementation of the cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// Lookups in registers, written without the scheduler. This way supports only CTR with one block per iteration.
    Plain(Hints),
    /// Lookups in registers, with the shortest latency.
    Lookup,
    /// Lookups in registers, with one of the paper's versions of MixColumns.
    Columns(Substitution, Columns),
    /// Vector permutation.
    Vperm,
    /// The inverse cipher by vector permutation.
    VpermInverse,
    /// Tables in the local store.
    Tables,
    /// Tables in the local store for one block in flight, as in the paper. If `balanced` is true, both pipes compute addresses.
    PublishedTables {
        /// False if each address has a separate rotation.
        balanced: bool,
    },
    /// The inverse cipher by tables in the local store.
    TablesInverse,
    /// GHASH by tables in the local store. The mode of the loop has no effect.
    Ghash,
    /// GHASH bit by bit, without data-dependent addresses.
    GhashBits,
}

impl Way {
    fn cipher(self) -> Box<dyn AesRounds> {
        match self {
            // GHASH does not use a cipher, so any cipher can be returned for it.
            Way::Plain(_) | Way::Lookup | Way::Ghash | Way::GhashBits => Box::new(Lookup),
            Way::Columns(substitution, columns) => Box::new(Published(substitution, columns)),
            Way::Vperm => Box::new(Vperm::encryption()),
            Way::VpermInverse => Box::new(Vperm::decryption()),
            Way::Tables => Box::new(Tables { shared: 2 }),
            Way::TablesInverse => Box::new(InverseTables),
            Way::PublishedTables { balanced } => Box::new(Tables { shared: if balanced { 3 } else { 0 } }),
        }
    }
}

impl Way {
    /// True for GHASH, which has a hash key instead of round keys.
    pub fn is_hash(self) -> bool {
        matches!(self, Way::Ghash | Way::GhashBits)
    }

    /// Bytes of the tables, which are at the start of the local store.
    fn tables(self) -> usize {
        match self {
            Way::Tables | Way::PublishedTables { .. } | Way::TablesInverse | Way::Ghash => tables::TABLES,
            Way::GhashBits => ghash::POWERS,
            _ => 0,
        }
    }
}

/// A loop that can be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Loop {
    /// The cipher.
    pub way: Way,
    /// The mode.
    pub mode: Mode,
    /// Number of blocks per iteration.
    pub blocks: u32,
    /// True if iterations overlap, so that more blocks are in flight.
    pub overlaps: bool,
}

/// A loop compiled for one key size.
pub struct Compiled {
    /// The loop.
    pub of: Loop,
    /// The program.
    pub program: Program,
    rounds: usize,
    cipher: Box<dyn AesRounds>,
    parameters: Vec<Parameter>,
    input_at: u32,
    output_at: u32,
}

/// The reason why a run of a compiled loop failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The loop was compiled for another key size.
    Keys {
        /// Number of round keys passed.
        found: usize,
        /// Number of round keys required.
        expected: usize,
    },
    /// The data are empty, not whole blocks, or more than [`MAX_RUN_BYTES`] bytes.
    Data(usize),
    /// The program has caused a fault.
    Fault(Fault),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Keys { found, expected } => {
                write!(f, "{found} round keys for a loop that was compiled for {expected}")
            }
            Refused::Data(len) => {
                write!(
                    f,
                    "{len} bytes of data: a run takes whole blocks of 16 bytes, {MAX_RUN_BYTES} bytes at most"
                )
            }
            Refused::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Refused {
        Refused::Fault(fault)
    }
}

/// Maximum bytes of one run, equal to the maximum of a transfer.
pub const MAX_RUN_BYTES: usize = 16 * 1024;

/// Space after each buffer for the padding blocks of an incomplete group.
const SLACK: usize = 1024;

type Outcome = Result<Arc<Compiled>, String>;

/// The outcomes of compilations, by loop, number of rounds and level of effort.
type Outcomes = HashMap<(Loop, usize, Effort), Arc<OnceLock<Outcome>>>;

/// The outcomes of all compilations so far. They are stored, because scheduling a loop takes much longer than running it.
static COMPILED: LazyLock<Mutex<Outcomes>> = LazyLock::new(Mutex::default);

impl Loop {
    /// Compiles the loop for a number of rounds, or returns the result of an earlier call.
    ///
    /// # Errors
    /// As [`Loop::compile`].
    pub fn compiled(self, rounds: usize, effort: Effort) -> Result<Arc<Compiled>, String> {
        let mut all = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = Arc::clone(all.entry((self, rounds, effort)).or_default());
        drop(all);
        outcome.get_or_init(|| self.compile(rounds, effort).map(Arc::new)).clone()
    }

    /// Compiles the loop for a number of rounds.
    ///
    /// # Errors
    /// A message, if there are too few registers or too little local store.
    pub fn compile(self, rounds: usize, effort: Effort) -> Result<Compiled, String> {
        let fits = match (self.way, self.mode) {
            (Way::Plain(_), mode) => mode == Mode::Ctr && self.blocks == 1,
            // GHASH processes one block at a time, and its mode has no effect.
            (Way::Ghash | Way::GhashBits, _) => self.blocks == 1,
            (way, Mode::CtrCached) => way.cipher().caching().is_some(),
            _ => true,
        };
        if !fits || self.blocks == 0 {
            return Err(format!("there is no loop {self:?}"));
        }
        let (program, parameters) = match self.way {
            Way::Plain(hints) => plain::program(rounds, hints)?,
            way => {
                let (flow, parameters) = match way {
                    Way::Ghash | Way::GhashBits => ghash::build(way == Way::Ghash),
                    _ => modes::build(&*way.cipher(), self.mode, rounds, self.blocks),
                };
                // The tables are at the start of the local store, and the code and the constants follow them.
                let effort = match effort {
                    Effort::Full if !self.overlaps => Effort::Straight,
                    effort => effort,
                };
                (compile(&flow, effort, way.tables() as u32)?, parameters)
            }
        };
        let buffer = MAX_RUN_BYTES + SLACK;
        let input_at = program.image.end().next_multiple_of(128) + 128;
        let output_at = input_at + buffer as u32;
        // There are two buffers for each direction, so that transfers and computation overlap.
        let end = input_at as usize + 4 * buffer;
        if end > LOCAL_STORE {
            return Err(format!(
                "code, tables and buffers need {end} bytes: the local store has {LOCAL_STORE}"
            ));
        }
        let cipher = self.way.cipher();
        Ok(Compiled { of: self, program, rounds, cipher, parameters, input_at, output_at })
    }
}

impl Compiled {
    /// Loads the program and the keys into a machine. `keys` are the round keys in the order of encryption.
    ///
    /// # Errors
    /// [`Refused::Keys`].
    pub fn load(&self, machine: &mut Machine, keys: &[Block]) -> Result<(), Refused> {
        self.check_keys(keys)?;
        machine.load(&self.program.image);
        let tables = match self.of.way {
            Way::Tables | Way::PublishedTables { .. } => Some(&tables::CONTENTS),
            Way::TablesInverse => Some(&tables::INVERSE_CONTENTS),
            _ => None,
        };
        if let Some(tables) = tables {
            machine.memory_mut(range(0, tables.len())).copy_from_slice(tables);
        }
        if self.of.way.is_hash() {
            return Ok(());
        }
        let forms = self.cipher.key_form(keys);
        let entered = Zeroizing::new(self.cipher.enter_block(forms[self.rounds]));
        let chain_key = Zeroizing::new(std::array::from_fn(|i| forms[0][i] ^ entered[i]));
        for (&what, &at) in self.parameters.iter().zip(&self.program.parameters) {
            match what {
                Parameter::RoundKey(round) => write(machine, at, &forms[round]),
                Parameter::ChainKey => write(machine, at, &chain_key),
                _ => {}
            }
        }
        Ok(())
    }

    /// Numbers of bytes that [`Compiled::load`] or [`Compiled::load_hash_key`] writes to the local store. The first
    /// number is for code, constants and keys, the second for tables.
    pub fn loaded_bytes(&self) -> [usize; 2] {
        [self.program.image.bytes.len(), self.of.way.tables()]
    }

    fn check_keys(&self, keys: &[Block]) -> Result<(), Refused> {
        let expected = self.rounds + 1;
        if keys.len() == expected { Ok(()) } else { Err(Refused::Keys { found: keys.len(), expected }) }
    }

    /// Loads a program for GHASH, and fills its tables for the hash key `h`.
    pub fn load_hash_key(&self, machine: &mut Machine, h: &Block) {
        machine.load(&self.program.image);
        let tables = machine.memory_mut(range(0, self.of.way.tables()));
        match self.of.way {
            Way::Ghash => ghash::fill_tables(tables, h),
            _ => ghash::fill_powers(tables, h),
        }
    }

    /// Runs the loop over whole blocks, at most [`MAX_RUN_BYTES`] bytes, in place. `register` is the counter, IV or hash.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn run(
        &self,
        machine: &mut Machine,
        keys: &[Block],
        register: &Block,
        data: &mut [u8],
    ) -> Result<Run, Refused> {
        self.run_observed(machine, keys, register, data, &mut Silent)
    }

    /// Runs the loop with an observer.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn run_observed(
        &self,
        machine: &mut Machine,
        keys: &[Block],
        register: &Block,
        data: &mut [u8],
        observer: &mut impl Observer,
    ) -> Result<Run, Refused> {
        self.check_keys(keys)?;
        if data.is_empty() || data.len() > MAX_RUN_BYTES || !data.len().is_multiple_of(16) {
            return Err(Refused::Data(data.len()));
        }
        let group = if self.of.mode.is_chain() { 1 } else { self.of.blocks as usize };
        let iterations = (data.len() / 16).div_ceil(group).max(self.program.stages as usize) as u64;
        let turns = iterations - (self.program.stages - 1);
        for (&what, &at) in self.parameters.iter().zip(&self.program.parameters) {
            match what {
                Parameter::Counter | Parameter::Hash => write(machine, at, register),
                Parameter::FirstRound => {
                    let caching = self.cipher.caching().expect("checked when it was compiled");
                    write(machine, at, &caching.rest_of_first_round(keys, register));
                }
                Parameter::Chain => {
                    // The loop expects the chaining value in the form that it has after a block: the internal form without the last round
                    // key.
                    let last = &self.cipher.key_form(keys)[self.rounds];
                    let before = Zeroizing::new(std::array::from_fn(|i| register[i] ^ last[i]));
                    write(machine, at, &Zeroizing::new(self.cipher.enter_block(*before)));
                }
                Parameter::Input => write(machine, at, &scalar(self.input_at)),
                Parameter::Output => write(machine, at, &scalar(self.output_at)),
                _ => {}
            }
        }
        write(machine, self.program.iterations_at, &scalar(turns as u32));
        write(machine, self.input_at - 16, register);
        machine.memory_mut(range(self.input_at, data.len())).copy_from_slice(data);
        let budget = 4096 + (iterations + 4) * 64 * (self.program.interval + 32);
        let run = machine.run_observed(budget, observer)?;
        data.copy_from_slice(machine.memory(range(self.output_at, data.len())));
        Ok(run)
    }
}

fn range(at: u32, len: usize) -> std::ops::Range<usize> {
    at as usize..at as usize + len
}

fn write(machine: &mut Machine, at: u32, block: &Block) {
    machine.memory_mut(range(at, 16)).copy_from_slice(block);
}

/// Returns a block with a word in the preferred slot.
fn scalar(word: u32) -> Block {
    let mut block = [0; 16];
    block[..4].copy_from_slice(&word.to_be_bytes());
    block
}
