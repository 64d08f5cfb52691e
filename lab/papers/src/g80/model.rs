//! The time of a call, and the three constants that Table 1 determines.

use std::cell::RefCell;
use std::collections::HashMap;

use lockstep_core::Error;

use super::boards::{Board, GS, GT};
use super::multiprocessor::clocks;
use super::program::{Assumptions, Grain, KERNELS, Kernel, Lookups, Tables};
use crate::cuda::paper::{SIZES, TABLE_1};

/// The numbers of threads per block among which the fastest is chosen.
pub const CHOICES: [u32; 3] = [64, 128, 256];

/// The traces of the four kernels, in the order of [`KERNELS`].
pub struct Traces([Lookups; 4]);

impl Traces {
    /// Traces the kernels.
    ///
    /// # Errors
    /// The emulator's error.
    pub fn new() -> Result<Traces, Error> {
        let [a, b, c, d] = KERNELS.map(Lookups::of);
        Ok(Traces([a?, b?, c?, d?]))
    }

    /// Returns the same traces, but the lookups of fine grain take as many passes as those of coarse grain.
    pub fn with_equal_passes(&self) -> Traces {
        let Traces([_, shared, _, constant]) = self;
        Traces([shared.as_fine(), shared.clone(), constant.as_fine(), constant.clone()])
    }

    /// The lookups of a kernel.
    pub fn of(&self, kernel: Kernel) -> &Lookups {
        &self.0[KERNELS.iter().position(|other| *other == kernel).expect("the array has all kernels")]
    }
}

/// The constants that are fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Instructions of coarse grain for an AES block.
    pub instructions: u32,
    /// Seconds that a call takes in addition to the kernel.
    pub call: f64,
    /// The clock of the 8400 GS, divided by the nominal clock.
    pub clock: f64,
}

/// The machine with its assumptions and fitted constants.
pub struct Machine<'t> {
    traces: &'t Traces,
    /// The assumptions about the machine and the programs.
    pub with: Assumptions,
    /// The constants that are fitted.
    pub fit: Fit,
    /// Clocks of simulated runs, by kernel, threads per block and number of blocks of a multiprocessor.
    known: RefCell<HashMap<(Kernel, u32, u32), u64>>,
}

/// Mbit/s of Table 1 for a board: the 8800 GT or the 8400 GS.
pub fn table_1(board: &Board) -> [f64; 4] {
    TABLE_1[usize::from(board.name == GS.name)].rates.map(f64::from)
}

impl<'t> Machine<'t> {
    /// A machine whose constants are not fitted yet.
    pub fn with_assumptions(traces: &'t Traces, with: Assumptions) -> Machine<'t> {
        let fit = Fit { instructions: 1400, call: 0.0, clock: 1.0 };
        Machine { traces, with, fit, known: RefCell::default() }
    }

    /// A machine whose constants are fitted to three figures of Table 1: instructions to the 8800 GT at 128 MiB, the time of a call to the
    /// 8800 GT at 32 KiB, and the clock to the 8400 GS at 128 MiB.
    pub fn fitted(traces: &'t Traces, with: Assumptions) -> Machine<'t> {
        let mut machine = Machine::with_assumptions(traces, with);
        let seconds = |board, at: usize| 8e-6 * SIZES[at] as f64 / table_1(board)[at];
        for _ in 0..3 {
            machine.fit.call = seconds(&GT, 0) - machine.kernel_seconds(&GT, SIZES[0] as u64);
            let wanted = seconds(&GT, 3) - machine.fit.call;
            machine.fit_instructions(wanted);
        }
        machine.fit.call = seconds(&GT, 0) - machine.kernel_seconds(&GT, SIZES[0] as u64);
        machine.fit.clock =
            machine.kernel_seconds(&GS, SIZES[3] as u64) / (seconds(&GS, 3) - machine.fit.call);
        machine
    }

    /// Sets the number of instructions such that the kernel takes `wanted` seconds for 128 MiB on the 8800 GT. The kernel's time is nearly
    /// linear in the number of instructions.
    fn fit_instructions(&mut self, wanted: f64) {
        const STEP: u32 = 50;
        let start = self.fit.instructions;
        let mut at = |instructions| {
            self.fit.instructions = instructions;
            self.known.borrow_mut().clear();
            self.kernel_seconds(&GT, SIZES[3] as u64)
        };
        let (low, high) = (at(start), at(start + STEP));
        let more = (wanted - low) / (high - low) * f64::from(STEP);
        // The minimum is 160, because each of the 160 lookups is an instruction.
        self.fit.instructions = (f64::from(start) + more).round().max(160.0) as u32;
        self.known.borrow_mut().clear();
    }

    /// Returns the same machine with other constants.
    pub fn with_fit(&self, fit: Fit) -> Machine<'t> {
        Machine { traces: self.traces, with: self.with, fit, known: RefCell::default() }
    }

    /// Clocks in which a multiprocessor executes this number of blocks. `None` if a block does not fit on a multiprocessor.
    ///
    /// Long runs are periodic, so only their start is simulated, and the clocks of the remaining blocks are extrapolated.
    fn clocks(&self, kernel: Kernel, threads: u32, blocks: u32) -> Option<f64> {
        let lookups = self.traces.of(kernel);
        let resident = lookups.resident(threads, &self.with);
        if resident == 0 {
            return None;
        }
        let simulated = |blocks| {
            let key = (kernel, threads, blocks);
            let known = self.known.borrow().get(&key).copied();
            known.unwrap_or_else(|| {
                let programs = lookups.programs(threads, self.fit.instructions, &self.with);
                let clocks = clocks(&programs, threads.div_ceil(32), resident, blocks);
                self.known.borrow_mut().insert(key, clocks);
                clocks
            }) as f64
        };
        let (some, twice) = (4 * resident, 8 * resident);
        if blocks <= twice {
            return Some(simulated(blocks));
        }
        let last = simulated(twice);
        Some(last + (last - simulated(some)) / f64::from(some) * f64::from(blocks - twice))
    }

    /// Seconds of a kernel with this number of threads per block. The multiprocessor with the most blocks determines the time. `None` if a
    /// block does not fit on a multiprocessor.
    pub fn kernel_seconds_with(
        &self,
        board: &Board,
        kernel: Kernel,
        threads: u32,
        bytes: u64,
    ) -> Option<f64> {
        let blocks = bytes.div_ceil(u64::from(threads) * kernel.bytes_per_thread());
        let blocks = blocks.div_ceil(u64::from(board.multiprocessors)) as u32;
        let clock = if board.name == GS.name { board.clock * self.fit.clock } else { board.clock };
        self.clocks(kernel, threads, blocks).map(|clocks| clocks / clock)
    }

    /// Returns the seconds of the fastest kernel with T-boxes in shared memory.
    fn kernel_seconds(&self, board: &Board, bytes: u64) -> f64 {
        let kernels = KERNELS.into_iter().filter(|kernel| kernel.tables == Tables::Shared);
        kernels.map(|kernel| self.best(board, kernel, bytes)).fold(f64::MAX, f64::min)
    }

    /// Returns the seconds of a kernel with the best number of threads per block.
    fn best(&self, board: &Board, kernel: Kernel, bytes: u64) -> f64 {
        let seconds =
            CHOICES.iter().filter_map(|&threads| self.kernel_seconds_with(board, kernel, threads, bytes));
        seconds.fold(f64::MAX, f64::min)
    }

    fn rate(&self, bytes: u64, kernel_seconds: f64) -> f64 {
        8e-6 * bytes as f64 / (self.fit.call + kernel_seconds)
    }

    /// Returns the Mbit/s of the fastest kernel, as in Table 1.
    pub fn fastest(&self, board: &Board, bytes: u64) -> f64 {
        self.rate(bytes, self.kernel_seconds(board, bytes))
    }

    /// Returns the Mbit/s of a kernel with the best number of threads per block, as in Figures 5 and 6.
    pub fn by_size(&self, board: &Board, kernel: Kernel, bytes: u64) -> f64 {
        self.rate(bytes, self.best(board, kernel, bytes))
    }

    /// Returns the Mbit/s of a kernel on the 8800 GT, as in Figure 7. Returns `None` if a block does not fit.
    pub fn by_threads(&self, kernel: Kernel, threads: u32, bytes: u64) -> Option<f64> {
        let seconds = self.kernel_seconds_with(&GT, kernel, threads, bytes)?;
        Some(self.rate(bytes, seconds))
    }

    /// The smallest of [`FIGURE_SIZES`] from which on coarse grain is at least as fast as fine grain, with T-boxes in shared memory.
    pub fn break_even(&self, board: &Board) -> u64 {
        let is_behind = |bytes: &u64| {
            let of = |grain| self.by_size(board, Kernel { grain, tables: Tables::Shared }, *bytes);
            of(Grain::Coarse) < of(Grain::Fine)
        };
        let last = FIGURE_SIZES.into_iter().rev().find(is_behind);
        last.map_or(FIGURE_SIZES[0], |bytes| 2 * bytes)
    }
}

/// Sizes of Figures 5 and 6 in bytes.
pub const FIGURE_SIZES: [u64; 17] = {
    let mut sizes = [4096; 17];
    let mut at = 0;
    while at < sizes.len() {
        sizes[at] <<= at;
        at += 1;
    }
    sizes
};
