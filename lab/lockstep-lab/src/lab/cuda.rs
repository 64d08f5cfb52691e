//! The subcommand `lockstep-lab lab cuda`.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use lockstep::OutputOptions;
use lockstep::hazmat::backend::Device;
use lockstep_cli::program::{
    Error, GuardedFile, Note, Result, check_memory, failed, parse_size, print, print_json, today,
};
use lockstep_papers::cuda::{self as lab, Report, Worth};

/// Design of a Parallel AES for Graphics Hardware using the CUDA framework (Di Biagio and others, 2009), on a current
/// GPU
///
/// Measures the paper's four kernels and Lockstep's: throughput by size, by threads per block, and from host to host as
/// in its Table 1. On the emulator (`--device cuda:emu`) it tests correctness; the speeds are meaningless.
#[derive(Args)]
pub(super) struct Cuda {
    /// Measure this device [default: the first GPU]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// Maximum size of the plaintexts [default: 256M; for an emulator 64K]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    largest: Option<u64>,

    /// Price of the device in dollars, for the column of throughput per dollar
    #[arg(long, value_name = "N", value_parser = positive)]
    dollars: Option<f64>,

    /// Power of the device under load in watts, for the column of throughput per watt
    #[arg(long, value_name = "N", value_parser = positive)]
    watts: Option<f64>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a page with plots to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,

    /// Replace that file if it exists
    #[arg(long, requires = "html")]
    force: bool,
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("`{text}` is not a number above 0"))
}

/// Lower limit for the option `--largest`, in bytes.
const MIN_SIZE: u64 = 4096;

pub(super) fn run(args: &Cuda) -> Result<()> {
    let device = device(args.device.as_deref())?;
    let largest = args.largest.unwrap_or(if device.properties().slow { 64 << 10 } else { 256 << 20 });
    let most = usize::try_from(largest).ok().filter(|_| (MIN_SIZE..=1 << 32).contains(&largest));
    let most = most.ok_or_else(|| failed("--largest: give a size from 4K to 4G"))?;
    check_memory(3 * most as u64, "to measure plaintexts of this size; --largest gives a smaller one")?;
    // The output file is created before the measurement, which takes minutes, so that an error appears at once.
    let options = OutputOptions { force: args.force, ..Default::default() };
    let mut page = args.html.as_deref().map(|path| GuardedFile::create(path, options)).transpose()?;
    let note = Note::new();
    let measured =
        lab::measure(&device, most, |step| note.show(&step)).map_err(|error| failed(error.to_string()))?;
    drop(note);
    let worth = Worth { dollars: args.dollars, watts: args.watts };
    let report = Report { measured, date: today(), worth };
    // The measurements took some time. They are printed before the page is written, so that a failure of the write does
    // not lose them.
    if args.json { print_json(&report.json()) } else { print(&report.text()) }?;
    if let (Some(page), Some(path)) = (&mut page, &args.html) {
        page.file().write_all(report.html().as_bytes()).map_err(Error::io("write", path))?;
    }
    if let Some(page) = page {
        page.commit()?;
    }
    Ok(())
}

/// The device of this name, or the first GPU.
pub(super) fn device(name: Option<&str>) -> Result<lockstep_cuda::Cuda> {
    let (devices, missing) = lockstep_cuda::devices();
    let known: Vec<String> = devices.iter().map(|device| device.id().to_string()).collect();
    let wanted = |device: &lockstep_cuda::Cuda| match name {
        Some(name) => device.id().to_string() == name,
        None => !device.properties().by_name_only,
    };
    devices.into_iter().find(wanted).ok_or_else(|| match (name, missing) {
        (Some(name), _) => failed(format!("no device `{name}`: there are {}", known.join(", "))),
        (None, Some(missing)) => failed(format!("{missing}; or use the emulator: --device cuda:emu")),
        (None, None) => failed("there is no GPU; use the emulator: --device cuda:emu"),
    })
}

#[cfg(test)]
mod tests;
