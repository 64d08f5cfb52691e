//! The command `prove`: analyses a build of the harness.
//!
//!     prove FILE [--short] [--only TEXT] [--list] [--uncovered]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use lockstep_proof::cases::{self, Extent, Group, Outcome};
use lockstep_proof::coverage;
use lockstep_proof::image::Image;

const USAGE: &str = "usage: prove FILE [--short] [--only TEXT] [--list] [--uncovered]
  FILE         a build of lockstep-proof-harness, such as target/dist/liblockstep_proof_harness.so
  --short      fewer lengths
  --only TEXT  only groups whose names contain TEXT, such as `cpu/vaes512 AES-128 GCM`
  --list       print the names of the groups
  --uncovered  list the functions with instructions that no run has executed";

struct Options {
    file: String,
    extent: Extent,
    only: String,
    lists: bool,
    shows_uncovered: bool,
}

fn options() -> Option<Options> {
    let mut options = Options {
        file: String::new(),
        extent: Extent::Full,
        only: String::new(),
        lists: false,
        shows_uncovered: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--short" => options.extent = Extent::Short,
            "--only" => options.only = arguments.next()?,
            "--list" => options.lists = true,
            "--uncovered" => options.shows_uncovered = true,
            _ if argument.starts_with('-') || !options.file.is_empty() => return None,
            _ => options.file = argument,
        }
    }
    (options.lists || !options.file.is_empty()).then_some(options)
}

/// Runs groups on all processors.
fn run(image: &Arc<Image>, groups: &[Group], extent: Extent) -> Outcome {
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Outcome::default()));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = cases::run(image, *group, extent);
                    total.lock().expect("no thread panics").merge(outcome);
                }
            });
        }
    });
    total.into_inner().expect("no thread panics")
}

fn report(image: &Image, outcome: &Outcome, shows_uncovered: bool) {
    let mut functions: BTreeMap<_, (usize, u64, &str, &str)> = BTreeMap::new();
    for (finding, (count, example)) in &outcome.findings {
        let entry =
            functions.entry((finding.kind, &finding.function)).or_insert((0, 0, &finding.detail, example));
        entry.0 += 1;
        entry.1 += count;
    }
    for ((kind, function), (places, runs, detail, example)) in functions {
        println!(
            "FOUND: {kind}, by {function}: {places} places, in {runs} runs\n    {detail}\n    first: {example}"
        );
    }
    for (stop, example) in &outcome.stops {
        println!("STOPPED: {stop}\n    first: {example}");
    }
    println!("{} runs, {} instructions executed", outcome.runs, outcome.steps);
    let covered = coverage::of_functions(image, "lockstep_cpu::", &outcome.visited);
    let (all, visited) = covered
        .values()
        .fold((0, 0), |(all, visited), function| (all + function.all, visited + function.visited));
    println!("instructions of lockstep_cpu: {all}; no run has executed {} of them", all - visited);
    if shows_uncovered {
        for (name, function) in covered.iter().filter(|(_, function)| function.visited < function.all) {
            println!("    {} of {} not executed: {name}", function.all - function.visited, function.all);
        }
    }
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut groups = cases::groups();
    groups.retain(|group| group.to_string().contains(&options.only));
    if options.lists {
        groups.iter().for_each(|group| println!("{group}"));
        return ExitCode::SUCCESS;
    }
    let image = match Image::read(Path::new(&options.file)) {
        Ok(image) => Arc::new(image),
        Err(error) => {
            eprintln!("prove: {error}");
            return ExitCode::from(2);
        }
    };
    if groups.is_empty() {
        eprintln!("prove: no group has a name that contains `{}`; --list prints the names", options.only);
        return ExitCode::from(2);
    }
    let outcome = run(&image, &groups, options.extent);
    report(&image, &outcome, options.shows_uncovered);
    if outcome.findings.is_empty() && outcome.stops.is_empty() {
        println!("proved: {} groups", groups.len());
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}
