//! Options that several subcommands have.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use lockstep::engine::{EngineBuilder, Verify};
use lockstep::{Engine, Sparse};

use crate::error::{Result, failed};
use crate::memory;

/// Where the output is written.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// Write to this file instead of standard output; `-` is standard output, even if it is a terminal
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Replace an existing file, or a symbolic link, that has the name of the output
    ///
    /// The new file belongs to the caller and has the permission bits of the input under the umask; nothing of the old
    /// file is kept. A symbolic link is replaced, not followed. Links to devices and FIFOs are opened as such.
    #[arg(short, long)]
    pub(crate) force: bool,

    /// Exit only after the output is on stable storage: its data, and with -o its name in the folder
    ///
    /// An output that cannot be synced, such as a pipe or a terminal, is refused.
    #[arg(long)]
    pub(crate) sync: bool,
}

impl OutputArgs {
    /// The file to write to; `None` for standard output.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !is_stdout(path))
    }
}

/// Parses whether decrypted files have holes.
pub(crate) fn sparse() -> impl TypedValueParser<Value = Sparse> {
    let names = PossibleValuesParser::new(["always", "never"]);
    names.map(|name| if name == "always" { Sparse::Always } else { Sparse::Never })
}

/// True if the path means standard output: `-` or `/dev/stdout`. `/dev/stdout` must not be treated as the name of a
/// file: it is a symbolic link, which `--force` would replace if standard output is a regular file.
pub(crate) fn is_stdout(path: &Path) -> bool {
    ["-", STDOUT].map(Path::new).contains(&path)
}

/// The name of standard output in the file system.
pub(crate) const STDOUT: &str = "/dev/stdout";

/// Many files in one call.
#[derive(Args)]
#[command(next_help_heading = "Many files")]
pub(crate) struct ManyArgs {
    /// Folder for the outputs; it is created if it is missing. An output has the name of its input: encryption appends
    /// `.enc`, decryption removes it
    #[arg(short = 'O', long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "output")]
    pub(crate) output_dir: Option<PathBuf>,

    /// Continue a run that was stopped: skip each input whose output is complete, matches the input's length and
    /// modification time, and is newer than the input's last change
    #[arg(long, requires = "output_dir")]
    pub(crate) resume: bool,
}

impl ManyArgs {
    /// The single input of a command without an output folder.
    ///
    /// # Errors
    /// If there are several inputs, or if `recursive` is true.
    pub(crate) fn single<'p>(&self, inputs: &'p [PathBuf], recursive: bool) -> Result<&'p Path> {
        match inputs {
            [input] if !recursive => Ok(input),
            _ => Err(failed("give a folder for the outputs with -O: one per input is written there")),
        }
    }
}

/// Options that select device, kernel and threads.
#[derive(Args)]
#[command(next_help_heading = "Devices")]
pub(crate) struct EngineArgs {
    /// Use only this device, such as `cpu`, or these devices, such as `cuda:0,1` or `cuda:all`; `lockstep devices`
    /// lists all devices [env: LOCKSTEP_DEVICE] [default: auto]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,

    /// Use only this kernel, such as `cpu/soft` [env: LOCKSTEP_KERNEL] [default: auto]
    #[arg(long, value_name = "KERNEL")]
    pub(crate) kernel: Option<String>,

    /// Number of CPU threads [env: LOCKSTEP_THREADS] [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// How the CPU verifies the results of other devices: `off` for no verification, `sample` for one block in 64 KiB,
    /// `full` for all blocks [env: LOCKSTEP_VERIFY] [default: sample]
    #[arg(long, value_name = "HOW", value_parser = verify())]
    pub(crate) verify: Option<Verify>,
}

impl EngineArgs {
    /// Creates an engine. If `explains` is true, the engine records its decisions.
    pub(crate) fn engine(&self, explains: bool) -> Result<Engine> {
        self.engine_with(explains, None)
    }

    /// Creates an engine with launch options.
    pub(crate) fn engine_with(&self, explains: bool, launch: Option<&str>) -> Result<Engine> {
        let builder = Engine::builder().calibrate_automatically(true).remember_decisions(explains);
        // What is not given keeps the default of the builder.
        let builder = self.device.iter().fold(builder, EngineBuilder::device);
        let builder = self.kernel.iter().fold(builder, EngineBuilder::kernel);
        let builder = self.threads.into_iter().fold(builder, EngineBuilder::threads);
        let builder = memory::max_threads().into_iter().fold(builder, EngineBuilder::max_threads);
        let builder = self.verify.into_iter().fold(builder, EngineBuilder::verify);
        let builder = launch.into_iter().fold(builder, EngineBuilder::launch);
        Ok(builder.build()?)
    }
}

/// Parses how results of devices are verified.
pub(crate) fn verify() -> impl TypedValueParser<Value = Verify> {
    let names = [Verify::Off, Verify::Sample, Verify::Full].map(Verify::name);
    PossibleValuesParser::new(names).map(|name| name.parse().expect("one of the names"))
}

/// Options for progress and messages.
#[derive(Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct ProgressArgs {
    /// Show progress, rate and time left on standard error; `auto` does if it is a terminal
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) progress: When,

    /// Show errors only: no progress, no warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// At the end, write the result, or the error, as one line of JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,

    /// At the end, print which kernels were used, and the expected times of the others
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}
