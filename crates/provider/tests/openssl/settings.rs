//! What is configured changes how the work is done and never its result; what cannot be is said, with its name.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs, process};

use crate::evp::{self, ENCRYPT, Library, Params};
use crate::harness::{bytes, in_own_process_with, modules, subject_is_default, theirs};

/// Runs the suite's tests of modes, states, AEADs, TLS, scripts and robustness once more, under settings.
fn all_of_it_with(variables: &[(&str, &str)], but: &[&str]) {
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
fn all_of_it_holds_with_keystream_made_ahead() {
    all_of_it_with(&[("LOCKSTEP_AHEAD", "on")], &[]);
}

#[test]
fn all_of_it_holds_without_keystream_made_ahead_on_one_thread() {
    all_of_it_with(&[("LOCKSTEP_AHEAD", "off"), ("LOCKSTEP_THREADS", "1")], &[]);
}

#[test]
fn all_of_it_holds_with_many_threads_for_small_pieces() {
    all_of_it_with(&[("LOCKSTEP_THREADS", "3"), ("LOCKSTEP_THRESHOLD", "64")], &["ten_megabytes"]);
}

#[test]
fn all_of_it_holds_on_the_kernel_without_aes_instructions() {
    all_of_it_with(&[("LOCKSTEP_KERNEL", "cpu/soft"), ("LOCKSTEP_VERIFY", "full")], &["ten_megabytes"]);
}

/// Loading or the first use fails, and the error names the setting or its value.
fn refused(test: &str, variable: &str, value: &str) {
    if subject_is_default("settings") {
        return;
    }
    in_own_process_with(test, &[(variable, value)], || {
        let library = Library::new(&modules());
        library.load("default");
        evp::clear_errors();
        if library.try_load("lockstep") {
            let library = Arc::new(library);
            if let Some(cipher) = library.cipher("AES-256-CTR", "provider=lockstep") {
                let mut context = cipher.context();
                let init =
                    context.init(Some(&cipher), ENCRYPT, Some(&[1; 32]), Some(&[2; 16]), &Params::new());
                assert!(
                    init != 1 || context.update(&bytes(3_000_000, 1)).is_none(),
                    "{variable}={value} was taken"
                );
            }
        }
        let said = evp::errors().join("; ");
        assert!(said.contains(variable) || said.contains(value), "{said:?} does not name {variable}={value}");
    });
}

#[test]
fn a_device_that_is_not_there_is_named() {
    refused("settings::a_device_that_is_not_there_is_named", "LOCKSTEP_DEVICE", "cuda:77");
}

#[test]
fn a_kernel_that_does_not_exist_is_named() {
    refused("settings::a_kernel_that_does_not_exist_is_named", "LOCKSTEP_KERNEL", "cpu/abacus");
}

#[test]
fn a_number_that_is_none_is_named() {
    refused("settings::a_number_that_is_none_is_named", "LOCKSTEP_THREADS", "many");
}

#[test]
fn a_word_that_is_none_is_named() {
    refused("settings::a_word_that_is_none_is_named", "LOCKSTEP_VERIFY", "perhaps");
}

/// A configuration file that activates the default provider and ours, with `settings` in our section. Without its
/// `config_diagnostics` OpenSSL passes over a provider that refuses, and forgets why.
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
    assert_eq!(library.cipher("AES-128-OCB", "").expect("there").provider(), "default");
}

#[test]
fn a_configuration_file_that_asks_for_what_cannot_be_is_refused() {
    if subject_is_default("settings") {
        return;
    }
    for (setting, value) in [("threads", "many"), ("device", "cuda:77"), ("kernel", "cpu/abacus")] {
        let file = configuration(setting, &format!("{setting} = {value}\n"));
        let library = Library::new(&modules());
        evp::clear_errors();
        let configured = library.configure(&file);
        fs::remove_file(file).expect("removed");
        let library = Arc::new(library);
        let taken = configured
            && library.cipher("AES-256-CTR", "provider=lockstep").is_some_and(|cipher| {
                let mut context = cipher.context();
                context.init(Some(&cipher), ENCRYPT, Some(&[1; 32]), Some(&[2; 16]), &Params::new()) == 1
                    && context.update(&bytes(3_000_000, 1)).is_some()
            });
        assert!(!taken, "{setting} = {value} was taken");
        // OpenSSL keeps the errors of a file to itself; that we name the setting on standard error is tested with real
        // programs.
    }
}

/// Programs that are said to run on us can be asked for proof.
#[test]
fn the_trace_proves_who_did_the_work() {
    if subject_is_default("settings") {
        return;
    }
    let file = modules().join(format!("trace-{}.txt", process::id()));
    // One test in a process of its own, with the trace switched on from outside.
    let output = Command::new(env::current_exe().expect("a path"))
        .args(["--exact", "modes::a_context_serves_message_after_message"])
        .env("LOCKSTEP_TRACE", &file)
        .output()
        .expect("this very program starts");
    assert!(output.status.success(), "{output:?}");
    let said = fs::read_to_string(&file).unwrap_or_default();
    let _ = fs::remove_file(&file);
    assert!(said.contains("AES-256-CTR"), "the trace names no cipher: {said:?}");
}
