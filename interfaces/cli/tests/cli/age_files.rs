//! Files of age, without Lockstep's envelope.

use std::io::{self, Read, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use age::armor::{ArmoredWriter, Format};
use age::secrecy::{ExposeSecret, SecretString};
use age::{Encryptor, Recipient, scrypt, x25519};

use crate::common::*;

const AGE_CHUNK: usize = 64 << 10;

/// Creates an age file.
fn encrypt(recipients: &[&dyn Recipient], armored: bool, plain: &[u8]) -> Vec<u8> {
    let encryptor = Encryptor::with_recipients(recipients.iter().copied()).unwrap();
    let mut file = Vec::new();
    let format = if armored { Format::AsciiArmor } else { Format::Binary };
    let mut writer = encryptor.wrap_output(ArmoredWriter::wrap_output(&mut file, format).unwrap()).unwrap();
    writer.write_all(plain).unwrap();
    writer.finish().unwrap().finish().unwrap();
    file
}

/// Creates a folder with an identity and a passphrase file. Only the user can read these files. Returns the folder and the recipient of
/// the identity.
fn with_identity() -> (Folder, x25519::Recipient) {
    let folder = Folder::new();
    let identity = x25519::Identity::generate();
    folder.write("identity", identity.to_string().expose_secret());
    folder.write("stranger", x25519::Identity::generate().to_string().expose_secret());
    folder.write("passphrase", "secret\n");
    folder.shell("chmod 600 *").succeeded();
    (folder, identity.to_public())
}

fn passphrase() -> scrypt::Recipient {
    let mut lock = scrypt::Recipient::new(SecretString::from("secret"));
    lock.set_work_factor(4);
    lock
}

#[test]
fn binary_and_armored_by_identity_and_by_passphrase() {
    let (folder, recipient) = with_identity();
    let stranger = x25519::Identity::generate().to_public();
    for armored in [false, true] {
        for len in [0, 1, 1000, AGE_CHUNK - 1, AGE_CHUNK, AGE_CHUNK + 1, 3 * AGE_CHUNK, 500_000] {
            let plain = data(len);
            folder.write("age", encrypt(&[&stranger, &recipient], armored, &plain));
            folder.run(["decrypt", "-i", "identity", "age", "-o", "out", "-f"]).succeeded();
            assert!(folder.read("out") == plain, "armored {armored}, {len}");
            let piped = folder.pipe(["decrypt", "-i", "identity"], &folder.read("age")).succeeded();
            assert!(piped.stdout == plain && piped.stderr.is_empty(), "armored {armored}, {len}");
            folder.write("age", encrypt(&[&passphrase()], armored, &plain));
            let opened = folder.run(["decrypt", "--passphrase-file", "passphrase", "age"]).succeeded();
            assert!(opened.stdout == plain, "armored {armored}, {len}");
        }
    }
    // All line breaks become CR LF, as in a file that was sent by mail.
    let text = encrypt(&[&recipient], true, b"hello");
    let text = String::from_utf8(text).unwrap().replace('\n', "\r\n");
    assert_eq!(folder.pipe(["decrypt", "-i", "identity"], text.as_bytes()).succeeded().stdout, b"hello");
    // Without `-i`, the command uses the default identity file.
    folder.shell("mkdir -p config/lockstep/ && cp identity config/lockstep/identities").succeeded();
    assert_eq!(folder.pipe(["decrypt"], text.as_bytes()).succeeded().stdout, b"hello");
    let json = folder.pipe(["decrypt", "--json"], text.as_bytes()).succeeded();
    let report: serde_json::Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!((report["format"].as_str(), report["plaintext_bytes"].as_u64()), (Some("age"), Some(5)));
}

/// Decrypts an age file with the age crate.
fn decrypted(file: &[u8], identity: &dyn age::Identity) -> Vec<u8> {
    let mut plain = Vec::new();
    let decryptor = age::Decryptor::new_buffered(file).unwrap();
    decryptor.decrypt(std::iter::once(identity)).unwrap().read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn written_by_the_command() {
    let (folder, recipient) = with_identity();
    let identity = String::from_utf8(folder.read("identity")).unwrap();
    let identity: x25519::Identity = identity.parse().unwrap();
    let stranger = x25519::Identity::generate().to_public().to_string();
    let recipient = recipient.to_string();
    for len in [0, 1, 1000, AGE_CHUNK - 1, AGE_CHUNK, AGE_CHUNK + 1, 500_000] {
        let plain = data(len);
        folder.write("plain", &plain);
        let to = ["encrypt", "--age", "-r", &stranger, "-r", &recipient];
        folder.run(to.iter().chain(&["plain", "-o", "age", "-f"])).succeeded();
        assert!(decrypted(&folder.read("age"), &identity) == plain, "{len}");
        assert!(folder.run(["decrypt", "-i", "identity", "age"]).succeeded().stdout == plain, "{len}");
        let piped = folder.pipe(to, &plain).succeeded();
        assert!(decrypted(&piped.stdout, &identity) == plain && piped.stderr.is_empty(), "{len}");
    }
    let report = folder.run(["inspect", "--json", "age"]).succeeded().json();
    assert_eq!((report["kind"].as_str(), report["plaintext_bytes"].as_u64()), (Some("age"), Some(500_000)));
    // Encrypts to a list of recipients, and checks the summary.
    folder.write("list", &recipient);
    let json =
        folder.run(["encrypt", "--age", "-R", "list", "plain", "-o", "age", "-f", "--json"]).succeeded();
    let report: serde_json::Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!((report["format"].as_str(), report["plaintext_bytes"].as_u64()), (Some("age"), Some(500_000)));
    // Encrypts with a passphrase.
    folder
        .run(["encrypt", "--age", "--passphrase-file", "passphrase", "plain", "-o", "age", "-f"])
        .succeeded();
    let by_passphrase = scrypt::Identity::new(SecretString::from("secret"));
    assert!(decrypted(&folder.read("age"), &by_passphrase) == data(500_000));
    if have("age") {
        folder.run(["encrypt", "--age", "-R", "list", "plain", "-o", "age", "-f"]).succeeded();
        assert!(folder.shell("age -d -i identity age").succeeded().stdout == data(500_000));
    }
    // If an input cannot be read, no output remains.
    let before = folder.names();
    folder.run(["encrypt", "--age", "-R", "list", "config", "-o", "new"]).failed(2, "config");
    folder.run(["encrypt", "--age", "-R", "list", "plain", "-o", "/dev/full"]).failed(2, "cannot write");
    assert_eq!(folder.names(), before);
}

#[test]
fn errors_of_files_that_cannot_be_opened() {
    let (folder, recipient) = with_identity();
    folder.run(["keygen", "-o", "key"]).succeeded();
    folder.write("age", encrypt(&[&recipient], false, b"hello"));
    folder.write("locked", encrypt(&[&passphrase()], true, b"hello"));
    let run = |args: &str| folder.run(args.split(' '));
    run("decrypt -i stranger age -o out").failed(1, "other recipients");
    run("decrypt age -o out").failed(2, "to recipients (X25519): give an identity with -i");
    run("decrypt -k key age -o out").failed(2, "give an identity with -i");
    run("decrypt -k key locked -o out").failed(2, "with a passphrase: leave out -k");
    run("decrypt -i identity locked -o out").failed(2, "identities cannot open it");
    run("decrypt --passphrase-file passphrase age -o out").failed(1, "no passphrase opens this file");
    run("decrypt -i identity --range 1:2 age -o out").failed(2, "leave out --range");
    folder.write("wrong", "other");
    run("decrypt -q --passphrase-file wrong locked -o out").failed(1, "wrong passphrase");
    if have("setsid") {
        folder.without_terminal(["decrypt", "locked", "-o", "out"]).failed(2, "--passphrase-file");
    }
    folder.write("endless", [b"age-encryption.org/v1\n-> X25519 ", &[b'x'; 1 << 20][..]].concat());
    run("decrypt -i identity endless -o out").failed(2, "256 KiB");
    assert!(!folder.has("out"));
}

/// Headers of 60 KB with 8000 recipients are refused, in an age file and in an envelope.
#[test]
fn headers_of_too_many_recipients_are_refused() {
    let (folder, recipient) = with_identity();
    let header = format!("age-encryption.org/v1\n{}--- {}\n", "-> a\n\n".repeat(8000), "A".repeat(43));
    let file = [header.as_bytes(), &[0; 100]].concat();
    folder.write("age", &file);
    folder.write("envelope", lockstep::Envelope::new(&file).unwrap().as_bytes());
    for name in ["age", "envelope"] {
        folder.run(["decrypt", "-i", "identity", name, "-o", "out"]).failed(2, "more than 3000 recipients");
        folder.run(["decrypt", name, "-o", "out"]).failed(2, "more than 3000 recipients");
        folder.run(["inspect", name]).failed(2, "more than 3000 recipients");
    }
    folder.write("good", encrypt(&[&recipient], false, b"hello"));
    folder.run(["decrypt", "-i", "age", "good", "-o", "out"]).failed(2, "'age': the header");
    // The message lists only some of the many types of recipients.
    let types: String = (0..100).map(|number| format!("-> type{number}\n\n")).collect();
    folder.write("age", format!("age-encryption.org/v1\n{types}--- {}\n", "A".repeat(43)));
    folder.run(["decrypt", "age", "-o", "out"]).failed(2, "and 92 other types");
    let work = format!(
        "age-encryption.org/v1\n-> scrypt {} 30\n{}\n--- {}\n",
        "A".repeat(22),
        "A".repeat(43),
        "A".repeat(43)
    );
    folder.write("age", work);
    folder.run(["decrypt", "--passphrase-file", "passphrase", "age"]).failed(2, "--max-work-factor 30");
}

#[test]
fn damage_anywhere_leaves_no_output() {
    let (folder, recipient) = with_identity();
    let plain = data(2 * AGE_CHUNK + 1000);
    for armored in [false, true] {
        let file = encrypt(&[&recipient], armored, &plain);
        let refused = |bytes: &[u8], what: &str| {
            folder.write("damaged", bytes);
            let before = folder.names();
            let ended = folder.run(["decrypt", "-i", "identity", "damaged", "-o", "out"]);
            assert!(matches!(ended.code, 1 | 2), "{what}: {}", ended.stderr);
            // Exit code 2 with a hint to `-k` is possible only if the file is not recognisable as an age file.
            assert!(ended.code == 1 || ended.stderr.contains("-k"), "{what}: {}", ended.stderr);
            assert_eq!(folder.names(), before, "{what}");
            let piped = folder.pipe(["decrypt", "-i", "identity"], bytes);
            // If the input is a pipe, the command examines fewer bytes, so it may not recognise an age file with a damaged first
            // line.
            let is_unknown =
                piped.code == 2 && ["-k", "begins like text"].iter().any(|text| piped.stderr.contains(text));
            assert!(piped.code == ended.code || is_unknown, "{what}: {}", piped.stderr);
            assert!(piped.stdout.len().is_multiple_of(AGE_CHUNK), "{what}: a part of a chunk");
            assert!(plain.starts_with(&piped.stdout), "{what}");
        };
        for at in (0..400).step_by(23).chain([file.len() / 2, file.len() - 40]) {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            refused(&damaged, &format!("armored {armored}, flipped at {at}"));
        }
        for at in [30, 100, 200, AGE_CHUNK, file.len() / 2, file.len() - 100, file.len() - 36] {
            refused(&file[..at], &format!("armored {armored}, cut at {at}"));
        }
        refused(&[&file[..], b"more"].concat(), "appended");
    }
    // A file that is cut off between two chunks is refused.
    let file = encrypt(&[&recipient], false, &data(2 * AGE_CHUNK));
    let header = file.len() - 2 * (AGE_CHUNK + 16);
    folder.write("cut", &file[..header + AGE_CHUNK + 16]);
    folder.run(["decrypt", "-i", "identity", "cut", "-o", "out"]).failed(1, "cut off");
    assert!(!folder.has("out"));
    // `--partial` writes the verified beginning.
    folder.write("middle", &file[..header + AGE_CHUNK + 16 + 500]);
    for name in ["cut", "middle"] {
        let how = ["decrypt", "-i", "identity", "--partial", name, "-o", "out"];
        folder.run(how).failed(1, "the verified beginning was written: 65536 bytes");
        assert!(folder.read("out") == data(AGE_CHUNK), "{name}");
        folder.shell("rm out").succeeded();
    }
    folder.write("cut", &file[..header + 500]);
    folder.run(["decrypt", "-i", "identity", "--partial", "cut", "-o", "out"]).failed(1, "none was written");
    assert!(!folder.has("out"));
}

#[test]
fn inspected() {
    let (folder, recipient) = with_identity();
    for armored in [false, true] {
        for len in [0, 1, AGE_CHUNK, 200_000] {
            folder.write("age", encrypt(&[&recipient, &recipient], armored, &data(len)));
            let report = folder.run(["inspect", "--json", "age"]).succeeded().json();
            assert_eq!(report["kind"], "age");
            assert_eq!(report["armored"], armored);
            assert_eq!(report["passphrase"], false);
            assert_eq!(report["file_bytes"], folder.read("age").len());
            assert_eq!(report["recipients"].as_array().unwrap().len(), 2);
            if !armored {
                assert_eq!(report["plaintext_bytes"], len);
                let piped = folder.pipe(["inspect", "--json", "-"], &folder.read("age")).succeeded().json();
                assert_eq!(piped, report);
            }
        }
    }
    let text = folder.run(["inspect", "age"]).succeeded();
    assert!(
        text.text().contains("an armored age file, encrypted to 2 recipients: X25519, X25519;"),
        "{}",
        text.text()
    );
    folder.write("age", encrypt(&[&passphrase()], false, b"hello"));
    let report = folder.run(["inspect", "--json", "age"]).succeeded().json();
    assert_eq!(report["recipients"][0]["work_factor"], 4);
    assert_eq!(report["passphrase"], true);
    folder.write("age", "age-encryption.org/v1\n-> X25519\n");
    folder.run(["inspect", "age"]).failed(1, "damaged");
}

#[test]
fn control_c_leaves_nothing() {
    let (folder, recipient) = with_identity();
    let file = encrypt(&[&recipient], false, &data(10 * AGE_CHUNK));
    let mut child = folder.spawn(["decrypt", "-i", "identity", "-o", "out"]);
    wait_for_handlers(&child);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&file[..file.len() - 5]).unwrap();
    wait_until("the output file", || folder.has_output_open(child.id()));
    kill("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
    assert_eq!(folder.names(), ["identity", "passphrase", "stranger"]);
}

#[test]
fn files_of_the_age_program() {
    if !have("age") {
        return;
    }
    let (folder, recipient) = with_identity();
    folder.write("plain", data(200_000));
    for armor in ["", "-a"] {
        folder.shell(&format!("age {armor} -r {recipient} -o age plain")).succeeded();
        assert!(folder.run(["decrypt", "-i", "identity", "age"]).succeeded().stdout == data(200_000));
    }
}

#[test]
fn a_chunk_is_written_before_the_input_ends() {
    let (folder, recipient) = with_identity();
    let mut command = folder.default_signals(["encrypt", "--age", "-r", &recipient.to_string()]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    input.write_all(&data(3 * AGE_CHUNK)).unwrap();
    let (sender, arrived) = mpsc::channel();
    let reader = thread::spawn(move || {
        output.read_exact(&mut [0; AGE_CHUNK]).unwrap();
        sender.send(()).unwrap();
        io::copy(&mut output, &mut io::sink()).unwrap();
    });
    // Without this limit, the test would wait forever after a failure.
    let arrived = arrived.recv_timeout(Duration::from_secs(60));
    drop(input);
    assert!(child.wait().unwrap().success() && arrived.is_ok());
    reader.join().unwrap();
}
