//! The command `prove`: analyses a build of the harness.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use lockstep_proof::cases::{self, Extent, Group, Outcome, controls};
use lockstep_proof::coverage;
use lockstep_proof::equality;
use lockstep_proof::image::Image;
use lockstep_proof::known::{self, Known};
use lockstep_proof::machine::{Finding, Kind, MOST_STEPS};
use lockstep_proof::mutants::{self, Baseline, Equivalence, Plan};
use lockstep_proof::parallel;

const USAGE: &str = "usage: prove FILE [--short] [--only TEXT] [--known LIST] [--list] [--equality]
                   [--uncovered]
       prove FILE --mutants NUMBER [--seed NUMBER] [--equivalent LIST] [--short] [--only TEXT] [--known LIST]
  FILE          a build of lockstep-proof-harness, with symbols
  --short       fewer lengths
  --only TEXT   only groups whose names contain TEXT, such as `cpu/vaes512 AES-128 GCM`
  --known LIST  a list of known findings, which are no failure
  --list        print the names of the groups
  --equality    only the proofs that results are equal to the standards, which otherwise precede the analysis, except with --mutants
                without --short
  --uncovered   print the functions with instructions that no run has executed
  --mutants NUMBER   after the analysis with fewer lengths, also analyse as many copies of FILE, each with one random change of an
                     instruction. Copies without a finding are analysed with all lengths, too. It is a failure if a copy has no
                     finding, unless the change has no effect in these runs or is in the list. With --short: only fewer lengths
  --seed NUMBER      the seed of the changes (1)
  --equivalent LIST  a list of changes that are known to have no effect

Exit status: 0 if there is no other finding than known ones, 1 if there is one, 2 for wrong arguments.";

#[derive(Default)]
struct Options {
    file: String,
    is_short: bool,
    only: String,
    known: Vec<Known>,
    lists: bool,
    shows_uncovered: bool,
    mutants: usize,
    seed: Option<u64>,
    equivalent: Vec<Equivalence>,
    skips_taint: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--short" => options.is_short = true,
            "--only" => options.only = value()?,
            "--known" => options.known = list(&value()?, known::parse)?,
            "--mutants" => options.mutants = number(&value()?)?,
            "--seed" => options.seed = Some(number(&value()?)?),
            "--equivalent" => options.equivalent = list(&value()?, mutants::parse)?,
            "--list" => options.lists = true,
            "--equality" => options.skips_taint = true,
            "--uncovered" => options.shows_uncovered = true,
            _ if argument.starts_with('-') => return Err(format!("unknown option {argument}")),
            _ if options.file.is_empty() => options.file = argument,
            _ => return Err(format!("a second file: {argument}")),
        }
    }
    if options.file.is_empty() && !options.lists {
        return Err("no file".into());
    }
    if options.skips_taint && options.mutants > 0 {
        return Err("--equality does not analyse mutants".into());
    }
    Ok(options)
}

/// Reads a list from a file.
fn list<T>(path: &str, parse: fn(&str) -> Result<Vec<T>, String>) -> Result<Vec<T>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    parse(&text).map_err(|error| format!("{path}: {error}"))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
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
fn report_coverage(image: &Image, outcome: &Outcome, shows_functions: bool) {
    let kernels = ["lockstep_cpu::vectors", "lockstep_cpu::soft", "lockstep_cpu::"];
    for part in kernels {
        let functions = coverage::of_functions(image, part, &outcome.visited);
        let all: usize = functions.values().map(|function| function.all).sum();
        let visited: usize = functions.values().map(|function| function.visited).sum();
        println!("{part}: no run has executed {} of {all} instructions", all - visited);
        if shows_functions && part == "lockstep_cpu::" {
            for (name, function) in functions.iter().filter(|(_, function)| function.visited < function.all) {
                println!("    {} of {}: {name}", function.all - function.visited, function.all);
            }
        }
    }
}

/// Proves equality of groups on all processors. Prints the first failure of each group, and returns the number of groups with a failure or
/// without a run.
fn prove_equality(image: &Arc<Image>, groups: &[Group], extent: Extent) -> usize {
    let total = Mutex::new((0, 0));
    parallel::for_each(groups, |group| {
        let equality::Outcome { runs, failures } = equality::prove(image, *group, extent);
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

fn prove(options: &Options) -> Result<bool, String> {
    let mut groups = cases::groups();
    groups.retain(|group| group.to_string().contains(&options.only));
    if options.lists {
        groups.iter().for_each(|group| println!("{group}"));
        return Ok(true);
    }
    let extent = if options.is_short { Extent::Short } else { Extent::Full };
    let has_mutants = options.mutants > 0;
    let mut provable = equality::provable(extent);
    provable.retain(|group| group.to_string().contains(&options.only));
    if groups.is_empty() || options.skips_taint && provable.is_empty() {
        let only = &options.only;
        return Err(format!(
            "no group to analyse has a name that contains `{only}`; --list prints the names"
        ));
    }
    let image = Arc::new(Image::read(Path::new(&options.file))?);
    let mut missed = controls::missed(&image);
    missed.extend(equality::controls::missed(&image));
    if !missed.is_empty() {
        return Err(format!(
            "these controls are not reported for their fault, or are not exported: {missed:?}"
        ));
    }
    // The proofs of equality for all lengths are left out here, because a call of `prove` without mutants makes them.
    let skips_equality = has_mutants && !options.is_short;
    let unequal = if skips_equality { 0 } else { prove_equality(&image, &provable, extent) };
    if options.skips_taint {
        return Ok(unequal == 0);
    }
    let total = run(&image, &groups, if has_mutants { Extent::Short } else { extent }, &options.known);
    total.summarise();
    let Total { outcome, new, baselines, .. } = total;
    let stale: Vec<&Known> = options
        .known
        .iter()
        .filter(|known| {
            options.only.is_empty()
                && !outcome.findings.keys().any(|finding| known.describes(finding))
                && !outcome.stops.keys().any(|stop| known.describes_stop(stop))
        })
        .collect();
    for known in &stale {
        println!("no longer found, remove it from the list: {}", known.line);
    }
    report_coverage(&image, &outcome, options.shows_uncovered);
    println!(
        "{} groups, {} runs, {} instructions executed; {new} new findings",
        groups.len(),
        outcome.runs,
        outcome.steps
    );
    let mut are_refuted = true;
    if has_mutants {
        let Options { mutants: number, known, equivalent, .. } = options;
        let (file, seed) = (Path::new(&options.file), options.seed.unwrap_or(1));
        let plan = Plan { file, number: *number, seed, extent, known, equivalent };
        let survivors = mutants::run(&image, baselines, &plan)?;
        println!("{number} mutants, {survivors} of which survive and are not explained");
        are_refuted = survivors == 0;
    }
    Ok(new + unequal == 0 && stale.is_empty() && are_refuted)
}

fn main() -> ExitCode {
    let result = options().map_err(|error| format!("{error}\n{USAGE}")).and_then(|options| prove(&options));
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("prove: {error}");
            ExitCode::from(2)
        }
    }
}
