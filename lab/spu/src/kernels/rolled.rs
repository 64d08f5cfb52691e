//! A loop over the rounds, as in the paper, to measure the gain of unrolling. An iteration is one round of several
//! blocks, including the branch, the count, and the load of the round key from the local store. The loop does not
//! include the last round.

use super::aes::Block;
use super::{Way, range, scalar, tables, write};
use crate::schedule::{Effort, Flow, Program, compile};
use crate::sim::{Fault, Machine, Run};

/// A compiled loop over rounds.
pub struct RoundLoop {
    way: Way,
    blocks: usize,
    program: Program,
    keys_at: u32,
}

impl RoundLoop {
    /// Compiles the loop for this number of blocks at once.
    ///
    /// # Errors
    /// A message, if there are too few registers, or the rounds are not identical.
    pub fn compile(way: Way, blocks: u32) -> Result<RoundLoop, String> {
        if !matches!(way, Way::Lookup | Way::Columns(..) | Way::Tables) || blocks == 0 {
            return Err(format!("there is no loop over rounds of {blocks} blocks by {way:?}"));
        }
        let cipher = way.cipher();
        let mut f = Flow::new();
        let (pointer, key_at) = f.carried();
        let key = f.load_at(key_at, 0);
        let next = f.add_to_words(key_at, 16);
        f.carry(pointer, next);
        let states: Vec<_> = (0..blocks).map(|_| f.carried()).collect();
        for (k, (carried, state)) in states.into_iter().enumerate() {
            f.block_in_flight(k as u32);
            let next = cipher.round(&mut f, 1, state, key);
            f.carry(carried, next);
        }
        let program = compile(&f, Effort::Full, way.tables() as u32)?;
        let keys_at = program.image.end().next_multiple_of(128);
        Ok(RoundLoop { way, blocks: blocks as usize, program, keys_at })
    }

    /// Runs all rounds except the last one with these keys, in place. The first key must already be added to the
    /// blocks.
    ///
    /// # Errors
    /// [`Fault`] if the program is wrong.
    ///
    /// # Panics
    /// If the number of blocks differs from the number passed to [`RoundLoop::compile`], or there are too few keys for
    /// the overlapping iterations.
    pub fn run(&self, keys: &[Block], blocks: &mut [Block]) -> Result<Run, Fault> {
        let overlapping = self.program.stages as usize;
        assert!(blocks.len() == self.blocks, "{} blocks, not {}", self.blocks, blocks.len());
        assert!(keys.len() > overlapping + 1, "{} keys for {overlapping} turns that overlap", keys.len());
        let mut machine = Machine::new();
        machine.load(&self.program.image);
        if self.way == Way::Tables {
            machine.memory_mut(range(0, tables::TABLES)).copy_from_slice(&tables::CONTENTS);
        }
        for (key, at) in keys[1..].iter().zip((self.keys_at..).step_by(16)) {
            write(&mut machine, at, key);
        }
        let [pointer, states @ ..] = &self.program.parameters[..] else {
            unreachable!("a pointer and states")
        };
        write(&mut machine, *pointer, &scalar(self.keys_at));
        states.iter().zip(&*blocks).for_each(|(&at, block)| write(&mut machine, at, block));
        let turns = keys.len() as u64 - 2 - (self.program.stages - 1);
        write(&mut machine, self.program.iterations_at, &scalar(turns as u32));
        let run = machine.run(4096 + keys.len() as u64 * 64 * self.program.interval)?;
        for (block, &reg) in blocks.iter_mut().zip(&self.program.carried[1..]) {
            *block = machine.register(reg).to_be_bytes();
        }
        Ok(run)
    }

    /// Returns the clocks per round of a block in the steady state.
    ///
    /// # Errors
    /// If the loop stops with a fault, the error is a message.
    pub fn clocks(&self) -> Result<f64, String> {
        let cycles = |rounds: usize| {
            let run = self.run(&vec![[0; 16]; rounds + 1], &mut vec![[0; 16]; self.blocks]);
            run.map(|run| run.cycles).map_err(|fault| fault.to_string())
        };
        Ok((cycles(1000)? - cycles(500)?) as f64 / (500 * self.blocks) as f64)
    }
}
