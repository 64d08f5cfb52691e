//! Runs the command in a temporary folder.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// The program that is tested.
pub(crate) use crate::LOCKSTEP;

/// Bytes of a chunk, of a chunk with its tag, and of the header.
pub(crate) const CHUNK: usize = 16384;
pub(crate) const ENCRYPTED: usize = CHUNK + 16;
pub(crate) const HEADER: usize = 56;

/// A folder in which commands are run.
pub(crate) struct Folder(TempDir);

/// The exit code and the output of a command that has ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::Builder::new().prefix("lockstep-cli-").tempdir().unwrap())
    }

    /// A folder with two key files, `key` and `wrong`.
    pub(crate) fn with_keys() -> Folder {
        let folder = Folder::new();
        folder.run(["keygen", "-o", "key"]).succeeded();
        folder.run(["keygen", "-o", "wrong"]).succeeded();
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// True if the process has an output file open in this folder, which has a temporary name or none.
    pub(crate) fn has_output_open(&self, process: u32) -> bool {
        let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| {
            let name = target.strip_prefix(self.0.path()).unwrap_or(Path::new("")).to_string_lossy();
            name.starts_with(".lockstep-") || name.starts_with('#')
        })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The names of all files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A program that runs in the folder without the terminal and the environment of the tests.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in ["LOCKSTEP_DEVICE", "LOCKSTEP_KERNEL", "LOCKSTEP_THREADS", "COLUMNS", "NO_COLOR"] {
            command.env_remove(name);
        }
        // Without this variable, Mesa's drivers print warnings, as on a machine without a desktop. The tests must pass with these
        // warnings.
        command.env_remove("XDG_RUNTIME_DIR");
        // The tests use their own cache, not the cache of the user.
        command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
        command.env("XDG_CONFIG_HOME", self.path("config"));
        // The tests send these signals. If a script runs the tests in the background, the signals are ignored, and child processes
        // inherit this.
        // SAFETY: between fork and exec, only `signal` is called, which is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                libc::signal(libc::SIGQUIT, libc::SIG_DFL);
                Ok(())
            });
        }
        command
    }

    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.program(LOCKSTEP);
        command.args(args);
        command
    }

    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ended {
        self.command(args).output().unwrap().into()
    }

    /// Runs the command without a terminal, even if the tests run on one.
    pub(crate) fn without_terminal<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ended {
        self.program("setsid").arg("-w").arg(LOCKSTEP).args(args).output().unwrap().into()
    }

    /// Runs the command with these bytes as standard input, which is a pipe.
    pub(crate) fn pipe<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &[u8]) -> Ended {
        feed(self.command(args), input)
    }

    pub(crate) fn shell(&self, script: &str) -> Ended {
        let script = script.replace("lockstep ", &format!("{LOCKSTEP} "));
        self.program("bash").args(["-c", &script]).output().unwrap().into()
    }

    pub(crate) fn spawn<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Child {
        self.default_signals(args).spawn().unwrap()
    }

    /// The command with a pipe as standard input and with the default action of every signal.
    pub(crate) fn default_signals<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        // Shells start background jobs with SIGINT ignored, and child processes inherit this. `env` therefore restores the default
        // actions.
        let program = self.command(args);
        let mut command = self.program("env");
        command.arg("--default-signal").arg(program.get_program()).args(program.get_args());
        command.stdin(Stdio::piped());
        command
    }
}

/// Runs a command with these bytes as standard input.
pub(crate) fn feed(mut command: Command, input: &[u8]) -> Ended {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Writing fails if the command exits before it has read all input. The tests of such commands check the exit code.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap().into()
    })
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn succeeded(self) -> Ended {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    /// Checks the exit code, and that the message contains these words.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, words: &str) -> Ended {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert!(self.stderr.starts_with("lockstep: "), "{:?}", self.stderr);
        assert!(self.stderr.contains(words), "{:?} does not contain {words:?}", self.stderr);
        assert!(self.stderr.lines().count() <= 2, "{:?} is long", self.stderr);
        self
    }

    /// As [`Ended::failed`], with the message as a JSON object.
    #[track_caller]
    pub(crate) fn failed_as_json(self, code: i32, words: &str) -> Ended {
        assert_eq!(self.code, code, "{}", self.stderr);
        let report: serde_json::Value = serde_json::from_str(&self.stderr).unwrap();
        assert!(report["error"].as_str().unwrap().contains(words), "{report} does not contain {words:?}");
        self
    }

    /// Checks a usage error in clap's format, which has several lines.
    #[track_caller]
    pub(crate) fn failed_usage(self, words: &str) -> Ended {
        assert_eq!(self.code, 2, "{}", self.stderr);
        assert!(self.stderr.starts_with("lockstep: "), "{:?}", self.stderr);
        assert!(self.stderr.contains(words), "{:?} does not contain {words:?}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn failed_silently(self, code: i32) -> Ended {
        assert_eq!(self.code, code, "{}", self.stderr);
        self
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.stdout).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap()
    }
}

/// Deterministic pseudo-random bytes, eight at a time (xorshift64): the tests are compiled without optimisation.
pub(crate) fn data(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Copies the command with the program `cp`. If this process wrote the copy, a child process of another test could inherit the open file,
/// and the system would refuse to execute the copy.
pub(crate) fn copy_program(to: &Path) {
    assert!(Command::new("cp").arg(LOCKSTEP).arg(to).status().unwrap().success());
}

/// True if this program exists. Otherwise prints that it is missing, or panics if `CI` is set.
pub(crate) fn have(program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .any(|folder| folder.join(program).is_file());
    assert!(found || std::env::var_os("CI").is_none(), "{program} is missing, and this is CI");
    if !found {
        eprintln!("NOT TESTED: there is no {program} on this machine");
    }
    found
}

/// True if this machine has the software device of OpenGL. CI must have it.
pub(crate) fn has_software_opengl(folder: &Folder) -> bool {
    let devices = folder.run(["devices", "--json"]).succeeded().json();
    let is_there =
        devices["devices"].as_array().unwrap().iter().any(|device| device["name"] == "opengl:software");
    if !is_there {
        assert!(std::env::var_os("CI").is_none(), "no opengl:software: tools/setup.sh tests installs it");
        eprintln!("NOT TESTED: there is no opengl:software on this machine");
    }
    is_there
}

/// Sends this signal to a child process.
pub(crate) fn kill(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Waits until the condition is true.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = std::time::Instant::now();
    while !holds() {
        assert!(since.elapsed().as_secs() < 20, "timeout: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Waits until the program catches Ctrl-C and has started its work.
pub(crate) fn wait_for_handlers(child: &Child) {
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0
    };
    wait_until("signals to be caught", catches);
    std::thread::sleep(std::time::Duration::from_millis(200));
}

/// Makes a named pipe.
pub(crate) fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
