//! Runs of a program on several QPUs.

use std::collections::VecDeque;

use super::memory::Memory;
use super::observe::{Event, Observer, Stalls};
use super::qpu::{Progress, Qpu, Vector};
use super::shared::Shared;
use super::timing::CLOCKS_PER_INSTRUCTION;
use super::{Counters, Fault, FaultKind, Program, QPUS};
use crate::isa::INSTRUCTION_BYTES;

/// The totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Run {
    /// Clocks until the last QPU has ended.
    pub clocks: u64,
    /// Instructions of all QPUs.
    pub instructions: u64,
    /// The number of interrupts of the host.
    pub interrupts: u64,
    /// What else happened.
    pub counters: Counters,
    /// What the run left in the chip.
    pub leftovers: Leftovers,
}

/// What a program should have taken or waited for before its end. The chip keeps it: the next program would receive results that are
/// not its own, and the host would read memory before it is written. The simulator starts each run without leftovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leftovers {
    /// Results of texture units that were requested and not loaded.
    pub requests: usize,
    /// Vectors of the VPM whose read was set up and that were not read.
    pub vpm_vectors: u32,
    /// DMA transfers in progress at the end of their QPU.
    pub transfers: usize,
    /// True if a DMA store ended after the last interrupt, which lets the host read the memory.
    pub late_store: bool,
    /// Sum of the semaphores.
    pub semaphores: u32,
    /// True if the mutex is locked.
    pub mutex: bool,
}

/// QPUs with a program. Each QPU runs it from its first instruction, with uniforms of its own.
pub struct Machine<'p> {
    program: &'p Program,
    qpus: Vec<Qpu>,
    /// The address of the first byte of the memory.
    base: u32,
    /// The value of each word of the VPM at the start.
    vpm: u32,
}

/// Why a QPU stops for others.
enum Pause {
    /// Its next instruction uses what QPUs share.
    Shared,
    /// It waits for another QPU.
    Waits,
    Ended,
}

impl Machine<'_> {
    /// QPUs with the addresses of their first uniforms.
    ///
    /// # Panics
    /// If there are more than [`QPUS`].
    pub fn new<'p>(program: &'p Program, uniforms: &[u32]) -> Machine<'p> {
        assert!(uniforms.len() <= usize::from(QPUS), "the chip has {QPUS} QPUs");
        let qpus = (0..).zip(uniforms).map(|(number, uniforms)| Qpu::new(number, *uniforms));
        Machine { program, qpus: qpus.collect(), base: 0, vpm: 0 }
    }

    /// Lets the memory begin at an address, a multiple of four, instead of 0.
    #[must_use]
    pub fn with_memory_at(self, base: u32) -> Self {
        Machine { base, ..self }
    }

    /// Lets all registers and the VPM begin with a value instead of 0: on hardware they have those of the program before.
    #[must_use]
    pub fn with_registers(mut self, value: u32) -> Self {
        self.qpus.iter_mut().for_each(|qpu| qpu.fill(value));
        Machine { vpm: value, ..self }
    }

    /// Runs until all QPUs have ended.
    ///
    /// Instructions that use what QPUs share are executed in the order of their clocks, and for equal clocks in that of the
    /// QPUs' numbers. The other instructions of a QPU do not depend on other QPUs.
    ///
    /// # Errors
    /// The first [`Fault`]; [`FaultKind::Budget`] if a QPU has not ended after a number of clocks, and
    /// [`FaultKind::Deadlock`] if all that have not ended wait.
    pub fn run(&mut self, memory: &mut [u8], budget: u64) -> Result<Run, Fault> {
        self.run_observed(memory, budget, &mut ())
    }

    /// The same with an observer, which receives each executed instruction.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run_observed(
        &mut self,
        memory: &mut [u8],
        budget: u64,
        observer: &mut impl Observer,
    ) -> Result<Run, Fault> {
        let mut shared = Shared::new(Memory::new(memory, self.base), self.vpm);
        let mut running: Vec<usize> = (0..self.qpus.len()).collect();
        let mut waiting: Vec<usize> = Vec::new();
        while !running.is_empty() {
            let (place, number) = self.earliest(&running);
            match self.run_one(number, &mut shared, budget, observer)? {
                Pause::Ended => {
                    running.swap_remove(place);
                }
                Pause::Waits => {
                    running.swap_remove(place);
                    waiting.push(number);
                    continue;
                }
                Pause::Shared => {}
            }
            // The instruction may be what others wait for.
            let now = self.qpus[number].clocks;
            for waiter in waiting.drain(..) {
                let qpu = &mut self.qpus[waiter];
                let stall = now.saturating_sub(CLOCKS_PER_INSTRUCTION).saturating_sub(qpu.clocks);
                qpu.clocks += stall;
                qpu.waited += stall;
                shared.counters.synchronization_clocks += stall;
                running.push(waiter);
            }
        }
        if let Some(&qpu) = waiting.iter().min() {
            let address = self.qpus[qpu].address;
            return Err(Fault { qpu: qpu as u8, address, kind: FaultKind::Deadlock });
        }
        Ok(self.totals(&shared))
    }

    /// The QPU with the fewest clocks, after its place in a list.
    fn earliest(&self, running: &[usize]) -> (usize, usize) {
        let key = |(_, number): &(usize, &usize)| (self.qpus[**number].clocks, **number);
        let (place, number) = running.iter().enumerate().min_by_key(key).expect("a QPU is running");
        (place, *number)
    }

    /// Runs a QPU from an instruction to the next that uses what QPUs share.
    fn run_one(
        &mut self,
        number: usize,
        shared: &mut Shared<'_>,
        budget: u64,
        observer: &mut impl Observer,
    ) -> Result<Pause, Fault> {
        let qpu = &mut self.qpus[number];
        let mut is_first = true;
        loop {
            let address = qpu.address;
            let fault = |kind| Fault { qpu: number as u8, address, kind };
            if qpu.clocks >= budget {
                return Err(fault(FaultKind::Budget(budget)));
            }
            let step = self.program.steps.get((address / INSTRUCTION_BYTES) as usize);
            let step = step.filter(|_| address.is_multiple_of(INSTRUCTION_BYTES));
            let step = step.ok_or_else(|| fault(FaultKind::OutsideProgram))?;
            if step.is_shared && !is_first {
                return Ok(Pause::Shared);
            }
            is_first = false;
            let before = shared.counters;
            let progress = qpu.step(step, shared).map_err(fault)?;
            if progress == Progress::Waits {
                return Ok(Pause::Waits);
            }
            let waited = if step.is_shared { std::mem::take(&mut qpu.waited) } else { 0 };
            let stalls = Stalls::between(&before, &shared.counters, waited);
            let clock = qpu.clocks - CLOCKS_PER_INSTRUCTION;
            observer.executed(Event { qpu: number as u8, address, clock, stalls });
            if progress == Progress::Ended {
                return Ok(Pause::Ended);
            }
        }
    }

    fn totals(&self, shared: &Shared<'_>) -> Run {
        let clocks = self.qpus.iter().map(|qpu| qpu.clocks).max().unwrap_or(0);
        let instructions: u64 = self.qpus.iter().map(|qpu| qpu.instructions).sum();
        let counters = Counters {
            idle_clocks: self.qpus.iter().map(|qpu| clocks - qpu.clocks).sum(),
            instruction_clocks: instructions * CLOCKS_PER_INSTRUCTION,
            ..shared.counters
        };
        let leftovers = self.leftovers(shared);
        Run { clocks, instructions, interrupts: shared.interrupts, counters, leftovers }
    }

    fn leftovers(&self, shared: &Shared<'_>) -> Leftovers {
        let vectors = |qpu: &Qpu| qpu.vpm_reads.map_or(0, |access| access.left);
        let transfers = self.qpus.iter().flat_map(|qpu| {
            [&qpu.loads, &qpu.stores].into_iter().filter(|engine| engine.done_at > qpu.clocks)
        });
        Leftovers {
            requests: self.qpus.iter().flat_map(|qpu| &qpu.requests).map(VecDeque::len).sum(),
            vpm_vectors: self.qpus.iter().map(vectors).sum(),
            transfers: transfers.count(),
            late_store: shared.stores_after_interrupt(),
            semaphores: shared.semaphores(),
            mutex: shared.mutex_is_locked(),
        }
    }

    /// A general register of a QPU, of file B if `is_b`.
    ///
    /// # Panics
    /// If there is no such QPU or register.
    pub fn register(&self, qpu: usize, is_b: bool, number: u8) -> &Vector {
        self.qpus[qpu].register(is_b, number)
    }

    /// An accumulator of a QPU.
    ///
    /// # Panics
    /// If there is no such QPU or accumulator.
    pub fn accumulator(&self, qpu: usize, number: u8) -> &Vector {
        self.qpus[qpu].accumulator(number)
    }
}
