//! Reads the clocks, the power and the temperature of the GPU with `nvidia-smi`.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::Result;

/// The values that `nvidia-smi` prints ten times a second. `FIELDS` has their names in the rows.
const QUERY: &str = "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu";
const FIELDS: [&str; 4] = ["sm_mhz", "memory_mhz", "watts", "celsius"];

type Sample = (Instant, [Option<f64>; 4]);

/// The running `nvidia-smi`, and the values that it has printed.
pub(crate) struct Meter {
    program: Option<Child>,
    samples: Arc<Mutex<Vec<Sample>>>,
}

impl Meter {
    /// Starts `nvidia-smi`, if this machine has it. Its output is also written to `file`.
    pub(crate) fn start(file: Option<&Path>) -> Result<Meter> {
        let samples = Arc::new(Mutex::new(Vec::new()));
        let arguments = ["-i", "0", QUERY, "--format=csv,noheader,nounits", "-lms", "100"];
        // `stdbuf` makes the program write each line at once.
        let start = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
        };
        let plain = || start(Command::new("nvidia-smi").args(arguments));
        let has_program = Command::new("nvidia-smi").arg("-L").output().is_ok();
        let started = match has_program {
            true => {
                start(Command::new("stdbuf").args(["-oL", "nvidia-smi"]).args(arguments)).or_else(|_| plain())
            }
            false => plain(),
        };
        let Ok(mut program) = started else { return Ok(Meter { program: None, samples }) };
        let create = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
        let mut copy = file.map(create).transpose()?;
        if let Some(output) = program.stdout.take() {
            let samples = Arc::clone(&samples);
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                    let sample = (Instant::now(), parse(&line));
                    samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
                    // Each line is copied to the file, because the rows contain only medians.
                    let _ = copy.as_mut().map(|copy| writeln!(copy, "{line}"));
                }
            });
        }
        Ok(Meter { program: Some(program), samples })
    }

    /// The medians of the values in an interval. If the interval has no values, the last values before its end, or null if there are none.
    pub(crate) fn during(&self, begun: Instant, ended: Instant) -> Value {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let before: Vec<&Sample> = samples.iter().filter(|(at, _)| *at <= ended).collect();
        let first = before.iter().position(|(at, _)| *at >= begun).unwrap_or(before.len().saturating_sub(1));
        let during = &before[first.min(before.len())..];
        if during.is_empty() {
            return Value::Null;
        }
        let mut result = json!({"samples": during.len()});
        for (index, name) in FIELDS.into_iter().enumerate() {
            let mut values: Vec<f64> = during.iter().filter_map(|(_, values)| values[index]).collect();
            values.sort_by(f64::total_cmp);
            result[name] = values.get(values.len() / 2).copied().into();
        }
        result
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(program) = &mut self.program {
            // The program may have ended already.
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// The four numbers of a line. `None` for each value that the GPU does not report.
fn parse(line: &str) -> [Option<f64>; 4] {
    let mut numbers = line.split(',').map(|field| field.trim().parse().ok());
    std::array::from_fn(|_| numbers.next().flatten())
}
