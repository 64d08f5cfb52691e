//! The subcommand `lockstep-lab lab qpu`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use lockstep_cli::program::{Result, print, print_json};
use lockstep_papers::qpu::{self, Report, Window};

use super::{ReportForm, Source, failure, write_page};

/// AES on VideoCore IV, the GPU of the Raspberry Pi (a thesis), on simulated QPUs
///
/// Prints the thesis's tables with the figures of a model: simulated clocks, an invocation, and the work of the host. Then the clocks
/// of Lockstep's kernels, and what they are spent on. Only the times of the compiler depend on the machine.
/// `lockstep-lab cipher --device qpu --kernel NAME` runs the kernels.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Qpu {
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

/// Show the instructions of a QPU in the steady state of a kernel: operations of both ALUs, lost clocks and the reasons
#[derive(Args)]
pub(super) struct Trace {
    /// The kernel, such as `bitslice`
    #[arg(value_name = "KERNEL")]
    kernel: String,

    /// The mode, such as `ecb-decrypt` [default: the first of the kernel]
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,

    /// The size of the key
    #[arg(long, value_name = "BITS", default_value = "128")]
    bits: u32,

    /// Number of QPUs that run the kernel
    #[arg(long, value_name = "N", default_value = "12", value_parser = clap::value_parser!(u8).range(1..=QPUS))]
    qpus: u8,

    /// Number of clocks to show [default: one iteration of the innermost loop]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_CLOCKS))]
    clocks: Option<u32>,
}

/// Assemble a program for QPUs, in the syntax of vc4asm, and print a listing
#[derive(Args)]
pub(super) struct Asm {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Run the program to its end instead, and show its instructions and its totals. The memory is 1 MiB of zeros, and the
    /// uniforms of each QPU start at its address 0
    #[arg(long)]
    run: bool,

    /// Number of QPUs
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        requires = "run",
        value_parser = clap::value_parser!(u8).range(1..=QPUS)
    )]
    qpus: u8,

    /// Number of instructions to show
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        requires = "run",
        value_parser = clap::value_parser!(u32).range(1..=MAX_INSTRUCTIONS)
    )]
    instructions: u32,

    /// Stop with an error after this number of clocks
    #[arg(long, value_name = "CLOCKS", default_value = "100000000", requires = "run")]
    budget: u32,
}

/// The number of QPUs of the chip.
const QPUS: i64 = 12;

/// Maximum number of clocks of a QPU to show: its instructions are kept in memory.
const MAX_CLOCKS: i64 = 1_000_000;

/// Maximum number of instructions to show: as many of each QPU are kept in memory.
const MAX_INSTRUCTIONS: i64 = 100_000;

pub(super) fn run(args: &Qpu) -> Result<()> {
    match &args.more {
        Some(More::Trace(args)) => trace(args),
        Some(More::Asm(args)) => asm(args),
        None => report(args),
    }
}

fn report(args: &Qpu) -> Result<()> {
    match &args.form.page {
        Some(file) => write_page(file, |folder| {
            qpu::page(&Report::measure().map_err(failure)?, folder).map_err(failure)
        }),
        None if args.form.json => print_json(&Report::measure().map_err(failure)?.json()),
        // Each section is printed before the next section is measured, since a measurement takes seconds.
        None => qpu::sections().try_for_each(|section| print(&section.map_err(failure)?)),
    }
}

fn trace(args: &Trace) -> Result<()> {
    let named = qpu::kernel(&args.kernel, args.mode.as_deref()).map_err(failure)?;
    let window =
        Window::of_kernel(named, args.bits, args.qpus, args.clocks.map(u64::from)).map_err(failure)?;
    print(&window.to_string())
}

fn asm(args: &Asm) -> Result<()> {
    let Source { name, text } = Source::read(&args.file)?;
    print(&if args.run {
        qpu::run(&name, &text, args.qpus, args.instructions as usize, args.budget.into()).map_err(failure)?
    } else {
        qpu::listing(&name, &text).map_err(failure)?
    })
}
