//! The command `prove-gpu`: proofs for the machine code of CUDA kernels.

use std::path::Path;
use std::process::ExitCode;

use lockstep_proof::gpu::{Options, prove};

const USAGE: &str = "usage: prove-gpu FOLDER [--short] [--mutants NUMBER] [--seed NUMBER]
  FOLDER             the code of the modules, as tools/gpu_code.py writes it
  --short            fewer launches, with keys of 128 bits only
  --mutants NUMBER   also prove that changed instructions are refuted
  --seed NUMBER      the seed of the changes (1)";

fn options() -> Result<(String, Options), String> {
    let (mut folder, mut options) = (None, Options { is_short: false, mutants: 0, seed: 1 });
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
            value.parse::<u64>().map_err(|_| format!("not a number: {value}"))
        };
        match argument.as_str() {
            "--short" => options.is_short = true,
            "--mutants" => options.mutants = number()? as usize,
            "--seed" => options.seed = number()?,
            _ if folder.is_none() && !argument.starts_with('-') => folder = Some(argument),
            _ => return Err(format!("unexpected argument {argument}")),
        }
    }
    Ok((folder.ok_or("no folder")?, options))
}

fn main() -> ExitCode {
    let result = options().map_err(|error| format!("{error}\n{USAGE}"));
    match result.and_then(|(folder, options)| prove(Path::new(&folder), &options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("prove-gpu: {error}");
            ExitCode::from(2)
        }
    }
}
