//! Settings change how the work is done and never its result. A setting that cannot be used is reported by its name.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs, process};

use crate::evp::{self, ENCRYPT, Library, Params};
use crate::harness::{bytes, modules, new_library, subject_is_default, theirs};

/// Runs the tests of modes, states, AEADs, TLS, scripts and robustness again, with settings in the environment.
fn run_suite_with(variables: &[(&str, &str)], but: &[&str]) {
    if subject_is_default("settings") {
        return;
    }
    let mut command = Command::new(env::current_exe().expect("a path"));
    command.args(["modes::", "state::", "aead::", "tls::", "random::", "macs::", "robust::"]);
    command.args(but.iter().flat_map(|name| ["--skip", name]));
    let output = command.envs(variables.iter().copied()).output().expect("this very program starts");
    assert!(
        output.status.success(),
        "with {variables:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_suite_passes_with_keystream_computed_ahead() {
    run_suite_with(&[("LOCKSTEP_AHEAD", "on")], &[]);
}

#[test]
fn the_suite_passes_without_keystream_computed_ahead_on_one_thread() {
    run_suite_with(&[("LOCKSTEP_AHEAD", "off"), ("LOCKSTEP_THREADS", "1")], &[]);
}

#[test]
fn the_suite_passes_with_many_threads_for_small_pieces() {
    run_suite_with(&[("LOCKSTEP_THREADS", "3"), ("LOCKSTEP_THRESHOLD", "64")], &["ten_megabytes"]);
}

#[test]
fn the_suite_passes_on_the_kernel_without_aes_instructions() {
    // These tests are skipped, because this kernel needs seconds for their messages. Messages of 4096 bytes, which are
    // split in the same way, are tested.
    let slow = ["ten_megabytes", "a_mebibyte"];
    run_suite_with(&[("LOCKSTEP_KERNEL", "cpu/soft"), ("LOCKSTEP_VERIFY", "full")], &slow);
}

/// A child cannot use the contexts of devices of its parent: its work is done by the CPU.
#[test]
#[cfg(feature = "opengl")]
fn children_of_a_process_that_uses_opengl_encrypt() {
    if subject_is_default("settings") {
        return;
    }
    let trace = modules().join(format!("forked-{}.txt", process::id()));
    for test in ["a_child_forked_after_loading_encrypts", "a_child_continues_with_contexts_of_its_parent"] {
        let place = trace.to_str().expect("a path in UTF-8");
        let variables = [("LOCKSTEP_DEVICE", "opengl:software"), ("LOCKSTEP_TRACE", place)];
        messages_of(&format!("robust::{test}"), &variables);
        let traced = fs::read_to_string(&trace).expect("a trace");
        assert!(traced.contains("opengl:software opengl/fixslice: "), "{test}: {traced}");
        assert!(
            traced.contains("opengl:software failed: the process that this one was forked from"),
            "{test}"
        );
        fs::remove_file(&trace).expect("the trace is ours");
    }
}

/// The messages of the provider in a separate process that runs only `test`.
fn messages_of(test: &str, variables: &[(&str, &str)]) -> String {
    let output = Command::new(env::current_exe().expect("a path"))
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .expect("this very program starts");
    let [out, error] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && out.contains("1 passed"), "{test} with {variables:?}:\n{out}{error}");
    error
}

/// True if the provider is loaded and its first cipher encrypts.
fn works(library: &Arc<Library>) -> bool {
    let data = bytes(3_000_000, 1);
    let [ours, theirs] = ["provider=lockstep", "provider=default"].map(|query| {
        let cipher = library.cipher("AES-256-CTR", query)?;
        let mut context = cipher.context();
        let init = context.init(Some(&cipher), ENCRYPT, Some(&[1; 32]), Some(&[2; 16]), &Params::new());
        context.update(&data).filter(|_| init == 1)
    });
    ours.is_some() && ours == theirs
}

/// [`a_bad_environment_is_reported_once_and_ignored`] runs this test in a child process, which loads the provider three times.
#[test]
fn a_program_with_a_bad_environment() {
    if env::var_os("LOCKSTEP_TEST_BAD").is_none() {
        return;
    }
    for _ in 0..3 {
        assert!(works(&Arc::new(new_library())));
    }
}

/// The command `lockstep` reads the same variables and supports devices that the provider does not.
#[test]
fn a_bad_environment_is_reported_once_and_ignored() {
    if subject_is_default("settings") {
        return;
    }
    let trace = modules().join(format!("bad-{}.txt", process::id()));
    for (variable, value, text) in [
        (
            "LOCKSTEP_DEVICE",
            "wgpu:0",
            "LOCKSTEP_DEVICE is ignored: device is `wgpu:0`: give a device that the provider has",
        ),
        ("LOCKSTEP_DEVICE", "cuda:77", "LOCKSTEP_DEVICE is ignored: no device `cuda:77`"),
        ("LOCKSTEP_DEVICE", "abacus", "LOCKSTEP_DEVICE is ignored: device is `abacus`"),
        ("LOCKSTEP_KERNEL", "cpu/abacus", "LOCKSTEP_KERNEL is ignored: no kernel `cpu/abacus`"),
        ("LOCKSTEP_KERNEL", "wgpu/bitslice", "LOCKSTEP_KERNEL is ignored: kernel is `wgpu/bitslice`"),
        ("LOCKSTEP_THREADS", "many", "LOCKSTEP_THREADS is `many` and is ignored: give a number of threads"),
        ("LOCKSTEP_THRESHOLD", "1X", "LOCKSTEP_THRESHOLD is `1X` and is ignored: give a number of bytes"),
        (
            "LOCKSTEP_VERIFY",
            "perhaps",
            "LOCKSTEP_VERIFY is `perhaps`, so all results are compared (full): give off, sample or full",
        ),
        ("LOCKSTEP_AHEAD", "1", "LOCKSTEP_AHEAD is `1` and is ignored: give on, off or auto"),
        // Control characters are escaped, because they could control a terminal or start a line.
        (
            "LOCKSTEP_DEVICE",
            "x\x1b[31m\nlockstep: a device",
            r"LOCKSTEP_DEVICE is ignored: device is `x\x1b[31m\nlockstep: a device`: give",
        ),
        ("LOCKSTEP_DEVICE", "cuda:\u{202e}7", r"LOCKSTEP_DEVICE is ignored: no device `cuda:\u{202e}7`"),
        ("LOCKSTEP_THREADS", "4\r\u{9b}", r"LOCKSTEP_THREADS is `4\r\u{9b}` and is ignored"),
    ] {
        let trace = trace.to_str().expect("UTF-8");
        let variables = [("LOCKSTEP_TEST_BAD", "1"), ("LOCKSTEP_TRACE", trace), (variable, value)];
        let error = messages_of("settings::a_program_with_a_bad_environment", &variables);
        let lines: Vec<_> = error.lines().filter(|line| line.starts_with("lockstep: ")).collect();
        assert!(lines.len() == 1 && lines[0].contains(text), "expected one line with {text:?}: {error}");
        let traced = fs::read_to_string(trace).unwrap_or_default();
        let _ = fs::remove_file(trace);
        assert!(traced.contains(text), "{variable}={value} is not in the trace: {traced}");
    }
    // `LOCKSTEP_TRACE` with a relative path is ignored, with a message, and no file is made.
    let variables = [("LOCKSTEP_TEST_BAD", "1"), ("LOCKSTEP_TRACE", "trace.txt")];
    let error = messages_of("settings::a_program_with_a_bad_environment", &variables);
    assert!(error.contains(
        "LOCKSTEP_TRACE is `trace.txt` and is ignored: give off, stderr, stdout or the absolute path"
    ));
    assert!(!std::path::Path::new("trace.txt").exists());
}

/// A configuration file that activates the default provider and this one, with `settings` in this provider's section.
/// Without its `config_diagnostics` OpenSSL ignores a provider that does not load, and discards the error.
fn configuration(name: &str, settings: &str) -> PathBuf {
    let module = modules().join("lockstep.so");
    let file = modules().join(format!("{name}-{}.cnf", process::id()));
    let text = format!(
        "openssl_conf = all\nconfig_diagnostics = 1\n[all]\nproviders = which\nalg_section = preferred\n\
         [which]\ndefault = default_provider\nlockstep = lockstep_provider\n\
         [default_provider]\nactivate = 1\n\
         [lockstep_provider]\nmodule = {}\nactivate = 1\n{settings}\n\
         [preferred]\ndefault_properties = ?provider=lockstep\n",
        module.display()
    );
    fs::write(&file, text).expect("written");
    file
}

#[test]
fn a_configuration_file_is_enough() {
    if subject_is_default("settings") {
        return;
    }
    let file = configuration("enough", "threads = 2\nthreshold = 64K\nverify = sample\n");
    let library = Library::new(&modules());
    let configured = library.configure(&file);
    fs::remove_file(file).expect("removed");
    assert!(configured, "{:?}", evp::errors());
    let library = Arc::new(library);
    for name in ["AES-256-CTR", "AES-128-GCM"] {
        let cipher = library.cipher(name, "").expect("there");
        assert_eq!(cipher.provider(), "lockstep");
        let run = |cipher: &evp::Cipher| {
            let mut context = cipher.context();
            assert_eq!(
                context.init(
                    Some(cipher),
                    ENCRYPT,
                    Some(&[1; 32][..cipher.key_length()]),
                    Some(&[2; 16][..cipher.iv_length()]),
                    &Params::new()
                ),
                1
            );
            context.update(&bytes(1_000_000, 1))
        };
        assert!(run(&cipher) == run(&theirs(name)));
    }
    assert_eq!(library.cipher("ChaCha20", "").expect("there").provider(), "default");
}

/// A program for the tests of configuration files: it reads a file whose provider section is refused.
#[test]
fn a_program_with_a_bad_configuration() {
    let Some(file) = env::var_os("LOCKSTEP_TEST_BAD") else { return };
    let library = Library::new(&modules());
    // OpenSSL ignores a provider that does not load, and does not report the errors of a file.
    let _ = library.configure(&PathBuf::from(file));
    let library = Arc::new(library);
    assert!(library.cipher("AES-256-CTR", "provider=lockstep").is_none(), "the provider is loaded");
}

/// The message of the provider for a line in its section.
fn refused(line: &str) -> String {
    let name: String = line.chars().filter(char::is_ascii_alphanumeric).collect();
    let file = configuration(&name, &format!("{line}\n"));
    let path = file.to_str().expect("UTF-8");
    let error = messages_of("settings::a_program_with_a_bad_configuration", &[("LOCKSTEP_TEST_BAD", path)]);
    fs::remove_file(&file).expect("removed");
    let mut lines = error.lines().filter_map(|line| line.strip_prefix("lockstep: "));
    let text = lines.next().unwrap_or_default().to_string();
    assert!(text.ends_with("; the provider is not loaded") && lines.next().is_none(), "{line}: {error}");
    text
}

#[test]
fn a_configuration_file_with_a_bad_value_is_refused() {
    if subject_is_default("settings") {
        return;
    }
    for (line, text) in [
        ("threads = many", "setting threads is `many`: give a number of threads from 1 to 1024"),
        ("threads = 0", "setting threads is `0`"),
        ("threshold = lots", "setting threshold is `lots`: give a number of bytes"),
        ("verify = perhaps", "setting verify is `perhaps`: give off, sample or full"),
        ("ahead = 1", "setting ahead is `1`: give on, off or auto"),
        ("trace = trace.txt", "setting trace is `trace.txt`: give off, stderr, stdout or the absolute path"),
        ("device = cuda:77", "no device `cuda:77`"),
        ("device = wgpu:software", "device is `wgpu:software`: give a device that the provider has"),
        ("device = spu", "device is `spu`: simulated devices are in lockstep-lab"),
        ("device = cuda:emu", "no device `cuda:emu`: there are cpu; simulated devices are in lockstep-lab"),
        ("kernel = cpu/abacus", "no kernel `cpu/abacus`"),
        // Options of a GPU are checked before its driver is started.
        (
            "device = cuda:0\nlaunch = threads=30",
            "launch option `threads=30`: kernels with this option are cuda/fine-shared",
        ),
        (
            "device = cuda:0\nkernel = cuda/coarse-shared\nlaunch = threads=30",
            "launch option `threads=30`: give the threads of a thread block, from 8 to 512, a multiple of 4",
        ),
    ] {
        let error = refused(line);
        assert!(error.starts_with(text), "{line}: {error}");
    }
}

#[test]
fn a_configuration_file_with_a_misspelt_name_is_refused() {
    if subject_is_default("settings") {
        return;
    }
    let all = "There are device, kernel, launch, threads, threshold, verify, calibrate, ahead, trace";
    for (wrong, right) in [
        ("treads", "threads"),
        ("Threads", "threads"),
        ("devcie", "device"),
        ("kernal", "kernel"),
        ("threshhold", "threshold"),
        ("verfiy", "verify"),
        ("a_head", "ahead"),
        ("trace_file", "trace"),
    ] {
        let error = refused(&format!("{wrong} = 4"));
        let text = format!("there is no setting `{wrong}`, did you mean `{right}`? {all}");
        assert!(error.starts_with(&text), "{error}");
    }
}

/// If a value is the name of the section, OpenSSL takes it for a reference to the section, and does not pass it to the provider. The
/// provider cannot detect this, so docs/provider.md describes it.
#[test]
fn a_value_that_names_a_section_is_not_passed_to_the_provider() {
    if subject_is_default("settings") {
        return;
    }
    for (section, refused) in [("", true), ("[many]\nname = value\n", false)] {
        let file = configuration("section", &format!("threads = many\n{section}"));
        let library = Library::new(&modules());
        let _ = library.configure(&file);
        fs::remove_file(file).expect("removed");
        let found = Arc::new(library).cipher("AES-256-CTR", "provider=lockstep");
        assert_eq!(found.is_none(), refused, "{section:?}");
    }
}

/// A program for [`a_trace_to_standard_output_creates_no_file`].
#[test]
fn a_program_with_a_configuration() {
    let Some(file) = env::var_os("LOCKSTEP_TEST_GOOD") else { return };
    let library = Library::new(&modules());
    assert!(library.configure(&PathBuf::from(file)), "{:?}", evp::errors());
    assert!(works(&Arc::new(library)));
}

#[test]
fn a_trace_to_standard_output_creates_no_file() {
    if subject_is_default("settings") {
        return;
    }
    let file = configuration("stdout", "trace = stdout\n");
    let output = Command::new(env::current_exe().expect("a path"))
        .args(["--exact", "settings::a_program_with_a_configuration", "--nocapture"])
        .env("LOCKSTEP_TEST_GOOD", &file)
        .output()
        .expect("this very program starts");
    fs::remove_file(&file).expect("removed");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("AES-256-CTR encrypt: first use"), "{output:?}");
    assert!(!std::path::Path::new("stdout").exists());
}

/// The trace shows which provider has done the work of a program.
#[test]
fn the_trace_names_the_ciphers_that_were_used() {
    if subject_is_default("settings") {
        return;
    }
    let file = modules().join(format!("trace-{}.txt", process::id()));
    // One test in a separate process, with the trace enabled in its environment.
    let output = Command::new(env::current_exe().expect("a path"))
        .args(["--exact", "modes::a_context_processes_several_messages"])
        .env("LOCKSTEP_TRACE", &file)
        .output()
        .expect("this very program starts");
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let _ = fs::remove_file(&file);
    assert!(text.contains("AES-256-CTR"), "the trace names no cipher: {text:?}");
}
