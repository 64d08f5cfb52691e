//! `lockstep lab`

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use lockstep::quoted;
use lockstep_lab::Page;
use lockstep_lab::cell::{self, Report, Window};

use super::{print, print_json};
use crate::error::{Error, Result, failed};
use crate::input::Input;

mod cuda;
mod geforce;
mod opengl;

/// Reproduce published papers: their tables compared with Lockstep's results
#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(Debug, Subcommand)]
enum Paper {
    Cell(Cell),
    Cuda(cuda::Cuda),
    Geforce(geforce::Geforce),
    #[command(name = "opengl")]
    OpenGl(opengl::OpenGl),
}

/// Implementing AES on the CellBE (Canright and others, 2009), on a simulated SPU
///
/// Prints the paper's Tables 1, 2 and 3 with the clock counts of Lockstep's kernels, and a breakdown of their cycles.
/// The results do not depend on the machine. `lockstep cipher --device spu --kernel NAME` runs the kernels.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cell {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write the documentation page to this file instead, and its pictures to the folder of the same name without `.md`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "json")]
    page: Option<PathBuf>,

    #[command(subcommand)]
    more: Option<More>,
}

#[derive(Debug, Subcommand)]
enum More {
    Trace(Trace),
    Asm(Asm),
}

/// Show both pipes of a kernel cycle by cycle in the steady state of its loop: dual issues, lost cycles and the reasons
#[derive(Debug, Args)]
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
#[derive(Debug, Args)]
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

/// Maximum length of the source in bytes: 64 times the size of the local store.
const MAX_LEN: u64 = 16 << 20;

pub(crate) fn run(args: &Lab) -> Result<()> {
    let args = match &args.paper {
        Paper::Cell(args) => args,
        Paper::Cuda(args) => return cuda::run(args),
        Paper::Geforce(args) => return geforce::run(args),
        Paper::OpenGl(args) => return opengl::run(args),
    };
    match &args.more {
        Some(More::Trace(args)) => trace(args),
        Some(More::Asm(args)) => asm(args),
        None => report(args),
    }
}

fn report(args: &Cell) -> Result<()> {
    match &args.page {
        Some(file) => write_page(file, |folder| Ok(cell::page(&Report::measure()?, folder)?)),
        None if args.json => print_json(&Report::measure()?.json()),
        // Each section is printed before the next section is measured, since a measurement takes seconds.
        None => cell::sections().try_for_each(|section| print(&section?)),
    }
}

/// Writes a page, and its pictures to the folder of the same name. `make` gets the name of the folder.
fn write_page(file: &Path, make: impl FnOnce(&str) -> Result<Page>) -> Result<()> {
    let folder = file.with_extension("");
    let name = folder.file_name().and_then(|name| name.to_str());
    let (Some(name), true) = (name, folder != file) else {
        return Err(failed(format!("{}: name a file that ends in .md", quoted(file))));
    };
    // Before the page is made, which takes seconds.
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let page = make(name)?;
    let pictures = page.pictures.iter().map(|(name, picture)| (folder.join(name), picture));
    for (path, content) in pictures.chain([(file.to_owned(), &page.markdown)]) {
        fs::write(&path, content).map_err(Error::io("write", &path))?;
    }
    Ok(())
}

fn trace(args: &Trace) -> Result<()> {
    let kernel = cell::kernel(&args.kernel)?;
    let chosen = cell::the_loop(kernel, args.pass.as_deref())?;
    let rounds = cell::rounds(args.bits)?;
    let window = Window::of_kernel(kernel, chosen, rounds, args.cycles.map(u64::from))?;
    print(&window.to_string())
}

fn asm(args: &Asm) -> Result<()> {
    let mut source = Vec::new();
    let input = Input::open(&args.file)?;
    input.reader().take(MAX_LEN + 1).read_to_end(&mut source).map_err(lockstep::Error::Read)?;
    let name =
        if args.file == Path::new("-") { "standard input".into() } else { args.file.display().to_string() };
    if source.len() as u64 > MAX_LEN {
        return Err(failed(format!("{name} has more than 16 MiB: this is no program for 256 KiB")));
    }
    let source = String::from_utf8(source).map_err(|_| failed(format!("{name} is not UTF-8")))?;
    let text = if args.run {
        cell::run(&name, &source, args.cycles.into(), args.budget.into())?
    } else {
        cell::listing(&name, &source)?
    };
    print(&text)
}

impl From<cell::Error> for Error {
    fn from(error: cell::Error) -> Error {
        failed(error.to_string())
    }
}
