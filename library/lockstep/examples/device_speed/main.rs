//! Measures a device with memory of its own, such as `cuda:0`. Every output is compared with the CPU's.
//!
//! ```text
//! cargo run --release -p lockstep-aes --example device_speed -- MODE DEVICE ROWS [--largest BYTES] [--seconds S] [--until S] [--clocks FILE]
//! cargo run --release -p lockstep-aes --example device_speed -- page ROWS
//! ```
//!
//! | mode | what it measures |
//! |---|---|
//! | `resident` | every kernel and operation on data in device memory, 16 KiB to `--largest` (default: 4 GiB) |
//! | `host` | host to host, in page-locked and in ordinary memory, compared with plain copies |
//! | `messages` | many messages with a key each: 100,000 of 1 KiB and other numbers, with keys and data in device or host memory |
//! | `latency` | single small calls on data in device memory |
//! | `products` | CUDA: GHASH by each way to multiply |
//! | `page` | writes the rows as tables to standard output |
//!
//! Each result is appended to the file ROWS at once, as a line of JSON. A result that is in the file is not measured again,
//! so an interrupted run can be continued. The exit code is 0 after success, and 1 if a measurement failed or an output is wrong. It is
//! 3 if results are missing because `--until` seconds have passed. `--seconds` is the time of a measurement at the largest size;
//! measurements at other sizes take a tenth of it. `nvidia-smi` reads the clocks and the power of the GPU, and `--clocks` names the
//! file to which its values are written.
//!
//! The time of a call is the interval from submission to completion: the median after one warm-up call.

mod bench;
mod host;
mod latency;
mod message;
mod messages;
mod meter;
mod page;
mod products;
mod resident;
mod rows;

use std::path::PathBuf;
use std::process::ExitCode;

use bench::Bench;
use meter::Meter;
use rows::Rows;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "usage: device_speed resident|host|messages|latency|products DEVICE ROWS [--largest BYTES] [--seconds S] \
                     [--until S] [--clocks FILE], or device_speed page ROWS";

struct Options {
    largest: usize,
    seconds: f64,
    until: Option<f64>,
    clocks: Option<PathBuf>,
}

fn options(mut arguments: &[String]) -> Result<Options> {
    let mut options = Options { largest: 4 << 30, seconds: 1.0, until: None, clocks: None };
    while let [name, value, rest @ ..] = arguments {
        match &**name {
            "--largest" => options.largest = value.parse::<usize>()?.max(bench::SMALLEST),
            "--seconds" => options.seconds = value.parse()?,
            "--until" => options.until = Some(value.parse()?),
            "--clocks" => options.clocks = Some(value.into()),
            _ => return Err(USAGE.into()),
        }
        arguments = rest;
    }
    if arguments.is_empty() { Ok(options) } else { Err(USAGE.into()) }
}

fn run(arguments: &[String]) -> Result<ExitCode> {
    let (mode, device, file, rest) = match arguments {
        [mode, file] if mode == "page" => {
            print!("{}", page::page(&rows::read(file.as_ref())?)?);
            return Ok(ExitCode::SUCCESS);
        }
        [mode, device, file, rest @ ..] => (mode, device, file, rest),
        _ => return Err(USAGE.into()),
    };
    let options = options(rest)?;
    let mut rows = Rows::open(file.as_ref(), Meter::start(options.clocks.as_deref())?, options.until)?;
    if mode == "products" {
        products::measure(&mut rows, device, options.largest, options.seconds)?;
        return Ok(rows.end());
    }
    let mut bench = Bench::of(bench::device(device)?, options.largest, options.seconds)?;
    match &**mode {
        "resident" => resident::measure(&mut bench, &mut rows),
        "host" => host::measure(&mut bench, &mut rows),
        "messages" => messages::measure(&mut bench, &mut rows),
        "latency" => latency::measure(&mut bench, &mut rows),
        _ => Err(USAGE.into()),
    }?;
    Ok(rows.end())
}

// The function is visible outside this module because an example in `lab/backends` calls it.
pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(&arguments).unwrap_or_else(|error| {
        eprintln!("device_speed: {error}");
        ExitCode::FAILURE
    })
}
