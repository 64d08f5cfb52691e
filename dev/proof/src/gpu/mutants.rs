//! Changes of single instructions, which the proofs must refute.

use std::fmt;
use std::sync::Mutex;

use super::code::{Instruction, Operand, PT, Place, RZ};
use super::jobs::Job;
use super::{Kernels, Options};
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
    let numbers = |operand: &&mut Operand| matches!(operand.place, Place::Number(_) | Place::Memory(..));
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
            let mut places: Vec<_> = changed.operands.iter_mut().filter(numbers).collect();
            let count = places.len();
            match &mut places.get_mut(random.below(count.max(1)))?.place {
                Place::Number(number) => *number ^= 1 << random.below(8),
                Place::Memory(_, _, offset, _) => *offset ^= 1 << random.below(8),
                _ => return None,
            }
        }
        "dropped" => {
            (changed.opcode, changed.guard) = ("NOP".into(), None);
            (changed.modifiers, changed.operands) = (Vec::new(), Vec::new());
        }
        _ => {
            let is_predicate = |operand: &&mut Operand| matches!(operand.place, Place::Predicate((_, number)) if number != PT);
            let mut places: Vec<_> =
                changed.guard.iter_mut().chain(&mut changed.operands).filter(is_predicate).collect();
            let count = places.len();
            let place = places.get_mut(random.below(count.max(1)))?;
            place.is_negated = !place.is_negated;
        }
    }
    Some((kind, changed))
}

/// Runs the proofs on mutants, and prints those that no proof refutes. Returns their number.
pub(super) fn survivors(
    kernels: &Kernels,
    jobs: &[Job],
    done: &[(usize, Vec<u32>)],
    options: &Options,
) -> usize {
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
            done.iter().any(|(job, visited)| jobs[*job].function() == function && visited[index] > 0);
        if let Some((kind, changed)) = change(&code[index], &mut random).filter(|_| is_executed) {
            mutants.push(Mutant { function, index, kind, changed, before: code[index].text.clone() });
        }
    }
    let survivors = Mutex::new(0);
    parallel::for_each(&mutants, |mutant| {
        let mut kernel = kernels[&mutant.function].clone();
        kernel.code[mutant.index] = mutant.changed.clone();
        // A run with few executions is likely to be short.
        let mut runs: Vec<_> = done
            .iter()
            .filter(|(job, visited)| jobs[*job].function() == mutant.function && visited[mutant.index] > 0)
            .map(|(job, visited)| (visited.iter().map(|count| *count as usize).sum::<usize>(), *job))
            .collect();
        runs.sort_unstable();
        if runs.iter().all(|(steps, job)| jobs[*job].run(&kernel, 2 * steps + 10_000).0.is_ok()) {
            println!("survives: {mutant}");
            *survivors.lock().expect("no thread panics") += 1;
        }
    });
    let survivors = survivors.into_inner().expect("no thread panics");
    println!("{} mutants, {survivors} of which no proof refutes", mutants.len());
    survivors
}
