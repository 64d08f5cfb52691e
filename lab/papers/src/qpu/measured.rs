//! Measures the clocks of the kernels, and divides them by use.

use std::ops::Sub;

use lockstep_qpu::isa::{AddOp, INSTRUCTION_BYTES, Instruction, MulOp, Signal};
use lockstep_qpu::sim::timing::CLOCKS_PER_INSTRUCTION;
use lockstep_qpu::sim::{Event, Observer, Stalls};

use super::Error;
use super::kernels::Named;
use super::model::CLOCK_HZ;

/// Sizes of keys in bits.
pub const KEY_BITS: [u32; 3] = [128, 192, 256];

/// The numbers of QPUs with which kernels are measured.
pub const QPU_COUNTS: [u8; 2] = [1, 12];

/// The clocks of all QPUs together, divided by use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Instructions with an operation of both ALUs.
    pub both: u64,
    /// Instructions with an operation of one ALU.
    pub one: u64,
    /// Instructions without an operation: hazards and delay slots of branches.
    pub nops: u64,
    /// Clocks of waiting for texture units.
    pub texture: u64,
    /// Clocks of waiting for DMA loads.
    pub loads: u64,
    /// Clocks of waiting for DMA stores.
    pub stores: u64,
    /// Clocks of waiting for semaphores and the mutex, and for the end of other QPUs.
    pub synchronization: u64,
}

impl Spent {
    /// The sum of all clocks.
    pub fn total(&self) -> u64 {
        let Spent { both, one, nops, texture, loads, stores, synchronization } = self;
        both + one + nops + texture + loads + stores + synchronization
    }
}

impl Sub for Spent {
    type Output = Spent;

    fn sub(self, other: Spent) -> Spent {
        // The difference may be negative, because the longer run may wait less at its end than the shorter run. Such a difference counts as
        // zero.
        let difference = |one: u64, other: u64| one.saturating_sub(other);
        Spent {
            both: difference(self.both, other.both),
            one: difference(self.one, other.one),
            nops: difference(self.nops, other.nops),
            texture: difference(self.texture, other.texture),
            loads: difference(self.loads, other.loads),
            stores: difference(self.stores, other.stores),
            synchronization: difference(self.synchronization, other.synchronization),
        }
    }
}

/// The number of operations of an instruction, from 0 to 2. An operation of an ALU counts as one, as does a constant, a semaphore or a
/// branch. If an ALU instruction without operations loads a result of a texture unit, this load counts as one.
pub(super) fn operations(instruction: &Instruction) -> usize {
    let Instruction::Alu(alu) = instruction else { return 1 };
    let of_alus = usize::from(alu.add != AddOp::Nop) + usize::from(alu.mul != MulOp::Nop);
    of_alus.max(usize::from(matches!(alu.signal, Signal::LoadTmu0 | Signal::LoadTmu1)))
}

/// The measurement of a kernel with a mode.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// The kernel and its mode.
    pub named: &'static Named,
    /// The size of the key in bits.
    pub bits: u32,
    /// The number of QPUs of the run.
    pub qpus: u8,
    /// Clocks of an iteration of each QPU in the steady state.
    pub clocks_of_turn: f64,
    /// Clocks of all QPUs in the steady state, for a certain number of iterations.
    pub spent: Spent,
}

impl Measured {
    /// Clocks in which each QPU processes a byte.
    pub fn clocks_per_byte(&self) -> f64 {
        self.clocks_of_turn / self.named.unit as f64
    }

    /// The rate of all QPUs at 250 MHz in MB/s of a million bytes.
    pub fn megabytes(&self) -> f64 {
        f64::from(self.qpus) * CLOCK_HZ / self.clocks_per_byte() / 1e6
    }

    /// Measures a kernel by the difference of two runs, so that the start and the end of a run do not count.
    pub(super) fn of(named: &'static Named, bits: u32, qpus: u8) -> Result<Measured, Error> {
        let words = named.words(bits)?;
        let [short, long] = named.turns;
        let (less, more) =
            (totals(named, &words, bits, qpus, short)?, totals(named, &words, bits, qpus, long)?);
        Ok(Measured {
            named,
            bits,
            qpus,
            clocks_of_turn: (more.0 - less.0) as f64 / (long - short) as f64,
            spent: more.1 - less.1,
        })
    }
}

/// The clocks of a run of `turns` iterations, and the clocks of all QPUs by use.
fn totals(named: &Named, words: &[u64], bits: u32, qpus: u8, turns: usize) -> Result<(u64, Spent), Error> {
    let mut counts = Counts { executed: vec![0; words.len()], stalls: Stalls::default() };
    let run = named.observe(bits, qpus, turns * usize::from(qpus) * named.unit, &mut counts)?;
    let mut spent = Spent {
        texture: counts.stalls.texture,
        loads: counts.stalls.load,
        stores: counts.stalls.store,
        synchronization: counts.stalls.synchronization + run.counters.idle_clocks,
        ..Spent::default()
    };
    for (word, executed) in words.iter().zip(counts.executed) {
        let instruction = Instruction::decode(*word).map_err(|error| Error::Kernel(error.to_string()))?;
        let place = match operations(&instruction) {
            0 => &mut spent.nops,
            1 => &mut spent.one,
            _ => &mut spent.both,
        };
        *place += CLOCKS_PER_INSTRUCTION * executed;
    }
    Ok((run.clocks, spent))
}

/// The number of executions of each instruction, and the sum of all stalls.
struct Counts {
    executed: Vec<u64>,
    stalls: Stalls,
}

impl Observer for Counts {
    fn executed(&mut self, event: Event) {
        self.executed[(event.address / INSTRUCTION_BYTES) as usize] += 1;
        self.stalls += event.stalls;
    }
}
