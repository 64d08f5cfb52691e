//! Mutants: copies of the kernels with a random change of one instruction. The analysis must refute each mutant, or show that it has no
//! effect in the runs.
//!
//! A mutant is refuted if a run has a finding that is not known: if a result differs from that of the reference implementation, if a rule about
//! secrets, bounds or remains is broken, or if a run cannot go on. `prove` would fail on a file with the changed code. Equality for all
//! keys and data is not analysed for mutants. Only the groups whose short runs execute the changed instruction are run, the shortest first,
//! and up to the first finding that is not known.

mod change;
mod effects;
mod survivors;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::cases::{self, Extent, Group, Outcome};
use crate::image::{self, Image};
use crate::known::Known;
use crate::machine::Change;
use crate::parallel;
use crate::random::Random;
use change::Changer;
pub use change::{Kind, Mutant};
pub use survivors::{Equivalence, parse};

/// The totals of the runs of a group without a change.
pub struct Baseline {
    /// The group.
    pub group: Group,
    /// Number of executed instructions of all runs.
    pub steps: u64,
    /// The greatest number of executed instructions of a run.
    pub most_steps: u64,
    /// The addresses of the executed instructions, in ascending order.
    pub visited: Vec<u64>,
}

impl Baseline {
    /// The baseline of a group.
    pub fn new(group: Group, outcome: &Outcome) -> Self {
        let visited = outcome.visited.iter().copied().collect();
        Baseline { group, steps: outcome.steps, most_steps: outcome.most_steps, visited }
    }
}

/// The settings for the choice of the mutants and for their runs.
pub struct Plan<'a> {
    /// The file of the program.
    pub file: &'a Path,
    /// Number of mutants.
    pub number: usize,
    /// The seed of the random changes.
    pub seed: u64,
    /// Findings of the program without changes.
    pub known: &'a [Known],
    /// Mutants that are known to be equivalent.
    pub equivalent: &'a [Equivalence],
}

/// The result of the runs of a mutant.
pub enum Verdict {
    /// A run refutes the mutant. The value is the first finding.
    Refuted(String),
    /// What it changes reaches no result, no branch and no address in any run, with the keys and data of each of the `SEEDS`.
    NoEffect,
    /// A line of the list of equivalent mutants describes it.
    Listed,
    /// The runs within the limit of instructions do not refute it. `make prove-mutants`, which has no such limit, decides it.
    Undecided,
    /// No run refutes the mutant, although the change has this effect.
    Survived(String),
}

/// The parts of the kernels. Each part gets the same number of mutants. A function belongs to the first part whose text its name
/// contains.
const PARTS: [&str; 3] = ["lockstep_cpu::vectors", "lockstep_cpu::soft", "lockstep_cpu::"];

/// Random changes of instructions that runs have executed.
fn choose(image: &Image, baselines: &[Baseline], number: usize, seed: u64) -> Vec<Mutant> {
    let mut parts = visited_by_part(image, baselines);
    parts.retain(|part| !part.is_empty());
    let (mut random, mut changer) = (Random(seed), Changer::new(image));
    let mut mutants: Vec<Mutant> = Vec::new();
    while mutants.len() < number && !parts.is_empty() {
        let part = &parts[mutants.len() % parts.len()];
        let kind = Kind::ALL[random.below(Kind::ALL.len())];
        let address = part[random.below(part.len())];
        mutants.extend(changer.change(kind, address, &mut random));
    }
    mutants
}

/// The addresses of the executed instructions of each part.
fn visited_by_part(image: &Image, baselines: &[Baseline]) -> Vec<Vec<u64>> {
    let mut visited: Vec<u64> =
        baselines.iter().flat_map(|baseline| baseline.visited.iter().copied()).collect();
    visited.sort_unstable();
    visited.dedup();
    let mut parts = vec![Vec::new(); PARTS.len()];
    for address in visited {
        let function = image.function_at(address);
        if let Some(part) = PARTS.iter().position(|part| function.contains(part)) {
            parts[part].push(address);
        }
    }
    parts
}

/// The seeds of keys and data for which the effect of a mutant is searched. All other runs have the first one.
const SEEDS: [u64; 2] = [0, 1];

/// The groups whose short runs execute the changed instruction, in the order of the slice.
fn executing<'a>(baselines: &'a [Baseline], mutant: &Mutant) -> Vec<&'a Baseline> {
    let executes = |baseline: &&Baseline| {
        mutant.before.iter().any(|instruction| baseline.visited.binary_search(&instruction.ip()).is_ok())
    };
    baselines.iter().filter(executes).collect()
}

/// Runs groups in the order of the slice, and returns the first finding: on a program with the change or, if there are a change and a seed,
/// on the original to show effects of the change.
fn refute(
    program: &Arc<Image>,
    baselines: &[&Baseline],
    known: &[Known],
    change: Option<(&Change, u64)>,
) -> Option<String> {
    baselines.iter().find_map(|baseline| {
        let limit = 2 * baseline.most_steps + MARGIN;
        first_finding(&cases::run(program, baseline.group, Extent::Short, limit, change), known)
    })
}

/// Writes a mutant that has been refuted to a file, reads the file as `prove` does, and refutes the mutant again. This shows that
/// `prove` would also refute a changed file.
///
/// # Errors
/// A message if the mutant in the file is not refuted, or if the file cannot be written.
fn check_file(baselines: &[Baseline], mutant: &Mutant, plan: &Plan<'_>) -> Result<(), String> {
    let path = std::env::temp_dir().join(format!("lockstep-mutant-{}.so", std::process::id()));
    let io_error = |error: std::io::Error| format!("a mutant in a file: {error}");
    let mut data = std::fs::read(plan.file).map_err(io_error)?;
    image::change_file(&mut data, mutant.address, &mutant.code)?;
    std::fs::write(&path, data).map_err(io_error)?;
    let image = Image::read(&path);
    std::fs::remove_file(&path).map_err(io_error)?;
    let finding = refute(&Arc::new(image?), &executing(baselines, mutant), plan.known, None);
    finding.map(|_| ()).ok_or_else(|| format!("a mutant in a file is not refuted: {}", mutant.text()))
}

/// The number of mutants of `make prove-mutants`, for which the list of equivalent mutants is made.
const LISTED: usize = 200;

/// Number of instructions that the groups of a mutant may execute without the change, if there are fewer mutants than `LISTED`. At least one
/// group is run. It takes a few seconds. A mutant that nothing refutes would otherwise take minutes, because all groups that execute the
/// changed instruction are run up to three times.
const FEW_STEPS: u64 = 10_000_000;

/// Number of instructions that a run may execute in addition to a multiple of those that it executes without a change.
const MARGIN: u64 = 100_000;

/// The first finding or stop that is not known, with the run that has it.
fn first_finding(outcome: &Outcome, known: &[Known]) -> Option<String> {
    let findings = outcome.findings.iter();
    let mut new = findings.filter(|(finding, _)| !known.iter().any(|known| known.describes(finding)));
    if let Some((finding, _)) = new.next() {
        return Some(finding.kind.to_string());
    }
    let mut stops = outcome.stops.keys().filter(|stop| !known.iter().any(|known| known.describes_stop(stop)));
    stops.next().map(|_| "a run stops".into())
}

/// Runs mutants on all processors. Prints each mutant that no run refutes when its runs end, and at last the numbers of mutants of each kind.
/// Returns the number of survivors: mutants that no run refutes, that have an effect, and that the list of equivalent mutants does not
/// describe.
///
/// # Errors
/// A message if the refuted mutant that is written to a file is not refuted when the file is analysed, or if fewer than half of the mutants
/// are refuted.
pub fn run(image: &Arc<Image>, mut baselines: Vec<Baseline>, plan: &Plan<'_>) -> Result<usize, String> {
    baselines.sort_by_cached_key(|baseline| (baseline.steps, baseline.group.to_string()));
    let baselines = &baselines[..];
    let mutants = choose(image, baselines, plan.number, plan.seed);
    let verdicts = Mutex::new(Vec::new());
    parallel::for_each(&mutants, |mutant| {
        let verdict = judge(image, baselines, mutant, plan);
        let mut verdicts = verdicts.lock().expect("no thread panics");
        if !matches!(verdict, Verdict::Refuted(_)) {
            println!("{verdict}: {}", survivors::description(image, mutant));
            print!("{}", survivors::context(image, mutant));
        }
        verdicts.push((mutant, verdict));
    });
    let verdicts = verdicts.into_inner().expect("no thread panics");
    let is_refuted = |(_, verdict): &&(&Mutant, Verdict)| matches!(verdict, Verdict::Refuted(_));
    let refuted: Vec<&Mutant> = verdicts.iter().filter(is_refuted).map(|(mutant, _)| *mutant).collect();
    if 2 * refuted.len() < mutants.len() {
        return Err(format!("only {} of {} mutants are refuted", refuted.len(), mutants.len()));
    }
    refuted.first().map_or(Ok(()), |mutant| check_file(baselines, mutant, plan))?;
    let survivors = summarise(&verdicts);
    if plan.number >= LISTED {
        survivors::print_unused(image, plan.equivalent, &verdicts);
    }
    Ok(survivors)
}

/// Tries to refute a mutant. If no run refutes it, searches for its effect in the same runs.
fn judge(image: &Arc<Image>, baselines: &[Baseline], mutant: &Mutant, plan: &Plan<'_>) -> Verdict {
    let changed = Arc::new(image.with_code(mutant.address, &mutant.code));
    let all = executing(baselines, mutant);
    let mut steps = 0;
    let within_limit = all.iter().take_while(|baseline| {
        steps += baseline.steps;
        plan.number >= LISTED || steps <= FEW_STEPS
    });
    let groups = &all[..within_limit.count().max(1).min(all.len())];
    if let Some(finding) = refute(&changed, groups, plan.known, None) {
        return Verdict::Refuted(finding);
    }
    if groups.len() < all.len() {
        return Verdict::Undecided;
    }
    let change = mutant.change();
    let effect_with = |seed| refute(image, groups, &[], Some((&change, seed)));
    match SEEDS.into_iter().find_map(effect_with) {
        None => Verdict::NoEffect,
        Some(_) if plan.equivalent.iter().any(|line| line.describes(image, mutant)) => Verdict::Listed,
        Some(effect) => Verdict::Survived(effect),
    }
}

/// Prints the numbers of mutants of each kind. Returns the number of survivors that no list describes.
fn summarise(verdicts: &[(&Mutant, Verdict)]) -> usize {
    // For each kind, the number of mutants with each verdict.
    let mut kinds: BTreeMap<Kind, [usize; 5]> = BTreeMap::new();
    let mut findings: BTreeMap<&str, usize> = BTreeMap::new();
    for (mutant, verdict) in verdicts {
        let place = match verdict {
            Verdict::Refuted(_) => 0,
            Verdict::NoEffect => 1,
            Verdict::Listed => 2,
            Verdict::Undecided => 3,
            Verdict::Survived(_) => 4,
        };
        kinds.entry(mutant.kind).or_default()[place] += 1;
        if let Verdict::Refuted(finding) = verdict {
            *findings.entry(finding).or_default() += 1;
        }
    }
    for (kind, numbers @ [refuted, without_effect, listed, undecided, _]) in &kinds {
        let all: usize = numbers.iter().sum();
        println!(
            "mutants, {kind}: {refuted} of {all} refuted, {without_effect} without effect in all runs, {listed} in the list, \
             {undecided} undecided"
        );
    }
    let findings: Vec<String> =
        findings.iter().map(|(finding, count)| format!("{finding} ({count})")).collect();
    println!("mutants refuted, by the first finding: {}", findings.join(", "));
    kinds.values().map(|[.., survived]| survived).sum()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Refuted(finding) => finding,
            Verdict::NoEffect => "no effect in any run",
            Verdict::Listed => "in the list",
            Verdict::Undecided => "not refuted within the limit of instructions",
            Verdict::Survived(effect) => return write!(f, "SURVIVED with an effect ({effect})"),
        })
    }
}

#[cfg(test)]
mod tests;
