//! A window of clocks: the instructions that QPUs execute in it, and the causes of lost clocks.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use lockstep_qpu::isa::{INSTRUCTION_BYTES, Instruction};
use lockstep_qpu::sim::timing::CLOCKS_PER_INSTRUCTION;
use lockstep_qpu::sim::{Event, Observer, QPUS, Stalls};
use lockstep_report::WIDTH;

use super::Error;
use super::kernels::Named;
use super::measured::operations;

/// Instructions in the order of their clocks.
pub struct Window {
    /// The title of the window in texts and pictures.
    pub title: String,
    /// The executed instructions.
    pub events: Vec<Event>,
    /// The instructions of the program, from address 0.
    instructions: Vec<Instruction>,
    /// True if the events belong to several QPUs.
    has_several: bool,
}

/// A window is searched for in a run whose main loop has this number of iterations.
const TURNS: usize = 16;

/// The QPU that is shown.
const SHOWN: u8 = 0;

impl Window {
    /// The instructions of a kernel in the steady state, for `clocks` clocks of a QPU. The window starts with an iteration of the innermost
    /// loop in the middle of a run, and ends at the latest with the run. If `clocks` is `None`, the window is one iteration.
    ///
    /// # Errors
    /// [`Error::KeySize`]; [`Error::Kernel`] if the kernel does not run, which is a bug.
    pub fn of_kernel(named: &Named, bits: u32, qpus: u8, clocks: Option<u64>) -> Result<Window, Error> {
        let instructions = decoded(&named.words(bits)?)?;
        let mut recorded = Recorded::new(|event: &Event| event.qpu == SHOWN, usize::MAX);
        named.observe(bits, qpus, TURNS * usize::from(qpus) * named.unit, &mut recorded)?;
        let events = recorded.events;
        let turn = iteration(&events)
            .ok_or_else(|| Error::Kernel(format!("{}: no loop was found", named.kernel)))?;
        let start = start_of(&events[turn.start]);
        let length = start_of(&events[turn.end]) - start;
        let end = start.saturating_add(clocks.unwrap_or(length));
        let is_shown = |event: &&Event| (start..end).contains(&start_of(event));
        let of_qpus = if qpus == 1 { "1 QPU".into() } else { format!("QPU {SHOWN} of {qpus}") };
        let title = format!(
            "{}: {}, {bits}-bit key, {of_qpus}; an iteration of the innermost loop takes {length} clocks",
            named.kernel,
            named.mode_text()
        );
        let events = events.iter().filter(is_shown).copied().collect();
        Ok(Window { title, events, instructions, has_several: false })
    }

    /// The first instructions of a run of any program.
    pub(super) fn of_program(
        title: String,
        instructions: Vec<Instruction>,
        recorded: Recorded<fn(&Event) -> bool>,
        qpus: u8,
    ) -> Window {
        let mut events = recorded.events;
        events.sort_by_key(|event| (event.clock, event.qpu));
        events.truncate(recorded.most);
        Window { title, events, instructions, has_several: qpus > 1 }
    }

    pub(super) fn instruction(&self, event: &Event) -> &Instruction {
        &self.instructions[(event.address / INSTRUCTION_BYTES) as usize]
    }

    /// The stalls of all instructions.
    pub fn stalls(&self) -> Stalls {
        let mut all = Stalls::default();
        self.events.iter().for_each(|event| all += event.stalls);
        all
    }

    /// The number of instructions without an operation, with one and with two.
    pub fn operations(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for event in &self.events {
            counts[operations(self.instruction(event)).min(2)] += 1;
        }
        counts
    }

    /// The numbers of instructions, operations and lost clocks, as text.
    pub fn summary(&self) -> String {
        let [none, one, two] = self.operations();
        let count = self.events.len();
        let clocks = CLOCKS_PER_INSTRUCTION * count as u64;
        let mut text = format!(
            "{count} instructions in {clocks} clocks: {two} with two operations, {one} with one, {none} without"
        );
        for (cause, clocks) in self.stalls().causes() {
            text += &format!("; {clocks} clocks lost ({cause})");
        }
        text
    }
}

/// The clock at which the QPU starts to wait for an instruction. If it does not wait, the clock at which the instruction is executed.
fn start_of(event: &Event) -> u64 {
    event.clock - event.stalls.total()
}

fn decoded(words: &[u64]) -> Result<Vec<Instruction>, Error> {
    let decode = |word: &u64| Instruction::decode(*word).map_err(|error| Error::Kernel(error.to_string()));
    words.iter().map(decode).collect()
}

/// The events of one iteration, from the middle of a run, of the loop that is executed most often.
fn iteration(events: &[Event]) -> Option<Range<usize>> {
    let mut starts: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (at, pair) in (1..).zip(events.windows(2)) {
        if pair[1].address < pair[0].address {
            starts.entry((pair[1].address, pair[0].address)).or_default().push(at);
        }
    }
    let most = starts.into_values().max_by_key(Vec::len)?;
    let turns = || most.windows(2).map(|pair| pair[0]..pair[1]);
    // The last iteration of an inner loop is followed by other instructions of the outer loop, so the distance to the next start is longer.
    // Only the shortest distances are iterations.
    let shortest = turns().map(|turn| turn.len()).min()?;
    let mut turns = turns().filter(|turn| turn.len() == shortest);
    turns.nth(turns.clone().count() / 2)
}

/// An observer that keeps at most `most` events of each QPU.
pub(super) struct Recorded<F> {
    is_kept: F,
    most: usize,
    counts: [usize; QPUS as usize],
    events: Vec<Event>,
}

impl<F: Fn(&Event) -> bool> Recorded<F> {
    pub(super) fn new(is_kept: F, most: usize) -> Recorded<F> {
        Recorded { is_kept, most, counts: [0; QPUS as usize], events: Vec::new() }
    }
}

impl<F: Fn(&Event) -> bool> Observer for Recorded<F> {
    fn executed(&mut self, event: Event) {
        let count = &mut self.counts[usize::from(event.qpu)];
        if *count < self.most && (self.is_kept)(&event) {
            *count += 1;
            self.events.push(event);
        }
    }
}

impl fmt::Display for Window {
    /// Writes a line for each instruction: the clock, the QPU if there are several, the address and the operations. Lines before it show
    /// the causes of lost clocks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let qpu = |event: &Event| match self.has_several {
            true => format!(" {:>3}", event.qpu),
            false => String::new(),
        };
        for line in lockstep_report::wrap(&self.title, WIDTH) {
            writeln!(f, "{line}")?;
        }
        let name = if self.has_several { " QPU" } else { "" };
        writeln!(f, "\n{:>9}{name} {:>6}  operations", "clock", "at")?;
        for event in &self.events {
            let mut clock = start_of(event);
            for (cause, clocks) in event.stalls.causes() {
                writeln!(f, "{clock:>9}{}         {clocks} clocks lost: {cause}", qpu(event))?;
                clock += clocks;
            }
            let text = self.instruction(event).show(event.address);
            let start = format!("{clock:>9}{} {:#06x}  ", qpu(event), event.address);
            let indent = start.len();
            for (number, line) in broken(&text, WIDTH - indent).into_iter().enumerate() {
                let before = if number == 0 { start.clone() } else { " ".repeat(indent) };
                writeln!(f, "{before}{line}")?;
            }
        }
        writeln!(f)?;
        for line in lockstep_report::wrap(&self.summary(), WIDTH) {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

/// Divides an instruction into lines of at most `width` characters. Lines are broken between operations.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive(";  ") {
        match lines.last_mut() {
            Some(line) if line.len() + part.trim_end().len() <= width => *line += part,
            _ => lines.push(part.into()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}
