//! Runs of a program on one or more QPUs.

use std::collections::VecDeque;

use super::memory::Memory;
use super::observe::{Event, Observer, Stalls};
use super::qpu::{Progress, Qpu, Vector};
use super::shared::Shared;
use super::timing::{CLOCKS_PER_INSTRUCTION, TMU_LATENCY};
use super::{Counters, Fault, FaultKind, Program, QPUS};
use crate::isa::INSTRUCTION_BYTES;

/// The totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Run {
    /// Clocks until the last QPU has ended.
    pub clocks: u64,
    /// The number of instructions that all QPUs have executed.
    pub instructions: u64,
    /// The number of interrupts of the host.
    pub interrupts: u64,
    /// Counters of stalls, caches and transfers.
    pub counters: Counters,
    /// Unfinished work that the run has left in the chip.
    pub leftovers: Leftovers,
}

/// Results that the program has not read, and events for which it has not waited, before its end. A chip keeps them: the next
/// program would receive results of this program, or the host would read memory before it is written. The simulator starts each
/// run without leftovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leftovers {
    /// Results of texture units that were requested but not read.
    pub requests: usize,
    /// Vectors of the VPM for which a read was set up, but which were not read.
    pub vpm_vectors: u32,
    /// DMA transfers that were still running when their QPU ended.
    pub transfers: usize,
    /// True if a DMA store ended after the last interrupt. The interrupt signals the host that it can read the memory, so the
    /// host would read too early.
    pub late_store: bool,
    /// The sum of the values of the semaphores.
    pub semaphores: u32,
    /// True if the mutex is locked.
    pub mutex: bool,
}

/// QPUs with a program. Each QPU runs the program from its first instruction, with its own uniforms.
pub struct Machine<'p> {
    program: &'p Program,
    qpus: Vec<Qpu>,
    /// The address of the first byte of the memory.
    base: u32,
    /// The value of each word of the VPM at the start.
    vpm: u32,
    texture_latency: u64,
}

/// The reason why a QPU pauses to let other QPUs run.
enum Pause {
    /// The next instruction of the QPU uses shared state.
    Shared,
    /// The QPU waits for another QPU.
    Waits,
    Ended,
}

impl Machine<'_> {
    /// Creates QPUs that run a program. `uniforms` contains, for each QPU, the address of its first uniform.
    ///
    /// # Panics
    /// Panics if there are more than [`QPUS`] addresses.
    pub fn new<'p>(program: &'p Program, uniforms: &[u32]) -> Machine<'p> {
        assert!(uniforms.len() <= usize::from(QPUS), "the chip has {QPUS} QPUs");
        let qpus = (0..).zip(uniforms).map(|(number, uniforms)| Qpu::new(number, *uniforms));
        Machine { program, qpus: qpus.collect(), base: 0, vpm: 0, texture_latency: TMU_LATENCY }
    }

    /// Sets the address of the first byte of the memory, a multiple of four. The default is 0.
    #[must_use]
    pub fn with_memory_at(self, base: u32) -> Self {
        Machine { base, ..self }
    }

    /// Sets the initial value of all registers and of the VPM. The default is 0. On hardware, they contain values of the
    /// previous program.
    #[must_use]
    pub fn with_registers(mut self, value: u32) -> Self {
        self.qpus.iter_mut().for_each(|qpu| qpu.fill(value));
        Machine { vpm: value, ..self }
    }

    /// Sets the latency of texture units. The latency is the number of clocks from the end of the time in which a request
    /// occupies its unit until its result is ready. The default is [`TMU_LATENCY`].
    #[must_use]
    pub fn with_texture_latency(self, clocks: u64) -> Self {
        Machine { texture_latency: clocks, ..self }
    }

    /// Runs until all QPUs have ended.
    ///
    /// Instructions that use shared state are executed in the order of their clocks. If two clocks are equal, the QPU with the
    /// smaller number is first. Instructions that do not use shared state do not depend on other QPUs.
    ///
    /// # Errors
    /// The first [`Fault`]. Its kind is [`FaultKind::Budget`] if a QPU has not ended after `budget` clocks, and
    /// [`FaultKind::Deadlock`] if all QPUs that have not ended are waiting.
    pub fn run(&mut self, memory: &mut [u8], budget: u64) -> Result<Run, Fault> {
        self.run_observed(memory, budget, &mut ())
    }

    /// Runs as [`Machine::run`]. The observer receives each executed instruction.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run_observed(
        &mut self,
        memory: &mut [u8],
        budget: u64,
        observer: &mut impl Observer,
    ) -> Result<Run, Fault> {
        let mut shared = Shared::new(Memory::new(memory, self.base), self.vpm, self.texture_latency);
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
            // Another QPU may be waiting for the effect of this instruction.
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

    /// Returns the QPU with the smallest clock: first its index in `running`, then its number.
    fn earliest(&self, running: &[usize]) -> (usize, usize) {
        let key = |(_, number): &(usize, &usize)| (self.qpus[**number].clocks, **number);
        let (place, number) = running.iter().enumerate().min_by_key(key).expect("a QPU is running");
        (place, *number)
    }

    /// Runs a QPU from its next instruction up to the next instruction that uses shared state.
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
            if step.is_print {
                observer.printed(number as u8, address, &qpu.mul_input(&step.instruction).map_err(fault)?);
            }
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

    /// A general register of a QPU, of file B if `is_b` is true and otherwise of file A.
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
