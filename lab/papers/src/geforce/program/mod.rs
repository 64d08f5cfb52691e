//! Whole runs of the program `openssl` on the thesis's files (section 6.2 of the thesis): from a file to a file, with the time of
//! the program and its use of processors over time (Appendix B).
//!
//! The author of the thesis changed OpenSSL such that each call of the engine received a whole buffer. An unchanged `openssl
//! enc` passes 4096 bytes at a time to a provider, for every size of its buffer.

mod process;
mod report;

use std::fs::File as Disk;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use lockstep_core::Key;
use lockstep_core::data::Data;
use lockstep_planner::Planner;

use super::engine::{buffer, encrypt_by, key, processor, scaled};
use super::files::File;
pub use process::Run;
pub use report::Report;

/// An error of the runs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written, or a program cannot be run.
    #[error("{what}: {error}")]
    System {
        /// The file or the program.
        what: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The program failed, or a message of the provider states that the device did not do the work.
    #[error("{program} failed: {message}")]
    Failed {
        /// The name of the program in the report.
        program: String,
        /// Its messages.
        message: String,
    },
    /// The program wrote a wrong ciphertext.
    #[error("{program} encrypts file {file} WRONGLY: nothing was measured")]
    Wrong {
        /// The name of the program in the report.
        program: String,
        /// The number of the file, from 1 to 8.
        file: u32,
    },
    /// A device is given twice with the same kernel.
    #[error("the device {device} is given twice with the same kernel: give it once")]
    Twice {
        /// The name of the device.
        device: String,
    },
    /// The CPU cannot compute the expected ciphertext.
    #[error("{0}")]
    Device(#[from] lockstep_core::Error),
    /// There is not enough memory for a buffer.
    #[error("{0}")]
    Memory(#[from] super::engine::Error),
}

/// A device of the provider, and a kernel of this device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The name of the device, such as `opengl:software`.
    pub device: String,
    /// The name of the kernel; the default kernel if it is `None`.
    pub kernel: Option<String>,
}

/// The programs and files that are measured.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// The path of the program `openssl`.
    pub openssl: PathBuf,
    /// The version of this program.
    pub version: String,
    /// The sizes of Table 6.2.1 are divided by this number.
    pub scale: u64,
    /// Number of runs for each program and file.
    pub runs: usize,
    /// The numbers of the files, from 1 to 8.
    pub files: Vec<u32>,
    /// The path of the provider's module; `None` if only OpenSSL's own AES is measured.
    pub module: Option<PathBuf>,
    /// The devices, each of which encrypts all files.
    pub devices: Vec<Selection>,
    /// An existing folder for the files.
    pub folder: PathBuf,
}

/// The runs of a program on a file.
#[derive(Debug, Clone)]
pub struct Point {
    /// The number of the file.
    pub file: u32,
    /// The name of the program: `cp`, `openssl`, or a device of the provider.
    pub program: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// The runs.
    pub runs: Vec<Run>,
}

impl Point {
    /// The mean of the seconds of all runs.
    pub fn seconds(&self) -> f64 {
        self.runs.iter().map(|run| run.seconds).sum::<f64>() / self.runs.len() as f64
    }

    /// The mean of the CPU seconds of all runs.
    pub fn cpu_seconds(&self) -> f64 {
        self.runs.iter().map(|run| run.cpu_seconds).sum::<f64>() / self.runs.len() as f64
    }
}

/// Runs the programs on the files. The files are written to the folder first, and removed at the end. Each step is reported to
/// `progress`.
///
/// # Errors
/// [`Error`]
pub fn measure(
    conditions: &Conditions,
    mut progress: impl FnMut(String),
) -> std::result::Result<Vec<Point>, Error> {
    for (index, device) in conditions.devices.iter().enumerate() {
        if conditions.devices[..index].contains(device) {
            return Err(Error::Twice { device: device.device.clone() });
        }
    }
    let (key, cpu) = (key()?, processor()?);
    let mut points = Vec::new();
    for &number in &conditions.files {
        let file = scaled(File::of(number), conditions.scale);
        let name = |what: &str| conditions.folder.join(format!("test{number}.{what}"));
        let (input, output) = (Removed(name("dat")), Removed(name("out")));
        progress(format!("file {number} is written"));
        write(&file, &input.0)?;
        for program in programs(conditions) {
            let mut runs = Vec::new();
            // The first run warms up: the file is then in the memory of the system.
            for run in 0..=conditions.runs {
                progress(format!("file {number}, {}, run {run}", program.name));
                // Removes the output of the previous run, so that a run that writes nothing is detected.
                drop(Removed(output.0.clone()));
                let measured = process::run(&program.name, program.command(&input.0, &output.0))?;
                if program.encrypts {
                    check(&program.name, &file, &output.0, &key, &cpu)?;
                }
                if run > 0 {
                    runs.push(measured);
                }
            }
            points.push(Point { file: number, program: program.name, bytes: file.bytes, runs });
        }
    }
    Ok(points)
}

/// A program that reads a file and writes a file.
struct Program<'a> {
    name: String,
    conditions: &'a Conditions,
    device: Option<&'a Selection>,
    encrypts: bool,
}

/// The programs that are measured: a copy (Figure B1), OpenSSL's own AES, and each device of the provider.
fn programs(conditions: &Conditions) -> Vec<Program<'_>> {
    let program = |name: String, device, encrypts| Program { name, conditions, device, encrypts };
    let own = [program("cp".into(), None, false), program("openssl".into(), None, true)];
    let of = |selection: &Selection| match &selection.kernel {
        Some(kernel) => format!("{}, {kernel}", selection.device),
        None => selection.device.clone(),
    };
    let devices = conditions.devices.iter().map(|device| program(of(device), Some(device), true));
    own.into_iter().chain(devices).collect()
}

impl Program<'_> {
    fn command(&self, input: &Path, output: &Path) -> Command {
        if !self.encrypts {
            let mut command = Command::new("cp");
            command.args([input, output]);
            return command;
        }
        let mut command = Command::new(&self.conditions.openssl);
        // The thesis's command (its section 4), with the derivation of keys that OpenSSL had then.
        command.args(["enc", "-aes-128-ecb", "-k", "abcd", "-nosalt", "-md", "md5", "-bufsize", "16777216"]);
        command.arg("-in").arg(input).arg("-out").arg(output);
        // The configuration of this machine is not used, because it may load a provider.
        command.env("OPENSSL_CONF", "/dev/null");
        for name in
            ["DEVICE", "KERNEL", "LAUNCH", "THREADS", "CALIBRATE", "AHEAD", "TRACE", "VERIFY", "THRESHOLD"]
        {
            command.env_remove(format!("LOCKSTEP_{name}"));
        }
        if let (Some(device), Some(module)) = (self.device, &self.conditions.module) {
            // The option `-provider-path` must come first: it has an effect only on options `-provider` that come after it.
            command.arg("-provider-path").arg(module.parent().unwrap_or(Path::new(".")));
            command.arg("-provider").arg(module.with_extension("").file_name().unwrap_or_default());
            command.args(["-provider", "default", "-propquery", "?provider=lockstep"]);
            command.env("LOCKSTEP_DEVICE", &device.device);
            command.envs(device.kernel.iter().map(|kernel| ("LOCKSTEP_KERNEL", kernel)));
            // The device processes every call, although a call has only 4096 bytes. With the default threshold of a GPU, the CPU would
            // process all calls.
            command.env("LOCKSTEP_THRESHOLD", "16");
        }
        command
    }
}

/// A file that is removed at the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // The file may not exist.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The error of a path.
fn system(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::System { what: path.display().to_string(), error }
}

fn write(file: &File, path: &Path) -> std::result::Result<(), Error> {
    let mut disk = BufWriter::with_capacity(1 << 20, Disk::create_new(path).map_err(system(path))?);
    for index in 0..file.blocks() {
        disk.write_all(&file.block(index)).map_err(system(path))?;
    }
    disk.flush().map_err(system(path))
}

/// Compares a ciphertext with that of the CPU.
fn check(
    program: &str,
    file: &File,
    path: &Path,
    key: &Key,
    cpu: &Planner,
) -> std::result::Result<(), Error> {
    let wrong = || Error::Wrong { program: program.into(), file: file.number };
    let mut disk = Disk::open(path).map_err(system(path))?;
    let mut expected = buffer(1 << 20)?;
    let mut found = buffer(1 << 20)?;
    // The file is followed by its padding, a block of 16 bytes with the value 16 (RFC 5652, 6.3).
    let blocks = file.blocks() + 1;
    for first in (0..blocks).step_by(expected.len() / 16) {
        let count = (blocks - first).min(expected.len() as u64 / 16);
        let len = 16 * count as usize;
        for (block, index) in expected.chunks_exact_mut(16).zip(first..first + count) {
            let is_padding = index == file.blocks();
            block.copy_from_slice(&if is_padding { [16; 16] } else { file.block(index) });
        }
        encrypt_by(cpu, key, Data::in_place(&mut expected[..len]))?;
        disk.read_exact(&mut found[..len]).map_err(|_| wrong())?;
        if found[..len] != expected[..len] {
            return Err(wrong());
        }
    }
    let more = disk.read(&mut found[..1]).map_err(system(path))?;
    if more == 0 { Ok(()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests;
