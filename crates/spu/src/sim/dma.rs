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
}

/// Buffers for each direction.
const BUFFERS: usize = 2;

/// A command of the memory flow controller.
#[derive(Debug, Clone, Copy)]
struct Command {
    /// When its first byte can move.
    ready: f64,
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
    /// When the piece that is being computed is done.
    busy_until: Option<f64>,
    /// Commands in their order, in and out: one after the other, since each direction has one port.
    queues: [VecDeque<Command>; 2],
}

const IN: usize = 0;
const OUT: usize = 1;

/// Less than this is nothing: what rounding leaves of bytes and clocks.
const NOTHING: f64 = 1e-6;

impl Spe<'_> {
    fn is_done(&self) -> bool {
        self.gone == self.pieces.len()
    }

    /// What the program does when it looks: asks for input where a buffer is free, starts to compute what is there if
    /// the output has a place. True if anything was begun.
    fn proceed(&mut self, chip: &Chip, now: f64) -> bool {
        let mut begun = false;
        // The buffer of a piece is free when the piece has been computed.
        while self.asked < self.pieces.len() && self.asked < self.computed + BUFFERS {
            let bytes = self.pieces[self.asked].bytes_in;
            self.asked += 1;
            self.command(chip, IN, bytes, now);
            begun = true;
        }
        let at = self.computed;
        if self.busy_until.is_none() && at < self.arrived && at < self.gone + BUFFERS {
            self.busy_until = Some(now + self.pieces[at].clocks as f64);
            begun = true;
        }
        begun
    }

    fn command(&mut self, chip: &Chip, way: usize, bytes: u64, now: f64) {
        // Nothing to move takes no command, but comes after what was asked for before.
        let ready = if bytes == 0 { now } else { now + chip.latency };
        self.queues[way].push_back(Command { ready, left: bytes as f64 });
    }

    /// Takes note of what is over.
    fn note(&mut self, chip: &Chip, now: f64) -> bool {
        let mut over = false;
        for way in [IN, OUT] {
            while let Some(first) = self.queues[way].front() {
                if first.ready > now + NOTHING || first.left > NOTHING {
                    break;
                }
                self.queues[way].pop_front();
                *[&mut self.arrived, &mut self.gone][way] += 1;
                over = true;
            }
        }
        if self.busy_until.is_some_and(|until| until <= now + NOTHING) {
            self.busy_until = None;
            let bytes = self.pieces[self.computed].bytes_out;
            self.computed += 1;
            self.command(chip, OUT, bytes, now);
            over = true;
        }
        over
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
            busy_until: None,
            queues: Default::default(),
        })
        .collect();
    let mut now = 0.0;
    while !spes.iter().all(Spe::is_done) {
        // Without time passing, until nothing more happens.
        let mut happens = false;
        for spe in &mut spes {
            happens |= spe.note(chip, now) | spe.proceed(chip, now);
        }
        if happens {
            continue;
        }
        let moving = |command: &&mut Command| command.ready <= now + NOTHING;
        let flows = spes
            .iter_mut()
            .flat_map(|spe| spe.queues.iter_mut().filter_map(VecDeque::front_mut))
            .filter(moving)
            .count();
        let rate = chip.port.min(chip.memory / flows as f64);
        let firsts = || spes.iter().flat_map(|spe| spe.queues.iter().filter_map(VecDeque::front));
        let ends = firsts().map(|command| match command.ready <= now + NOTHING {
            true => now + command.left / rate,
            false => command.ready,
        });
        let next = ends.chain(spes.iter().filter_map(|spe| spe.busy_until)).fold(f64::INFINITY, f64::min);
        assert!(next.is_finite(), "an SPE waits for what nobody does");
        for spe in &mut spes {
            for first in spe.queues.iter_mut().filter_map(VecDeque::front_mut) {
                if first.ready <= now + NOTHING {
                    first.left -= rate * (next - now);
                }
            }
        }
        now = next;
    }
    // Rounding is not a clock.
    (now - NOTHING * 1000.0).ceil().max(0.0) as u64
}
