//! Commands that print reports: inspect, devices, selftest, completions, man.

use age::secrecy::ExposeSecret;

use crate::common::*;

#[test]
fn inspect_reports_the_type_of_a_file() {
    let folder = Folder::with_keys();
    let inspect = |name: &str| folder.run(["inspect", "--json", name]).succeeded().json();
    for len in [0, 1, CHUNK, 100_000] {
        folder.write("cipher", folder.pipe(["encrypt", "-k", "key"], &data(len)).succeeded().stdout);
        let report = inspect("cipher");
        assert_eq!(report["kind"], "message");
        assert_eq!(report["plaintext_bytes"], len);
        assert_eq!(report["chunks"], len / CHUNK + 1);
        assert_eq!(report["message_bytes"], folder.read("cipher").len());
        let piped = folder.pipe(["inspect", "--json", "-"], &folder.read("cipher")).succeeded().json();
        assert_eq!(piped, report);
    }

    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public().to_string();
    let cipher =
        folder.pipe(["encrypt", "-r", &recipient, "-r", &recipient], &data(20_000)).succeeded().stdout;
    folder.write("cipher", &cipher);
    let report = inspect("cipher");
    assert_eq!(report["kind"], "envelope");
    assert_eq!(report["format"], "Cobblestone-256");
    assert_eq!(report["plaintext_bytes"], 20_000);
    assert_eq!(report["recipients"][1]["type"], "X25519");
    assert_eq!(report["recipients"].as_array().unwrap().len(), 2);
    assert_eq!(report["file_bytes"], cipher.len());
    let text = folder.run(["inspect", "cipher"]).succeeded();
    assert!(text.text().contains("to 2 recipients: X25519, X25519\n"), "{}", text.text());

    folder.write("passphrase", "secret");
    let cipher = folder.pipe(["encrypt", "--passphrase-file", "passphrase"], b"hello").succeeded().stdout;
    folder.write("cipher", cipher);
    let report = inspect("cipher");
    assert_eq!(report["passphrase"], true);
    assert_eq!(report["recipients"][0]["work_factor"], 18);

    let text = folder.run(["inspect", "key"]).succeeded();
    assert!(text.text().contains("a Lockstep key file, for Cobblestone-256"));
    assert!(!text.text().contains(&String::from_utf8(folder.read("key")).unwrap()[17..40]));
    assert_eq!(inspect("key")["kind"], "key");
    folder.write("age", age::encrypt(&identity.to_public(), b"hello").unwrap());
    assert_eq!(inspect("age")["kind"], "age");
    folder.write("identity", identity.to_string().expose_secret());
    let text = folder.run(["inspect", "identity"]);
    assert!(!text.text().contains("AGE-SECRET"));
}

#[test]
fn inspect_reports_errors() {
    let folder = Folder::with_keys();
    folder.write(
        "cut",
        &folder.pipe(["encrypt", "-k", "key"], &data(20_000)).succeeded().stdout[..HEADER + ENCRYPTED],
    );
    let ended = folder.run(["inspect", "cut"]).failed(1, "or it is incomplete");
    assert!(ended.text().contains("ciphertext: 16456 bytes"));
    let ended = folder.run(["inspect", "--json", "cut"]).failed_as_json(1, "or it is incomplete");
    assert_eq!(ended.json()["intact_length"], false);
    folder.write("cut", b"lockstep.file/v1\n\xff");
    folder.run(["inspect", "cut"]).failed(1, "envelope");
    folder.write("cut", "");
    folder.run(["inspect", "cut"]).failed(1, "no message has this length");
    folder.run(["inspect"]).failed_usage("FILE");
}

#[test]
fn devices_are_listed() {
    let folder = Folder::new();
    let text = folder.run(["devices"]).succeeded();
    assert!(text.text().contains("cpu/soft") && text.text().contains("chosen on"));
    let report = folder.run(["devices", "--json"]).succeeded().json();
    let cpu = report["devices"].as_array().unwrap().iter().find(|device| device["name"] == "cpu").unwrap();
    let kernels = cpu["kernels"].as_array().unwrap();
    let soft = kernels.iter().find(|kernel| kernel["name"] == "cpu/soft").unwrap();
    assert!(soft["available"] == true && soft["constant_time"] == true);
    // The report states for each unavailable kernel why it is unavailable.
    assert!(kernels.iter().all(|kernel| kernel["available"] == true || kernel["missing"].is_string()));
    let forced = folder.run(["devices", "--json", "--kernel", "cpu/soft"]).succeeded().json();
    let chosen = forced["chosen"].as_array().unwrap();
    assert!(chosen.iter().any(|choice| choice["by_size"][0]["kernel"] == "cpu/soft"));
    folder.run(["devices", "--device", "abacus"]).failed(2, "abacus");
}

#[test]
fn kernels_are_tested() {
    let folder = Folder::new();
    let all = folder.run(["selftest"]).succeeded();
    assert!(all.text().contains("cpu/soft") && !all.text().contains("FAILED"));
    let one = folder.run(["selftest", "--kernel", "cpu/soft", "--json"]).succeeded().json();
    assert_eq!(one["passed"], true);
    assert_eq!(one["kernels"].as_array().unwrap().len(), 1);
    assert!(one["kernels"][0]["operations"].as_u64().unwrap() > 10);
    folder.run(["selftest", "--device", "cpu"]).succeeded();
    folder.run(["selftest", "--kernel", "cpu/abacus"]).failed(2, "cpu/abacus");
    folder.run(["selftest", "--device", "abacus"]).failed(2, "abacus");
}

#[test]
fn completions_for_every_shell() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = folder.run(["completions", shell]).succeeded();
        assert!(text.text().contains("keygen") && text.text().contains("passphrase-file"), "{shell}");
    }
    folder.shell("lockstep completions bash > script && bash -n script").succeeded();
    // The completions that bash offers at the end of `line`, if the characters `breaks` separate words.
    let offered_by = |breaks: &str, line: &str| {
        let complete = format!(
            "source ./script; COMP_LINE='lockstep {line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDBREAKS='{breaks}'; \
             COMP_WORDS=($COMP_LINE); COMP_CWORD=3; _lockstep_words lockstep \"${{COMP_WORDS[3]}}\" \"${{COMP_WORDS[2]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        folder.program("bash").args(["-c", &complete]).output().map(Ended::from).unwrap().text().to_owned()
    };
    let offered = |line: &str| offered_by(": =", line);
    assert_eq!(offered("encrypt --device cp"), "cpu\n");
    assert!(offered("encrypt --device ").lines().any(|name| name == "auto"));
    assert_eq!(offered("encrypt --kernel cpu/so"), "cpu/soft\n");
    assert_eq!(offered("encrypt --kernel=cpu/so"), "cpu/soft\n");
    assert_eq!(offered("encrypt --device cuda:"), "0\n");
    assert_eq!(offered("decrypt --device=cuda:"), "0\n");
    assert_eq!(offered("decrypt --quiet --device cuda:"), "0\n");
    // A word that bash does not split is replaced as a whole.
    assert_eq!(offered_by(": ", "encrypt --kernel=cpu/so"), "--kernel=cpu/soft\n");
    assert_eq!(offered_by(": ", "decrypt --device=cuda:"), "0\n");
    assert_eq!(offered_by(" =", "decrypt --device=cuda:"), "cuda:0\n");
    assert_eq!(offered_by(" ", "decrypt --device=cuda:"), "--device=cuda:0\n");
    assert_eq!(offered_by(" ", "decrypt --device=qqq"), "\n");
    folder.write("input-1", b"");
    for (command, option) in [
        ("encrypt", "--key"),
        ("encrypt", "-R"),
        ("decrypt", "-i"),
        ("decrypt", "--passphrase-file"),
        ("cipher", "--key-file"),
        ("picture", "--key-file"),
        ("keygen", "-o"),
        ("bench", "--html"),
        ("openssl-conf", "--module"),
    ] {
        assert_eq!(offered(&format!("{command} {option} inp")), "input-1\n", "{command} {option}");
    }
    folder.run(["completions", "cmd.exe"]).failed_usage("cmd.exe");
}

#[test]
fn manual_pages() {
    let folder = Folder::new();
    let page = folder.run(["man"]).succeeded();
    assert!(page.text().contains(".TH lockstep 1"), "{}", page.text());
    folder.run(["man", "--out-dir", "pages/man1"]).succeeded();
    for name in ["lockstep.1", "lockstep-encrypt.1", "lockstep-cipher.1"] {
        let page = String::from_utf8(folder.read(&format!("pages/man1/{name}"))).unwrap();
        for section in [".SH DESCRIPTION", ".SH \"EXIT STATUS\"", ".SH FILES", ".SH \"SEE ALSO\""] {
            assert!(page.contains(section), "{name}: {section}");
        }
        assert_eq!(page.contains(".SH EXAMPLES"), name != "lockstep.1", "{name}");
        for note in ["error is one JSON object", "An output file appears complete or not at all."] {
            assert_eq!(page.contains(note), name == "lockstep.1", "{name}: {note}");
        }
    }
    if have("man") {
        let shown = folder.shell("man -l pages/man1/lockstep-encrypt.1 | cat").succeeded();
        assert!(
            shown.text().contains("lockstep encrypt -k key report.pdf -o report.pdf.enc\n"),
            "{}",
            shown.text()
        );
    }
    folder.write("file", "");
    folder.run(["man", "--out-dir", "file/man1"]).failed(2, "file/man1");
}

#[test]
fn a_kernel_and_a_device_that_do_not_match() {
    let folder = Folder::with_keys();
    let with = |device: &str, kernel: &str| {
        folder.run(["encrypt", "-k", "key", "key", "--device", device, "--kernel", kernel, "-o", "out"])
    };
    let ended =
        with("cpu", "cuda/abacus").failed(2, "the kernel `cuda/abacus` does not run on the device `cpu`");
    assert!(ended.stderr.contains("runs on no device of this machine;"), "{}", ended.stderr);
    assert!(ended.stderr.contains("cpu has ") && ended.stderr.contains("cpu/soft"), "{}", ended.stderr);
    with("cpu", "cpu/abacus").failed(2, "no kernel `cpu/abacus` on cpu");
    assert!(!folder.has("out"));
}

#[test]
fn the_version_as_text_and_as_json() {
    let folder = Folder::new();
    for flag in ["-V", "--version"] {
        let text = folder.run([flag]).succeeded();
        assert_eq!(text.text(), concat!("lockstep ", env!("CARGO_PKG_VERSION"), "\n"));
        for args in [[flag, "--json"], ["--json", flag]] {
            let report = folder.run(args).succeeded().json();
            let names: Vec<_> = report.as_object().unwrap().keys().collect();
            assert_eq!(names, ["arch", "backends", "commit", "name", "os", "version"]);
            assert_eq!(
                (&report["name"], &report["version"]),
                (&"lockstep".into(), &env!("CARGO_PKG_VERSION").into())
            );
            assert_eq!(report["os"], std::env::consts::OS);
            assert_eq!(report["arch"], std::env::consts::ARCH);
            // A Git commit of 40 digits, or null: builds by cargo alone do not set it.
            let commit = report["commit"].as_str().map(|commit| commit.trim_end_matches("-dirty"));
            let is_hash = |commit: &str| commit.len() == 40 && commit.bytes().all(|c| c.is_ascii_hexdigit());
            assert!(report["commit"].is_null() || commit.is_some_and(is_hash), "{report}");
            let backends = report["backends"].as_array().unwrap();
            let has = |name: &str| backends.contains(&name.into());
            assert!(["cpu", "cuda", "wgpu"].into_iter().all(has) && !has("spu"), "{report}");
        }
    }
    folder.run(["--json", "devices"]).failed_as_json(2, "--json before the command requires --version");
    folder.run(["--json"]).failed_silently(2);
}
