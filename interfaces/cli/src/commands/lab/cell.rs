//! `lockstep lab cell`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use lockstep_lab::cell::{self, Report, Window};

use super::{ReportForm, Source, write_page};
use crate::commands::{print, print_json};
use crate::error::{Error, Result, failed};

/// Implementing AES on the CellBE (Canright and others, 2009), on a simulated SPU
///
/// Prints the paper's Tables 1, 2 and 3 with the clock counts of Lockstep's kernels, and a breakdown of their cycles.
/// The results do not depend on the machine. `lockstep cipher --device spu --kernel NAME` runs the kernels.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cell {
    #[command(flatten)]
    form: ReportForm,

    #[command(subcommand)]
    more: Option<More>,
}

#[derive(Subcommand)]
enum More {
    Trace(Trace),
    Asm(Asm),
}

/// Show both pipes of a kernel cycle by cycle in the steady state of its loop: dual issues, lost cycles and the reasons
#[derive(Args)]
pub(crate) struct Trace {
    /// The kernel, such as `ctr4`
    #[arg(value_name = "KERNEL")]
    kernel: String,

    /// Number of cycles to show [default: one iteration of the loop]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_SHOWN))]
    cycles: Option<u32>,

    /// For kernels with several passes, show this one, such as `CbcDecrypt` [default: the first]
    #[arg(long, value_name = "PASS")]
    pass: Option<String>,

    /// The size of the key
    #[arg(long, value_name = "BITS", default_value = "128")]
    bits: u32,
}

/// Assemble a program for the SPU, in the syntax of the GNU assembler, and print a listing
#[derive(Args)]
pub(crate) struct Asm {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Run the program to its `stop` instead, and show both pipes cycle by cycle
    #[arg(long)]
    run: bool,

    /// Number of cycles to show
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        requires = "run",
        value_parser = clap::value_parser!(u32).range(1..=MAX_SHOWN)
    )]
    cycles: u32,

    /// Stop with an error after this number of cycles
    #[arg(long, value_name = "N", default_value = "100000000", requires = "run")]
    budget: u32,
}

/// Maximum number of cycles to show: all of them are kept in memory.
const MAX_SHOWN: i64 = 1_000_000;

pub(super) fn run(args: &Cell) -> Result<()> {
    match &args.more {
        Some(More::Trace(args)) => trace(args),
        Some(More::Asm(args)) => asm(args),
        None => report(args),
    }
}

fn report(args: &Cell) -> Result<()> {
    match &args.form.page {
        Some(file) => write_page(file, |folder| Ok(cell::page(&Report::measure()?, folder)?)),
        None if args.form.json => print_json(&Report::measure()?.json()),
        // Each section is printed before the next section is measured, since a measurement takes seconds.
        None => cell::sections().try_for_each(|section| print(&section?)),
    }
}

fn trace(args: &Trace) -> Result<()> {
    let kernel = cell::kernel(&args.kernel)?;
    let chosen = cell::the_loop(kernel, args.pass.as_deref())?;
    let rounds = cell::rounds(args.bits)?;
    let window = Window::of_kernel(kernel, chosen, rounds, args.cycles.map(u64::from))?;
    print(&window.to_string())
}

fn asm(args: &Asm) -> Result<()> {
    let Source { name, text } = Source::read(&args.file)?;
    print(&if args.run {
        cell::run(&name, &text, args.cycles.into(), args.budget.into())?
    } else {
        cell::listing(&name, &text)?
    })
}

impl From<cell::Error> for Error {
    fn from(error: cell::Error) -> Error {
        failed(error.to_string())
    }
}
