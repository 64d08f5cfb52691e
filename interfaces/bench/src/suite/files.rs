//! Complete programs that process files: `lockstep`, `cp` and `openssl enc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lockstep::hazmat::mode::{Cipher, CipherKey, Direction};
use lockstep::{Engine, FileKey, Options, keyfile};
use lockstep_report::bars::Bars;
use lockstep_report::{Table, text};
use serde_json::json;
use tempfile::TempDir;

use crate::Session;
use crate::cpu_time;
use crate::error::{Error, Result, failed};
use crate::measure::{Rate, in_turn};
use crate::report::{self, Picture, Section};
use crate::session::AUTO;
use crate::workload::random;

const SIZES: [usize; 1] = [256 << 20];
const QUICK_SIZES: [usize; 1] = [1 << 20];

/// The output that a contender must produce. It is verified.
enum Output {
    /// A message in the file format of this library.
    Message,
    /// The plaintext.
    Plaintext,
    /// AES-256-CTR of the plaintext under a key and IV.
    Ctr([u8; 32], [u8; 16]),
    /// No output file: the output is written to `/dev/null`.
    Nothing,
}

struct Contender {
    name: String,
    command: Box<dyn Fn() -> Command>,
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

pub(super) fn run(session: &Session, section: &mut Section) -> Result<()> {
    let mut table = Table::new(
        "Files",
        &["size", "who", "seconds", "least", "most", "GB/s", "times cp's", "CPU s/GB"],
        2,
    );
    for size in session.sizes(&SIZES, &QUICK_SIZES) {
        // After a signal the host stops the measurement, and the folder is removed when this function returns.
        let mut guard = session.host.guard_folder();
        let folder = folder(session)?;
        guard.set_path(folder.path());
        let files = prepare(session, folder, size)?;
        let mut contenders = contenders(session, &files)?;
        measure(session, &files, &mut contenders)?;
        let parent = files.folder.path().parent().unwrap_or(Path::new("/"));
        section.findings = vec![format!("Files in {}.", parent.display())];
        drop(files);
        drop(guard);
        let cp =
            contenders.iter().find(|one| one.name == "cp").map(|one| Rate::of(one.seconds.clone()).median);
        let title = format!("A file of {}: GB/s over the run time of the program", report::size(size));
        let mut bars = Bars { title, ..Bars::default() };
        for one in contenders {
            let seconds = Rate::of(one.seconds.clone());
            let Rate { median, least, most } = seconds;
            let rate = |seconds: f64| size as f64 / seconds / 1e9;
            let cpu = one.cpu.map(|cpu| cpu.as_secs_f64() / one.seconds.len() as f64 / size as f64 * 1e9);
            table.rows.push(vec![
                report::size(size),
                one.name.clone(),
                format!("{median:.3}"),
                format!("{least:.3}"),
                format!("{most:.3}"),
                report::digits(rate(median)),
                cp.map_or("-".into(), |cp| format!("{:.2}", median / cp)),
                cpu.map_or("-".into(), report::digits),
            ]);
            let spread = (rate(most), rate(least));
            bars.push(&one.name, [("median; line: minimum to maximum", rate(median), spread)]);
            section.results.push(json!({
                "size": size, "who": one.name, "verified": !matches!(one.output, Output::Nothing),
                "seconds": seconds.json(), "cpu_seconds_per_gb": cpu,
            }));
        }
        section.pictures.push(Picture::Bars(bars));
    }
    section.findings.extend(session.left_out(&session.options.kernels));
    section.tables.push(table);
    Ok(())
}

fn folder(session: &Session) -> Result<TempDir> {
    let parent = session.options.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix("lockstep-bench-").tempdir_in(&parent);
    folder.map_err(|error| failed(format!("cannot make a folder in {}: {error}", parent.display())))
}

fn prepare(session: &Session, folder: TempDir, size: usize) -> Result<TestFiles> {
    let key = FileKey::generate()?;
    keyfile::create(&folder.path().join("key"), &key)?;
    let plaintext = random(size);
    let engine = session.engine_on("cpu", None, None)?;
    let files = TestFiles { folder, plaintext, key, engine };
    session.note(&format!("files: writing {}", text::bytes(size as u64)));
    let write = |path: PathBuf, content: &[u8]| fs::write(&path, content).map_err(Error::io("write", &path));
    write(files.path("plain"), &files.plaintext)?;
    let mut message = Vec::new();
    lockstep::encrypt(&files.engine, &files.key, b"", &files.plaintext[..], &mut message, Options::new())?;
    write(files.path("message"), &message)?;
    Ok(files)
}

fn contenders(session: &Session, files: &TestFiles) -> Result<Vec<Contender>> {
    let program =
        session.host.program().map_err(|error| failed(format!("cannot find this program: {error}")))?;
    let mut devices = session.devices()?;
    if session.options.devices.is_empty() {
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
            let (program, device, to) = (program.clone(), device.clone(), to.clone());
            let (key, from) = (files.path("key"), files.path(from));
            let (kernel, threads) = (session.options.kernels.first().cloned(), session.options.threads);
            let command = move || {
                let mut command = Command::new(&program);
                command.args([verb, "--quiet", "--device", &device, "--force", "-k"]).arg(&key);
                if let Some(kernel) = &kernel {
                    command.args(["--kernel", kernel]);
                }
                if let Some(threads) = threads {
                    command.args(["--threads", &threads.to_string()]);
                }
                command.arg("-o").arg(&to).arg(&from);
                command
            };
            all.push(Contender::new(format!("{name}{suffix}"), Box::new(command), output));
        }
    }
    all.push(copy(files));
    for openssl in &session.options.openssl {
        let key: [u8; 32] = random(32).try_into().expect("32 bytes");
        let iv: [u8; 16] = random(16).try_into().expect("16 bytes");
        let version = openssl.version.split(' ').take(2).collect::<Vec<_>>().join(" ");
        for (name, to, output) in
            [("", &out, Output::Ctr(key, iv)), (" to /dev/null", &null, Output::Nothing)]
        {
            let (plain, to, openssl) = (files.path("plain"), to.clone(), openssl.clone());
            let command = move || {
                let mut command = openssl.command();
                // The key is visible in the list of processes. This is acceptable because the file contains only random
                // bytes.
                command.args(["enc", "-aes-256-ctr", "-K", &text::hex(&key), "-iv", &text::hex(&iv)]);
                command.arg("-in").arg(&plain).arg("-out").arg(&to);
                command
            };
            all.push(Contender::new(format!("{version} enc{name}"), Box::new(command), output));
        }
    }
    Ok(all)
}

/// `cp`, which must copy the blocks of the file.
fn copy(files: &TestFiles) -> Contender {
    let (plain, out) = (files.path("plain"), files.path("out"));
    // Without this option, some file systems only add a reference to the same blocks.
    let option = "--reflink=never";
    let mut trial = Command::new("cp");
    trial.arg(option).arg(files.path("key")).arg(&out).stdout(Stdio::null()).stderr(Stdio::null());
    let is_supported = trial.status().is_ok_and(|status| status.success());
    let copy = move || {
        let mut command = Command::new("cp");
        command.args(is_supported.then_some(option)).arg(&plain).arg(&out);
        command
    };
    Contender::new("cp".into(), Box::new(copy), Output::Plaintext)
}

impl Contender {
    fn new(name: String, command: Box<dyn Fn() -> Command>, output: Output) -> Contender {
        Contender {
            name,
            command,
            output,
            seconds: Vec::new(),
            cpu: cpu_time::children_time().map(|_| Duration::ZERO),
        }
    }
}

fn measure(session: &Session, files: &TestFiles, contenders: &mut [Contender]) -> Result<()> {
    let setting = session.setting(3, Duration::ZERO);
    let out = files.path("out");
    in_turn(&setting, contenders.len(), |round, index| {
        let contender = &mut contenders[index];
        session.note(&format!("files: {}, round {round} of {}", contender.name, setting.rounds));
        // All contenders run under the same conditions: the output file does not exist.
        if out.exists() {
            fs::remove_file(&out).map_err(Error::io("remove", &out))?;
        }
        let mut command = (contender.command)();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let cpu = cpu_time::children_time();
        let start = Instant::now();
        let done = command.output();
        let seconds = start.elapsed().as_secs_f64();
        let cpu = cpu_time::children_time().zip(cpu).map(|(after, before)| after - before);
        let done = done.map_err(|error| failed(format!("cannot run {}: {error}", contender.name)))?;
        session.host.check_stopped()?;
        if !done.status.success() {
            let message = text::one_line(&String::from_utf8_lossy(&done.stderr));
            return Err(failed(format!("{} failed: {message}", contender.name)));
        }
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
    if matches!(contender.output, Output::Nothing) {
        return Ok(());
    }
    let mut made = fs::read(out).map_err(Error::io("read", out))?;
    let plaintext = match &contender.output {
        Output::Message => lockstep::open(&files.engine, &files.key, b"", &made)?,
        Output::Ctr(key, iv) => {
            let key = CipherKey::new(Cipher::Ctr, key)?;
            let planner = files.engine.planner();
            let data = lockstep::hazmat::data::Data::in_place(&mut made);
            Cipher::Ctr.one(planner, Direction::Decrypt, &key, &mut iv.clone(), data)?;
            made
        }
        Output::Plaintext | Output::Nothing => made,
    };
    if plaintext != files.plaintext {
        return Err(failed(format!("{}: the output is wrong", contender.name)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wrong, truncated and missing output files are detected.
    #[test]
    fn wrong_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::builder().device("cpu").threads(1).build().unwrap();
        let key = FileKey::generate().unwrap();
        let files = TestFiles { folder, plaintext: random(1000), key, engine };
        let message = lockstep::seal(&files.engine, &files.key, b"", &files.plaintext).unwrap();
        let (zero, iv) = ([7; 32], [9; 16]);
        let mut ctr = files.plaintext.clone();
        let cipher = CipherKey::new(Cipher::Ctr, &zero).unwrap();
        Cipher::Ctr
            .one(
                files.engine.planner(),
                Direction::Encrypt,
                &cipher,
                &mut iv.clone(),
                lockstep::hazmat::data::Data::in_place(&mut ctr),
            )
            .unwrap();
        for (output, right) in [
            (Output::Message, message),
            (Output::Plaintext, files.plaintext.clone()),
            (Output::Ctr(zero, iv), ctr),
        ] {
            let contender = Contender::new("c".into(), Box::new(|| Command::new("true")), output);
            let out = files.path("out");
            fs::write(&out, &right).unwrap();
            verify(&files, &contender, &out).unwrap();
            let mut wrong = right.clone();
            wrong[500] ^= 1;
            fs::write(&out, &wrong).unwrap();
            assert!(verify(&files, &contender, &out).is_err());
            fs::write(&out, &right[..900]).unwrap();
            assert!(verify(&files, &contender, &out).is_err());
            fs::remove_file(&out).unwrap();
            assert!(verify(&files, &contender, &out).is_err());
        }
    }
}
