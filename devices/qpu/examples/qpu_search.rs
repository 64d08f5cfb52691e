//! Searches for better scheduling hints for the bitsliced kernels, and writes them to `src/kernels/bitslice/hints`.
//!
//! The arguments are the number of attempts for each part of a program, and the names of programs. Without names, better hints are
//! searched for all programs.

use std::path::Path;
use std::time::Instant;

use lockstep_qpu::compiler::scheduled;
use lockstep_qpu::kernels::bitslice::PROGRAMS;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let attempts = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let names: Vec<String> = arguments.collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernels/bitslice/hints");
    let start = Instant::now();
    for program in
        PROGRAMS.iter().filter(|program| names.is_empty() || names.iter().any(|name| name == program.name))
    {
        let report = |part, before, after| {
            let seconds = start.elapsed().as_secs_f64();
            println!("{}: part {part} had {before} words, has {after} after {seconds:.0} s", program.name);
        };
        let found = scheduled::search(&program.code(), &program.hints(), attempts, attempts as u64, report);
        let hints = found.expect("a kernel that fits into the registers");
        std::fs::write(folder.join(format!("{}.txt", program.name)), hints.to_string())
            .expect("a folder that can be written");
    }
}
