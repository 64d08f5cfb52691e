//! Changes of single instructions, which the proofs must refute.

use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

use super::code::{Instruction, Operand, PT, Place, RZ, URZ};
use super::jobs::Job;
use super::{Kernels, LIMITS, Limits, Options, Run};
use crate::parallel;
use crate::random::Random;

/// A change of an instruction.
#[derive(Clone)]
struct Mutant {
    function: String,
    index: usize,
    kind: &'static str,
    changed: Instruction,
    before: String,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Mutant { function, kind, before, changed, .. } = self;
        let operands: Vec<String> =
            changed.operands.iter().map(|operand| format!("{:?}", operand.place)).collect();
        write!(f, "{function} /*{:04x}*/ {before}: {kind}", changed.address)?;
        if *kind != "dropped" { write!(f, ": {}", operands.join(", ")) } else { Ok(()) }
    }
}

/// Instructions without an effect on results. BREAK and BSSY tell the hardware where lanes converge.
const WITHOUT_EFFECT: [&str; 5] = ["NOP", "BSSY", "BSYNC", "BREAK", "WARPSYNC"];

/// False for a bit of a truth table that constant inputs (RZ, PT) never select, and for the table of a predicate that is not written.
fn matters(one: &Instruction, index: usize, bit: usize) -> bool {
    // The place of the first of three inputs, behind which the tables are.
    let first = match one.opcode.trim_start_matches('U') {
        "LOP3" => 1 + usize::from(matches!(one.operands[0].place, Place::Predicate(_))),
        "PLOP3" => 2,
        _ => return true,
    };
    let Some(table) = index.checked_sub(first + 3) else { return true };
    let is_possible = |(input, weight): (&Operand, usize)| match input.place {
        Place::Register((false, RZ) | (true, URZ)) => bit & weight == 0,
        Place::Predicate((_, PT)) => (bit & weight == 0) == input.is_negated,
        _ => true,
    };
    !matches!(one.operands[table].place, Place::Predicate((_, PT)))
        && one.operands[first..].iter().zip([4, 2, 1]).all(is_possible)
}

/// One random change. `None` if the instruction cannot be changed in this way.
fn change(one: &Instruction, random: &mut Random) -> Option<(&'static str, Instruction)> {
    if WITHOUT_EFFECT.contains(&one.opcode.as_str()) {
        return None;
    }
    let mut changed = one.clone();
    let registers = |operand: &&mut Operand| {
        matches!(operand.place, Place::Register((false, number)) if number != RZ)
            || matches!(operand.place, Place::Memory(Some(_), ..))
    };
    let kind = ["register", "constant", "dropped", "predicate"][random.below(4)];
    match kind {
        "register" => {
            let mut places: Vec<_> = changed.operands.iter_mut().filter(registers).collect();
            let count = places.len();
            let place = &mut places.get_mut(random.below(count.max(1)))?.place;
            let (Place::Register((_, number)) | Place::Memory(Some(number), ..)) = place else { return None };
            *number = (*number + 1 + random.below(8)) % 250;
        }
        "constant" => {
            let is_number = |place: &Place| matches!(place, Place::Number(_) | Place::Memory(..));
            let places: Vec<usize> =
                (0..one.operands.len()).filter(|index| is_number(&one.operands[*index].place)).collect();
            let index = *places.get(random.below(places.len().max(1)))?;
            let bit = random.below(8);
            if !matters(one, index, bit) {
                return None;
            }
            match &mut changed.operands[index].place {
                Place::Number(number) => *number ^= 1 << bit,
                Place::Memory(_, _, offset, _) => *offset ^= 1 << bit,
                _ => return None,
            }
        }
        "dropped" => changed.drop(),
        _ => {
            let is_predicate = |operand: &Operand| matches!(operand.place, Place::Predicate(_));
            // Results have no sign: the first operand, and the predicates after it.
            let results = 1 + changed.operands.iter().skip(1).take_while(|one| is_predicate(one)).count();
            let sources = changed.operands.iter_mut().skip(results);
            let mut places: Vec<_> = changed
                .guard
                .iter_mut()
                .chain(sources)
                .filter(|one| matches!(one.place, Place::Predicate((_, number)) if number != PT))
                .collect();
            let count = places.len();
            let place = places.get_mut(random.below(count.max(1)))?;
            place.is_negated = !place.is_negated;
        }
    }
    Some((kind, changed))
}

/// The runs that execute the changed instruction. A run with few executions is likely to be short, and is therefore first.
fn runs<'a>(mutant: &Mutant, jobs: &[Job], done: &'a [(usize, Run)]) -> Vec<(usize, &'a Run, usize)> {
    let mut runs: Vec<_> = done
        .iter()
        .filter(|(job, run)| jobs[*job].function() == mutant.function && run.visited[mutant.index] > 0)
        .map(|(job, run)| (run.visited.iter().map(|count| *count as usize).sum(), run, *job))
        .collect();
    runs.sort_by_key(|(steps, _, job)| (*steps, *job));
    runs
}

/// The limits of the run of a mutant, where `steps` is the number of instructions that the original executes. The wrong result of a circuit
/// has a long expression, and the length of later expressions can double with each round.
fn limits(steps: usize, original: &Run) -> Limits {
    Limits { steps: 2 * steps + 10_000, size: (3 * original.size + (1 << 22)).min(LIMITS.size) }
}

/// Runs the proofs on mutants, and prints the first failure of each. Returns the number of mutants without a failure.
pub(super) fn survivors(kernels: &Kernels, jobs: &[Job], done: &[(usize, Run)], options: &Options) -> usize {
    let mutants = choose(kernels, jobs, done, options);
    let start = Instant::now();
    // Mutants that no proof refutes, and those that only the limit of the expressions refutes.
    let counts = Mutex::new((0, 0));
    parallel::for_each(&mutants, |mutant| {
        let mut kernel = kernels[&mutant.function].clone();
        kernel.code[mutant.index] = mutant.changed.clone();
        let failure = runs(mutant, jobs, done).into_iter().find_map(|(steps, original, job)| {
            let (result, run) = jobs[job].run(&kernel, limits(steps, original));
            result.err().map(|error| (error, run.is_too_large()))
        });
        let mut counts = counts.lock().expect("no thread panics");
        match failure {
            Some((error, is_too_large)) => {
                println!("refuted: {mutant}\n    {error}");
                counts.1 += usize::from(is_too_large);
            }
            None => {
                println!("survives: {mutant}");
                counts.0 += 1;
            }
        }
    });
    let (survivors, too_large) = counts.into_inner().expect("no thread panics");
    println!(
        "{} mutants, {survivors} of which no proof refutes, {} s; the expressions of {too_large} mutants exceeded the limit",
        mutants.len(),
        start.elapsed().as_secs()
    );
    survivors
}

/// Random changes of instructions that the runs have executed, in turn for each entry point.
fn choose(kernels: &Kernels, jobs: &[Job], done: &[(usize, Run)], options: &Options) -> Vec<Mutant> {
    let mut random = Random(options.seed);
    let mut functions: Vec<String> = jobs.iter().map(Job::function).collect();
    functions.sort();
    functions.dedup();
    let mut mutants = Vec::new();
    while mutants.len() < options.mutants {
        let function = functions[mutants.len() % functions.len()].clone();
        let code = &kernels[&function].code;
        let index = random.below(code.len());
        let is_executed =
            done.iter().any(|(job, run)| jobs[*job].function() == function && run.visited[index] > 0);
        if let Some((kind, changed)) = change(&code[index], &mut random).filter(|_| is_executed) {
            mutants.push(Mutant { function, index, kind, changed, before: code[index].text.clone() });
        }
    }
    mutants
}

#[cfg(test)]
mod tests;
