//! Text files of other systems: keys, identities, recipients, passphrases and armored files in UTF-16 and with byte order marks,
//! and passphrases in other Unicode normalisation forms.

use std::io::Write;

use age::armor::{ArmoredWriter, Format};
use age::secrecy::{ExposeSecret, SecretString};
use age::{Encryptor, Recipient, scrypt, x25519};

use crate::common::*;

/// The text in the encodings of other systems: UTF-8 with a byte order mark, and UTF-16 in both byte orders. Line breaks are CR LF.
fn encodings(text: &str) -> [Vec<u8>; 3] {
    let text = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let utf16 = |to_bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to_bytes).collect();
    [text.as_bytes().to_vec(), utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)]
}

fn encrypt(recipient: &dyn Recipient, format: Format, plain: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let encryptor = Encryptor::with_recipients(std::iter::once(recipient)).unwrap();
    let mut writer = encryptor.wrap_output(ArmoredWriter::wrap_output(&mut file, format).unwrap()).unwrap();
    writer.write_all(plain).unwrap();
    writer.finish().unwrap().finish().unwrap();
    file
}

fn age_file(passphrase: &str, plain: &[u8]) -> Vec<u8> {
    let mut lock = scrypt::Recipient::new(SecretString::from(passphrase));
    lock.set_work_factor(4);
    encrypt(&lock, Format::Binary, plain)
}

#[test]
fn keys_identities_recipients_and_armor() {
    let folder = Folder::with_keys();
    let key = String::from_utf8(folder.read("key")).unwrap();
    let cipher = folder.pipe(["encrypt", "-k", "key"], b"hello").succeeded().stdout;
    folder.write("cipher", &cipher);
    for text in encodings(&key) {
        folder.write("theirs", &text);
        assert_eq!(folder.run(["decrypt", "-q", "-k", "theirs", "cipher"]).succeeded().stdout, b"hello");
        assert_eq!(folder.pipe(["decrypt", "-k", "-", "cipher"], &text).succeeded().stdout, b"hello");
        let report = folder.run(["inspect", "theirs"]).succeeded();
        assert!(report.text().contains("a Lockstep key file"));
    }

    let identity = x25519::Identity::generate();
    let identities = format!("# mine\n  {} \n", identity.to_string().expose_secret());
    let recipients = format!("# mine\n{}\n", identity.to_public());
    let plain = data(100_000);
    let armored = String::from_utf8(encrypt(&identity.to_public(), Format::AsciiArmor, &plain)).unwrap();
    for ((identities, recipients), armored) in
        encodings(&identities).iter().zip(encodings(&recipients)).zip(encodings(&armored))
    {
        folder.write("identities", identities);
        folder.write("recipients", recipients);
        folder.write("armored", &armored);
        let cipher = folder.pipe(["encrypt", "-R", "recipients"], b"hello").succeeded().stdout;
        assert_eq!(folder.pipe(["decrypt", "-q", "-i", "identities"], &cipher).succeeded().stdout, b"hello");
        let opened = folder.run(["decrypt", "-q", "-i", "identities", "armored"]).succeeded();
        assert!(opened.stdout == plain);
        assert!(folder.pipe(["decrypt", "-q", "-i", "identities"], &armored).succeeded().stdout == plain);
        let report = folder.run(["inspect", "--json", "armored"]).succeeded().json();
        assert_eq!((report["kind"].as_str(), &report["armored"]), (Some("age"), &true.into()));
        // A file with a changed character or an odd number of bytes is refused.
        let mut changed = armored.clone();
        changed[1000] ^= 1;
        folder.write("armored", changed);
        folder.run(["decrypt", "-q", "-i", "identities", "armored"]).failed(1, "damaged");
        folder.write("armored", &armored[..501]);
        folder.run(["decrypt", "-q", "-i", "identities", "armored"]).failed(1, "damaged");
    }
    folder.write("armored", armored);
    folder.write("odd", b"\xff\xfea");
    folder.run(["encrypt", "-R", "odd", "cipher"]).failed(2, "not text in UTF-8 or UTF-16");
    folder.run(["decrypt", "-i", "odd", "armored"]).failed(2, "not valid UTF-16");
    folder.run(["decrypt", "-k", "odd", "cipher"]).failed(2, "not valid UTF-16");
}

#[test]
fn passphrases_of_existing_files() {
    let folder = Folder::new();
    let opens = |bytes: &[u8]| {
        folder.write("pw", bytes);
        folder.shell("chmod 600 pw").succeeded();
        folder.run(["decrypt", "--passphrase-file", "pw", "file"])
    };
    // The unchanged bytes of a passphrase are tried first, so that files that were encrypted with these bytes can still be opened.
    for passphrase in ["\u{feff}secret", "secret"] {
        folder.write("file", age_file(passphrase, b"hello"));
        let ended = opens("\u{feff}secret\r\n".as_bytes()).succeeded();
        assert!(ended.stdout == b"hello" && ended.stderr.is_empty(), "{}", ended.stderr);
    }
    for text in encodings("secret\n") {
        assert_eq!(opens(&text).succeeded().stdout, b"hello");
    }
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    for written in [composed, decomposed] {
        folder.write("file", age_file(written, b"hello"));
        for given in [composed, decomposed] {
            assert_eq!(opens(given.as_bytes()).succeeded().stdout, b"hello");
            for text in encodings(given) {
                assert_eq!(opens(&text).succeeded().stdout, b"hello");
            }
        }
        opens(b"cafe").failed(1, "wrong passphrase");
    }
    opens(b"\xff\xfea").failed(2, "not UTF-8");
    opens("\u{feff}\n".as_bytes()).failed(2, "empty");
}

#[test]
fn passphrases_of_identities() {
    let folder = Folder::new();
    let identity = x25519::Identity::generate();
    let text = identity.to_string().expose_secret().to_owned();
    folder.write("locked", age_file("caf\u{e9}", text.as_bytes()));
    folder.write("file", encrypt(&identity.to_public(), Format::Binary, b"hello"));
    let opens = |identity: &str, passphrase: &str| {
        folder.write("pw", passphrase);
        folder.shell("chmod 600 pw").succeeded();
        folder.run(["decrypt", "-q", "-i", identity, "--passphrase-file", "pw", "file"])
    };
    assert_eq!(opens("locked", "\u{feff}cafe\u{301}\r\n").succeeded().stdout, b"hello");
    opens("locked", "cafe").failed(1, "wrong passphrase for the identity");
    folder.write("nothing", age_file("pw", b"no identity"));
    opens("nothing", "pw").failed(2, "not an identity");
    if have("ssh-keygen") {
        folder.shell("ssh-keygen -q -t ed25519 -a 1 -N 'caf\u{e9}' -f ssh").succeeded();
        let cipher = folder.pipe(["encrypt", "-R", "ssh.pub"], b"hello").succeeded().stdout;
        folder.write("file", cipher);
        assert_eq!(opens("ssh", "\u{feff}cafe\u{301}").succeeded().stdout, b"hello");
        opens("ssh", "cafe").failed(1, "wrong passphrase for the identity");
    }
}

/// A new file is encrypted with the passphrase without its byte order mark, and a warning states this.
#[test]
fn passphrases_of_new_files() {
    let folder = Folder::new();
    folder.write("marked", "\u{feff}secret\r\n");
    folder.write("pw", "secret");
    folder.shell("chmod 600 *").succeeded();
    let ended = folder.pipe(["encrypt", "--json", "--passphrase-file", "marked"], b"hello").succeeded();
    let report: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert!(
        report["warnings"][0].as_str().unwrap().contains("byte order mark at its start was left out"),
        "{report}"
    );
    let opened = folder.pipe(["decrypt", "--passphrase-file", "pw"], &ended.stdout).succeeded();
    assert_eq!(opened.stdout, b"hello");
}

#[test]
fn lists_of_ssh_keys() {
    if !have("ssh-keygen") {
        return;
    }
    let folder = Folder::new();
    folder.shell("ssh-keygen -q -t ed25519 -N '' -f id; ssh-keygen -q -t ecdsa -N '' -f ec").succeeded();
    let (good, other) = (folder.read("id.pub"), folder.read("ec.pub"));
    let good = String::from_utf8(good).unwrap();
    let (kind, key) = good.trim().split_once(' ').unwrap();
    let other = String::from_utf8(other).unwrap();
    for line in [format!("{kind}\t{key}"), format!("{kind}  {key}"), format!(" \t{kind} \t{key} \t\r")] {
        folder.write("list", format!("{line}\n"));
        let cipher = folder.pipe(["encrypt", "-R", "list"], b"hello").succeeded().stdout;
        assert_eq!(folder.pipe(["decrypt", "-i", "id"], &cipher).succeeded().stdout, b"hello");
        folder.pipe(["encrypt", "-r", line.trim()], b"hello").succeeded();
    }
    // Code-hosting services list the keys of a user in this form. Keys of other types are skipped.
    folder.write("list", format!("{other}{good}"));
    let ended = folder.pipe(["encrypt", "-R", "list"], b"hello").succeeded();
    assert!(
        ended.stderr.contains("warning: 'list', line 1: skipped: this SSH public key"),
        "{}",
        ended.stderr
    );
    assert_eq!(folder.pipe(["decrypt", "-i", "id"], &ended.stdout).succeeded().stdout, b"hello");
    folder.write("list", &other);
    folder.run(["encrypt", "-R", "list"]).failed(2, "no recipients that support encryption");
    folder.run(["encrypt", "-r", other.trim()]).failed(2, "not of a type that supports encryption");
    folder.write("list", format!("from=\"10.0.0.1\",no-pty {good}"));
    folder.run(["encrypt", "-R", "list"]).failed(2, "remove options");
    folder.write("list", &good[..60]);
    folder.run(["encrypt", "-R", "list"]).failed(2, "mistyped or cut off");
}
