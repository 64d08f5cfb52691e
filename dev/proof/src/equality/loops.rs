//! Equality for loops of any length.
//!
//! At the head of a loop, a state is expressed in the chaining register and the data from there on. An iteration must lead to the same
//! expressions in the next chaining register and the data of the next iteration, and its output must be that of the standard. Bits of the
//! state for which this is not so become new symbols, so nothing can depend on them.

use std::collections::HashMap;
use std::sync::Arc;

use super::cipher::{Block, Cipher, Counter, block, public};
use super::modes::expected;
use super::{Differences, Outcome, Prover, difference};
use crate::cases::modes::{Form, MODES, Mode, Next, OUTPUT, REGISTER, set_key};
use crate::cases::{Buffer, Extent, Group};
use crate::image::Image;
use crate::loops::{
    BLOCK, COUNTER, Call, Loop, Walk, find, most_bytes, parts, places, rests, step_of, writes_all,
};
use crate::machine::Stop;
use crate::memory::Region;
use crate::symbols::{Bit, ONE, Symbol, Symbols, Table};
use crate::value::Domain;

/// A buffer for an argument of the controls.
const UNUSED: Buffer = Buffer(0);

/// A substitution: for each replaced atom, the sum of the atom and its replacement.
type Substitution = HashMap<Bit, Bit>;

/// The output of the standard for a chaining register and data, and the register after the data.
type Definition<'a> = dyn Fn(&Block, &[Symbol]) -> (Vec<Symbol>, Option<Block>) + 'a;

/// Replaces the atoms of an expression. `None` if it has another atom that is not below `end`.
fn replaced(table: &mut Table, bit: Bit, substitution: &Substitution, end: usize) -> Option<Bit> {
    let mut terms = vec![bit];
    for atom in table.atoms(bit) {
        match substitution.get(atom) {
            Some(difference) => terms.push(*difference),
            None if (*atom as usize) < end => {}
            None => return None,
        }
    }
    Some(if terms.len() == 1 { bit } else { table.sum(&terms) })
}

/// The substitution of expressions that have an atom of their own. The other atoms of these expressions depend on keys only.
fn substitution(table: &mut Table, from: &[Symbol], to: &[Symbol]) -> Substitution {
    let mut result = Substitution::new();
    for (from, to) in from.as_flattened().iter().zip(to.as_flattened()) {
        if let Some(last) = table.atoms(*from).last().copied().filter(|_| *from > ONE) {
            result.insert(last, table.xor(*from, *to));
        }
    }
    result
}

/// Proves a group for all numbers of iterations.
pub fn prove(image: &Arc<Image>, group: Group, extent: Extent) -> Outcome {
    let Some((mode, step)) = step_of(group) else { return Outcome::default() };
    let proved = Prover::new(image, group, extent).and_then(|mut prover| {
        prove_all(image, &mut prover, mode, step)?;
        Ok(prover.outcome)
    });
    proved.unwrap_or_else(|stop| Outcome { names: Vec::new(), failures: vec![format!("{group}: {stop}")] })
}

fn prove_all(image: &Arc<Image>, prover: &mut Prover, mode: &Mode, step: usize) -> Result<(), Stop> {
    let (group, is_circuit) = (prover.group, prover.group.kernel.width.is_some());
    if mode.form == Form::Mac || is_circuit && (mode.unit == 1 || mode.form == Form::Unit) {
        return Ok(());
    }
    let ctr32 = MODES.iter().find(|mode| mode.name == "CTR32").expect("a mode of the list");
    let key = prover.key.clone();
    let mut keys = [set_key(&mut prover.session, key)?, 0];
    let mut unit = None;
    let mut register = block(&prover.symbols.inputs(BLOCK));
    let argument = block(&prover.symbols.inputs(BLOCK));
    if mode.form == Form::Unit {
        let bytes = prover.symbols.inputs(group.key_len);
        unit = Some(Cipher::new(&prover.symbols, &bytes).encrypt(&argument));
        keys[1] = set_key(&mut prover.session, bytes)?;
    }
    if mode.next == Next::Counter(16) {
        register[..12].copy_from_slice(&public(&COUNTER.to_be_bytes()[..12]));
    }
    let data = prover.symbols.inputs(most_bytes(step));
    let last = prover.symbols.inputs(BLOCK);
    let end = prover.symbols.table().atom_count();
    let mut start = if unit.is_some() { argument } else { register };
    if mode.next == Next::Counter(16) {
        start = block(&public(&COUNTER.to_be_bytes()));
    }
    let inputs = Inputs { register, unit, data, last, end };
    for (rest, in_place) in
        rests(group, prover.extent).into_iter().filter(|(rest, _)| !is_circuit || *rest == 0)
    {
        let found = find(image, group, in_place)?;
        // Runs of circuits have long expressions, so each has its own table.
        let forked = is_circuit.then(|| prover.fork());
        let run = forked.as_ref().unwrap_or(prover);
        let call = Call { session: &run.session, mode, keys, register: start.to_vec(), in_place };
        // The counter does not wrap around at 2^32.
        let mode = if mode.next == Next::Counter(16) { ctr32 } else { mode };
        let definition = |register: &Block, data: &[Symbol]| expected(&run.cipher, mode, register, data);
        let result = prove_rest(&run.symbols, &call, found, rest, &inputs, &definition);
        prover
            .add(&format!("{} or more steps and {rest} bytes, in place: {in_place}", found.last + 1), result);
    }
    Ok(())
}

/// Replaces the last 32 bits of counter blocks in vector registers by symbols. They are then any number that steps have added to the counter,
/// as the proof for the next head shows.
fn name_counters(walk: &mut Walk<Symbols>, symbols: &Symbols, register: &Block, blocks: usize) {
    for word in walk.machine.vectors.iter_mut().flat_map(|vector| vector.as_chunks_mut::<4>().0) {
        let is_public = word.iter().all(|byte| Symbols::secret(*byte) == 0);
        let value = u32::from_le_bytes(word.map(Symbols::value));
        for (value, is_reversed) in [(value, false), (value.swap_bytes(), true)] {
            let number = value.wrapping_sub(COUNTER as u32) as usize;
            if is_public && number < blocks {
                word.copy_from_slice(&Counter::Last32.after(symbols, register, number)[12..]);
                // The order of bytes in a block is big-endian.
                if !is_reversed {
                    word.reverse();
                }
            }
        }
    }
}

/// The symbols of a run.
struct Inputs {
    register: Block,
    /// The encrypted number of a data unit, which is the register at the start.
    unit: Option<Block>,
    data: Vec<Symbol>,
    /// The last block of the data.
    last: Vec<Symbol>,
    /// The number of atoms before the run.
    end: usize,
}

/// Proves a mode for all lengths that are `rest` plus a multiple of a step.
fn prove_rest(
    symbols: &Symbols,
    call: &Call<'_, Symbols>,
    found: Loop,
    rest: usize,
    inputs: &Inputs,
    definition: &Definition<'_>,
) -> Differences {
    let Inputs { register, unit, data, last, end } = inputs;
    let (mode, step) = (call.mode, found.step);
    let with_last = |len: usize| [&data[..len - BLOCK], &last[..]].concat();
    // The definitions are computed first: they register the inputs of S-boxes.
    let (output, after) = definition(register, &data[..step]);
    let (end_output, end_register) = definition(register, &with_last(rest + found.last * step));
    let mut next = substitution(&mut symbols.table(), data, &data[step..]);
    if let Some(after) = after {
        next.extend(substitution(&mut symbols.table(), register, &after));
    }
    if let Next::Counter(_) = mode.next {
        // The counters of later blocks have atoms of their own.
        for blocks in 1..2 * step / BLOCK {
            let counters = [blocks, blocks + step / BLOCK]
                .map(|blocks| Counter::Last32.after(symbols, register, blocks));
            for (atom, difference) in substitution(&mut symbols.table(), &counters[0], &counters[1]) {
                next.entry(atom).or_insert(difference);
            }
        }
    }
    let at_head = |walk: &mut Walk<Symbols>| {
        if mode.next == Next::Counter(16) {
            return name_counters(walk, symbols, register, 2 * step / BLOCK);
        }
        let Some(unit) = unit else { return };
        let tweak = substitution(&mut symbols.table(), unit, register);
        for place in places(walk) {
            let bytes = walk.word(place);
            let mut table = symbols.table();
            let bytes = bytes.map(|byte| {
                byte.map(|bit| replaced(&mut table, bit, &tweak, usize::MAX).expect("an expression"))
            });
            drop(table);
            walk.set_word(place, bytes);
        }
    };
    let mut differs = |symbols: &Symbols, byte: Symbol, other: Symbol| -> u8 {
        if Symbols::secret(byte) == 0 && byte == other {
            return 0;
        }
        let mut table = symbols.table();
        let is_same = |place: &usize| replaced(&mut table, byte[*place], &next, *end) == Some(other[*place]);
        let same = (0..8).filter(is_same).fold(0, |bits, place| bits | 1 << place);
        !same
    };
    let start = call.start(&with_last(rest + (found.last + 1) * step), step)?;
    let parts = parts(start, found, at_head, &mut differs)?;
    let mut differences = Vec::new();
    if !writes_all(&parts, step) {
        differences.push("bytes of the output have not been written".into());
    }
    let bytes = |walk: &Walk<Symbols>, buffer: Buffer| -> Vec<Symbol> {
        walk.machine
            .memory
            .region(buffer.address())
            .map_or(Vec::new(), |region: &Region<Symbols>| region.bytes().to_vec())
    };
    if !matches!(mode.form, Form::Read) {
        let result = bytes(&parts.next, OUTPUT);
        differences.extend(difference("the output of an iteration", &result[..step], &output));
        differences.extend(difference("the output", &bytes(&parts.end, OUTPUT), &end_output));
    }
    if let Some(register) = end_register.filter(|_| !matches!(mode.next, Next::Counter(_))) {
        differences.extend(difference("the chaining register", &bytes(&parts.end, REGISTER), &register));
    }
    Ok(differences)
}

/// A loop whose output is wrong after many iterations.
pub(super) fn finds_late_fault(prover: &Prover) -> Result<bool, Stop> {
    let ecb = MODES.iter().find(|mode| mode.name == "ECB encryption").expect("a mode of the list");
    let (data, last) = (prover.symbols.inputs(8 * BLOCK), prover.symbols.inputs(BLOCK));
    let end = prover.symbols.table().atom_count();
    let register = block(&data);
    let inputs = Inputs { register, unit: None, data, last, end };
    let complement = |_: &Block, data: &[Symbol]| -> (Vec<Symbol>, Option<Block>) {
        let mut symbols = prover.symbols.clone();
        (data.iter().map(|byte| symbols.not(*byte)).collect(), None)
    };
    let mut session = prover.session.clone();
    let unused = session.public(UNUSED, &[0; BLOCK], false);
    let prover = Prover { session, ..prover.fork() };
    let differences = |function: &'static str| -> Differences {
        let mode = ecb.with_function(function);
        let call = Call {
            session: &prover.session,
            mode: &mode,
            keys: [unused, 0],
            register: Vec::new(),
            in_place: false,
        };
        let found = call.find_loop(&inputs.data, BLOCK)?;
        prove_rest(&prover.symbols, &call, found, 0, &inputs, &complement)
    };
    let fault = differences("proof_control_loop_result")?;
    Ok(differences("proof_control_loop_right")?.is_empty()
        && fault.iter().any(|fault| fault.contains("of an iteration")))
}
