//! If a user passes a key in place of another argument, the output of the command does not contain the key.

use std::sync::Mutex;

use crate::common::*;

/// The digits of the marked key.
const HEX: &str = "8f1b6c2ad94e7053b1e6f8a92c47d30e5a9bc4d1e7f20836419ade5cb70f23d8";
const BASE64: &str = "jxtsKtlOcFOx5vipLEfTDlqbxNHn8gg2QZreXLcPI9g=";
const AGE: &str = "AGE-SECRET-KEY-13UD3C2KEFECJ5V0XLR9FVG76V8T2HXG8E7JPQRX4M5D6W2STFL9S";

fn forms() -> [String; 4] {
    [HEX.into(), BASE64.into(), AGE.into(), format!("lockstep-key-256 {HEX}\n")]
}

/// True if a text contains a part of the key.
fn shows_key(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let parts = |key: &str| key.to_ascii_lowercase().into_bytes();
    let age = AGE.strip_prefix("AGE-SECRET-KEY-1").expect("an age identity");
    [parts(HEX), parts(BASE64), parts(age)]
        .iter()
        .any(|key| key.windows(8).any(|part| text.as_bytes().windows(8).any(|window| window == part)))
}

fn assert_not_shown(folder: &Folder, args: &[String]) {
    let ended = folder.run(args);
    let output = format!("{}{}", String::from_utf8_lossy(&ended.stdout), ended.stderr);
    assert!(!shows_key(&output), "{args:?}: {output}");
}

/// All options that take a value, as read from the help, each with one command that has the option. Commands that measure
/// are left out.
fn options(folder: &Folder) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    for command in [
        "encrypt",
        "decrypt",
        "keygen",
        "inspect",
        "cipher",
        "devices",
        "openssl-conf",
        "picture",
        "man",
        "completions",
    ] {
        let command: Vec<String> = command.split(' ').map(Into::into).collect();
        let help = folder.run(command.iter().map(String::as_str).chain(["--help"])).text().to_owned();
        for line in
            help.lines().map(str::trim_start).filter(|line| line.starts_with('-') && line.contains('<'))
        {
            let option = line.split([' ', '=']).find(|word| word.starts_with("--")).expect("a long option");
            let option = option.trim_end_matches(',').to_owned();
            if found.iter().all(|(_, known)| *known != option) {
                found.push((command.clone(), option));
            }
        }
    }
    found
}

/// Runs a function for each item on several threads.
fn for_each<T: Send>(items: Vec<T>, run: impl Fn(T) + Sync) {
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().expect("no panic while it is locked").next();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(item) = next() {
                    run(item)
                }
            });
        }
    });
}

#[test]
fn the_search_finds_keys() {
    for form in forms() {
        assert!(shows_key(&format!("cannot open '{form}'")));
    }
    assert!(shows_key(&HEX[20..30].to_uppercase()) && !shows_key("cannot open 'lockstep-key-256'"));
}

#[test]
fn a_key_as_the_value_of_an_option_is_not_shown() {
    let options = options(&Folder::new());
    assert!(options.len() > 25, "{options:?}");
    let forms = forms();
    let mut cases = Vec::new();
    for (number, (command, option)) in options.into_iter().enumerate() {
        let form = &forms[number % 4];
        cases.push([&command[..], &[option.clone(), form.clone()]].concat());
        cases.push([&command[..], &[format!("{option}={}", forms[(number + 1) % 4])]].concat());
    }
    // Each case runs in a folder of its own, because the names of existing files are shown, and a command can write a file whose name is
    // the key.
    for_each(cases, |case| assert_not_shown(&Folder::new(), &case));
}

#[test]
fn a_key_in_another_wrong_place_is_not_shown() {
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    folder.run(["encrypt", "-k", "key", "plain", "-o", "encrypted"]).succeeded();
    let mut cases: Vec<Vec<String>> = Vec::new();
    for form in forms() {
        let lines = [
            vec![],
            vec!["encrypt"],
            vec!["decrypt"],
            vec!["inspect"],
            vec!["encrypt", "-k", "key"],
            vec!["encrypt", "-k", "key", "-r"],
            vec!["encrypt", "-k", "key", "plain", "-o", "out", "--force"],
            vec!["--json", "encrypt", "-k"],
            vec!["encrypt", "--json", "-k", "key"],
            vec!["encrypt", "plain", "-r"],
            vec!["encrypt", "plain", "-O", "folder", "-r"],
            vec!["encrypt", "plain", "-R"],
            vec!["encrypt", "plain", "--passphrase-file"],
            vec!["decrypt", "encrypted", "-k"],
            vec!["decrypt", "encrypted", "-i"],
            vec!["cipher", "-m", "ctr", "--iv-hex", "00", "--key-hex"],
            vec!["cipher", "-m", "ctr", "--key-hex", "00", "--iv-hex"],
            vec!["cipher", "-m", "gcm", "--key-hex", "00", "--iv-hex", "00", "--aad-hex"],
            vec!["cipher", "-m"],
            vec!["keygen", "plain"],
            vec!["lab"],
            vec!["completions"],
        ];
        cases.extend(lines.map(|line| line.into_iter().map(Into::into).chain([form.clone()]).collect()));
        for option in ["-k", "-o", "-r", "-i", "-R"] {
            cases.push(vec!["decrypt".into(), "encrypted".into(), format!("{option}{form}")]);
        }
    }
    for_each(cases, |case| assert_not_shown(&folder, &case));
}

#[test]
fn a_key_in_a_file_of_another_kind_is_not_shown() {
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    folder.run(["encrypt", "-k", "key", "plain", "-o", "encrypted"]).succeeded();
    for form in forms().iter().chain([&format!("{AGE}X"), &format!("# {HEX}\n{AGE}\n{HEX}")]) {
        folder.write("file", form);
        for line in [
            "encrypt -k file plain",
            "encrypt -R file plain",
            "encrypt --passphrase-file plain -k file plain",
            "decrypt -i file encrypted",
            "decrypt -k file encrypted",
            "decrypt -k file file",
            "inspect file",
            "cipher -m ecb --key-file file plain",
            "picture file",
        ] {
            assert_not_shown(&folder, &line.split(' ').map(Into::into).collect::<Vec<_>>());
        }
    }
}

/// If a value is attached to `-r`, no part of the value is shown.
#[test]
fn a_value_of_recipient_is_not_shown() {
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    for value in ["pswordfish", "kswordfish", "swordfish"] {
        for more in [&[][..], &["--json"], &["-O", "new"]] {
            let ended = folder.run([&["encrypt", &format!("-r{value}"), "plain"][..], more].concat());
            assert_eq!(ended.code, 2);
            assert!(!ended.stderr.contains("word"), "{}", ended.stderr);
        }
    }
    for digits in ["k", "000102030405060708090a0b0c0d0e0f"] {
        let ended = folder.run(["encrypt", &format!("-r{digits}"), "plain"]).failed(2, "-r");
        assert!(!ended.stderr.contains("0001"), "{}", ended.stderr);
    }
    let ended = folder.run(["encrypt", "-k", "key", "-rphotos", "-O", "new"]).failed(2, "'photos'");
    assert!(!ended.stderr.contains("-photos"), "{}", ended.stderr);
}

#[test]
fn the_message_states_that_a_key_was_given() {
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    for form in forms() {
        let ended = folder.run(["encrypt", "-k", &form, "plain"]);
        assert_eq!(ended.code, 2);
        assert!(ended.stderr.contains("a key in place of a path, not shown"), "{}", ended.stderr);
    }
    let ended = folder.run(["devices", "--no-such-option", "plain"]);
    assert!(ended.stderr.contains("--no-such-option"), "{}", ended.stderr);
    let ended = folder.run(["encrypt", "-k", "no-such-key-file", "plain"]);
    assert!(ended.stderr.contains("'no-such-key-file'"), "{}", ended.stderr);
    // A file whose name is a checksum is shown, because it exists.
    folder.write(HEX, "no key");
    let ended = folder.run(["encrypt", "-k", "key", HEX, "-o", HEX]);
    assert!(ended.stderr.contains(HEX), "{}", ended.stderr);
}
