//! The subcommand `lockstep-lab lab qpu`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use lockstep_cli::program::{Result, print, print_json};
use lockstep_papers::qpu::{self, Data, Report, Setup, Uniform, Window};

use super::options::{dump, output, pair, read_contents};
use super::{ReportForm, Source, failure, write_data, write_page};

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
    Run(Run),
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

    /// Run the program to its end instead, and show its instructions and its totals. The memory has 1 MiB
    #[arg(long)]
    run: bool,

    /// Copy a file to an address of the memory before the run. Other bytes are zero
    #[arg(long, value_name = "ADDRESS=FILE", requires = "run", value_parser = pair("ADDRESS=FILE"))]
    memory: Vec<(String, String)>,

    /// Expand an AES key, a file of 16, 24 or 32 bytes, and place its round keys at an address before the run
    #[arg(long, value_name = "ADDRESS=FILE", requires = "run", value_parser = pair("ADDRESS=FILE"))]
    round_keys: Vec<(String, String)>,

    /// Uniforms of a QPU, or of `all` QPUs without their own: numbers, or `qpu` and `qpus` for the number of the QPU and the
    /// number of QPUs [default: the words from address 0 on]
    #[arg(long, value_name = "QPU=VALUE,...", requires = "run", value_parser = uniforms)]
    uniforms: Vec<(Option<u8>, Vec<Uniform>)>,

    /// Write bytes of the memory to a file after the run
    #[arg(long, value_name = "ADDRESS:BYTES=FILE", requires = "run", value_parser = dump)]
    dump: Vec<(String, usize, String)>,

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

/// Compile and run a kernel that is written in the language of docs/qpu-language.md
#[derive(Args)]
pub(super) struct Run {
    /// The kernel; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// The content of a pointer's memory before the run
    #[arg(long = "in", value_name = "NAME=FILE", value_parser = pair("NAME=FILE"))]
    inputs: Vec<(String, String)>,

    /// Write a pointer's memory to a file after the run. BYTES is the length [default: that of the pointer's `--in`, or of the
    /// first `--in`]
    #[arg(long = "out", value_name = "NAME[:BYTES]=FILE", value_parser = output)]
    outputs: Vec<(String, Option<usize>, String)>,

    /// Expand an AES key, a file of 16, 24 or 32 bytes, to the content of a pointer's memory: its round keys
    #[arg(long, value_name = "NAME=FILE", value_parser = pair("NAME=FILE"))]
    round_keys: Vec<(String, String)>,

    /// The value of an Int or a Float of the kernel
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair("NAME=VALUE"))]
    set: Vec<(String, String)>,

    /// Pointers whose files have a byte for each word of the memory: in the memory, the other three bytes are zero
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    bytes: Vec<String>,

    /// Print the instructions of the compiled kernel, and do not run it
    #[arg(long, conflicts_with_all = ["inputs", "outputs", "round_keys", "set", "bytes", "qpus", "instructions", "budget"])]
    listing: bool,

    /// Number of QPUs
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=QPUS))]
    qpus: u8,

    /// Number of executed instructions to show
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(0..=MAX_INSTRUCTIONS))]
    instructions: u32,

    /// Stop with an error after this number of clocks
    #[arg(long, value_name = "CLOCKS", default_value = "100000000")]
    budget: u32,
}

/// The number of QPUs of the chip.
const QPUS: i64 = 12;

/// Maximum number of clocks of a QPU to show: its instructions are kept in memory.
const MAX_CLOCKS: i64 = 1_000_000;

/// Maximum number of instructions to show. This number of instructions of each QPU is kept in memory.
const MAX_INSTRUCTIONS: i64 = 100_000;

pub(super) fn run(args: &Qpu) -> Result<()> {
    match &args.more {
        Some(More::Trace(args)) => trace(args),
        Some(More::Asm(args)) => asm(args),
        Some(More::Run(args)) => run_kernel(args),
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
    if !args.run {
        return print(&qpu::listing(&name, &text).map_err(failure)?);
    }
    let mut setup = Setup::default();
    setup.uniforms.clone_from(&args.uniforms);
    read_contents(&mut setup.memory, &args.memory, &args.round_keys)?;
    let (shown, budget) = (args.instructions as usize, args.budget.into());
    let ran = qpu::run(&name, &text, &setup, args.qpus, shown, budget).map_err(failure)?;
    for (address, bytes, file) in &args.dump {
        write_data(Path::new(file), ran.memory(address, *bytes).map_err(failure)?)?;
    }
    print(&ran.text)
}

fn run_kernel(args: &Run) -> Result<()> {
    let Source { name, text } = Source::read(&args.file)?;
    if args.listing {
        return print(&qpu::kernel_listing(&name, &text).map_err(failure)?);
    }
    let mut data = Data::default();
    data.values.clone_from(&args.set);
    data.bytes.clone_from(&args.bytes);
    read_contents(&mut data.inputs, &args.inputs, &args.round_keys)?;
    for (parameter, bytes, _) in &args.outputs {
        data.outputs.push((parameter.clone(), *bytes));
    }
    let (shown, budget) = (args.instructions as usize, args.budget.into());
    let finished = qpu::run_kernel(&name, &text, &data, args.qpus, shown, budget).map_err(failure)?;
    // The text is printed even if there is a fault: it helps to find the mistake in the kernel.
    print(&finished.text)?;
    if let Some(fault) = finished.fault {
        return Err(failure(fault));
    }
    for ((_, _, file), content) in args.outputs.iter().zip(&finished.outputs) {
        write_data(Path::new(file), content)?;
    }
    Ok(())
}

/// Parses `QPU=VALUE,...`, the uniforms of a QPU or of `all`.
fn uniforms(text: &str) -> std::result::Result<(Option<u8>, Vec<Uniform>), String> {
    let (qpu, list) = text.split_once('=').ok_or("expected QPU=VALUE,...")?;
    let qpu = match qpu {
        "all" => None,
        number => {
            Some(number.parse().map_err(|_| format!("`{number}` is no QPU: expected a number or `all`"))?)
        }
    };
    let uniform = |value: &str| {
        let value = value.trim();
        Uniform::of(value)
            .ok_or_else(|| format!("`{value}` is no uniform: expected a number, `qpu` or `qpus`"))
    };
    Ok((qpu, list.split(',').map(uniform).collect::<std::result::Result<_, _>>()?))
}
