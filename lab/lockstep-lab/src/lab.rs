//! The subcommand `lockstep-lab lab`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use lockstep::quoted;
use lockstep_cli::program::{Error, Input, Result, failed};
use lockstep_papers::Page;

mod cell;
mod cuda;
mod g80;
mod geforce;
mod opengl;
mod options;
mod qpu;

/// Reproduce published papers: their tables compared with Lockstep's results
#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(Subcommand)]
enum Paper {
    Cell(cell::Cell),
    Cuda(cuda::Cuda),
    G80(g80::G80),
    Geforce(geforce::Geforce),
    #[command(name = "opengl")]
    OpenGl(opengl::OpenGl),
    Qpu(qpu::Qpu),
}

/// The form of a report. The default is text.
#[derive(Args)]
struct ReportForm {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write the documentation page to this file instead, and its pictures to the folder of the same name without `.md`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "json")]
    page: Option<PathBuf>,
}

/// Maximum length of the source or of the data of a program in bytes: 64 times the size of the local store of an SPE.
const MAX_LEN: u64 = 16 << 20;

pub(crate) fn run(args: &Lab) -> Result<()> {
    match &args.paper {
        Paper::Cell(args) => cell::run(args),
        Paper::Cuda(args) => cuda::run(args),
        Paper::G80(args) => g80::run(args),
        Paper::Geforce(args) => geforce::run(args),
        Paper::OpenGl(args) => opengl::run(args),
        Paper::Qpu(args) => qpu::run(args),
    }
}

/// Writes a page, and its pictures to the folder that has the name of the page without `.md`. `make` receives the name of the folder and
/// returns the page.
fn write_page(file: &Path, make: impl FnOnce(&str) -> Result<Page>) -> Result<()> {
    let folder = file.with_extension("");
    let name = folder.file_name().and_then(|name| name.to_str());
    let (Some(name), true) = (name, folder != file) else {
        return Err(failed(format!("{}: name a file that ends in .md", quoted(file))));
    };
    // The folder is created before the page is made, because making the page takes seconds.
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let page = make(name)?;
    let pictures = page.pictures.iter().map(|(name, picture)| (folder.join(name), picture));
    for (path, content) in pictures.chain([(file.to_owned(), &page.markdown)]) {
        fs::write(&path, content).map_err(Error::io("write", &path))?;
    }
    Ok(())
}

/// Converts the error of a paper's program to an error of the command.
fn failure(error: impl std::fmt::Display) -> Error {
    failed(error.to_string())
}

/// The text of a program, and its name in messages.
struct Source {
    name: String,
    text: String,
}

impl Source {
    /// Reads a file, or standard input if it is `-`.
    fn read(file: &Path) -> Result<Source> {
        let name = if file == Path::new("-") { "standard input".into() } else { file.display().to_string() };
        let text = String::from_utf8(read_data(file)?).map_err(|_| failed(format!("{name} is not UTF-8")))?;
        Ok(Source { name, text })
    }
}

/// Reads a file of a program, or standard input if it is `-`.
fn read_data(file: &Path) -> Result<Vec<u8>> {
    // The buffer has room for 1 MiB, so a shorter file, such as a key or the local store, is never moved in memory while it is read, and no
    // copy remains.
    let mut data = Vec::with_capacity(1 << 20);
    Read::take(&Input::open(file)?, MAX_LEN + 1).read_to_end(&mut data).map_err(lockstep::Error::Read)?;
    if data.len() as u64 > MAX_LEN {
        return Err(failed(format!("{} has more than 16 MiB", quoted(file))));
    }
    Ok(data)
}

/// Writes data of a program to a file.
fn write_data(file: &Path, data: &[u8]) -> Result<()> {
    fs::write(file, data).map_err(Error::io("write", file))
}
