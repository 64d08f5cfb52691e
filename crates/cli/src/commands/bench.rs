//! `lockstep bench`

use std::time::Duration;

use clap::Args;

use super::{print, print_json};
use crate::args::EngineArgs;
use crate::bench::{self, WORKS};
use crate::error::{Result, failed};
use crate::text;

/// Sizes that tell most: what fits a first-level cache, and what does not.
const SIZES: [u64; 2] = [16 << 10, 1 << 20];

/// Most bytes of one buffer.
const MAX_SIZE: u64 = 1 << 30;

/// Measure this machine beside the other implementations on it: the installed `openssl`, AWS-LC and RustCrypto
///
/// All run in turn in each round, after one round of warm-up, on random data in host memory, and outputs are
/// compared before anything is timed. One thread is used unless `--threads` says otherwise.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Measure these only: the beginning of a name, such as `ctr` or `gcm-128` [default: all]
    #[arg(short, long, value_name = "MODE")]
    pub(crate) mode: Vec<String>,

    /// Measure messages of this size only, such as `16K` or `64M` [default: 16K and 1M]
    #[arg(short, long, value_name = "SIZE", value_parser = text::parse_size)]
    pub(crate) size: Vec<u64>,

    /// Rounds, of which the median is told
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,

    /// Seconds for each contender in each round (`openssl speed` takes one always)
    #[arg(long, value_name = "SECONDS", default_value = "0.2", value_parser = seconds)]
    pub(crate) seconds: Duration,

    /// Leave the installed `openssl` out
    #[arg(long)]
    pub(crate) no_openssl: bool,

    /// Tell it as JSON, rates in bytes per second
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if seconds > 0.0 && seconds <= 3600.0 => Ok(time),
        _ => Err("more than 0 and at most 3600 seconds".into()),
    }
}

pub(crate) fn run(args: &Bench) -> Result<()> {
    let chosen =
        |name: &str| args.mode.is_empty() || args.mode.iter().any(|mode| name.starts_with(mode.as_str()));
    let works: Vec<_> = WORKS.iter().filter(|work| chosen(work.name)).collect();
    if works.is_empty() {
        let names: Vec<_> = WORKS.iter().map(|work| work.name).collect();
        return Err(failed(format!("nothing of that name to measure: there are {}", names.join(", "))));
    }
    let sizes = if args.size.is_empty() { &SIZES[..] } else { &args.size };
    if let Some(size) = sizes.iter().find(|&&size| size == 0 || size % 16 != 0 || size > MAX_SIZE) {
        return Err(failed(format!("{size} bytes: sizes are multiples of 16, up to 1 GiB")));
    }
    let engine = args.engine.engine_with_threads(args.engine.threads.or(Some(1)))?;
    let mut outcomes = Vec::new();
    for work in works {
        for &size in sizes.iter().filter(|&&size| work.takes(size as usize)) {
            let rounds = usize::from(args.rounds);
            let outcome = bench::run(&engine, *work, size as usize, rounds, args.seconds, !args.no_openssl);
            outcomes.push(outcome.map_err(failed)?);
        }
    }
    if args.json {
        print_json(&bench::json(&engine, &outcomes))
    } else {
        print(&bench::table(&engine, &outcomes))
    }
}
