//! Searches for hints. A change of the hints is kept if it does not make a part of the program longer.

use super::super::CompileError;
use super::super::flow::live;
use super::super::ir::Code;
use super::{Hints, Homes, Part, parts};

/// The minimum number of operations of a part for which hints are searched.
const FEWEST: usize = 16;

/// The largest change of a priority in one attempt.
const STEP: i8 = 40;

/// A generator of pseudo-random numbers (xorshift, Marsaglia 2003). The numbers need not be unpredictable.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Improves hints by a number of attempts for each part of a program. `report` receives the number of a part, and its
/// number of words before and after.
///
/// # Errors
/// Errors of [`super::compile`].
pub fn search(
    code: &Code,
    hints: &Hints,
    attempts: usize,
    seed: u64,
    mut report: impl FnMut(usize, usize, usize),
) -> Result<Hints, CompileError> {
    let live = live(code);
    let homes = Homes::of(code, &live.after)?;
    let mut numbers = Numbers(seed.max(1));
    let mut result = hints.clone();
    for (number, part) in parts(code, &live, &homes).iter().enumerate() {
        let count = part.graph.nodes.len();
        if count < FEWEST {
            continue;
        }
        let mut best = hints.from(part.start);
        best.priorities.resize(count, 0);
        best.kinds.resize(count, u8::MAX);
        let first = part.words(&best, &homes)?.len();
        let length = improve(part, &homes, &mut best, first, attempts, &mut numbers);
        report(number, first, length);
        result.priorities.resize(result.priorities.len().max(part.start + count), 0);
        result.kinds.resize(result.kinds.len().max(part.start + count), u8::MAX);
        result.priorities[part.start..part.start + count].copy_from_slice(&best.priorities);
        result.kinds[part.start..part.start + count].copy_from_slice(&best.kinds);
    }
    Ok(result)
}

/// Improves the hints of a part by simulated annealing. A change that makes the part longer is kept with a probability that falls to
/// zero. Returns the smallest number of words.
fn improve(
    part: &Part,
    homes: &Homes,
    best: &mut Hints,
    first: usize,
    attempts: usize,
    numbers: &mut Numbers,
) -> usize {
    let count = best.priorities.len();
    let (mut shortest, mut length) = (first, first);
    let mut present = best.clone();
    for attempt in 0..attempts {
        let mut changed = present.clone();
        for _ in 0..=numbers.below(3) {
            let place = numbers.below(count);
            match numbers.below(2) {
                0 => {
                    let step = numbers.below(2 * STEP as usize + 1) as i8 - STEP;
                    changed.priorities[place] = changed.priorities[place].saturating_add(step);
                }
                _ => changed.kinds[place] = [0, 1, 2, 3, u8::MAX][numbers.below(5)],
            }
        }
        // A change is rejected if the values no longer fit into the registers.
        let Ok(words) = part.words(&changed, homes) else { continue };
        // A change that adds one word is accepted with a probability that falls from 1/16 to 0.
        let is_excused = words.len() == length + 1 && numbers.below(16 * attempts) < attempts - attempt;
        if words.len() <= length || is_excused {
            (present, length) = (changed, words.len());
            if length <= shortest {
                *best = present.clone();
                shortest = length;
            }
        }
    }
    shortest
}
