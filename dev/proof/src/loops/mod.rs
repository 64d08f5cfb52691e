//! Proofs for loops of any length.
//!
//! A run of a mode with n bytes consists of three parts: the entry from the call to the head of the loop, iterations that lead from the head
//! to the head, and the end from the last head to the return. Each part is executed once, for all numbers of iterations (`walk`). The
//! state at the head is made so general (`head`) that an iteration leads from it to the same state of the next iteration.
//!
//! The number of bytes is `rest + step * (done + left)`, where an iteration processes `step` bytes.

pub mod controls;
mod head;
mod linear;
mod walk;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) use self::head::{Loop, Parts, parts, places};
use self::linear::{Linear, Slope};
use self::walk::Data;
pub(crate) use self::walk::{BLOCK, Walk};
use crate::cases::modes::{Form, INPUT, MODES, Mode, Next, OUTPUT, arguments, ranges, set_key};
use crate::cases::{Extent, Group, Operation, Outcome, Session};
use crate::contracts;
use crate::image::Image;
use crate::machine::{Kind, Program, Stop};
use crate::semantics;
use crate::taint::{Taint, Tainted};
use crate::value::{Domain, Number};

/// A bound of the number of bytes. No processor has as many addresses.
const MOST_BYTES: u64 = 1 << 56;

/// The counter of CTR, and a number of bytes before its last 32 bits wrap around.
pub(crate) const COUNTER: u128 = 0x3c91_a7e0_5d14_f86b_22c7_390f_1d3c_5b81;
const MOST_COUNTED: u64 = BLOCK as u64 * ((1 << 32) - 1 - COUNTER as u32 as u64);

/// The arguments of a call, besides its data.
pub(crate) struct Call<'a, D: Domain> {
    pub(crate) session: &'a Session<D>,
    pub(crate) mode: &'a Mode,
    pub(crate) keys: [u64; 2],
    pub(crate) register: Vec<D::Byte>,
    pub(crate) in_place: bool,
}

impl<D: Domain> Call<'_, D> {
    /// The state at the start of the call. In later parts of the run, the data are longer by multiples of `step` bytes.
    pub(crate) fn start(&self, data: &[D::Byte], step: usize) -> Result<Walk<D>, Stop> {
        let mut session = self.session.clone();
        let arguments =
            arguments(&mut session, self.mode, self.keys, self.register.clone(), (data, self.in_place));
        session.machine.clear_scratch();
        session.machine.start(self.mode.function, &arguments)?;
        let (slope, bytes) = (step as i64, data.len() as u64);
        let most = if matches!(self.mode.next, Next::Counter(_)) { MOST_COUNTED } else { MOST_BYTES };
        let len = Linear::of(bytes, Slope { done: slope, left: slope });
        let is_used = |address: &u64| session.machine.memory.region(*address).is_some();
        let buffers = [INPUT, OUTPUT].map(|buffer| buffer.address()).into_iter().filter(is_used);
        let data = buffers.map(|address| Data { address, len, written: vec![false; data.len()] }).collect();
        let last = session.machine.convention().arguments[arguments.len() - 1];
        let mut walk = Walk::new(session.machine, data, ((most - bytes) / step as u64) as i64);
        walk.set_slope(8 * last as u64, Slope { done: 0, left: slope });
        Ok(walk)
    }

    /// For each instruction that a run with this data executes: how many times, and the stack pointer and the order of the first time.
    fn executions(&self, data: &[D::Byte]) -> Result<BTreeMap<u64, (usize, u64, usize)>, Stop> {
        let mut machine = self.start(data, BLOCK)?.machine;
        let mut executions = BTreeMap::new();
        while machine.is_running() {
            let (at, order) = (machine.next, executions.len());
            let stack = Number::of::<D>(&machine.general[4]).value;
            executions.entry(at).or_insert((0, stack, order)).0 += 1;
            machine.execute(at)?;
        }
        Ok(executions)
    }

    /// Finds the loop for each number of bytes that is left after it.
    fn find_loop_of_all(&self, data: &[D::Byte], step: usize) -> Result<Loop, Stop> {
        let (found, other) = (self.find_loop(data, step)?, self.find_loop(&data[self.mode.unit..], step)?);
        Ok(Loop { last: found.last.max(other.last), ..found })
    }

    /// Finds the loop that processes `step` bytes in each iteration: an instruction that one more step executes one more time.
    pub(crate) fn find_loop(&self, data: &[D::Byte], step: usize) -> Result<Loop, Stop> {
        const STEPS: usize = 6;
        let (short, long) =
            (self.executions(&data[..(STEPS - 1) * step])?, self.executions(&data[..STEPS * step])?);
        let is_head = |(at, (count, ..)): &(&u64, &(usize, u64, usize))| {
            (STEPS / 2..=STEPS + 1).contains(count)
                && short.get(at).is_some_and(|(before, ..)| before + 1 == *count)
        };
        // The head is in the outermost function that contains the loop.
        let first = long
            .iter()
            .filter(is_head)
            .min_by_key(|(_, (count, stack, order))| (count.abs_diff(STEPS), Reverse(*stack), *order));
        let (head, (count, ..)) = first.ok_or_else(|| Stop {
            place: self.mode.function.into(),
            reason: format!("there is no loop with {step} bytes in each iteration"),
        })?;
        // While steps are left, an iteration does not reach the last block.
        Ok(Loop { head: *head, step, last: (STEPS + 1 - count).max(BLOCK.div_ceil(step)) })
    }
}

/// The mode of a group, and the number of bytes of an iteration of its loop. `None` if its loop is not analysed.
pub(crate) fn step_of(group: Group) -> Option<(&'static Mode, usize)> {
    let Operation::Mode(index) = group.operation else { return None };
    let (mode, kernel) = (&MODES[index], group.kernel);
    let step = match mode.form {
        Form::Block => return None,
        _ if mode.is_of_bits() => return None,
        Form::Mac => BLOCK,
        _ if mode.is_serial() => mode.unit,
        // Six groups of blocks, as in GCM.
        _ if mode.name.starts_with("XTS") && kernel.width.is_none() && kernel.step < 512 => kernel.gcm.1,
        _ => kernel.step,
    };
    Some((mode, step))
}

/// The groups whose loops are analysed; docs/proof.md lists the others.
pub fn groups(all: &[Group], extent: Extent) -> Vec<Group> {
    let is_chosen = |group: &Group| {
        let is_soft = group.kernel.width.is_some();
        // For `cpu/soft`, these have loops of another form.
        let is_left_out = |mode: &Mode| {
            matches!(mode.form, Form::Read | Form::Mac)
                || matches!(mode.next, Next::Counter(_))
                || mode.name.starts_with("CFB1 ")
        };
        let is_in = step_of(*group).is_some_and(|(mode, _)| !is_soft || !is_left_out(mode));
        // Longer keys have more rounds, but no other loops.
        is_in
            && (group.key_len == 16 || extent == Extent::Full && !is_soft)
            && (extent == Extent::Full || !is_soft)
    };
    all.iter().copied().filter(is_chosen).collect()
}

/// The numbers of bytes besides whole steps, and where the output is. All numbers of blocks, and one partial block after each of them, run
/// only with keys of 128 bits and AES instructions; the others run with no more bytes, and with as many as possible.
pub(crate) fn rests(group: Group, extent: Extent) -> Vec<(usize, bool)> {
    let Some((mode, step)) = step_of(group) else { return Vec::new() };
    let is_full = extent == Extent::Full && group.key_len == 16 && group.kernel.width.is_none();
    let is_chosen = |rest: &usize| {
        let (blocks, bytes) = (rest / BLOCK, rest % BLOCK);
        [0, step - mode.unit].contains(rest) || is_full && (bytes == 0 || bytes == blocks * 7 % 15 + 1)
    };
    let places = ranges(mode, step).1;
    let rests = (0..step).step_by(mode.unit).filter(is_chosen);
    let is_run =
        |rest: usize, place: usize| mode.is_serial() || (rest / BLOCK + place).is_multiple_of(places.len());
    let runs =
        rests.flat_map(|rest| places.iter().enumerate().map(move |(index, place)| (rest, index, *place)));
    runs.filter(|(rest, index, _)| is_run(*rest, *index))
        .map(|(rest, _, in_place)| (rest, in_place))
        .collect()
}

/// The bits of a byte with a value that differ in the next iteration, or that are secret there only.
fn changes(_: &Taint, byte: Tainted, next: Tainted) -> u8 {
    let secret = Taint::secret(byte);
    !secret & (Taint::secret(next) | Taint::value(byte) ^ Taint::value(next))
}

/// Shows points 1 to 3 of docs/proof.md for all numbers of iterations.
pub fn run(image: &Arc<Image>, group: Group, extent: Extent) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(stop) = run_all(image, group, extent, &mut outcome) {
        outcome.stops.insert(stop.to_string(), group.to_string());
    }
    outcome
}

fn run_all(image: &Arc<Image>, group: Group, extent: Extent, outcome: &mut Outcome) -> Result<(), Stop> {
    let Some((mode, step)) = step_of(group) else { return Ok(()) };
    let (session, keys) = session(image, group)?;
    let register = COUNTER.to_be_bytes();
    let register =
        if mode.has_secret_register { session.secrets(&register) } else { session.publics(&register) };
    let data = session.secrets(&session.sample(most_bytes(step), 3));
    for (rest, in_place) in rests(group, extent) {
        let call = Call { session: &session, mode, keys, register: register.clone(), in_place };
        let found = call.find_loop_of_all(&data, step)?;
        let bytes = &data[..rest + (found.last + 1) * step];
        let result = call.start(bytes, step).and_then(|start| parts(start, found, |_| (), &mut changes));
        let mut session = session.clone();
        if group.kernel.width.is_some() && mode.name.ends_with("decryption") {
            // `cpu/soft` leaves copies of ciphertext. Their values are those of one number of iterations.
            let last = &bytes[bytes.len() - BLOCK..];
            let end = [&bytes[..rest + found.last * step - BLOCK], last].concat();
            session.results = vec![end.into_iter().map(Taint::value).collect()];
        }
        let result = result.map(|parts| check(&mut session, &parts, step));
        outcome.add(
            &session,
            result,
            format!("{group}, {} or more steps and {rest} bytes, in place: {in_place}", found.last + 1),
        );
    }
    Ok(())
}

/// The number of bytes of data that is enough for each run.
pub(crate) fn most_bytes(step: usize) -> usize {
    8 * step.max(BLOCK)
}

/// A session with two keys of a group.
fn session(image: &Arc<Image>, group: Group) -> Result<(Session, [u64; 2]), Stop> {
    let program = Rc::new(Program::<Taint>::new(Arc::clone(image), semantics::all(), contracts::answer));
    let mut session = Session::new(&program, group.kernel)?;
    let mut keys = [0; 2];
    for key in &mut keys {
        let bytes = session.secrets(&session.sample(group.key_len, 5));
        *key = set_key(&mut session, bytes)?;
    }
    session.machine.findings.clear();
    Ok((session, keys))
}

/// The loop of a group.
pub(crate) fn find(image: &Arc<Image>, group: Group, in_place: bool) -> Result<Loop, Stop> {
    let (session, keys) = session(image, group)?;
    let (mode, step) = step_of(group).expect("a group whose loop is analysed");
    let (register, data) =
        (session.publics(&COUNTER.to_be_bytes()), session.secrets(&vec![0; most_bytes(step)]));
    Call { session: &session, mode, keys, register, in_place }.find_loop_of_all(&data, step)
}

/// Adds the findings of the parts of a run to a session.
fn check(session: &mut Session, parts: &Parts<Taint>, step: usize) {
    session.machine = parts.end.machine.clone();
    let results: Vec<&[u8]> = session.results.iter().map(Vec::as_slice).collect();
    session.machine.find_left(&results);
    session.machine.findings.extend(parts.next.machine.findings.clone());
    if !writes_all(parts, step) {
        session.found(
            Kind::Output,
            "bytes of the output have not been written, for some number of iterations".into(),
        );
    }
}

/// True if each iteration writes its bytes of the output and no others, and the end writes the rest.
pub(crate) fn writes_all<D: Domain>(parts: &Parts<D>, step: usize) -> bool {
    let output = |walk: &Walk<D>| {
        let data = walk.data.iter().find(|data| data.address == OUTPUT.address());
        data.map_or(Vec::new(), |data| data.written.clone())
    };
    let Parts { head, next, end } = parts;
    !output(head).contains(&true)
        && output(next).iter().enumerate().all(|(place, is_written)| *is_written == (place < step))
        && !output(end).contains(&false)
}

#[cfg(test)]
mod tests;
