//! The trace must not affect the program: whatever file is named, the provider loads, the program's results are right,
//! and the program ends normally. Each case is a separate process, in which signals have their default actions, as in a
//! C program.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::{env, process};

use crate::evp::{ENCRYPT, Library, Params};
use crate::harness::{bytes, modules, new_library, subject_is_default};

/// Environment variable with the role of a process.
const ROLE: &str = "LOCKSTEP_TEST_ROLE";
/// Environment variable with the destination of the trace.
const TRACE: &str = "LOCKSTEP_TRACE";

/// What a process with a trace does in addition to encrypting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// The process only encrypts.
    Plain,
    /// Its file size limit is 0, so that no file can grow.
    NoFiles,
    /// It reads the FIFO of the trace until the provider is loaded.
    ReaderCloses,
    /// It has the FIFO of the trace open, which is full, and does not read.
    ReaderSleeps,
    /// Its standard error is closed. It opens a file after the provider is loaded.
    NoStderr,
    /// Its standard error is closed. It opens a file before the provider is loaded.
    NoStderrBefore,
    /// It closes all descriptors that it has not opened, and opens files.
    ClosesAll,
    /// It forks, and parent and child continue.
    Forks,
    /// It forks, and the child enters a sandbox as OpenSSH's server does.
    Sandbox,
    /// It forks, and a filter refuses the child's calls that block signals.
    NoMask,
    /// It forks, and a filter refuses the child's calls of `poll`.
    NoPoll,
}

const ROLES: [Role; 11] = [
    Role::Plain,
    Role::NoFiles,
    Role::ReaderCloses,
    Role::ReaderSleeps,
    Role::NoStderr,
    Role::NoStderrBefore,
    Role::ClosesAll,
    Role::Forks,
    Role::Sandbox,
    Role::NoMask,
    Role::NoPoll,
];

/// A process that encrypts with a trace.
fn program(role: Role, trace: impl AsRef<Path>) -> Command {
    let mut command = Command::new(env::current_exe().expect("a path"));
    command.args(["--exact", "trace::the_program", "--test-threads=1", "--nocapture"]);
    command.env(ROLE, format!("{role:?}")).env(TRACE, trace.as_ref());
    command
}

/// Runs the process, checks that its results are right and that it ends normally, and returns its output.
#[track_caller]
fn runs_normally(mut program: Command) -> (String, String) {
    let Output { status, stdout, stderr } = program.output().expect("this very program starts");
    let [out, error] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(status.success() && out.contains("1 passed"), "{status}\n{out}{error}");
    (out, error)
}

/// The content of the program's own file.
const PROGRAM_OUTPUT: &[u8] = b"the program's output\n";

/// Opens a file that gets the number of standard error, which is closed.
fn open_in_place_of_stderr(folder: &Path) -> (PathBuf, File) {
    let path = folder.join(format!("stderr-{}", process::id()));
    let mut file = File::create(&path).unwrap();
    assert_eq!(file.as_raw_fd(), 2, "the provider has opened a file as standard error");
    file.write_all(PROGRAM_OUTPUT).unwrap();
    (path, file)
}

/// Checks that the process ends normally if its standard error is another file.
#[track_caller]
fn exits_normally(mut program: Command, stderr: impl Into<Stdio>) {
    let child = program.stderr(stderr).stdout(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("1 passed"), "{program:?}: {}\n{out}", output.status);
}

/// Checks that a program whose trace fails exits normally: one line reports the failure.
#[track_caller]
fn runs_normally_without_trace(role: Role, trace: impl AsRef<Path>, why: &str) {
    let (_, error) = runs_normally(program(role, trace));
    let lines: Vec<_> = error.lines().filter(|line| line.starts_with("lockstep")).collect();
    assert!(lines.len() == 1 && lines[0].contains(why), "expected one line with {why:?}: {error:?}");
}

/// Encrypts with this provider and with OpenSSL's default provider.
fn encrypts(library: &Arc<Library>) {
    let data = bytes(100_000, 3);
    let [ours, theirs] = ["provider=lockstep", "provider=default"].map(|query| {
        let cipher = library.cipher("AES-256-CTR", query).expect("there");
        let mut context = cipher.context();
        assert_eq!(context.init(Some(&cipher), ENCRYPT, Some(&[1; 32]), Some(&[2; 16]), &Params::new()), 1);
        context.update(&data).expect("an update")
    });
    assert!(ours == theirs);
}

fn handler_and_mask() -> [Vec<u8>; 2] {
    let as_bytes = |set: &libc::sigset_t| {
        // SAFETY: the set is live, and is read as bytes.
        unsafe { std::slice::from_raw_parts((&raw const *set).cast::<u8>(), 8) }.to_vec()
    };
    // SAFETY: the arguments are places for the results, initialised with zeros, which are valid values; nothing is changed.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask);
        let mut handlers = Vec::new();
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            handlers.extend(action.sa_sigaction.to_ne_bytes());
        }
        [as_bytes(&mask), handlers]
    }
}

/// The process that the other tests start.
#[test]
fn the_program() {
    let Ok(role) = env::var(ROLE) else { return };
    let role = ROLES.into_iter().find(|other| format!("{other:?}") == role).expect("a role");
    let trace = env::var_os(TRACE).expect("set");
    let modules = modules();
    // SAFETY: no other thread is active. A process that hangs is ended by a signal.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::alarm(300);
    }
    let mut reader = None;
    match role {
        Role::NoFiles => {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: any process may set this limit.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &none) }, 0);
        }
        Role::ReaderCloses | Role::ReaderSleeps => {
            reader = Some(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&trace).unwrap());
            if role == Role::ReaderSleeps {
                let mut options = OpenOptions::new();
                fill(&mut options.write(true).custom_flags(libc::O_NONBLOCK).open(&trace).unwrap());
            }
        }
        // SAFETY: only the provider uses standard error in this process.
        Role::NoStderr | Role::NoStderrBefore => assert_eq!(unsafe { libc::close(2) }, 0),
        Role::Plain | Role::ClosesAll | Role::Forks | Role::Sandbox | Role::NoMask | Role::NoPoll => {}
    }
    let mut opened = Vec::new();
    if role == Role::NoStderrBefore {
        opened.push(open_in_place_of_stderr(&modules));
    }
    let before = handler_and_mask();
    let library = Arc::new(new_library());
    match role {
        Role::ReaderCloses => reader = None,
        Role::NoStderr => opened.push(open_in_place_of_stderr(&modules)),
        Role::ClosesAll => {
            // SAFETY: daemons close all descriptors in this way. This process does not need its other descriptors any
            // more.
            (3..1000).for_each(|number| unsafe { _ = libc::close(number) });
            opened.extend((0..8).map(|i| {
                let file = modules.join(format!("theirs-{}-{i}", process::id()));
                let mut theirs = File::create(&file).unwrap();
                theirs.write_all(PROGRAM_OUTPUT).unwrap();
                (file, theirs)
            }));
        }
        _ => {}
    }
    encrypts(&library);
    if matches!(role, Role::Forks | Role::Sandbox | Role::NoMask | Role::NoPoll) {
        // SAFETY: no other thread holds a lock. The child ends through the exit handlers, as a C program does.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(300);
                match role {
                    Role::Sandbox => enter_sandbox(),
                    Role::NoMask => refuse(&[libc::SYS_rt_sigprocmask], &[], libc::SECCOMP_RET_ALLOW),
                    Role::NoPoll => refuse(&POLLS, &[], libc::SECCOMP_RET_ALLOW),
                    _ => {}
                }
                encrypts(&library);
                libc::exit(0);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert_eq!(status, 0, "the child");
        }
        encrypts(&library);
    }
    assert_eq!(handler_and_mask(), before);
    drop(reader);
    // The totals are written on unloading or, for half of the roles, at the end of the process.
    if matches!(role, Role::Plain | Role::NoFiles) {
        std::mem::forget(library);
    } else {
        drop(library);
    }
    for (file, _theirs) in &opened {
        let content = fs::read(file).unwrap();
        fs::remove_file(file).unwrap();
        assert!(content == PROGRAM_OUTPUT, "{}: {}", file.display(), String::from_utf8_lossy(&content));
    }
}

/// The sandbox of the processes of OpenSSH's server that communicate with a client (sandbox-seccomp-filter.c): files
/// cannot grow, and system calls that are not on a list end the process.
fn enter_sandbox() {
    const REFUSED: [libc::c_long; 4] =
        [libc::SYS_openat, libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx];
    const ALLOWED: [libc::c_long; 22] = [
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_close,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_geteuid,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_madvise,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_nanosleep,
        libc::SYS_ppoll,
        libc::SYS_read,
        libc::SYS_rt_sigprocmask,
        libc::SYS_write,
        libc::SYS_writev,
    ];
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is for this process only, which is a child of the test's process.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &none) }, 0);
    refuse(&REFUSED, &ALLOWED, libc::SECCOMP_RET_KILL_PROCESS);
}

/// The system calls of `poll`.
const POLLS: [libc::c_long; 2] = [
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(not(target_arch = "x86_64"))]
    libc::SYS_ppoll,
    libc::SYS_ppoll,
];

/// Installs a filter: system calls in `refused` fail, system calls in `allowed` are allowed, and `others` is the action for all others.
fn refuse(refused: &[libc::c_long], allowed: &[libc::c_long], others: u32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let load = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0);
    let action = |value| statement(libc::BPF_RET | libc::BPF_K, value);
    let mut filter = vec![load];
    let mut rule = |number: libc::c_long, value| {
        let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        filter.push(libc::sock_filter { code, jt: 0, jf: 1, k: number as u32 });
        filter.push(action(value));
    };
    refused.iter().for_each(|number| rule(*number, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32));
    allowed.iter().for_each(|number| rule(*number, libc::SECCOMP_RET_ALLOW));
    #[cfg(target_arch = "x86_64")]
    rule(libc::SYS_poll, libc::SECCOMP_RET_ALLOW);
    filter.push(action(others));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter is for this process only, which is a child of the test's process.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

/// Writes until there is no space.
fn fill(pipe: &mut (impl Write + AsRawFd)) {
    let number = pipe.as_raw_fd();
    // SAFETY: calls on an open descriptor.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
    // SAFETY: as above.
    unsafe { libc::fcntl(number, libc::F_SETFL, flags | libc::O_NONBLOCK) };
    let mut piece = 4096;
    while piece > 0 {
        match pipe.write(&vec![0; piece]) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => piece /= 2,
            Err(error) => panic!("{error}"),
        }
    }
    // SAFETY: as above.
    unsafe { libc::fcntl(number, libc::F_SETFL, flags) };
}

fn fifo(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the argument is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

/// A folder for the files of a test. If the subject has no trace, prints this and returns `None`.
fn folder() -> Option<tempfile::TempDir> {
    (!subject_is_default("the trace")).then(|| tempfile::tempdir().expect("a folder"))
}

#[test]
fn a_file_and_standard_error_and_output_get_the_trace() {
    let Some(folder) = folder() else { return };
    let file = folder.path().join("trace");
    assert_eq!(runs_normally(program(Role::Plain, &file)).1, "");
    assert_eq!(runs_normally(program(Role::Forks, &file)).1, "");
    let text = fs::read_to_string(&file).unwrap();
    // The trace has lines of three processes: the first program, and the parent and the child of the second one.
    for line in ["first use", "100000 bytes in 1 calls"] {
        assert!(text.matches(line).count() >= 2, "{text}");
    }
    assert_eq!(text.matches("AES-256-CTR encrypt: first use").count(), 3, "{text}");
    let (out, error) = runs_normally(program(Role::Plain, "stdout"));
    assert!(out.contains("AES-256-CTR encrypt: first use") && error.is_empty(), "{out}{error}");
    let (out, error) = runs_normally(program(Role::Plain, "stderr"));
    assert!(error.contains("AES-256-CTR encrypt: first use") && !out.contains("AES-256"), "{out}{error}");
    // `stdout` and `stderr` name the streams, so no files with these names were created.
    assert!(!Path::new("stdout").exists() && !Path::new("stderr").exists());
}

#[test]
fn a_process_with_a_file_size_limit_is_not_affected() {
    let Some(folder) = folder() else { return };
    runs_normally_without_trace(Role::NoFiles, folder.path().join("trace"), "File too large");
}

#[test]
fn a_process_in_a_sandbox_is_not_affected() {
    let Some(folder) = folder() else { return };
    let file = folder.path().join("trace");
    // In the sandbox, the provider cannot determine the file of standard error, so it does not report that the trace has ended.
    assert_eq!(runs_normally(program(Role::Sandbox, &file)).1, "");
    // The parent's lines are written.
    assert!(fs::read_to_string(&file).unwrap().contains("bytes in 2 calls"));
    // Standard error is treated like any other file.
    runs_normally(program(Role::Sandbox, "stderr"));
}

/// Writing to standard error would raise a signal, and discarding the signal makes system calls that end the process.
#[test]
fn a_process_in_a_sandbox_does_not_write_to_a_full_or_closed_standard_error() {
    let Some(folder) = folder() else { return };
    for trace in ["trace", "stderr"] {
        let trace = if trace == "trace" { folder.path().join(trace) } else { trace.into() };
        let file = File::create(folder.path().join("stderr")).unwrap();
        exits_normally(program(Role::Sandbox, &trace), file);
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        exits_normally(program(Role::Sandbox, &trace), writer);
    }
}

#[test]
fn nothing_is_written_if_that_could_raise_a_signal_or_wait() {
    let Some(folder) = folder() else { return };
    for role in [Role::NoMask, Role::NoPoll] {
        let file = folder.path().join(format!("{role:?}"));
        assert_eq!(runs_normally(program(role, &file)).1, "");
        let traced = fs::read_to_string(&file).unwrap();
        assert_eq!(traced.matches("AES-256-CTR encrypt: first use").count(), 1, "{role:?}: {traced}");
    }
}

#[test]
fn a_full_disk_is_reported_once() {
    if folder().is_some() {
        runs_normally_without_trace(Role::Plain, "/dev/full", "No space left");
        runs_normally_without_trace(Role::Forks, "/dev/full", "No space left");
    }
}

#[test]
fn writes_to_fifos_without_a_reader_do_not_wait() {
    let Some(folder) = folder() else { return };
    let path = folder.path().join("fifo");
    fifo(&path);
    runs_normally_without_trace(Role::Plain, &path, "FIFO without a reader");
    runs_normally_without_trace(Role::ReaderCloses, &path, "Broken pipe");
    runs_normally_without_trace(Role::ReaderSleeps, &path, "is full");
}

#[test]
fn writes_to_a_full_standard_error_do_not_wait() {
    if folder().is_none() {
        return;
    }
    for trace in ["stderr", "/nowhere/trace"] {
        // The pipe is closed by its reader.
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        exits_normally(program(Role::Plain, trace), writer);
        // The FIFO is full, and writes to it block.
        let (reader, mut writer) = io::pipe().unwrap();
        fill(&mut writer);
        exits_normally(program(Role::Plain, trace), writer);
        drop(reader);
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_reported_and_the_provider_loads() {
    let Some(folder) = folder() else { return };
    let at = |name: &str| folder.path().join(name);
    runs_normally_without_trace(Role::Plain, folder.path(), "Is a directory");
    runs_normally_without_trace(Role::Plain, at("missing/trace"), "No such file");
    fs::write(at("file"), "").unwrap();
    symlink(at("file"), at("link")).unwrap();
    runs_normally_without_trace(Role::Plain, at("link"), "symbolic link");
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    runs_normally_without_trace(Role::Plain, at("socket"), "socket");
    fs::set_permissions(at("file"), fs::Permissions::from_mode(0o400)).unwrap();
    if OpenOptions::new().append(true).open(at("file")).is_ok() {
        eprintln!("NOT TESTED, this user may write to read-only files: a trace that may not be written");
        runs_normally(program(Role::Plain, at("file")));
    } else {
        runs_normally_without_trace(Role::Plain, at("file"), "Permission denied");
    }
}

#[test]
fn files_that_the_program_opens_are_not_written() {
    let Some(folder) = folder() else { return };
    let file = folder.path().join("trace");
    runs_normally(program(Role::NoStderr, &file));
    assert!(fs::read_to_string(&file).unwrap().contains("first use"));
    runs_normally_without_trace(Role::ClosesAll, &file, "the program has closed it");
}

/// If standard error is closed, the next file that the program opens gets descriptor 2. The provider must not write messages to this
/// file.
#[test]
fn messages_do_not_go_to_a_file_of_the_program() {
    let Some(folder) = folder() else { return };
    let path = folder.path().join("fifo");
    fifo(&path);
    for role in [Role::NoStderr, Role::NoStderrBefore] {
        for trace in ["/dev/full", "stderr", path.to_str().unwrap()] {
            runs_normally(program(role, trace));
        }
    }
}
