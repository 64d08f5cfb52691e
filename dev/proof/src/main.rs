//! The command `prove`: analyses a build of the harness.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use clap::Parser;
use lockstep_proof::cases::{self, Extent, Group, Outcome, controls};
use lockstep_proof::coverage::{self, Coverage, Limit};
use lockstep_proof::equality;
use lockstep_proof::image::Image;
use lockstep_proof::known::{self, Known};
use lockstep_proof::loops;
use lockstep_proof::machine::{Finding, Kind, MOST_STEPS};
use lockstep_proof::mutants::{self, Baseline, Plan};
use lockstep_proof::parallel;

/// Interprets the machine code of the CPU kernels, and prints what the rules of docs/proof.md forbid.
///
/// The exit status is 0 if there is no other finding than known ones, 1 if there is one, and 2 for wrong arguments.
#[derive(Parser)]
struct Options {
    /// A build of lockstep-proof-harness, with symbols
    file: PathBuf,
    /// Fewer lengths
    #[arg(long)]
    short: bool,
    /// Only groups whose names contain TEXT, such as `cpu/vaes512 AES-128 GCM`
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// A list of known findings, which are no failure
    #[arg(long, value_name = "LIST")]
    known: Option<PathBuf>,
    /// Print the names of the groups
    #[arg(long)]
    list: bool,
    /// Only the proofs that results are equal to the standards, which otherwise precede the analysis, except with --mutants without --short
    #[arg(long, conflicts_with = "mutants")]
    equality: bool,
    /// Only the proofs for loops of any length, which otherwise precede the analysis, except with --mutants without --short
    #[arg(long, conflicts_with_all = ["mutants", "equality"])]
    loops: bool,
    /// Print the name of each run and, for the runs with values, the number of executed instructions
    #[arg(long)]
    runs: bool,
    /// Print the instructions that no run has executed, except those from which each path ends in a panic
    #[arg(long)]
    uncovered: bool,
    /// A list of the largest numbers of instructions that no run with fewer lengths executes. More are a failure
    #[arg(long, value_name = "LIST", requires = "short", conflicts_with_all = ["only", "equality"])]
    unexecuted: Option<PathBuf>,
    /// After the analysis with fewer lengths, also analyse as many copies of FILE, each with one random change of an instruction. It is a
    /// failure if a copy has no finding, unless the change has no effect in these runs or is in the list
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    mutants: usize,
    /// The seed of the changes
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// A list of changes that are known to have no effect
    #[arg(long, value_name = "LIST")]
    equivalent: Option<PathBuf>,
}

/// Reads a list from a file. Without a file, the list is empty.
fn list<T>(path: Option<&Path>, parse: fn(&str) -> Result<Vec<T>, String>) -> Result<Vec<T>, String> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    text.and_then(|text| parse(&text)).map_err(|error| format!("{}: {error}", path.display()))
}

/// The outcome of all groups, and the new findings that have been printed.
#[derive(Default)]
struct Total {
    outcome: Outcome,
    printed: BTreeSet<(Kind, String)>,
    /// Number of printed findings that are not known.
    new: usize,
    /// The totals of the groups, with which the runs of mutants are compared.
    baselines: Vec<Baseline>,
}

impl Total {
    /// Adds the outcome of a group. Prints the first new finding of each kind and function.
    fn add(&mut self, outcome: Outcome, known: &[Known]) {
        for (finding, (runs, example)) in &outcome.findings {
            let is_known = known.iter().any(|known| known.describes(finding));
            if is_known || !self.printed.insert((finding.kind, finding.function.clone())) {
                continue;
            }
            let Finding { kind, function, detail, .. } = finding;
            println!("FOUND: {kind}: {function}\n    in {runs} runs: {detail}\n    first run: {example}");
            self.new += 1;
        }
        for (stop, example) in
            outcome.stops.iter().filter(|(stop, _)| !self.outcome.stops.contains_key(*stop))
        {
            if known.iter().any(|known| known.describes_stop(stop)) {
                println!("known: {stop}");
                continue;
            }
            println!("FOUND: {stop}\n    first run: {example}");
            self.new += 1;
        }
        self.outcome.merge(outcome);
    }

    /// Prints a line for each kind of finding and each function, in the format of the list of known findings. The line contains the largest
    /// number of bytes that a run has found. For the stack, the line also contains the greatest depth.
    fn summarise(&self) {
        let mut most: BTreeMap<(Kind, &str), (usize, usize)> = BTreeMap::new();
        for finding in self.outcome.findings.keys() {
            let (bytes, depth) = most.entry((finding.kind, &finding.function)).or_default();
            (*bytes, *depth) = ((*bytes).max(finding.bytes), (*depth).max(finding.depth));
        }
        for ((kind, function), (bytes, depth)) in most {
            let is_new = self.printed.contains(&(kind, function.to_string()));
            let most = if bytes > 0 { format!(", at most {bytes} bytes") } else { String::new() };
            let depth = if depth > 0 { format!(" (down to {depth} bytes)") } else { String::new() };
            println!("{}: {kind}{most}: {function}{depth}", if is_new { "new" } else { "known" });
        }
    }
}

/// Runs groups on all processors.
fn run(image: &Arc<Image>, groups: &[Group], extent: Extent, known: &[Known]) -> Total {
    let total = Mutex::new(Total::default());
    parallel::for_each(groups, |group| {
        let outcome = cases::run(image, *group, extent, MOST_STEPS, None);
        let mut total = total.lock().expect("no thread panics");
        total.baselines.push(Baseline::new(*group, &outcome));
        total.add(outcome, known);
    });
    total.into_inner().expect("no thread panics")
}

/// Prints the number of instructions of the kernels that no run has executed.
fn report_coverage(image: &Image, functions: &BTreeMap<String, Coverage>, shows_instructions: bool) {
    for part in ["lockstep_cpu::vectors", "lockstep_cpu::soft", "lockstep_cpu::"] {
        let sum = |of: fn(&Coverage) -> usize| -> usize {
            functions.iter().filter(|(name, _)| name.contains(part)).map(|(_, coverage)| of(coverage)).sum()
        };
        let (all, missed, panics) = (sum(|f| f.all), sum(|f| f.missed.len()), sum(|f| f.panics));
        println!(
            "{part}: no run has executed {missed} of {all} instructions; {panics} others lead only to a panic"
        );
    }
    for (name, Coverage { all, missed, .. }) in
        functions.iter().filter(|(_, coverage)| shows_instructions && !coverage.missed.is_empty())
    {
        println!("    {} of {all}: {name}", missed.len());
        missed.iter().for_each(|address| println!("        {}", image.place(*address)));
    }
}

/// Compares the instructions that no run has executed with the limits, and prints the differences. Returns the number of faults.
fn check_coverage(functions: &BTreeMap<String, Coverage>, limits: &[Limit]) -> usize {
    let (faults, hints) = coverage::compare(functions, limits);
    faults.iter().for_each(|fault| println!("FOUND: {fault}"));
    hints.iter().for_each(|hint| println!("{hint}"));
    faults.len()
}

/// Prints the names of runs.
fn print_runs(names: &[String], prints_runs: bool) {
    if prints_runs {
        names.iter().for_each(|name| println!("run: {name}"));
    }
}

/// Proves equality of groups on all processors. Prints the first failure of each group, and returns the number of groups with a failure or
/// without a run.
fn prove_equality(image: &Arc<Image>, groups: &[Group], extent: Extent, prints_runs: bool) -> usize {
    let total = Mutex::new((0, 0));
    parallel::for_each(groups, |group| {
        let equality::Outcome { names, failures } = equality::prove(image, *group, extent);
        let runs = names.len();
        print_runs(&names, prints_runs);
        if let Some(first) = failures.first() {
            println!("FOUND: not equal in {} of {runs} runs\n    first run: {first}", failures.len());
        }
        if runs == 0 {
            println!("FOUND: no run: {group}");
        }
        let has_failed = runs == 0 || !failures.is_empty();
        let mut total = total.lock().expect("no thread panics");
        (total.0, total.1) = (total.0 + runs, total.1 + usize::from(has_failed));
    });
    let (runs, failed) = total.into_inner().expect("no thread panics");
    println!(
        "equality for all keys and data: {} groups, {runs} runs; {failed} groups with failures",
        groups.len()
    );
    failed
}

/// Proves groups for loops of any length on all processors. Prints the findings and the first failure of each group, and returns their number.
fn prove_loops(
    image: &Arc<Image>,
    groups: &[Group],
    extent: Extent,
    known: &[Known],
    prints_runs: bool,
) -> usize {
    let groups = loops::groups(groups, extent);
    let total = Mutex::new((Total::default(), 0, 0));
    parallel::for_each(&groups, |group| {
        let (outcome, equality::Outcome { names, failures }) =
            (loops::run(image, *group, extent), equality::prove_loops(image, *group, extent));
        print_runs(&outcome.names, prints_runs);
        print_runs(&names, prints_runs);
        failures
            .first()
            .iter()
            .for_each(|first| println!("FOUND: not equal in loops of any length\n    first run: {first}"));
        let mut total = total.lock().expect("no thread panics");
        total.0.new += usize::from(outcome.names.is_empty());
        total.0.add(outcome, known);
        (total.1, total.2) = (total.1 + names.len(), total.2 + usize::from(!failures.is_empty()));
    });
    let (Total { outcome, new, .. }, equal, unequal) = total.into_inner().expect("no thread panics");
    println!(
        "loops of any length: {} groups, {} runs, and {equal} runs of equality; {new} new findings, {unequal} groups with failures of equality",
        groups.len(),
        outcome.names.len()
    );
    new + unequal
}

fn prove(options: &Options) -> Result<bool, String> {
    let Options { only, short, list: lists, equality: skips_taint, .. } = options;
    let named = |mut groups: Vec<Group>| {
        groups.retain(|group| group.to_string().contains(only));
        groups
    };
    let image = Arc::new(Image::read(&options.file)?);
    let kernels = cases::kernels(&image);
    let (extent, groups) = (if *short { Extent::Short } else { Extent::Full }, named(cases::groups(kernels)));
    if *lists {
        groups.iter().for_each(|group| println!("{group}"));
        return Ok(true);
    }
    let known = list(options.known.as_deref(), known::parse)?;
    let equivalent = list(options.equivalent.as_deref(), mutants::parse)?;
    let limits = list(options.unexecuted.as_deref(), coverage::parse)?;
    let has_mutants = options.mutants > 0;
    let provable = named(equality::provable(kernels, extent));
    if groups.is_empty() || *skips_taint && provable.is_empty() {
        return Err(format!(
            "no group to analyse has a name that contains `{only}`; --list prints the names"
        ));
    }
    if image.is_arm && has_mutants {
        return Err("mutants of code for 64-bit Arm are not made".into());
    }
    let mut missed = controls::missed(&image);
    missed.extend(equality::controls::missed(&image));
    missed.extend(loops::controls::missed(&image));
    if !missed.is_empty() {
        return Err(format!(
            "these controls are not reported for their fault, or are not exported: {missed:?}"
        ));
    }
    // A call with mutants for all lengths would repeat proofs of equality that a call without mutants makes.
    let skips_equality = has_mutants && !short;
    let skips_loops = skips_equality || *skips_taint || image.is_arm;
    let wrong_loops =
        if skips_loops { 0 } else { prove_loops(&image, &groups, extent, &known, options.runs) };
    if options.loops {
        return Ok(wrong_loops == 0);
    }
    let unequal = if skips_equality { 0 } else { prove_equality(&image, &provable, extent, options.runs) };
    if *skips_taint {
        return Ok(unequal == 0);
    }
    let total = run(&image, &groups, if has_mutants { Extent::Short } else { extent }, &known);
    total.summarise();
    let Total { outcome, new, baselines, .. } = total;
    print_runs(&outcome.names, options.runs);
    let stale: Vec<&Known> = known
        .iter()
        .filter(|known| {
            only.is_empty()
                && !outcome.findings.keys().any(|finding| known.describes(finding))
                && !outcome.stops.keys().any(|stop| known.describes_stop(stop))
        })
        .collect();
    for known in &stale {
        println!("no longer found, remove it from the list: {}", known.line);
    }
    let functions = coverage::of_functions(&image, "lockstep_cpu::", &outcome.visited);
    report_coverage(&image, &functions, options.uncovered);
    let unexecuted = options.unexecuted.as_ref().map_or(0, |_| check_coverage(&functions, &limits));
    println!(
        "{} groups, {} runs, {} instructions executed; {new} new findings",
        groups.len(),
        outcome.names.len(),
        outcome.steps
    );
    let mut are_refuted = true;
    if has_mutants {
        let Options { file, mutants: number, seed, .. } = options;
        let plan = Plan { file, number: *number, seed: *seed, known: &known, equivalent: &equivalent };
        let survivors = mutants::run(&image, baselines, &plan)?;
        println!("{number} mutants, {survivors} of which survive and are not explained");
        are_refuted = survivors == 0;
    }
    Ok(new + unequal + wrong_loops + unexecuted == 0 && stale.is_empty() && are_refuted)
}

fn main() -> ExitCode {
    match prove(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("prove: {error}");
            ExitCode::from(2)
        }
    }
}
