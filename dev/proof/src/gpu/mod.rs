//! Proofs for the machine code of CUDA kernels for sm_90: `cuda/bitslice` (ECB, CTR, key expansion), and GHASH by integers.
//!
//! The input is a folder with the code of each module, as `tools/gpu_code.py` writes it: NAME.cubin, from the archive that packages embed,
//! and NAME.sass, its disassembly. docs/proof.md states what is shown, and what is assumed.
//!
//! | module | content |
//! |---|---|
//! | `expressions`, `functions` | bits as expressions, with owners, and functions of a byte |
//! | `word`, `semantics` | words of 32 bits; the table of instructions |
//! | `code`, `warp`, `memory` | the disassembly; 32 threads; buffers and shared memory |
//! | `ghash`, `cases` | GHASH; the launches that are proved |
//! | `jobs` | the list of proofs |
//! | `controls`, `mutants` | fixed and random changes of instructions, which must be refuted |

mod cases;
mod code;
mod controls;
mod expressions;
mod functions;
mod ghash;
mod jobs;
mod memory;
mod mutants;
mod semantics;
mod warp;
mod word;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use code::Instruction;
use expressions::Expressions;
use jobs::Job;
use memory::Memory;
use object::{Object, ObjectSection};
use warp::Launch;

use crate::parallel;

/// The code of an entry point.
#[derive(Clone)]
struct Kernel {
    code: Vec<Instruction>,
    /// The bytes of shared memory of a thread block.
    shared: usize,
}

/// The limits of a run, which wrong code can exceed.
#[derive(Clone, Copy)]
struct Limits {
    /// The number of instructions of a warp.
    steps: usize,
    /// The number of atoms stored for all expressions.
    size: usize,
}

/// The limits of code that has not been changed. The largest of the short runs stores 150 million atoms, 28 % of this limit (2 GiB).
const LIMITS: Limits = Limits { steps: 1 << 20, size: 1 << 29 };

/// What a proof has executed.
struct Run {
    /// The number of executions of each instruction.
    visited: Vec<u32>,
    /// The number of atoms stored for all expressions.
    size: usize,
    limits: Limits,
}

impl Run {
    fn new(kernel: &Kernel, limits: Limits) -> Run {
        Run { visited: vec![0; kernel.code.len()], size: 0, limits }
    }

    /// True if the run ended because its expressions exceeded the limit.
    fn is_too_large(&self) -> bool {
        self.size > self.limits.size
    }

    fn warp(
        &mut self,
        kernel: &Kernel,
        launch: &Launch,
        memory: &mut Memory,
        expressions: &mut Expressions,
    ) -> Result<(), String> {
        warp::run(&kernel.code, launch, memory, expressions, self)
    }
}

/// The entry points of all modules.
type Kernels = BTreeMap<String, Kernel>;

/// Reads the entry points of all modules in a folder: NAME.sass is the disassembly of NAME.cubin.
fn read(folder: &Path) -> Result<Kernels, String> {
    let failed = |path: &Path, error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut kernels = Kernels::new();
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        if path.extension().is_none_or(|extension| extension != "sass") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        let path = path.with_extension("cubin");
        let cubin = std::fs::read(&path).map_err(|error| failed(&path, error))?;
        let file = object::File::parse(&cubin[..]).map_err(|error| format!("{}: {error}", path.display()))?;
        for (name, code) in code::functions(&text)? {
            let section = file.section_by_name(&format!(".nv.shared.{name}"));
            let shared = section.map_or(0, |section| section.size() as usize);
            if kernels.insert(name.clone(), Kernel { code, shared }).is_some() {
                return Err(format!("{}: a second entry point {name}", path.display()));
            }
        }
    }
    Ok(kernels)
}

/// What to prove.
pub struct Options {
    /// Fewer launches.
    pub is_short: bool,
    /// The number of mutants, and their seed.
    pub mutants: usize,
    /// The seed of the mutants.
    pub seed: u64,
}

/// Runs all proofs on the code in a folder. True if all of them succeed.
pub fn prove(folder: &Path, options: &Options) -> Result<bool, String> {
    let kernels = read(folder)?;
    let missed = controls::missed(&kernels)?;
    if !missed.is_empty() {
        return Err(format!("these changes are not refuted for the expected reason: {missed:?}"));
    }
    let jobs = jobs::all(options.is_short);
    let start = Instant::now();
    let done: Mutex<Vec<(usize, Run)>> = Mutex::default();
    let numbers: Vec<usize> = (0..jobs.len()).collect();
    let failures = Mutex::new(0);
    parallel::for_each(&numbers, |number| {
        let job = &jobs[*number];
        let result = job.kernel(&kernels).map(|kernel| job.run(kernel, LIMITS));
        match result {
            Ok((Ok(()), run)) => done.lock().expect("no thread panics").push((*number, run)),
            Ok((Err(error), _)) | Err(error) => {
                println!("FOUND: {job}\n    {error}");
                *failures.lock().expect("no thread panics") += 1;
            }
        }
    });
    let (done, failures) = (done.into_inner().expect("no panic"), failures.into_inner().expect("no panic"));
    report(&kernels, &jobs, &done);
    let largest = done.iter().map(|(_, run)| run.size).max().unwrap_or(0) / 1_000_000;
    println!(
        "{} proofs, {failures} failures, {} s; the largest stores {largest} million atoms",
        jobs.len(),
        start.elapsed().as_secs()
    );
    if failures > 0 || options.mutants == 0 {
        return Ok(failures == 0);
    }
    Ok(mutants::survivors(&kernels, &jobs, &done, options) == 0)
}

/// Prints the number of proofs of each entry point, and the number of its instructions that none of them has executed.
fn report(kernels: &Kernels, jobs: &[Job], done: &[(usize, Run)]) {
    let mut totals: BTreeMap<String, (usize, Vec<u32>)> = BTreeMap::new();
    for (number, Run { visited, .. }) in done {
        let total = totals.entry(jobs[*number].function()).or_insert((0, vec![0; visited.len()]));
        total.0 += 1;
        total.1.iter_mut().zip(visited).for_each(|(sum, count)| *sum += count);
    }
    for (name, (proofs, visited)) in totals {
        let missed = visited.iter().filter(|count| **count == 0).count();
        let all = kernels[&name].code.len();
        println!("{name}: {proofs} proofs; no run has executed {missed} of {all} instructions");
    }
}

#[cfg(test)]
mod tests;
