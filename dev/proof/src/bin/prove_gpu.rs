//! The command `prove-gpu`: proofs for the machine code of CUDA kernels.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use lockstep_proof::gpu::{Options, prove};

/// Proves that the machine code of CUDA kernels computes what the standards define.
///
/// The exit status is 0 if all proofs succeed, 1 if one fails, and 2 for wrong arguments.
#[derive(Parser)]
struct Arguments {
    /// The code of the modules, as tools/gpu_code.py writes it
    folder: PathBuf,
    /// Fewer launches, with keys of 128 bits only
    #[arg(long)]
    short: bool,
    /// Also prove that as many changed instructions are refuted
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    mutants: usize,
    /// The seed of the changes
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let Arguments { folder, short, mutants, seed } = Arguments::parse();
    match prove(&folder, &Options { is_short: short, mutants, seed }) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("prove-gpu: {error}");
            ExitCode::from(2)
        }
    }
}
