//! The command on a terminal, which `script` of util-linux provides.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use crate::common::*;
use crate::recipients::locked;

/// Runs a command on a terminal, and returns its exit code and the text on the terminal. `dialogue` contains each text that the
/// test waits for, with the reply that it then sends.
fn on_terminal(folder: &Folder, command: &str, dialogue: &[(&str, &str)]) -> Option<(i32, String)> {
    if !have("script") {
        return None;
    }
    let mut child: Child = folder
        .program("script")
        .args(["-qec", &command.replace("lockstep ", &format!("{LOCKSTEP} ")), "/dev/null"])
        // Without this variable, `script` uses the caller's shell, and shells differ in their handling of Ctrl-C.
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    for (question, answer) in dialogue {
        let before = shown.len();
        while !String::from_utf8_lossy(&shown[before..]).contains(question) {
            let got = screen.read(&mut buffer).unwrap();
            assert!(got > 0, "no {question:?} in {:?}", String::from_utf8_lossy(&shown));
            shown.extend(&buffer[..got]);
        }
        keyboard.write_all(answer.as_bytes()).unwrap();
    }
    screen.read_to_end(&mut shown).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    drop(keyboard);
    Some((code, String::from_utf8_lossy(&shown).into_owned()))
}

#[test]
fn binary_output_is_refused() {
    let folder = Folder::with_keys();
    folder.write("plain", data(100_000));
    folder.write("text", "a text\n\tof lines, with é\n");
    for command in
        ["encrypt -k key plain", "cipher --mode ecb --key-hex 00112233445566778899aabbccddeeff plain"]
    {
        let Some((code, shown)) = on_terminal(&folder, &format!("lockstep {command}"), &[]) else { return };
        assert_eq!(code, 2);
        assert!(shown.contains("garble the terminal") && shown.len() < 300, "{shown}");
    }
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    let (code, shown) = on_terminal(&folder, "lockstep decrypt -k key cipher", &[]).unwrap();
    assert_eq!(code, 2);
    assert!(shown.contains("it is not text") && shown.len() < 300, "{shown}");
    // Text is written to a terminal without an option. `-o -` also writes other bytes.
    folder.run(["encrypt", "-k", "key", "text", "-o", "cipher", "-f"]).succeeded();
    let (code, shown) = on_terminal(&folder, "lockstep decrypt -k key cipher", &[]).unwrap();
    assert_eq!((code, shown.replace('\r', "").as_str()), (0, "a text\n\tof lines, with é\n"));
    let (code, _) = on_terminal(&folder, "lockstep encrypt -k key plain -o -", &[]).unwrap();
    assert_eq!(code, 0);
    let (code, shown) = on_terminal(&folder, "lockstep keygen", &[]).unwrap();
    assert!(code == 0 && shown.starts_with("lockstep-key-256 "));
}

#[test]
fn control_sequences_are_not_passed_to_the_terminal() {
    let folder = Folder::with_keys();
    for evil in ["\u{1b}[31mred", "a\u{9b}31m", "bell\u{7}"] {
        folder.write("plain", evil);
        folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher", "-f"]).succeeded();
        let Some((code, shown)) = on_terminal(&folder, "lockstep decrypt -k key cipher", &[]) else { return };
        assert_eq!(code, 2);
        assert!(!shown.contains(evil), "{shown:?}");
    }
}

#[test]
fn passphrases_are_asked_for_and_not_shown() {
    let folder = Folder::new();
    folder.write("plain", "hello");
    let twice = [("New passphrase for 'plain': ", "swordfish\n"), ("The same again: ", "swordfish\n")];
    let Some((code, shown)) = on_terminal(&folder, "lockstep encrypt -p plain -o cipher", &twice) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("swordfish"));
    let once = [("Passphrase for ", "swordfish\n")];
    let (code, shown) = on_terminal(&folder, "lockstep decrypt -p cipher -o out", &once).unwrap();
    assert!(shown.contains("Passphrase for 'cipher': "), "{shown}");
    assert_eq!(code, 0, "{shown}");
    assert_eq!(folder.read("out"), b"hello");

    // The envelope states that the file needs a passphrase, and so does the header of an age file. So the command asks for it.
    folder.write("cipher", locked("swordfish", b"hello"));
    let (code, shown) = on_terminal(&folder, "lockstep decrypt cipher -o asked", &once).unwrap();
    assert_eq!(code, 0, "{shown}");
    assert_eq!(folder.read("asked"), b"hello");
    assert!(!shown.contains("swordfish"));
    let mut lock = age::scrypt::Recipient::new(age::secrecy::SecretString::from("swordfish"));
    lock.set_work_factor(4);
    let encryptor = age::Encryptor::with_recipients(std::iter::once(&lock as _)).unwrap();
    let mut file = Vec::new();
    let mut writer = encryptor.wrap_output(&mut file).unwrap();
    writer.write_all(b"aged").unwrap();
    writer.finish().unwrap();
    folder.write("age", file);
    let (code, shown) = on_terminal(&folder, "lockstep decrypt age -o aged", &once).unwrap();
    assert_eq!(code, 0, "{shown}");
    assert_eq!(folder.read("aged"), b"aged");
    let (code, shown) = on_terminal(&folder, "lockstep decrypt < cipher", &once).unwrap();
    assert!(code == 0 && shown.ends_with("hello"), "{shown}");
    assert!(shown.contains("Passphrase for standard input: "), "{shown}");
    folder.shell("mkdir -p many && cp cipher many/a.enc && cp cipher many/b.enc").succeeded();
    let (code, shown) =
        on_terminal(&folder, "lockstep decrypt -O back many/a.enc many/b.enc", &once).unwrap();
    assert!(code == 0 && shown.contains("Passphrase for 'many/a.enc': "), "{shown}");
    let several = [("New passphrase for 2 inputs: ", "\n")];
    let (code, shown) = on_terminal(&folder, "lockstep encrypt -p -O enc plain out", &several).unwrap();
    assert_eq!(code, 2, "{shown}");

    let differ = [("assphrase for ", "one\n"), ("again: ", "two\n")];
    let (code, shown) = on_terminal(&folder, "lockstep encrypt -p plain -o new", &differ).unwrap();
    assert!(code == 2 && shown.contains("differ"), "{shown}");
    let (code, shown) =
        on_terminal(&folder, "lockstep encrypt -p plain -o new", &[("assphrase for ", "\n")]).unwrap();
    assert!(code == 2 && shown.contains("empty"), "{shown}");
    // An output that already exists is reported before the passphrase is asked for.
    let (code, shown) = on_terminal(&folder, "lockstep encrypt -p plain -o out", &[]).unwrap();
    assert!(code == 2 && shown.contains("exists"), "{shown}");
    assert!(!folder.has("new"));
}

/// A report is as wide as the terminal. Without a terminal, `COLUMNS` sets its width.
#[test]
fn reports_fit_a_narrow_terminal() {
    let folder = Folder::with_keys();
    folder.write("plain", data(100_000));
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    let narrow = |what: &str, text: &str| {
        assert!(text.lines().count() > 1, "{what}: {text}");
        for line in text.lines() {
            assert!(line.trim_end().chars().count() <= 40, "{what}: {line:?}");
        }
    };
    for args in ["devices", "selftest --device cpu", "inspect cipher", "inspect key"] {
        let mut command = folder.command(args.split(' '));
        narrow(args, Ended::from(command.env("COLUMNS", "40").output().unwrap()).succeeded().text());
    }
    let command = "stty cols 40; lockstep inspect cipher";
    if let Some((code, shown)) = on_terminal(&folder, command, &[]) {
        assert_eq!(code, 0);
        narrow(command, &shown);
    }
}

#[test]
fn control_c_at_a_question_restores_the_terminal() {
    let folder = Folder::new();
    folder.write("plain", "hello");
    // The trap keeps the shell running; commands that it starts have the default action.
    let command = "trap : INT; lockstep encrypt -p plain -o cipher; echo code $?; stty -a";
    let Some((_, shown)) = on_terminal(&folder, command, &[("assphrase for ", "abc\u{3}")]) else { return };
    assert!(shown.contains("code 130"), "{shown}");
    assert!(shown.contains(" echo ") && !shown.contains("-echo "), "{shown}");
    assert!(!folder.has("cipher"));
}

#[test]
fn a_bar_is_shown_for_long_work() {
    let folder = Folder::with_keys();
    let command = "{ head -c 1000000 /dev/zero; sleep 1; head -c 1000000 /dev/zero; } \
                   | lockstep encrypt -k key -o out";
    let Some((code, shown)) = on_terminal(&folder, command, &[]) else { return };
    assert_eq!(code, 0);
    assert!(shown.contains("lockstep: encrypted 1.9 MiB in "), "{shown}");
    let (code, shown) = on_terminal(&folder, &format!("{command} -f -q"), &[]).unwrap();
    assert_eq!((code, shown.as_str()), (0, ""));
    let (code, shown) = on_terminal(&folder, &format!("{command} -f --progress never"), &[]).unwrap();
    assert_eq!((code, shown.as_str()), (0, ""));
}
