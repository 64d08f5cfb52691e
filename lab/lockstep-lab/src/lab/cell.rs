//! The subcommand `lockstep-lab lab cell`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use lockstep_cli::program::{Result, print, print_json};
use lockstep_papers::cell::{self, Report, Setup, Window};

use super::options::{dump, pair, read_contents};
use super::{ReportForm, Source, failure, read_data, write_data, write_page};

/// Implementing AES on the CellBE (Canright and others, 2009), on a simulated SPU
///
/// Prints the paper's Tables 1, 2 and 3 with the clock counts of Lockstep's kernels, and a breakdown of their cycles.
/// The results do not depend on the machine. `lockstep-lab cipher --device spu --kernel NAME` runs the kernels.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Cell {
    #[command(flatten)]
    form: ReportForm,

    #[command(subcommand)]
    more: Option<More>,
}

#[derive(Subcommand)]
enum More {
    Trace(Trace),
    Export(Export),
    Asm(Asm),
}

/// Show both pipes of a kernel cycle by cycle in the steady state of its loop: dual issues, lost cycles and the reasons
#[derive(Args)]
pub(super) struct Trace {
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

/// Write a kernel as a function with the calling convention of the SPU, in the syntax of the GNU assembler
///
/// The C declaration is `vector unsigned char NAME(void *data, const void *round_keys, unsigned blocks, vector unsigned char counter)`. The
/// data are processed in place. The result is the next counter block, or the last ciphertext block of CBC.
#[derive(Args)]
pub(super) struct Export {
    /// The kernel, such as `ctr4a`: a kernel by lookups in registers for ECB or CBC encryption, or CTR
    #[arg(value_name = "KERNEL")]
    kernel: String,

    /// The name of the function [default: by the mode, such as `aes_ctr`]
    #[arg(long, value_name = "NAME", value_parser = symbol)]
    name: Option<String>,

    /// The size of the key
    #[arg(long, value_name = "BITS", default_value = "128")]
    bits: u32,
}

/// Assemble a program for the SPU, in the syntax of the GNU assembler, and print a listing
#[derive(Args)]
pub(super) struct Asm {
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

    /// Copy a file to an address of the local store, a number or a label, before the run
    #[arg(long, value_name = "ADDRESS=FILE", requires = "run", value_parser = pair("ADDRESS=FILE"))]
    memory: Vec<(String, String)>,

    /// Expand an AES key, a file of 16, 24 or 32 bytes, and place its round keys at an address before the run
    #[arg(long, value_name = "ADDRESS=FILE", requires = "run", value_parser = pair("ADDRESS=FILE"))]
    round_keys: Vec<(String, String)>,

    /// Set a register before the run: to an address, to a number of 32 bits (the preferred slot), or to 32 hexadecimal digits
    #[arg(long, value_name = "NUMBER=VALUE", requires = "run", value_parser = register)]
    register: Vec<(u8, String)>,

    /// Main storage, which the program accesses by DMA from address 0 on
    #[arg(long, value_name = "FILE", requires = "run", value_hint = ValueHint::FilePath)]
    main: Option<PathBuf>,

    /// Write bytes of the local store to a file after the run
    #[arg(long, value_name = "ADDRESS:BYTES=FILE", requires = "run", value_parser = dump)]
    dump: Vec<(String, usize, String)>,

    /// Write main storage to a file after the run
    #[arg(long, value_name = "FILE", requires = "main", value_hint = ValueHint::FilePath)]
    dump_main: Option<PathBuf>,

    /// Stop with an error after this number of cycles
    #[arg(long, value_name = "N", default_value = "100000000", requires = "run")]
    budget: u32,
}

/// Maximum number of cycles to show: all of them are kept in memory.
const MAX_SHOWN: i64 = 1_000_000;

pub(super) fn run(args: &Cell) -> Result<()> {
    match &args.more {
        Some(More::Trace(args)) => trace(args),
        Some(More::Export(args)) => export(args),
        Some(More::Asm(args)) => asm(args),
        None => report(args),
    }
}

fn report(args: &Cell) -> Result<()> {
    match &args.form.page {
        Some(file) => write_page(file, |folder| {
            cell::page(&Report::measure().map_err(failure)?, folder).map_err(failure)
        }),
        None if args.form.json => print_json(&Report::measure().map_err(failure)?.json()),
        // Each section is printed before the next section is measured, since a measurement takes seconds.
        None => cell::sections().try_for_each(|section| print(&section.map_err(failure)?)),
    }
}

fn trace(args: &Trace) -> Result<()> {
    let kernel = cell::kernel(&args.kernel).map_err(failure)?;
    let chosen = cell::the_loop(kernel, args.pass.as_deref()).map_err(failure)?;
    let rounds = cell::rounds(args.bits).map_err(failure)?;
    let window = Window::of_kernel(kernel, chosen, rounds, args.cycles.map(u64::from)).map_err(failure)?;
    print(&window.to_string())
}

fn export(args: &Export) -> Result<()> {
    let kernel = cell::kernel(&args.kernel).map_err(failure)?;
    let name = args.name.as_deref().unwrap_or_else(|| cell::function_name(kernel));
    print(&cell::function(kernel, cell::rounds(args.bits).map_err(failure)?, name).map_err(failure)?)
}

/// Checks the name of a symbol.
fn symbol(text: &str) -> std::result::Result<String, String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    match text.chars().all(is_part) && text.starts_with(|first: char| !first.is_ascii_digit()) {
        true => Ok(text.into()),
        false => Err("a name has letters, digits and `_`, and does not begin with a digit".into()),
    }
}

fn asm(args: &Asm) -> Result<()> {
    let Source { name, text } = Source::read(&args.file)?;
    if !args.run {
        return print(&cell::listing(&name, &text).map_err(failure)?);
    }
    let mut setup = Setup::default();
    setup.registers.clone_from(&args.register);
    read_contents(&mut setup.memory, &args.memory, &args.round_keys)?;
    if let Some(file) = &args.main {
        setup.main = read_data(file)?;
    }
    let finished = cell::run(&name, &text, setup, args.cycles.into(), args.budget.into()).map_err(failure)?;
    for (address, bytes, file) in &args.dump {
        write_data(Path::new(file), finished.memory(address, *bytes).map_err(failure)?)?;
    }
    if let Some(file) = &args.dump_main {
        write_data(file, finished.main())?;
    }
    print(&finished.text)
}

/// Parses `NUMBER=VALUE`, the number and the value of a register.
fn register(text: &str) -> std::result::Result<(u8, String), String> {
    let (number, value) =
        text.split_once('=').filter(|(_, value)| !value.is_empty()).ok_or("expected NUMBER=VALUE")?;
    let number = number.parse().ok().filter(|number| *number < 128);
    Ok((number.ok_or("registers have the numbers 0 to 127")?, value.into()))
}
