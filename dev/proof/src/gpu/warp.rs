//! Executes the machine code of a warp of 32 threads.
//!
//! Addresses, predicates, branches and counts of shifts must be numbers. If one of them depends on keys or data, the run ends with an
//! error: the code is not constant time. Lanes that are at different addresses run in the order of these addresses, lowest first, so
//! that they converge again.

use std::collections::HashMap;

use super::Run;
use super::code::{Instruction, PT, Place, RZ, URZ};
use super::expressions::{Bit, Expr, Expressions};
use super::memory::{Memory, Shared, bytes_of, words_of};
use super::semantics;
use super::word::Word;

pub(super) const LANES: usize = 32;

/// The owners of values of registers that have not been written. Blocks have lower numbers.
const FIRST_LANE: u32 = 1 << 31;

/// Where the parameters of a kernel begin in constant bank 0 (sm_90).
const PARAMETERS: usize = 0x210;

/// The inputs of a warp.
pub(super) struct Launch<'a> {
    pub(super) parameters: &'a [u8],
    /// Threads of a block, and blocks.
    pub(super) threads: u32,
    pub(super) blocks: u32,
    /// The block, and the first thread of the warp in it.
    pub(super) block: u32,
    pub(super) first: u32,
    /// The bytes of shared memory of a block, with those of the system.
    pub(super) shared: usize,
}

impl<'a> Launch<'a> {
    /// A launch of one block that consists of one warp.
    pub(super) fn of_warp(parameters: &'a [u8], shared: usize) -> Launch<'a> {
        Launch { parameters, threads: LANES as u32, blocks: 1, block: 0, first: 0, shared }
    }
}

pub(super) type Predicates = [Option<bool>; 8];

const NOT_WRITTEN: Predicates = [None, None, None, None, None, None, None, Some(true)];

/// A thread.
pub(super) struct Lane {
    pub(super) registers: Vec<Word>,
    /// `None` if it has not been written.
    pub(super) predicates: Predicates,
    /// The index of the next instruction; `None` after the end.
    at: Option<usize>,
}

pub(super) struct Warp<'a> {
    pub(super) expressions: &'a mut Expressions,
    pub(super) memory: &'a mut Memory,
    pub(super) shared: Shared,
    pub(super) bank: Vec<u8>,
    pub(super) launch: &'a Launch<'a>,
    pub(super) lanes: Vec<Lane>,
    pub(super) uniform: Vec<Word>,
    pub(super) uniform_predicates: Predicates,
}

/// An instruction that depends on keys or data in a way that it must not.
pub(super) const SECRET: &str = "depends on a secret";

/// Runs a warp to its end, or until it exceeds a limit of the run.
pub(super) fn run(
    code: &[Instruction],
    launch: &Launch,
    memory: &mut Memory,
    expressions: &mut Expressions,
    run: &mut Run,
) -> Result<(), String> {
    let mut bank = vec![0; PARAMETERS];
    for (place, value) in [(0, launch.threads), (4, 1), (8, 1), (12, launch.blocks), (16, 1), (20, 1)] {
        bank[place..place + 4].copy_from_slice(&u32::to_le_bytes(value));
    }
    bank.extend(launch.parameters);
    // The initial value of a register is unknown, and differs from lane to lane.
    let unknown: Vec<[Expr; 32]> =
        (0..256).map(|_| std::array::from_fn(|_| expressions.atom(true))).collect();
    let registers = |owner: u32| -> Vec<Word> {
        unknown.iter().map(|word| Word::of(word.map(|expr| Bit { expr, owner }))).collect()
    };
    let lane = |lane: usize| Lane {
        registers: registers(FIRST_LANE + lane as u32),
        predicates: NOT_WRITTEN,
        at: Some(0),
    };
    let mut warp = Warp {
        expressions,
        memory,
        shared: Shared::new(launch.shared),
        bank,
        launch,
        lanes: (0..LANES).map(lane).collect(),
        uniform: registers(FIRST_LANE + LANES as u32)[..64].to_vec(),
        uniform_predicates: NOT_WRITTEN,
    };
    let index: HashMap<u64, usize> = code.iter().enumerate().map(|(i, one)| (one.address, i)).collect();
    for _ in 0..run.limits.steps {
        let Some(at) = warp.lanes.iter().filter_map(|lane| lane.at).min() else {
            return match warp.shared.first_secret() {
                Some(place) => Err(format!("shared memory holds a secret at the end: at {place:#x}")),
                None => Ok(()),
            };
        };
        run.size = warp.expressions.size();
        if run.size > run.limits.size {
            return Err(format!("expressions grow beyond {} atoms", run.limits.size));
        }
        let one = code.get(at).ok_or("the end of the code")?;
        run.visited[at] += 1;
        warp.step(one, at, &index)
            .map_err(|error| format!("{error}: /*{:04x}*/ {}", one.address, one.text))?;
    }
    Err(format!("more than {} instructions", run.limits.steps))
}

impl Warp<'_> {
    fn step(&mut self, one: &Instruction, at: usize, index: &HashMap<u64, usize>) -> Result<(), String> {
        semantics::check(one)?;
        let there: Vec<usize> = (0..LANES).filter(|lane| self.lanes[*lane].at == Some(at)).collect();
        let guard = one.guard.iter().chain(if one.opcode == "BRA" { &one.operands[..] } else { &[] });
        let predicates: Vec<_> = guard.filter(|guard| matches!(guard.place, Place::Predicate(_))).collect();
        let mut taking = there.clone();
        for predicate in predicates {
            let truths: Result<Vec<bool>, String> =
                taking.iter().map(|lane| self.truth(*lane, predicate)).collect();
            let mut truths = truths?.into_iter();
            taking.retain(|_| truths.next() == Some(true));
        }
        for lane in &there {
            self.lanes[*lane].at = Some(at + 1);
        }
        let live = self.lanes.iter().filter(|lane| lane.at.is_some()).count();
        match one.opcode.as_str() {
            "BRA" if one.has("DIV") && there.len() == live => {}
            "BRA" if !one.has("DIV") => {
                let target = one.operands.iter().find_map(|operand| match operand.place {
                    Place::Number(target) => index.get(&(target as u64)),
                    _ => None,
                });
                let target = *target.ok_or("a jump to where nothing is")?;
                taking.iter().for_each(|lane| self.lanes[*lane].at = Some(target));
            }
            "EXIT" => taking.iter().for_each(|lane| self.lanes[*lane].at = None),
            "WARPSYNC" if one.has("ALL") => {
                if there.len() != live {
                    return Err("some lanes are at a barrier and others are not".into());
                }
                self.shared.synchronize();
            }
            // The compiler writes `NOP` for __syncwarp() where it knows that the lanes are at the same address.
            "NOP" if there.len() == live => self.shared.synchronize(),
            // Lanes converge by the order in which they run.
            "NOP" | "BSSY" | "BSYNC" | "BREAK" => {}
            "SHFL" => self.shuffle(one, &taking)?,
            _ if one.is_uniform() => {
                if let Some(lane) = taking.first() {
                    self.execute(one, *lane)?;
                }
            }
            _ => taking.iter().try_for_each(|lane| self.execute(one, *lane))?,
        }
        Ok(())
    }

    /// Exchanges words between lanes.
    fn shuffle(&mut self, one: &Instruction, lanes: &[usize]) -> Result<(), String> {
        let [truth, to, source, distance, clamp] = &one.operands[..] else {
            return Err("unknown form".into());
        };
        if !one.has("BFLY")
            || clamp.place != Place::Number(0x1f)
            || truth.place != Place::Predicate((false, PT))
        {
            return Err("unknown form".into());
        }
        let mut results = Vec::new();
        for lane in lanes {
            let other = lane ^ self.number(*lane, distance, 0)? as usize;
            if !lanes.contains(&other) {
                return Err("a shuffle with a lane that does not take part".into());
            }
            results.push(self.word(other, source, 0)?);
        }
        for (lane, result) in lanes.iter().zip(results) {
            self.set(*lane, to, 0, result)?;
        }
        Ok(())
    }

    pub(super) fn constant(&self, bank: u32, offset: i64) -> Result<Word, String> {
        let bytes = usize::try_from(offset).ok().filter(|_| bank == 0);
        let bytes = bytes.and_then(|offset| self.bank.get(offset..)?.first_chunk::<4>());
        Ok(Word::Known(u32::from_le_bytes(*bytes.ok_or("a constant that is not there")?)))
    }

    /// Loads and stores.
    pub(super) fn access(&mut self, one: &Instruction, lane: usize) -> Result<(), String> {
        let size = if one.has("U8") { 1 } else { 4 * one.width() };
        let is_load = one.opcode.starts_with("LD");
        let space = one.opcode.chars().nth(2);
        let places = if is_load { [0, 1] } else { [1, 0] };
        let [Some(data), Some(place)] = places.map(|index| one.operands.get(index)) else {
            return Err("unknown form".into());
        };
        let Place::Memory(base, uniform, offset, is_pair) = place.place else {
            return Err("unknown form".into());
        };
        // Addresses of global memory have 64 bits, those of shared memory 32.
        let is_wide = space != Some('S');
        if is_pair != is_wide {
            return Err("unknown form".into());
        }
        let pair = |low: &Word, high: &Word| -> Result<u64, String> {
            let (low, high) = (low.number(), if is_wide { high.number() } else { Some(0) });
            let (Some(low), Some(high)) = (low, high) else { return Err(format!("an address {SECRET}")) };
            Ok(u64::from(high) << 32 | u64::from(low))
        };
        let registers = &self.lanes[lane].registers;
        let base = base.map_or(Ok(0), |base| pair(&registers[base], &registers[base + 1]))?;
        let uniform = uniform.map_or(Ok(0), |base| pair(&self.uniform[base], &self.uniform[base + 1]))?;
        let address = base.wrapping_add(uniform).wrapping_add(offset as u64);
        if address % size as u64 != 0 {
            return Err(format!("an address that is not a multiple of {size}: {address:#x}"));
        }
        if is_load {
            let bytes = match space {
                Some('S') => self.shared.load(address & 0xffff_ffff, size, lane)?,
                _ => self.memory.load(address, size)?,
            };
            let words = words_of(&bytes);
            return words.into_iter().enumerate().try_for_each(|(i, word)| self.set(lane, data, i, word));
        }
        let words: Result<Vec<Word>, String> =
            (0..size.div_ceil(4)).map(|i| self.word(lane, data, i)).collect();
        let bytes = bytes_of(&words?);
        match space {
            Some('S') => self.shared.store(address & 0xffff_ffff, &bytes[..size], lane),
            _ => self.memory.store(address, &bytes[..size]),
        }
    }

    /// Writes register number `index` of a result.
    pub(super) fn set(
        &mut self,
        lane: usize,
        to: &super::code::Operand,
        index: usize,
        word: Word,
    ) -> Result<(), String> {
        match to.place {
            Place::Register((false, RZ)) | Place::Register((true, URZ)) => {}
            Place::Register((false, number)) => self.lanes[lane].registers[number + index] = word,
            Place::Register((true, number)) => self.uniform[number + index] = word,
            _ => return Err("a result of unknown kind".into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
