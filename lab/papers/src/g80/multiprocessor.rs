//! An event-driven simulation of a multiprocessor of a G80, whose warps take turns at one issue port.
//!
//! A warp issues its instructions in order. Each instruction needs the result of the previous one. A block of threads is resident until all
//! of its warps have ended. Then the next block takes its place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Clocks of the issue port for an instruction of a warp: 32 threads on 8 processors.
pub const ISSUE: u64 = 4;

/// Clocks from the issue of an instruction until the next one of the same warp may issue.
pub const LATENCY: u64 = 24;

/// An instruction of a warp, or a sequence of equal instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A number of instructions without access to memory. Each has the latency [`LATENCY`].
    Compute(u32),
    /// An access to memory. It occupies the port for `port` clocks. The result is ready `latency` clocks after the start of the last
    /// [`ISSUE`] clocks at the port.
    Access {
        /// Clocks of the issue port.
        port: u64,
        /// Clocks from the start of the last [`ISSUE`] clocks at the port to the result.
        latency: u64,
    },
    /// The warp waits for all warps of its block.
    Barrier,
}

/// The limits of a multiprocessor.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Resident blocks of threads.
    pub blocks: u32,
    /// Resident warps.
    pub warps: u32,
    /// Bytes of shared memory.
    pub shared: u32,
}

/// The limits of compute capability 1.0 and 1.1.
pub const LIMITS: Limits = Limits { blocks: 8, warps: 24, shared: 16 << 10 };

impl Limits {
    /// Returns the number of blocks that are resident at the same time if each has this number of warps and of bytes of shared memory.
    pub fn resident(&self, warps: u32, shared: u32) -> u32 {
        self.blocks.min(self.warps / warps).min(self.shared.checked_div(shared).unwrap_or(self.blocks))
    }
}

/// A warp that runs.
struct Warp {
    block: usize,
    steps: usize,
    /// The index of the next step.
    at: usize,
    /// The number of instructions of the current step that have been issued.
    issued: u32,
}

/// A resident block.
#[derive(Default)]
struct Block {
    running: u32,
    waiting: Vec<usize>,
}

/// Clocks in which all blocks are executed.
///
/// `blocks` blocks of `warps` warps are executed, of which `resident` are resident at the same time. `steps` contains the programs of the
/// warps. Warp w of block b executes the program with the index b * warps + w, modulo the number of programs.
pub fn clocks(steps: &[Vec<Step>], warps: u32, resident: u32, blocks: u32) -> u64 {
    let mut state = State {
        steps,
        warps,
        next: 0,
        blocks,
        running: Vec::new(),
        resident: Vec::new(),
        ready: BinaryHeap::new(),
    };
    for _ in 0..resident.min(blocks) {
        state.resident.push(Block::default());
        state.start(state.resident.len() - 1, 0);
    }
    let (mut port, mut end) = (0, 0);
    while let Some(Reverse((time, warp))) = state.ready.pop() {
        let time = port.max(time);
        let (busy, done) = state.issue(warp, time);
        port = time + busy;
        end = end.max(done);
    }
    end
}

struct State<'s> {
    steps: &'s [Vec<Step>],
    warps: u32,
    /// The number of the block that starts next.
    next: u32,
    blocks: u32,
    running: Vec<Warp>,
    resident: Vec<Block>,
    /// For each warp that can issue, the time of its next issue and its index in `running`.
    ready: BinaryHeap<Reverse<(u64, usize)>>,
}

impl State<'_> {
    /// Starts the next block, if there is one, in the place of a resident block that has ended.
    fn start(&mut self, place: usize, time: u64) {
        if self.next == self.blocks {
            return;
        }
        for warp in 0..self.warps {
            let steps = (self.next as usize * self.warps as usize + warp as usize) % self.steps.len();
            let index = place * self.warps as usize + warp as usize;
            let warp = Warp { block: place, steps, at: 0, issued: 0 };
            if index == self.running.len() {
                self.running.push(warp)
            } else {
                self.running[index] = warp
            }
            self.ready.push(Reverse((time, index)));
        }
        self.resident[place] = Block { running: self.warps, waiting: Vec::new() };
        self.next += 1;
    }

    /// Issues the next instruction of a warp. Returns the number of clocks that the port is busy, and the time at which the result is
    /// ready.
    fn issue(&mut self, index: usize, time: u64) -> (u64, u64) {
        let warp = &mut self.running[index];
        let Some(&step) = self.steps[warp.steps].get(warp.at) else {
            let place = warp.block;
            self.resident[place].running -= 1;
            if self.resident[place].running == 0 {
                self.start(place, time);
            }
            return (0, time);
        };
        warp.issued += 1;
        let (busy, latency) = match step {
            Step::Compute(count) => {
                if warp.issued == count {
                    (warp.at, warp.issued) = (warp.at + 1, 0);
                }
                (ISSUE, LATENCY)
            }
            Step::Access { port, latency } => {
                (warp.at, warp.issued) = (warp.at + 1, 0);
                (port, port - ISSUE + latency)
            }
            Step::Barrier => {
                (warp.at, warp.issued) = (warp.at + 1, 0);
                let block = &mut self.resident[warp.block];
                block.waiting.push(index);
                if block.waiting.len() == block.running as usize {
                    for warp in block.waiting.drain(..) {
                        self.ready.push(Reverse((time + LATENCY, warp)));
                    }
                }
                return (ISSUE, time + ISSUE);
            }
        };
        self.ready.push(Reverse((time + latency, index)));
        (busy, time + latency)
    }
}

#[cfg(test)]
mod tests;
