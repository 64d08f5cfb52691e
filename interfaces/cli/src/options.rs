//! Options that several subcommands have.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use lockstep::engine::{EngineBuilder, MAX_THREADS, Verify};
use lockstep::{Engine, Sparse, quoted};

use crate::error::{Result, failed};
use crate::memory;

/// Options for the output.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// Write to this file instead of standard output; `-` is standard output, even if it is a terminal
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Replace an existing file, or a symbolic link, that has the name of the output
    ///
    /// The new file belongs to the caller and has the permission bits of the input under the umask. Owner, permissions and
    /// content of the old file are lost. A symbolic link is replaced, not followed. If the output is a link to a device or a
    /// FIFO, the device or FIFO is opened.
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

/// The values of `--sparse`.
pub(crate) const SPARSE: [(&str, Sparse); 2] = [("always", Sparse::Always), ("never", Sparse::Never)];

/// True if the path means standard output: `-` or `/dev/stdout`. `/dev/stdout` must not be treated as the name of a
/// file: it is a symbolic link, which `--force` would replace if standard output is a regular file.
pub(crate) fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout"].map(Path::new).contains(&path)
}

/// Options for many files in one call.
#[derive(Args)]
#[command(next_help_heading = "Many files")]
pub(crate) struct ManyArgs {
    /// Folder for the outputs; it is created if it is missing. An output has the name of its input: encryption appends
    /// `.enc`, decryption removes it
    #[arg(short = 'O', long, value_name = "FOLDER", value_hint = ValueHint::DirPath, conflicts_with = "output")]
    pub(crate) output_dir: Option<PathBuf>,

    /// Continue a run that was stopped: skip each input whose output is complete, matches the input's length and
    /// modification time, and is newer than the last change (ctime) of the input
    #[arg(long, requires = "output_dir")]
    pub(crate) resume: bool,
}

impl ManyArgs {
    /// The single input of a command without an output folder. Messages contain `verb`, such as `encrypt`.
    ///
    /// # Errors
    /// If there are several inputs, if `recursive` is true, or if the input or the output is a folder.
    pub(crate) fn single<'p>(
        inputs: &'p [PathBuf],
        recursive: bool,
        output: &OutputArgs,
        verb: &str,
    ) -> Result<&'p Path> {
        Err(failed(match (output.file(), inputs) {
            (Some(folder), _) if folder.is_dir() => format!(
                "{} is a folder: add the name of a file to -o, or give a folder for the outputs with -O",
                quoted(folder)
            ),
            (_, [input]) if input.is_dir() && !is_stdin(input) => format!(
                "{} is a folder: to {verb} its files, give -r -O FOLDER, where FOLDER is for the outputs",
                quoted(input)
            ),
            (_, [input]) if !recursive => return Ok(input),
            (_, [first, .., last]) if !recursive => format!(
                "{} and {} are both inputs: name an output file with -o FILE, or a folder for the outputs with -O FOLDER",
                quoted(first),
                quoted(last)
            ),
            _ => "-r needs a folder for the outputs: give -O FOLDER".into(),
        }))
    }
}

/// True if the path of an input or of a key file stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
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
    #[arg(long, value_name = "N", value_parser = number(1..=MAX_THREADS))]
    pub(crate) threads: Option<usize>,

    /// How the CPU verifies the results of other devices: `off` for no verification, `sample` for one block in 64 KiB,
    /// `full` for all blocks [env: LOCKSTEP_VERIFY] [default: sample]
    #[arg(long, value_name = "HOW", value_parser = choice(&VERIFY))]
    pub(crate) verify: Option<Verify>,
}

impl EngineArgs {
    /// Creates an engine, with launch options if there are any. If `explains` is true, the engine records its decisions.
    pub(crate) fn engine(&self, explains: bool, launch: Option<&str>) -> Result<Engine> {
        let builder = Engine::builder().calibrate_automatically(true).remember_decisions(explains);
        // The builder keeps its default for each option that is not given.
        let builder = self.device.iter().fold(builder, EngineBuilder::device);
        let builder = self.kernel.iter().fold(builder, EngineBuilder::kernel);
        let builder = self.threads.into_iter().fold(builder, EngineBuilder::threads);
        let builder = memory::max_threads().into_iter().fold(builder, EngineBuilder::max_threads);
        let builder = self.verify.into_iter().fold(builder, EngineBuilder::verify);
        let builder = launch.into_iter().fold(builder, EngineBuilder::launch);
        Ok(builder.build()?)
    }
}

/// Parses a whole number in this range.
pub(crate) fn number<T>(range: RangeInclusive<T>) -> impl TypedValueParser<Value = T>
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    StringValueParser::new().try_map(move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("give a whole number from {} to {}", range.start(), range.end()))
    })
}

/// A parser for the names in the table. It returns the value of the name.
pub(crate) fn choice<T: Copy + Send + Sync>(
    table: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(table.iter().map(|(name, _)| *name))
        .map(move |name| table.iter().find(|(known, _)| *known == name).expect("one of the names").1)
}

/// The values of `--verify`.
pub(crate) const VERIFY: [(&str, Verify); 3] = [
    (Verify::Off.name(), Verify::Off),
    (Verify::Sample.name(), Verify::Sample),
    (Verify::Full.name(), Verify::Full),
];

/// Options for progress and messages.
#[derive(Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct ProgressArgs {
    /// Show progress, rate and time left on standard error; `auto` shows it if standard error is a terminal
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) progress: When,

    /// Show errors only: no progress, no warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// At the end, write the result, or the error, as one line of JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,

    /// At the end, print which kernels were used, and the expected times of the other kernels
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}
