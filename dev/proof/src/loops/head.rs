//! The state at the head of a loop, and the proof that an iteration leads from this state to the same state of the next iteration.

use iced_x86::InstructionInfoFactory;

use super::linear::Slope;
use super::walk::{BLOCK, MASKS, REGISTERS, Walk};
use crate::machine::{Flags, Step, Stop};
use crate::memory::{Region, Role};
use crate::value::{Domain, Number};

/// The largest number of times that a state is made more general. More are not needed.
const MOST_ROUNDS: usize = 12;

/// A loop that processes data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    /// The address of an instruction that each iteration executes once: the head.
    pub(crate) head: u64,
    /// The number of bytes that an iteration processes.
    pub(crate) step: usize,
    /// The number of steps that are left at the last arrival at the head.
    pub(crate) last: usize,
}

/// The three parts of a run with any number of iterations.
pub(crate) struct Parts<D: Domain> {
    /// The general state at the head, with at least `last + 1` steps left. It is a state of the first iteration with unknown words.
    pub(crate) head: Walk<D>,
    /// The state one iteration later.
    pub(crate) next: Walk<D>,
    /// The state after the return, from the general state with `last` steps left.
    pub(crate) end: Walk<D>,
}

/// Follows a run through the parts of a loop. `start` is the state at a call with `last + 1` steps. `at_head` may make the state at the
/// first head more general. `differs` returns the bits of a byte at a head that do not describe the byte at the next head.
pub(crate) fn parts<D: Domain>(
    start: Walk<D>,
    found: Loop,
    at_head: impl FnOnce(&mut Walk<D>),
    differs: &mut impl FnMut(&D, D::Byte, D::Byte) -> u8,
) -> Result<Parts<D>, Stop> {
    let mut info = InstructionInfoFactory::new();
    let mut head = start;
    to_head(&mut head, found, &mut info)?;
    head.advance = Slope { done: found.step as i64, left: 0 };
    head.machine.flags = Flags::UNDEFINED;
    at_head(&mut head);
    guess(&mut head, found)?;
    for _ in 0..MOST_ROUNDS {
        let mut next = head.clone();
        to_head(&mut next, found, &mut info)?;
        if widen(&mut head, &next, differs)? {
            continue;
        }
        let mut end = head.clone();
        set_last(&mut end, found.step);
        go_on(&mut end, None, &mut info)?;
        return Ok(Parts { head, next, end });
    }
    Err(head.machine.stop("no state at the head describes all iterations"))
}

/// Executes instructions until the next one is the head.
fn to_head<D: Domain>(walk: &mut Walk<D>, found: Loop, info: &mut InstructionInfoFactory) -> Step {
    go_on(walk, Some(found.head), info)?;
    if !walk.machine.is_running() {
        return Err(walk.machine.stop("the function returns before the head of the loop"));
    }
    Ok(())
}

/// Executes at least one instruction, and then others until the next one is the last, or until the return. The reason of a stop includes
/// the first finding, because unknown bits may have another value than the run assumes.
fn go_on<D: Domain>(walk: &mut Walk<D>, last: Option<u64>, info: &mut InstructionInfoFactory) -> Step {
    loop {
        if let Err(mut stop) = walk.step(info) {
            let finding = walk.machine.findings.keys().next();
            stop.reason.extend(finding.map(|finding| format!(", after: {}", finding.detail)));
            return Err(stop);
        }
        if !walk.machine.is_running() || last == Some(walk.machine.next) {
            return Ok(());
        }
    }
}

/// Guesses the slopes of words from the difference between two iterations. The proof does not depend on these guesses being right.
fn guess<D: Domain>(head: &mut Walk<D>, found: Loop) -> Step {
    let mut next = head.machine.clone();
    let address = next.next;
    next.execute(address)?;
    while next.next != found.head && next.is_running() {
        let address = next.next;
        next.execute(address)?;
    }
    let next = Walk::new(next, head.data.clone(), head.most);
    // Moves to and from mask registers do not keep slopes.
    for place in places(head).into_iter().filter(|place| !(MASKS..REGISTERS).contains(place)) {
        let [before, after] = [&*head, &next].map(|walk| Number::of::<D>(&walk.word(place)));
        let left = head.slope(place).left;
        let done = (after.value.wrapping_sub(before.value) as i64).wrapping_add(left);
        let is_likely = done.unsigned_abs() <= 16 * found.step as u64;
        if is_likely && !before.is_secret() && !after.is_secret() {
            head.set_slope(place, Slope { done, left });
        }
    }
    Ok(())
}

/// The places of all words that may change: registers, and the words of writable memory except data.
pub(crate) fn places<D: Domain>(walk: &Walk<D>) -> Vec<u64> {
    let is_data = |region: &Region<D>| walk.data.iter().any(|data| data.address == region.base);
    let mut places: Vec<u64> = (0..REGISTERS).step_by(8).collect();
    for region in walk.machine.memory.regions().iter().filter(|region| region.is_writable && !is_data(region))
    {
        // The stack below its lowest used byte has not changed.
        let start = if region.role == Role::Stack { walk.machine.lowest & !7 } else { region.base };
        places.extend((start..region.end().saturating_sub(7)).step_by(8));
        // The last words of a region may overlap.
        let is_rest = region.bytes().len() > 8 && region.end() % 8 != region.base % 8;
        places.extend(is_rest.then(|| region.end() - 8));
    }
    places
}

/// Makes the state at a head more general, so that it also describes the state at the next head. Returns true if it has changed.
fn widen<D: Domain>(
    head: &mut Walk<D>,
    next: &Walk<D>,
    differs: &mut impl FnMut(&D, D::Byte, D::Byte) -> u8,
) -> Result<bool, Stop> {
    // Blocks of less than a word hold no numbers.
    let shape = |walk: &Walk<D>| {
        let short =
            |region: &Region<D>| if region.bytes().len() < 8 { region.bytes().to_vec() } else { Vec::new() };
        let regions = walk.machine.memory.regions().iter();
        let regions = regions.map(|region| (region.base, region.end(), short(region)));
        (regions.collect::<Vec<_>>(), walk.machine.heap_used, walk.word(8 * 4).map(D::value))
    };
    if shape(head) != shape(next) {
        return Err(next.machine.stop("blocks or the stack pointer change in the loop"));
    }
    let (mut has_changed, mut next) = (false, next.clone());
    head.machine.lowest = head.machine.lowest.min(next.machine.lowest);
    let places = places(head);
    if [&*head, &next].iter().any(|walk| walk.slopes.keys().any(|place| !places.contains(place))) {
        return Err(next.machine.stop("a word that depends on the number of iterations is not aligned"));
    }
    for place in places {
        let (slope, other) = (head.slope(place), next.slope(place));
        let mut bits = [0; 8];
        if !slope.is_zero() {
            let [before, after] = [&*head, &next].map(|walk| Number::of::<D>(&walk.word(place)));
            let grown = before.value.wrapping_add((slope.done - slope.left) as u64);
            if !after.is_secret() && other == slope && after.value == grown {
                continue;
            }
            head.set_slope(place, Slope::default());
            bits = slope.changing();
        }
        next.forget(place, other.changing());
        let known = head.unknown.get(&place).copied().unwrap_or_default();
        let (bytes, others) = (head.word(place), next.word(place));
        for index in 0..8 {
            bits[index] |= differs(&head.machine.domain, bytes[index], others[index]) & !known[index];
        }
        if bits != [0; 8] {
            head.forget(place, bits);
            head.unknown.insert(place, std::array::from_fn(|index| known[index] | bits[index]));
            has_changed = true;
        }
    }
    Ok(has_changed)
}

/// Sets the number of steps that are left to the last one, so that it is no longer a variable.
fn set_last<D: Domain>(walk: &mut Walk<D>, step: usize) {
    // One more step may have been executed than at a head with more steps left.
    walk.most += 1;
    for (place, slope) in walk.slopes.clone() {
        let value = Number::of::<D>(&walk.word(place)).value.wrapping_sub(slope.left as u64);
        walk.set_word(place, value.to_le_bytes().map(D::constant));
        walk.set_slope(place, Slope { left: 0, ..slope });
    }
    for data in &mut walk.data {
        data.len.least -= step as i128;
        data.len.slope.left = 0;
        let len = data.len.least as usize;
        data.written.truncate(len);
        let region = walk.machine.memory.remove(data.address).expect("a buffer");
        // The last block keeps its bytes.
        let mut bytes = region.bytes().to_vec();
        bytes.drain(len - BLOCK..len - BLOCK + step);
        walk.machine.memory.add(Region::new(
            &region.name,
            region.role,
            region.base,
            region.is_writable,
            bytes,
        ));
    }
}
