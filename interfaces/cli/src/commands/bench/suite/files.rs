//! The suite `files`, which measures complete programs that process files: `lockstep`, `cp` and `openssl enc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction};
use lockstep::{Engine, FileKey, keyfile};
use lockstep_bench::workload::random;
use lockstep_report::bars::Bars;
use lockstep_report::{Table, text};
use serde_json::json;
use tempfile::TempDir;

use super::{AUTO, Rate, Section, Session, in_turn, report};
use crate::commands::bench::instruments::children_time;
use crate::error::{Error, Result, check_stopped, ensure, failed};
use crate::invocation;
use crate::signals::Guard;

/// The output that a contender must produce. The suite verifies it.
enum Output {
    /// A message in the file format of this library.
    Message,
    /// The plaintext.
    Plaintext,
    /// The AES-256-CTR ciphertext of the plaintext with this key and this IV.
    Ctr([u8; 32], [u8; 16]),
    /// No output file: the output is written to `/dev/null`.
    Nothing,
}

struct Contender {
    name: String,
    command: Command,
    output: Output,
    seconds: Vec<f64>,
    cpu: Option<Duration>,
}

/// The files of a run, in a temporary folder.
struct TestFiles {
    folder: TempDir,
    plaintext: Vec<u8>,
    key: FileKey,
    engine: Engine,
}

impl TestFiles {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

pub(super) fn run(session: &Session<'_>, section: &mut Section) -> Result<()> {
    let head = ["size", "who", "seconds", "least", "most", "GB/s", "times cp's", "CPU s/GB"];
    let mut table = Table::new("Files", &head, 2);
    for size in session.sizes(&[256 << 20], &[1 << 20]) {
        // While the guard exists, a signal only stops the measurement. The folder is removed when the files are dropped.
        let guard = Guard::creating();
        let files = prepare(session, size, &guard)?;
        let mut contenders = contenders(session, &files)?;
        measure(session, &files, &mut contenders)?;
        let parent = files.folder.path().parent().unwrap_or(Path::new("/"));
        section.findings = vec![format!("Files in {}.", parent.display())];
        drop(files);
        drop(guard);
        let cp = contenders.iter().find(|one| one.name == "cp");
        let cp = cp.map(|one| Rate::of(one.seconds.clone()).median);
        let title = format!("A file of {}: GB/s over the run time of the program", report::size(size));
        let mut bars = Bars { title, ..Bars::default() };
        for one in contenders {
            let cpu = one.cpu.map(|cpu| cpu.as_secs_f64() / one.seconds.len() as f64 / size as f64);
            let seconds = Rate::of(one.seconds);
            let Rate { median, least, most } = seconds;
            let rate = |seconds: f64| size as f64 / seconds / 1e9;
            let times = cp.map_or("-".into(), |cp| format!("{:.2}", median / cp));
            let mut row = vec![report::size(size), one.name.clone()];
            row.extend([median, least, most].map(|seconds| format!("{seconds:.3}")));
            row.extend([report::digits(rate(median)), times, report::per_gb(cpu)]);
            table.rows.push(row);
            let spread = (rate(most), rate(least));
            bars.push(&one.name, [("median; line: minimum to maximum", rate(median), spread)]);
            section.results.push(json!({
                "size": size, "who": one.name, "verified": !matches!(one.output, Output::Nothing),
                "seconds": seconds.json(), "cpu_seconds_per_gb": cpu.map(|cpu| cpu * 1e9),
            }));
        }
        section.pictures.push(bars.svg());
    }
    section.findings.extend(session.left_out(&session.kernels));
    section.tables.push(table);
    Ok(())
}

/// Writes the files that the contenders read. `guard` gets the path of their folder, so that the folder is removed after a signal.
fn prepare(session: &Session<'_>, size: usize, guard: &Guard) -> Result<TestFiles> {
    let parent = session.args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix("lockstep-bench-").tempdir_in(&parent);
    let folder =
        folder.map_err(|error| failed(format!("cannot make a folder in {}: {error}", parent.display())))?;
    guard.set_folder(folder.path());
    let key = FileKey::generate()?;
    let engine = session.engine("cpu", None, None)?;
    let files = TestFiles { folder, plaintext: random(size), key, engine };
    keyfile::create(&files.path("key"), &files.key)?;
    session.note(&format!("files: writing {}", text::bytes(size as u64)));
    let message = lockstep::seal(&files.engine, &files.key, b"", &files.plaintext)?;
    for (name, content) in [("plain", &files.plaintext), ("message", &message)] {
        let path = files.path(name);
        fs::write(&path, content).map_err(Error::io("write", &path))?;
    }
    Ok(files)
}

fn contenders(session: &Session<'_>, files: &TestFiles) -> Result<Vec<Contender>> {
    let missing =
        "cannot find this program: the command is not a program of its own: run the program `lockstep`";
    let program = invocation::program().ok_or_else(|| failed(missing))?;
    let mut devices = session.devices()?;
    if session.devices.is_empty() {
        // `auto` replaces `cpu`, because the planner chooses the CPU on a machine without other devices.
        devices.retain(|device| device != "cpu");
        devices.insert(0, AUTO.into());
    }
    let (out, null) = (files.path("out"), PathBuf::from("/dev/null"));
    let mut all = Vec::new();
    for device in devices {
        let suffix = if device == AUTO { String::new() } else { format!(", {device}") };
        for (name, verb, from, to, output) in [
            ("encrypt", "encrypt", "plain", &out, Output::Message),
            ("decrypt", "decrypt", "message", &out, Output::Plaintext),
            ("encrypt to /dev/null", "encrypt", "plain", &null, Output::Nothing),
        ] {
            let mut contender = Contender::new(format!("{name}{suffix}"), program, output);
            let command = &mut contender.command;
            command.args([verb, "--quiet", "--device", &device, "--force", "-k"]).arg(files.path("key"));
            if let Some(kernel) = session.kernels.first() {
                command.args(["--kernel", kernel]);
            }
            if let Some(threads) = session.args.threads {
                command.args(["--threads", &threads.to_string()]);
            }
            command.arg("-o").arg(to).arg(files.path(from));
            all.push(contender);
        }
    }
    all.push(copy(files));
    for openssl in &session.openssl {
        let key: [u8; 32] = random(32).try_into().expect("32 bytes");
        let iv: [u8; 16] = random(16).try_into().expect("16 bytes");
        let version = openssl.version.split(' ').take(2).collect::<Vec<_>>().join(" ");
        for (name, to, output) in
            [("", &out, Output::Ctr(key, iv)), (" to /dev/null", &null, Output::Nothing)]
        {
            let mut contender = Contender::new(format!("{version} enc{name}"), &openssl.program, output);
            let command = &mut contender.command;
            // The key is visible in the list of processes. This is acceptable because the file contains only random
            // bytes.
            command.args(["enc", "-aes-256-ctr", "-K", &text::hex(&key), "-iv", &text::hex(&iv)]);
            command.arg("-in").arg(files.path("plain")).arg("-out").arg(to);
            all.push(contender);
        }
    }
    Ok(all)
}

/// The contender `cp`. It must copy the blocks of the file.
fn copy(files: &TestFiles) -> Contender {
    let mut copy = Contender::new("cp".into(), Path::new("cp"), Output::Plaintext);
    // Without this option, some file systems only add a reference to the same blocks.
    let option = "--reflink=never";
    let mut trial = Command::new("cp");
    trial.arg(option).arg(files.path("key")).arg(files.path("out"));
    let is_supported = trial.output().is_ok_and(|done| done.status.success());
    copy.command.args(is_supported.then_some(option)).arg(files.path("plain")).arg(files.path("out"));
    copy
}

impl Contender {
    fn new(name: String, program: &Path, output: Output) -> Contender {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let cpu = children_time().map(|_| Duration::ZERO);
        Contender { name, command, output, seconds: Vec::new(), cpu }
    }
}

fn measure(session: &Session<'_>, files: &TestFiles, contenders: &mut [Contender]) -> Result<()> {
    let rounds = session.setting(3, Duration::ZERO).rounds;
    let out = files.path("out");
    in_turn(rounds, contenders.len(), |round, index| {
        let contender = &mut contenders[index];
        session.note(&format!("files: {}, round {round} of {rounds}", contender.name));
        // No output file exists when a contender starts, so that all contenders run under the same conditions.
        if out.exists() {
            fs::remove_file(&out).map_err(Error::io("remove", &out))?;
        }
        let cpu = children_time();
        let start = Instant::now();
        let done = contender.command.output();
        let seconds = start.elapsed().as_secs_f64();
        let cpu = children_time().zip(cpu).map(|(after, before)| after - before);
        let done = done.map_err(|error| failed(format!("cannot run {}: {error}", contender.name)))?;
        check_stopped()?;
        let message = text::one_line(&String::from_utf8_lossy(&done.stderr));
        ensure(done.status.success(), format_args!("{} failed: {message}", contender.name))?;
        verify(files, contender, &out)?;
        if round > 0 {
            contender.seconds.push(seconds);
            contender.cpu = contender.cpu.zip(cpu).map(|(sum, more)| sum + more);
        }
        Ok(())
    })
}

/// Reads the output file, decrypts it if it is encrypted, and compares the result with the plaintext.
fn verify(files: &TestFiles, contender: &Contender, out: &Path) -> Result<()> {
    let read = || fs::read(out).map_err(Error::io("read", out));
    let plaintext = match &contender.output {
        Output::Nothing => return Ok(()),
        Output::Plaintext => read()?,
        Output::Message => lockstep::open(&files.engine, &files.key, b"", &read()?)?,
        Output::Ctr(key, iv) => {
            let (key, mut made) = (CipherKey::new(Cipher::Ctr, key)?, read()?);
            let data = Data::in_place(&mut made);
            Cipher::Ctr.one(files.engine.planner(), Direction::Decrypt, &key, &mut iv.clone(), data)?;
            made
        }
    };
    ensure(plaintext == files.plaintext, format_args!("{}: the output is wrong", contender.name))
}

#[cfg(test)]
mod tests;
