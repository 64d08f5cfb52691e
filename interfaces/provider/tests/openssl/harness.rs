//! The provider under test and OpenSSL's default provider in one library context, the algorithms that both must have,
//! and tests that run in a separate process.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::{env, fs, process};

use crate::evp::{Cipher, Library};

/// The provider that is compared with the default provider. `LOCKSTEP_TEST_SUBJECT=default` compares the default
/// provider with itself: this checks the tests, which must then find no difference.
pub(crate) fn subject() -> &'static str {
    static SUBJECT: LazyLock<String> =
        LazyLock::new(|| env::var("LOCKSTEP_TEST_SUBJECT").unwrap_or_else(|_| "lockstep".into()));
    &SUBJECT
}

/// True if the subject is the default provider; prints what is skipped. Called by tests of behaviour that only this provider
/// guarantees.
pub(crate) fn subject_is_default(what: &str) -> bool {
    let is = subject() == "default";
    if is {
        eprintln!("NOT TESTED, the subject is the default provider: {what}");
    }
    is
}

/// The folder that contains the provider as lockstep.so.
pub(crate) fn modules() -> PathBuf {
    // The module is copied once in a process, because tests run in parallel.
    static MODULES: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        if subject() == "lockstep" {
            // cargo builds the library of this package next to the test executable.
            let built = env::current_exe().expect("a path").with_file_name("liblockstep_provider.so");
            // The copy is renamed, because other processes of this suite may be loading the file.
            let part = folder.join(format!("lockstep.so.{}", process::id()));
            fs::copy(&built, &part).unwrap_or_else(|e| panic!("{}: {e}", built.display()));
            fs::rename(&part, folder.join("lockstep.so")).expect("both are in one folder");
        }
        folder
    });
    MODULES.clone()
}

/// A library context with the default provider and the subject.
pub(crate) fn new_library() -> Library {
    let library = Library::new(&modules());
    library.load("default");
    library.load(subject());
    library
}

/// The library context that tests share.
pub(crate) fn library() -> &'static Arc<Library> {
    static LIBRARY: LazyLock<Arc<Library>> = LazyLock::new(|| Arc::new(new_library()));
    &LIBRARY
}

/// The property query that selects the subject's algorithms.
pub(crate) fn query() -> String {
    format!("provider={}", subject())
}

/// The subject's implementation of an algorithm. Checks that the algorithm belongs to the subject.
pub(crate) fn ours(name: &str) -> Cipher {
    let cipher = library().cipher(name, &query()).unwrap_or_else(|| panic!("{name} is not in the subject"));
    assert_eq!(cipher.provider(), subject(), "{name} was fetched from another provider");
    cipher
}

/// The default provider's implementation.
pub(crate) fn theirs(name: &str) -> Cipher {
    library()
        .cipher(name, "provider=default")
        .unwrap_or_else(|| panic!("{name} is not in the default provider"))
}

/// The kinds of modes, by the way in which calls use them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Ecb,
    Cbc,
    /// CFB with 128, 8 and 1 bits, OFB and CTR.
    Stream,
    Xts,
    Gcm,
    Ccm,
    Ocb,
    /// One update is a message, and the tag is set before decryption.
    Siv,
    /// CBC with ciphertext stealing.
    Cts,
    /// Key wrap, with or without padding.
    Wrap,
}

#[derive(Debug)]
pub(crate) struct Algorithm {
    /// All names that the default provider of 3.0 to 4.0 lists.
    pub(crate) names: &'static [&'static str],
    pub(crate) mode: Mode,
}

impl Algorithm {
    pub(crate) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Maximum length of a test message: CFB8 needs a block operation for each byte, CFB1 one for each bit, and key wrap six
    /// for 8 bytes.
    pub(crate) fn max_test_len(&self) -> usize {
        match self.name() {
            name if name.ends_with("CFB1") => 70_000,
            name if name.ends_with("CFB8") => 2 << 20,
            name if name.contains("WRAP") => 70_000,
            _ => usize::MAX,
        }
    }

    /// True if an update is a whole message, and its length must suit the mode.
    pub(crate) fn is_one_update(&self) -> bool {
        matches!(self.mode, Mode::Cts | Mode::Wrap | Mode::Siv)
    }

    /// True if data are buffered to whole blocks.
    pub(crate) fn is_block(&self) -> bool {
        matches!(self.mode, Mode::Ecb | Mode::Cbc)
    }
}

const fn a(names: &'static [&'static str], mode: Mode) -> Algorithm {
    Algorithm { names, mode }
}

pub(crate) const ALGORITHMS: &[Algorithm] = &[
    a(&["AES-128-ECB", "2.16.840.1.101.3.4.1.1"], Mode::Ecb),
    a(&["AES-192-ECB", "2.16.840.1.101.3.4.1.21"], Mode::Ecb),
    a(&["AES-256-ECB", "2.16.840.1.101.3.4.1.41"], Mode::Ecb),
    a(&["AES-128-CBC", "AES128", "2.16.840.1.101.3.4.1.2"], Mode::Cbc),
    a(&["AES-192-CBC", "AES192", "2.16.840.1.101.3.4.1.22"], Mode::Cbc),
    a(&["AES-256-CBC", "AES256", "2.16.840.1.101.3.4.1.42"], Mode::Cbc),
    a(&["AES-128-CFB", "2.16.840.1.101.3.4.1.4"], Mode::Stream),
    a(&["AES-192-CFB", "2.16.840.1.101.3.4.1.24"], Mode::Stream),
    a(&["AES-256-CFB", "2.16.840.1.101.3.4.1.44"], Mode::Stream),
    a(&["AES-128-CFB8"], Mode::Stream),
    a(&["AES-192-CFB8"], Mode::Stream),
    a(&["AES-256-CFB8"], Mode::Stream),
    a(&["AES-128-CFB1"], Mode::Stream),
    a(&["AES-192-CFB1"], Mode::Stream),
    a(&["AES-256-CFB1"], Mode::Stream),
    a(&["AES-128-OFB", "2.16.840.1.101.3.4.1.3"], Mode::Stream),
    a(&["AES-192-OFB", "2.16.840.1.101.3.4.1.23"], Mode::Stream),
    a(&["AES-256-OFB", "2.16.840.1.101.3.4.1.43"], Mode::Stream),
    a(&["AES-128-CTR"], Mode::Stream),
    a(&["AES-192-CTR"], Mode::Stream),
    a(&["AES-256-CTR"], Mode::Stream),
    a(&["AES-128-XTS", "1.3.111.2.1619.0.1.1"], Mode::Xts),
    a(&["AES-256-XTS", "1.3.111.2.1619.0.1.2"], Mode::Xts),
    a(&["AES-128-GCM", "id-aes128-GCM", "2.16.840.1.101.3.4.1.6"], Mode::Gcm),
    a(&["AES-192-GCM", "id-aes192-GCM", "2.16.840.1.101.3.4.1.26"], Mode::Gcm),
    a(&["AES-256-GCM", "id-aes256-GCM", "2.16.840.1.101.3.4.1.46"], Mode::Gcm),
    a(&["AES-128-CCM", "id-aes128-CCM", "2.16.840.1.101.3.4.1.7"], Mode::Ccm),
    a(&["AES-192-CCM", "id-aes192-CCM", "2.16.840.1.101.3.4.1.27"], Mode::Ccm),
    a(&["AES-256-CCM", "id-aes256-CCM", "2.16.840.1.101.3.4.1.47"], Mode::Ccm),
    a(&["AES-128-OCB"], Mode::Ocb),
    a(&["AES-192-OCB"], Mode::Ocb),
    a(&["AES-256-OCB"], Mode::Ocb),
    a(&["AES-128-SIV"], Mode::Siv),
    a(&["AES-192-SIV"], Mode::Siv),
    a(&["AES-256-SIV"], Mode::Siv),
    a(&["AES-128-CBC-CTS"], Mode::Cts),
    a(&["AES-192-CBC-CTS"], Mode::Cts),
    a(&["AES-256-CBC-CTS"], Mode::Cts),
    a(&["AES-128-WRAP", "id-aes128-wrap", "AES128-WRAP", "2.16.840.1.101.3.4.1.5"], Mode::Wrap),
    a(&["AES-192-WRAP", "id-aes192-wrap", "AES192-WRAP", "2.16.840.1.101.3.4.1.25"], Mode::Wrap),
    a(&["AES-256-WRAP", "id-aes256-wrap", "AES256-WRAP", "2.16.840.1.101.3.4.1.45"], Mode::Wrap),
    a(&["AES-128-WRAP-PAD", "id-aes128-wrap-pad", "AES128-WRAP-PAD", "2.16.840.1.101.3.4.1.8"], Mode::Wrap),
    a(&["AES-192-WRAP-PAD", "id-aes192-wrap-pad", "AES192-WRAP-PAD", "2.16.840.1.101.3.4.1.28"], Mode::Wrap),
    a(&["AES-256-WRAP-PAD", "id-aes256-wrap-pad", "AES256-WRAP-PAD", "2.16.840.1.101.3.4.1.48"], Mode::Wrap),
    a(&["AES-128-WRAP-INV", "AES128-WRAP-INV"], Mode::Wrap),
    a(&["AES-192-WRAP-INV", "AES192-WRAP-INV"], Mode::Wrap),
    a(&["AES-256-WRAP-INV", "AES256-WRAP-INV"], Mode::Wrap),
    a(&["AES-128-WRAP-PAD-INV", "AES128-WRAP-PAD-INV"], Mode::Wrap),
    a(&["AES-192-WRAP-PAD-INV", "AES192-WRAP-PAD-INV"], Mode::Wrap),
    a(&["AES-256-WRAP-PAD-INV", "AES256-WRAP-PAD-INV"], Mode::Wrap),
];

/// One of [`ALGORITHMS`].
pub(crate) fn algorithm(name: &str) -> &'static Algorithm {
    ALGORITHMS.iter().find(|algorithm| algorithm.name() == name).expect("in the list")
}

/// Deterministic pseudo-random bytes.
pub(crate) fn bytes(n: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(n + 8);
    while out.len() < n {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    out.truncate(n);
    out
}

/// Runs the test with the path `name` in a separate process, in which it calls `body`. A crash, a hang at exit, or a fork
/// while threads of other tests run then affects this test only.
pub(crate) fn in_own_process(name: &str, body: impl FnOnce()) {
    in_own_process_with(name, &[], body);
}

/// Does the same as [`in_own_process`], with variables in the environment of that process.
pub(crate) fn in_own_process_with(name: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    const CHILD: &str = "LOCKSTEP_TEST_CHILD";
    if env::var(CHILD).is_ok_and(|child| child == name) {
        return body();
    }
    let output = Command::new(env::current_exe().expect("a path"))
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(CHILD, name)
        .envs(variables.iter().copied())
        .output()
        .expect("this very program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{name} in a separate process: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}
