//! The subcommand `lockstep-lab lab geforce openssl`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use lockstep::{OutputOptions, quoted};
use lockstep_cli::program::{Error, GuardedFile, Note, OpenSsl, Result, failed, print, print_json, today};
use lockstep_papers::geforce::files::FILES;
use lockstep_papers::geforce::program::{self, Conditions, Report, Selection};

use crate::lab::failure;

/// Encrypt the thesis's files by the program `openssl`, from a file to a file
///
/// Measures the time and the use of processors over time of a copy, of `openssl` with its own AES, and of `openssl` with each
/// device of Lockstep's provider. The provider gets 4096 bytes at a time. Every ciphertext is compared with the CPU's.
#[derive(Args)]
pub(super) struct OpenSslRuns {
    /// Run this program
    #[arg(long, value_name = "FILE", default_value = "openssl", value_hint = ValueHint::ExecutablePath)]
    openssl: PathBuf,

    /// The module of the provider, such as `target/release/lockstep-lab.so`, which `make provider-lab` builds
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "device")]
    module: Option<PathBuf>,

    /// A device of the provider, and a kernel, such as `opengl:software,opengl/6800`; repeatable
    #[arg(long, value_name = "NAME[,KERNEL]", value_parser = selection, requires = "module")]
    device: Vec<Selection>,

    /// Divide the sizes of the files by this number [default: 1; with a device 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    scale: Option<u64>,

    /// Number of runs whose mean is printed
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Numbers of the files, from 1 to 8 [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=FILES.len() as i64))]
    files: Vec<u32>,

    /// Write the files to a new folder in this folder, and remove them at the end [default: the folder of temporary files]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a picture of the processors in use to this file, as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    plot: Option<PathBuf>,

    /// Replace that file if it exists
    #[arg(long, requires = "plot")]
    force: bool,
}

/// The default scale with a device of the provider. The largest files then have 216 kB, which the emulator encrypts in seconds.
const SCALE_OF_DEVICES: u64 = 4096;

fn selection(text: &str) -> std::result::Result<Selection, String> {
    let (device, kernel) =
        text.split_once(',').map_or((text, None), |(device, kernel)| (device, Some(kernel)));
    if device.is_empty() || kernel.is_some_and(str::is_empty) {
        return Err("expected NAME or NAME,KERNEL".into());
    }
    Ok(Selection { device: device.into(), kernel: kernel.map(Into::into) })
}

/// A new folder, which is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // Removes only the folder: the code that writes the files also removes them.
        let _ = std::fs::remove_dir(&self.0);
    }
}

pub(super) fn run(args: &OpenSslRuns) -> Result<()> {
    let openssl = OpenSsl::find(&args.openssl)
        .ok_or_else(|| failed(format!("{} does not run: install OpenSSL 3", quoted(&args.openssl))))?;
    let module = args.module.as_deref().map(|path| path.canonicalize().map_err(Error::io("find", path)));
    let module = module.transpose()?;
    let parent = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = Folder(parent.join(format!("lockstep-thesis-{}", std::process::id())));
    std::fs::create_dir(&folder.0).map_err(Error::io("create", &folder.0))?;
    let options = OutputOptions { force: args.force, ..Default::default() };
    let mut file = args.plot.as_deref().map(|path| GuardedFile::create(path, options)).transpose()?;
    let all = || FILES.map(|file| file.number).into();
    let conditions = Conditions {
        openssl: openssl.program,
        version: openssl.version,
        scale: args.scale.unwrap_or(if args.device.is_empty() { 1 } else { SCALE_OF_DEVICES }),
        runs: args.runs as usize,
        files: if args.files.is_empty() { all() } else { args.files.clone() },
        module,
        devices: args.device.clone(),
        folder: folder.0.clone(),
    };
    let note = Note::new();
    let points = program::measure(&conditions, |step| note.show(&step)).map_err(failure)?;
    drop(note);
    let report = Report { conditions, points, date: today() };
    if args.json { print_json(&report.json()) } else { print(&report.text()) }?;
    if let (Some(mut file), Some(path)) = (file.take(), &args.plot) {
        write(&mut file, path, &report.plot().svg())?;
        file.commit()?;
    }
    Ok(())
}

fn write(file: &mut GuardedFile, path: &Path, text: &str) -> Result<()> {
    std::io::Write::write_all(file.file(), text.as_bytes()).map_err(Error::io("write", path))
}
