//! Bringing data in and out: a model of events. Each SPE has two buffers for input and two for output, and works on a
//! piece while the next one comes in and the one before goes out; all SPEs of a chip share its memory.
//!
//! What is public about the chip: an SPE's memory flow controller moves 16 bytes in each direction per bus cycle, and
//! the bus runs at half the processor's clock, so 8 bytes a clock each way; memory gives 25.6 GB/s for all SPEs
//! and both directions together, which is 8 bytes a clock at 3.2 GHz. A transfer has at most 16 KiB, and the first byte takes some
//! hundred clocks (measured at about 90 ns by Kistler, Perrone and Petrini, IEEE Micro 2006). Commands queue up, so that
//! the wait of one passes while others transfer. That those under way share the memory evenly is our assumption.

use std::collections::VecDeque;

/// Clocks per second of the PlayStation 3, which the paper measured on.
pub const CLOCK_HZ: f64 = 3.192e9;

/// A chip, as far as its transfers go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chip {
    /// Clocks from a command to its first byte.
    pub latency: f64,
    /// Bytes a clock between an SPE and the bus, each way.
    pub port: f64,
    /// Bytes a clock of the memory, both ways, all SPEs together.
    pub memory: f64,
}

impl Chip {
    /// That of the PlayStation 3.
    pub const CELL: Chip = Chip { latency: 290.0, port: 8.0, memory: 25.6e9 / CLOCK_HZ };

    /// SPEs of a chip.
    pub const SPES: usize = 8;
}

/// One piece of work: bytes in, clocks of computing, bytes out.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// Bytes read from memory before.
    pub bytes_in: u64,
    /// Clocks of the kernel.
    pub clocks: u64,
    /// Bytes written to memory after.
    pub bytes_out: u64,
    /// Asked for when all before it has gone out, and nothing behind it is asked for until it has: such as another program,
    /// which takes the place of the one that works.
    pub alone: bool,
}

/// Buffers for each direction.
const BUFFERS: usize = 2;

/// A command of the memory flow controller.
#[derive(Debug, Clone, Copy)]
struct Command {
    /// Clocks until its first byte can move.
    wait: f64,
    /// Bytes that have not yet moved.
    left: f64,
}

/// An SPE at work. Pieces are counted: so many have come in, have been computed, have gone out.
struct Spe<'p> {
    pieces: &'p [Transfer],
    asked: usize,
    arrived: usize,
    computed: usize,
    gone: usize,
    /// Clocks until the piece that is being computed is done.
    busy: Option<f64>,
    /// Commands in their order, in and out: one after the other, since each direction has one port.
    queues: [VecDeque<Command>; 2],
}

const IN: usize = 0;
const OUT: usize = 1;

/// Takes a step away from the clocks that something takes: all of them if it ends with the step, but for rounding. All
/// times are counted from the latest event, so that they are as exact in a long call as in a short one.
fn less(clocks: f64, step: f64) -> f64 {
    let same = 1e-9 + 8.0 * f64::EPSILON * step;
    if clocks <= step + same { 0.0 } else { clocks - step }
}

impl Spe<'_> {
    fn is_done(&self) -> bool {
        self.gone == self.pieces.len()
    }

    /// Whether the next piece may be asked for.
    fn may_ask(&self) -> bool {
        let Some(next) = self.pieces.get(self.asked) else { return false };
        let before = self.asked.checked_sub(1).map(|before| &self.pieces[before]);
        let waits = next.alone || before.is_some_and(|before| before.alone);
        // The buffer of a piece is free when the piece has been computed.
        self.asked < self.computed + BUFFERS && (!waits || self.gone == self.asked)
    }

    /// What the program does when it looks: asks for input where a buffer is free, starts to compute what is there if
    /// the output has a place. True if anything was begun.
    fn proceed(&mut self, chip: &Chip) -> bool {
        let mut begun = false;
        while self.may_ask() {
            let bytes = self.pieces[self.asked].bytes_in;
            self.asked += 1;
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
        // Nothing to move takes no command, but comes after what was asked for before.
        let wait = if bytes == 0 { 0.0 } else { chip.latency };
        self.queues[way].push_back(Command { wait, left: bytes as f64 });
    }

    /// Takes note of what is over.
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

    /// The first commands of both queues.
    fn firsts(&self) -> impl Iterator<Item = &Command> {
        self.queues.iter().filter_map(VecDeque::front)
    }

    /// Time passes: `rate` is that of each command which moves.
    fn pass(&mut self, step: f64, rate: f64) {
        for queue in &mut self.queues {
            for (place, command) in queue.iter_mut().enumerate() {
                if command.wait > 0.0 {
                    command.wait = less(command.wait, step);
                } else if place == 0 {
                    command.left = less(command.left / rate, step) * rate;
                }
            }
        }
        self.busy = self.busy.map(|busy| less(busy, step));
    }
}

/// Clocks until the last byte of the last piece is in memory, for the SPEs of one chip, each with its row of pieces.
pub fn clocks(chip: &Chip, spes: &[Vec<Transfer>]) -> u64 {
    let mut spes: Vec<Spe<'_>> = spes
        .iter()
        .map(|pieces| Spe {
            pieces,
            asked: 0,
            arrived: 0,
            computed: 0,
            gone: 0,
            busy: None,
            queues: Default::default(),
        })
        .collect();
    // Whole clocks, and a part of one.
    let (mut whole, mut part) = (0, 0.0);
    while !spes.iter().all(Spe::is_done) {
        // Without time passing, until nothing more happens.
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
        // What ends next is over then, so that each turn brings something to its end.
        let step = ends.chain(spes.iter().filter_map(|spe| spe.busy)).fold(f64::INFINITY, f64::min);
        assert!(step.is_finite(), "an SPE waits for what nobody does");
        for spe in &mut spes {
            spe.pass(step, rate);
        }
        part += step;
        whole += part as u64;
        part = part.fract();
    }
    // Rounding is not a clock.
    whole + u64::from(part > 1e-3)
}
