//! Files whose envelope contains the wrapped key: recipients, identities and passphrases.

use std::io::Write;

use age::secrecy::{ExposeSecret, SecretString};
use age::x25519;
use lockstep::envelope::Start;

use crate::common::*;

/// A folder with an age identity file, its recipient, and an identity of another user.
fn with_identity() -> (Folder, String) {
    let folder = Folder::new();
    let identity = x25519::Identity::generate();
    let text = format!("# mine\n{}\n", identity.to_string().expose_secret());
    folder.write("identity", text);
    folder.write("stranger", x25519::Identity::generate().to_string().expose_secret());
    (folder, identity.to_public().to_string())
}

/// A file of Lockstep's format that a passphrase opens. scrypt has the work factor 4; with the factor of the command, 18, each
/// encryption and decryption takes a second.
pub(crate) fn locked(passphrase: &str, plain: &[u8]) -> Vec<u8> {
    let mut lock = age::scrypt::Recipient::new(passphrase.into());
    lock.set_work_factor(4);
    let key = lockstep::FileKey::generate().unwrap();
    let mut wrapped = Vec::new();
    let encryptor = age::Encryptor::with_recipients(std::iter::once(&lock as _)).unwrap();
    let mut writer = encryptor.wrap_output(&mut wrapped).unwrap();
    writer.write_all(key.as_bytes()).unwrap();
    writer.finish().unwrap();
    let envelope = lockstep::Envelope::new(&wrapped).unwrap();
    let mut file = envelope.as_bytes().to_vec();
    let engine = lockstep::Engine::builder().device("cpu").threads(1).build().unwrap();
    lockstep::encrypt(&engine, &key, envelope.as_bytes(), plain, &mut file, Default::default()).unwrap();
    file
}

fn ssh_keygen(folder: &Folder, name: &str, args: &[&str]) {
    let status = folder.program("ssh-keygen").args(["-q", "-f", name]).args(args).status().unwrap();
    assert!(status.success());
}

/// The envelope at the start of an encrypted file.
fn envelope_of(mut cipher: &[u8]) -> lockstep::Envelope {
    match lockstep::Envelope::read(&mut cipher).unwrap() {
        Start::Envelope(envelope) => envelope,
        Start::Bare(_) => panic!("the file has no envelope"),
    }
}

#[test]
fn age_recipients() {
    let (folder, recipient) = with_identity();
    for len in [0, 1, CHUNK, 100_000] {
        let plain = data(len);
        folder.write("plain", &plain);
        folder.run(["encrypt", "-r", &recipient, "plain", "-o", "cipher", "-f"]).succeeded();
        assert!(folder.read("cipher").starts_with(b"lockstep.file/v1\n"));
        assert_eq!(folder.run(["decrypt", "-i", "identity", "cipher"]).succeeded().stdout, plain);
        let piped = folder.pipe(["encrypt", "-r", &recipient], &plain).succeeded().stdout;
        let back = folder.pipe(["decrypt", "-i", "stranger", "-i", "identity"], &piped).succeeded();
        assert_eq!(back.stdout, plain);
        let redirected = folder.shell("lockstep decrypt -i identity < cipher").succeeded();
        assert_eq!(redirected.stdout, plain);
    }
    folder.run(["decrypt", "-i", "stranger", "cipher", "-o", "out"]).failed(1, "other recipients");
    assert!(!folder.has("out"));
    let part = folder.run(["decrypt", "-i", "identity", "--range", "16380:10", "cipher"]).succeeded();
    assert_eq!(part.stdout, data(100_000)[16380..16390]);
}

#[test]
fn the_envelope_contains_an_age_file_that_other_programs_open() {
    let (folder, recipient) = with_identity();
    let cipher = folder.pipe(["encrypt", "-r", &recipient], b"hello").succeeded().stdout;
    let envelope = envelope_of(&cipher);
    let text = String::from_utf8(folder.read("identity")).unwrap();
    let identity: x25519::Identity = text.lines().nth(1).unwrap().parse().unwrap();
    let key = age::decrypt(&identity, envelope.payload()).unwrap();
    let key = lockstep::FileKey::from_bytes(&key).unwrap();
    let (context, message) = cipher.split_at(envelope.as_bytes().len());
    let engine = lockstep::Engine::new().unwrap();
    assert_eq!(lockstep::open(&engine, &key, context, message).unwrap(), b"hello");
}

#[test]
fn lists_of_recipients() {
    let (folder, recipient) = with_identity();
    let other = x25519::Identity::generate().to_public();
    folder.write("list", format!("# all of us\n\n{other}\r\n  {recipient}\n"));
    let cipher = folder.pipe(["encrypt", "-R", "list"], b"hello").succeeded().stdout;
    assert_eq!(folder.pipe(["decrypt", "-i", "identity"], &cipher).succeeded().stdout, b"hello");

    folder.write("nobody", "# nobody\n\n");
    folder.run(["encrypt", "-R", "nobody"]).failed(2, "no recipients");
    folder.write("typo", format!("{recipient}\nage1typo\n"));
    folder.run(["encrypt", "-R", "typo", "-o", "out"]).failed(2, "'typo', line 2");
    folder.run(["encrypt", "-R", "nothing"]).failed(2, "nothing");
    folder.run(["encrypt", "-r", ""]).failed(2, "-r: ");
    folder.run(["encrypt", "-R", "list", "-p"]).failed_usage("cannot be used with");
    folder.run(["encrypt", "-r", &recipient, "-k", "key"]).failed_usage("cannot be used with");
    folder.run(["encrypt"]).failed(2, "give the keys or recipients");
    assert!(!folder.has("out"));
}

#[test]
fn secrets_given_as_recipients_are_not_repeated() {
    let (folder, _) = with_identity();
    let secret = String::from_utf8(folder.read("stranger")).unwrap();
    let ended = folder.run(["encrypt", "-r", &secret]).failed(2, "secret key");
    assert!(!ended.stderr.contains(&secret[20..30]));
    folder.run(["encrypt", "-R", "identity"]).failed(2, "secret key");
}

#[test]
fn too_many_recipients() {
    let folder = Folder::new();
    let recipients = (0..700).map(|_| format!("{}\n", x25519::Identity::generate().to_public()));
    folder.write("list", recipients.collect::<String>());
    folder.run(["encrypt", "-R", "list", "-o", "out"]).failed(2, "too many recipients");
    assert!(!folder.has("out"));
}

#[test]
fn ssh_keys() {
    if !have("ssh-keygen") {
        return;
    }
    let folder = Folder::new();
    ssh_keygen(&folder, "ed25519", &["-t", "ed25519", "-N", ""]);
    ssh_keygen(&folder, "rsa", &["-t", "rsa", "-b", "2048", "-N", ""]);
    ssh_keygen(&folder, "ecdsa", &["-t", "ecdsa", "-N", ""]);
    ssh_keygen(&folder, "other", &["-t", "ed25519", "-N", ""]);
    let public = String::from_utf8(folder.read("rsa.pub")).unwrap();
    let cipher = folder.pipe(["encrypt", "-R", "ed25519.pub", "-r", &public], b"hello").succeeded().stdout;
    for key in ["ed25519", "rsa"] {
        assert_eq!(folder.pipe(["decrypt", "-i", key], &cipher).succeeded().stdout, b"hello");
    }
    folder.pipe(["decrypt", "-i", "other"], &cipher).failed(1, "other recipients");
    folder
        .pipe(["decrypt"], &cipher)
        .failed(2, "to recipients (ssh-ed25519, ssh-rsa): give an identity with -i");
    folder.run(["encrypt", "-R", "ecdsa.pub"]).failed(2, "ssh-ed25519 or ssh-rsa");
    folder.pipe(["decrypt", "-i", "ecdsa"], &cipher).failed(2, "ssh-ed25519 or ssh-rsa");
    folder.pipe(["decrypt", "-i", "ed25519.pub"], &cipher).failed(2, "not an identity");
}

#[test]
fn ssh_keys_with_a_passphrase() {
    if !have("ssh-keygen") {
        return;
    }
    let folder = Folder::new();
    ssh_keygen(&folder, "id", &["-t", "ed25519", "-N", "pass phrase"]);
    let cipher = folder.pipe(["encrypt", "-R", "id.pub"], b"hello").succeeded().stdout;
    folder.write("right", "pass phrase\n");
    folder.write("wrong", "another");
    let with = |file| folder.pipe(["decrypt", "-i", "id", "--passphrase-file", file], &cipher);
    assert_eq!(with("right").succeeded().stdout, b"hello");
    with("wrong").failed(1, "wrong passphrase for the identity");
}

#[test]
fn encrypted_identities() {
    let (folder, recipient) = with_identity();
    let mut lock = age::scrypt::Recipient::new(SecretString::from("secret"));
    lock.set_work_factor(4);
    let encryptor = age::Encryptor::with_recipients(std::iter::once(&lock as _)).unwrap();
    let mut locked = Vec::new();
    let mut writer = encryptor.wrap_output(&mut locked).unwrap();
    writer.write_all(&folder.read("identity")).unwrap();
    writer.finish().unwrap();
    folder.write("locked", locked);
    folder.write("secret", "secret\r\n");
    folder.write("wrong", "wrong\n");
    let cipher = folder.pipe(["encrypt", "-r", &recipient], b"hello").succeeded().stdout;
    let with = |file| folder.pipe(["decrypt", "-i", "locked", "--passphrase-file", file], &cipher);
    assert_eq!(with("secret").succeeded().stdout, b"hello");
    with("wrong").failed(1, "wrong passphrase");
}

#[test]
fn invalid_identities() {
    let (folder, recipient) = with_identity();
    let cipher = folder.pipe(["encrypt", "-r", &recipient], b"hello").succeeded().stdout;
    folder.run(["keygen", "-o", "key"]).succeeded();
    folder.write("empty", "");
    folder.write("garbage", data(1000));
    let with = |file| folder.pipe(["decrypt", "-i", file], &cipher);
    with("key").failed(2, "give it with -k");
    with("empty").failed(2, "'empty' contains no identity");
    with("garbage").failed(2, "'garbage' is not an identity");
    with("nothing").failed(2, "nothing");
    folder
        .pipe(["decrypt", "-k", "key"], &cipher)
        .failed(2, "to recipients (X25519): give an identity with -i");
    folder.write("cipher.enc", &cipher);
    folder.run(["decrypt", "-k", "key", "-O", "back", "cipher.enc"]).failed(2, "give an identity with -i");
    let plugin = age::plugin::Identity::default_for_plugin("lockstep-none").unwrap();
    folder.write("plugin", plugin.to_string());
    with("plugin").failed(2, "age-plugin-lockstep-none");
}

#[test]
fn passphrases_from_files() {
    let folder = Folder::new();
    folder.write("passphrase", "correct horse\n");
    folder.write("again", "correct horse");
    folder.write("wrong", "battery staple\n");
    folder.write("plain", data(50_000));
    folder.run(["encrypt", "-p", "--passphrase-file", "passphrase", "plain", "-o", "cipher"]).succeeded();
    let with = |file: &str| folder.run(["decrypt", "--passphrase-file", file, "cipher", "-o", "out"]);
    with("again").succeeded();
    assert_eq!(folder.read("out"), data(50_000));
    std::fs::remove_file(folder.path("out")).unwrap();
    folder.write("cipher", locked("correct horse", b"hello"));
    with("wrong").failed(1, "wrong passphrase");
    if have("setsid") {
        folder.without_terminal(["decrypt", "cipher"]).failed(2, "--passphrase-file");
    }
    folder.write("id", x25519::Identity::generate().to_string().expose_secret());
    folder
        .run(["decrypt", "-q", "-i", "id", "cipher"])
        .failed(2, "with a passphrase, and identities cannot open it");
    folder.run(["keygen", "-o", "key"]).succeeded();
    folder.run(["decrypt", "-k", "key", "cipher"]).failed(2, "with a passphrase: leave out -k");

    folder.write("none", "\n");
    with("none").failed(2, "empty");
    folder.write("lines", "two\nlines\n");
    with("lines").failed(2, "several lines");
    with("nothing").failed(2, "nothing");
    assert!(!folder.has("out"));
}

#[test]
fn no_passphrase_opens_a_file_for_recipients() {
    let (folder, recipient) = with_identity();
    folder.write("passphrase", "secret");
    let cipher = folder.pipe(["encrypt", "-r", &recipient], b"hello").succeeded().stdout;
    folder
        .pipe(["decrypt", "--passphrase-file", "passphrase"], &cipher)
        .failed(1, "no passphrase opens this file");
}

#[test]
fn without_a_terminal_a_question_is_an_error() {
    if !have("setsid") {
        return;
    }
    let folder = Folder::new();
    folder.without_terminal(["encrypt", "-p", "-o", "out"]).failed(2, "--passphrase-file");
    assert!(!folder.has("out"));
}

#[test]
fn damaged_envelopes() {
    let (folder, recipient) = with_identity();
    let plain = data(20_000);
    let cipher = folder.pipe(["encrypt", "-r", &recipient], &plain).succeeded().stdout;
    let envelope = envelope_of(&cipher).as_bytes().len();
    folder.write("cipher", &cipher);
    let refused = |bytes: &[u8], what: &str| {
        folder.write("damaged", bytes);
        let ended = folder.run(["decrypt", "-i", "identity", "damaged", "-o", "out"]);
        assert_eq!(ended.code, 1, "{what}: {}", ended.stderr);
        assert!(!folder.has("out"));
    };
    for at in (0..envelope + HEADER).step_by(3).chain(0..25) {
        let mut damaged = cipher.clone();
        damaged[at] ^= 0x10;
        refused(&damaged, &format!("flipped at {at}"));
    }
    for at in (0..envelope).step_by(7).chain(envelope - 3..envelope + 60) {
        refused(&cipher[..at], &format!("cut at {at}"));
    }
    // The envelope of the file is replaced by that of another file, which contains another key.
    let other = folder.pipe(["encrypt", "-r", &recipient], &plain).succeeded().stdout;
    let other_envelope = envelope_of(&other);
    refused(&[other_envelope.as_bytes(), &cipher[envelope..]].concat(), "another envelope");
}

#[test]
fn a_bare_file_cannot_be_opened_by_identity() {
    let (folder, _) = with_identity();
    folder.run(["keygen", "-o", "key"]).succeeded();
    let cipher = folder.pipe(["encrypt", "-k", "key"], b"hello").succeeded().stdout;
    folder.pipe(["decrypt", "-i", "identity"], &cipher).failed(2, "give its key file with -k");
}

#[test]
fn key_files_of_other_systems() {
    let folder = Folder::with_keys();
    let key = String::from_utf8(folder.read("key")).unwrap();
    let cipher = folder.pipe(["encrypt", "-k", "key"], b"hello").succeeded().stdout;
    for end in ["\r\n", "\r\n\r\n", "\n\n", ""] {
        folder.write("dos", format!("{}{end}", key.trim_end()));
        let opened = folder.pipe(["decrypt", "-q", "-k", "dos"], &cipher).succeeded();
        assert_eq!(opened.stdout, b"hello", "{end:?}");
    }
    let (folder, recipient) = with_identity();
    let cipher = folder.pipe(["encrypt", "-r", &recipient], b"hello").succeeded().stdout;
    let identity = String::from_utf8(folder.read("identity")).unwrap().replace('\n', "\r\n");
    folder.write("dos", format!("{identity}\r\n"));
    assert_eq!(folder.pipe(["decrypt", "-q", "-i", "dos"], &cipher).succeeded().stdout, b"hello");
    folder.write("dos", "secret\r\n\r\n");
    let cipher = locked("secret", b"hello");
    let opened = folder.pipe(["decrypt", "-q", "--passphrase-file", "dos"], &cipher).succeeded();
    assert_eq!(opened.stdout, b"hello");
}

#[test]
fn ssh_keys_of_other_systems() {
    if !have("ssh-keygen") {
        return;
    }
    let folder = Folder::new();
    ssh_keygen(&folder, "id", &["-t", "ed25519", "-N", ""]);
    for name in ["id", "id.pub"] {
        let text = String::from_utf8(folder.read(name)).unwrap();
        folder.write(name, text.replace('\n', "\r\n"));
    }
    let cipher = folder.pipe(["encrypt", "-R", "id.pub"], b"hello").succeeded().stdout;
    assert_eq!(folder.pipe(["decrypt", "-q", "-i", "id"], &cipher).succeeded().stdout, b"hello");
}

#[test]
fn a_key_from_standard_input() {
    let folder = Folder::with_keys();
    let key = folder.read("key");
    folder.write("plain", data(100_000));
    let silent = folder.pipe(["encrypt", "-k", "-", "plain", "-o", "cipher"], &key).succeeded();
    assert_eq!(silent.stderr, "");
    assert_eq!(folder.run(["decrypt", "-k", "key", "cipher"]).succeeded().stdout, data(100_000));
    assert_eq!(folder.pipe(["decrypt", "-k", "-", "cipher"], &key).succeeded().stdout, data(100_000));
    let cut = folder.pipe(["decrypt", "-k", "-", "--range", "5:10", "cipher"], &key).succeeded();
    assert_eq!(cut.stdout, data(100_000)[5..15]);
    for command in ["encrypt", "decrypt"] {
        folder.pipe([command, "-k", "-"], &key).failed(2, "read once");
        folder.pipe([command, "-k", "-", "-"], &key).failed(2, "read once");
        folder.pipe([command, "-k", "-", "plain", "-o", "out"], b"no key").failed(2, "not a key file");
        folder.pipe([command, "-k", "-", "plain", "-o", "out"], &[b'x'; 1000]).failed(2, "longer than");
    }
    assert!(!folder.has("out"));
}

#[test]
fn secrets_that_others_can_read_cause_a_warning() {
    let (folder, recipient) = with_identity();
    let set_mode = |name: &str, mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(folder.path(name), mode).unwrap();
    };
    folder.write("passphrase", "secret\n");
    folder.write("raw", [7; 16]);
    folder.write("plain", "hello");
    folder.run(["encrypt", "-r", &recipient, "plain", "-o", "to-me"]).succeeded();
    folder.write("locked", locked("secret", b"hello"));
    let cases = [
        ("identity", "identity file", "decrypt -i identity to-me"),
        ("passphrase", "passphrase file", "decrypt --passphrase-file passphrase locked"),
        ("raw", "key file", "cipher -m ecb --key-file raw plain"),
    ];
    for (name, what, command) in cases {
        let expected = format!(
            "lockstep: warning: other users can read or change the {what} '{name}': run `chmod 600` on it"
        );
        for mode in [0o644, 0o640, 0o604, 0o620] {
            set_mode(name, mode);
            let ended = folder.run(command.split(' ')).succeeded();
            assert!(ended.stderr.starts_with(&expected), "{command}: {:?}", ended.stderr);
            assert_eq!(folder.run(format!("{command} -q").split(' ')).succeeded().stderr, "");
        }
        set_mode(name, 0o600);
        assert_eq!(folder.run(command.split(' ')).succeeded().stderr, "", "{command}");
        // A pipe that the shell passes has no permission bits to warn about.
        let process = command.replace(&format!(" {name}"), &format!(" <(cat {name})"));
        assert_eq!(folder.shell(&format!("lockstep {process}")).succeeded().stderr, "", "{process}");
    }
    // Encryption with a passphrase takes a second, so it is tested with only one of the permission modes.
    set_mode("passphrase", 0o640);
    let ended = folder.run(["encrypt", "--passphrase-file", "passphrase", "plain"]).succeeded();
    assert!(ended.stderr.contains("other users can read or change the passphrase file 'passphrase'"));
}

#[test]
fn the_default_identity_file() {
    let (folder, recipient) = with_identity();
    folder.run(["encrypt", "-r", &recipient, "identity", "-o", "cipher"]).succeeded();
    let decrypt = || folder.run(["decrypt", "cipher"]);
    let missing = decrypt().failed(2, "give an identity with -i, or keep one in ");
    assert!(missing.stderr.contains("config/lockstep/identities"), "{}", missing.stderr);
    std::fs::create_dir_all(folder.path("config/lockstep")).unwrap();
    std::fs::copy(folder.path("identity"), folder.path("config/lockstep/identities")).unwrap();
    let mode = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(folder.path("config/lockstep/identities"), mode).unwrap();
    };
    mode(0o600);
    let opened = decrypt().succeeded();
    assert_eq!((opened.stdout, opened.stderr.as_str()), (folder.read("identity"), ""));
    mode(0o644);
    assert!(
        decrypt().succeeded().stderr.contains("warning: other users can read or change the identity file")
    );
    // If the command line has identities, the default identity file is not used.
    folder.run(["decrypt", "-q", "-i", "stranger", "cipher"]).failed(1, "other recipients");
    // Without XDG_CONFIG_HOME the configuration is in the home folder.
    std::fs::create_dir_all(folder.path("home/.config/lockstep")).unwrap();
    std::fs::copy(folder.path("identity"), folder.path("home/.config/lockstep/identities")).unwrap();
    let mut command = folder.command(["decrypt", "-q", "cipher"]);
    command.env_remove("XDG_CONFIG_HOME").env("HOME", folder.path("home"));
    Ended::from(command.output().unwrap()).succeeded();
    std::fs::copy(folder.path("stranger"), folder.path("config/lockstep/identities")).unwrap();
    decrypt().failed(1, "other recipients");
}
