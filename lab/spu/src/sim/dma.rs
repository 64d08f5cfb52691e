//! An event-driven model of the DMA transfers. Each SPE has two buffers for input and two for output: it processes a
//! piece while the next one is read and the previous one is written. All SPEs of a chip share its memory.
//!
//! The parameters come from published data on the chip. The memory flow controller of an SPE moves 16 bytes in each
//! direction per bus cycle. The bus runs at half the processor's clock, which gives 8 bytes per clock and direction.
//! The memory provides 25.6 GB/s for all SPEs and both directions together, which is 8 bytes per clock at 3.2 GHz. A
//! transfer has at most 16 KiB. The first byte of a transfer has a latency of a few hundred clocks (about 90 ns
//! measured by Kistler, Perrone and Petrini, IEEE Micro 2006). Commands are queued, so that the latency of a command
//! overlaps with other transfers. The model assumes that concurrent transfers share the memory bandwidth evenly.

use std::collections::VecDeque;

/// The clock frequency of the PlayStation 3, on which the paper's measurements were made.
pub const CLOCK_HZ: f64 = 3.192e9;

/// The transfer parameters of a chip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chip {
    /// Clocks from a command to its first byte.
    pub latency: f64,
    /// Bytes per clock between an SPE and the bus, in each direction.
    pub port: f64,
    /// Bytes per clock of the memory, for both directions and all SPEs together.
    pub memory: f64,
}

impl Chip {
    /// The parameters of the PlayStation 3.
    pub const CELL: Chip = Chip { latency: 290.0, port: 8.0, memory: 25.6e9 / CLOCK_HZ };

    /// Number of SPEs of a chip.
    pub const SPES: usize = 8;
}

/// A piece of work: its input, its computation and its output.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// Bytes read from memory before the computation.
    pub bytes_in: u64,
    /// Clocks that the kernel computes.
    pub clocks: u64,
    /// Bytes written to memory after the computation.
    pub bytes_out: u64,
    /// True for an exclusive transfer, such as the transfer of a program that replaces the running program. An
    /// exclusive transfer is requested after all earlier output has been written, and later input is requested after
    /// the exclusive transfer is complete.
    pub exclusive: bool,
}

/// Number of buffers of an SPE for each direction.
const BUFFERS: usize = 2;

/// A command of the memory flow controller.
#[derive(Debug, Clone, Copy)]
struct Command {
    /// Clocks until the first byte can be transferred.
    wait: f64,
    /// Bytes that are not transferred yet.
    left: f64,
}

/// The state of an SPE. It includes the numbers of pieces that were requested, received, computed and written.
struct Spe<'p> {
    pieces: &'p [Transfer],
    requested: usize,
    arrived: usize,
    computed: usize,
    gone: usize,
    /// Remaining clocks of the piece that is being computed.
    busy: Option<f64>,
    /// The queues of commands for input and for output. Each queue is processed in order, since each direction has one
    /// port.
    queues: [VecDeque<Command>; 2],
}

const IN: usize = 0;
const OUT: usize = 1;

/// Subtracts a step from a remaining time; the result is 0 if the difference is only a rounding error. All times are
/// relative to the latest event, so that rounding errors do not grow with the length of a call.
fn subtract(clocks: f64, step: f64) -> f64 {
    let same = 1e-9 + 8.0 * f64::EPSILON * step;
    if clocks <= step + same { 0.0 } else { clocks - step }
}

impl Spe<'_> {
    fn is_done(&self) -> bool {
        self.gone == self.pieces.len()
    }

    /// True if the next piece may be requested.
    fn may_request(&self) -> bool {
        let Some(next) = self.pieces.get(self.requested) else { return false };
        let before = self.requested.checked_sub(1).map(|before| &self.pieces[before]);
        let waits = next.exclusive || before.is_some_and(|before| before.exclusive);
        // The buffer of a piece is free after the piece has been computed.
        self.requested < self.computed + BUFFERS && (!waits || self.gone == self.requested)
    }

    /// Performs the actions of the program at an event: it requests input if a buffer is free, and starts a
    /// computation if its input is complete and an output buffer is free. Returns true if an action was started.
    fn proceed(&mut self, chip: &Chip) -> bool {
        let mut begun = false;
        while self.may_request() {
            let bytes = self.pieces[self.requested].bytes_in;
            self.requested += 1;
            self.command(chip, IN, bytes);
            begun = true;
        }
        let at = self.computed;
        if self.busy.is_none() && at < self.arrived && at < self.gone + BUFFERS {
            self.busy = Some(self.pieces[at].clocks as f64);
            begun = true;
        }
        begun
    }

    fn command(&mut self, chip: &Chip, way: usize, bytes: u64) {
        // A transfer of 0 bytes has no latency, but stays in the order of the queue.
        let wait = if bytes == 0 { 0.0 } else { chip.latency };
        self.queues[way].push_back(Command { wait, left: bytes as f64 });
    }

    /// Removes the commands and computations that have finished. Returns true if there were any.
    fn note(&mut self, chip: &Chip) -> bool {
        let mut over = false;
        for way in [IN, OUT] {
            while self.queues[way].front().is_some_and(|first| first.wait == 0.0 && first.left == 0.0) {
                self.queues[way].pop_front();
                *[&mut self.arrived, &mut self.gone][way] += 1;
                over = true;
            }
        }
        if self.busy == Some(0.0) {
            self.busy = None;
            let bytes = self.pieces[self.computed].bytes_out;
            self.computed += 1;
            self.command(chip, OUT, bytes);
            over = true;
        }
        over
    }

    /// Returns the first command of each queue.
    fn firsts(&self) -> impl Iterator<Item = &Command> {
        self.queues.iter().filter_map(VecDeque::front)
    }

    /// Advances time by `step`. `rate` is the rate of each active transfer.
    fn pass(&mut self, step: f64, rate: f64) {
        for queue in &mut self.queues {
            for (place, command) in queue.iter_mut().enumerate() {
                if command.wait > 0.0 {
                    command.wait = subtract(command.wait, step);
                } else if place == 0 {
                    command.left = subtract(command.left / rate, step) * rate;
                }
            }
        }
        self.busy = self.busy.map(|busy| subtract(busy, step));
    }
}

/// Returns the clocks until the last byte of the last piece is in memory. `spes` contains the sequence of pieces of each SPE of one chip.
pub fn clocks(chip: &Chip, spes: &[Vec<Transfer>]) -> u64 {
    let mut spes: Vec<Spe<'_>> = spes
        .iter()
        .map(|pieces| Spe {
            pieces,
            requested: 0,
            arrived: 0,
            computed: 0,
            gone: 0,
            busy: None,
            queues: Default::default(),
        })
        .collect();
    // The time consists of whole clocks and a fraction, so that rounding errors do not grow.
    let (mut whole, mut part) = (0, 0.0);
    while !spes.iter().all(Spe::is_done) {
        // Performs all actions that are possible at the current time.
        let mut happens = false;
        for spe in &mut spes {
            happens |= spe.note(chip) | spe.proceed(chip);
        }
        if happens {
            continue;
        }
        let flows = spes.iter().flat_map(Spe::firsts).filter(|command| command.wait == 0.0).count();
        let rate = chip.port.min(chip.memory / flows as f64);
        let ends = spes.iter().flat_map(Spe::firsts).map(|command| match command.wait {
            0.0 => command.left / rate,
            wait => wait,
        });
        // The step ends at the next event, so that each iteration completes a wait, a transfer or a computation.
        let step = ends.chain(spes.iter().filter_map(|spe| spe.busy)).fold(f64::INFINITY, f64::min);
        assert!(step.is_finite(), "an SPE waits for an event that never happens");
        for spe in &mut spes {
            spe.pass(step, rate);
        }
        part += step;
        whole += part as u64;
        part = part.fract();
    }
    // A fraction that is only a rounding error is not counted.
    whole + u64::from(part > 1e-3)
}
