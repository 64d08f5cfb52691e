//! Output files are complete or absent.
#![cfg(unix)]

use crate::common;

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use common::*;
use lockstep::file::{decrypt_open_file, encrypt_open_file};
use lockstep::{
    Envelope, Error, FileMode, FileOptions, Options, OutputFile, OutputOptions, Sparse, Suite, decrypt_file,
    encrypt_file,
};

const SUITE: Suite = Suite::Cobblestone256;
const FORCE: fn() -> FileOptions<'static> = || FileOptions { force: true, ..Default::default() };

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// All names in the folder, so that leftover temporary files are detected.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn encrypt(from: &Path, to: &Path, options: FileOptions<'_>) -> lockstep::Result<lockstep::Summary> {
    encrypt_file(engine(2), &key(SUITE), b"", from, to, options)
}

fn decrypt(from: &Path, to: &Path, options: FileOptions<'_>) -> lockstep::Result<lockstep::Summary> {
    decrypt_file(engine(2), &key(SUITE), b"", from, to, options)
}

#[test]
fn round_trip_at_every_length() {
    for len in LENGTHS {
        let (folder, data) = (Folder::new(), plaintext(len));
        let (plain, cipher, back) =
            (folder.write("plain", &data), folder.path("cipher"), folder.path("back"));
        let summary = encrypt(&plain, &cipher, FileOptions { sync: true, ..Default::default() }).unwrap();
        assert_eq!(summary.ciphertext_len, fs::metadata(&cipher).unwrap().len());
        assert_eq!(summary.plaintext_len, len as u64);
        assert!(oracle_open(SUITE, b"", &fs::read(&cipher).unwrap()).unwrap() == data);
        assert_eq!(decrypt(&cipher, &back, FileOptions::default()).unwrap(), summary);
        assert!(fs::read(&back).unwrap() == data);
        assert_eq!(folder.names(), ["back", "cipher", "plain"]);
    }
}

#[test]
fn nothing_is_left_after_a_failure() {
    let folder = Folder::new();
    let message = oracle_seal(SUITE, b"", &plaintext(3 << 20));
    let output = folder.path("output");
    let mut damaged = message.clone();
    damaged[2 << 20] ^= 1;
    for bad in [&message[..56 + 16400], &damaged, &message[..message.len() - 1], &[]] {
        let input = folder.write("input", bad);
        assert!(decrypt(&input, &output, FileOptions::default()).unwrap_err().is_authentication_failure());
        assert_eq!(folder.names(), ["input"]);
    }
    // If an output would be replaced, a failure leaves it unchanged.
    folder.write("output", b"precious");
    assert!(decrypt(&folder.path("input"), &output, FORCE()).is_err());
    assert_eq!(fs::read(&output).unwrap(), b"precious");
    assert_eq!(folder.names(), ["input", "output"]);

    let flag = AtomicBool::new(true);
    let options = FileOptions { stream: Options { interrupt: Some(&flag), ..Options::default() }, ..FORCE() };
    assert!(matches!(encrypt(&folder.path("input"), &output, options), Err(Error::Interrupted)));
    assert_eq!(fs::read(&output).unwrap(), b"precious");
    assert_eq!(folder.names(), ["input", "output"]);
}

#[test]
fn overwriting_needs_force() {
    let folder = Folder::new();
    let (input, output) = (folder.write("input", b"hello"), folder.write("output", b"precious"));
    let error = encrypt(&input, &output, FileOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Exists { path } if *path == output), "{error}");
    assert_eq!(fs::read(&output).unwrap(), b"precious");
    encrypt(&input, &output, FORCE()).unwrap();
    assert_eq!(fs::metadata(&output).unwrap().len(), 56 + 5 + 16);
}

/// The permission bits of a new file with this mode, under the umask of the tests.
fn under_umask(folder: &Folder, mode: u32) -> u32 {
    use std::os::unix::fs::OpenOptionsExt;
    let probe = folder.path("probe");
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&probe).unwrap();
    fs::remove_file(probe).unwrap();
    file.metadata().unwrap().mode() & 0o7777
}

#[test]
fn permissions_are_those_of_the_input_not_of_the_replaced_file() {
    let is_root = is_root();
    for mode in [0o600, 0o640, 0o666, 0o755, 0o400, 0o4755] {
        let folder = Folder::new();
        let (input, output) = (folder.write("input", b"hello"), folder.write("output", b"old"));
        fs::set_permissions(&output, PermissionsExt::from_mode(0o604)).unwrap();
        if is_root {
            std::os::unix::fs::chown(&output, Some(65534), Some(65534)).unwrap();
        }
        fs::set_permissions(&input, PermissionsExt::from_mode(mode)).unwrap();
        let expected = under_umask(&folder, mode & 0o777);
        encrypt(&input, &output, FORCE()).unwrap();
        let new = fs::metadata(&output).unwrap();
        assert_eq!(new.mode() & 0o7777, expected, "{mode:o}");
        assert_eq!(new.uid(), fs::metadata(folder.0.path()).unwrap().uid(), "the caller's");
        let back = folder.path("back");
        decrypt(&output, &back, FileOptions::default()).unwrap();
        assert_eq!(fs::metadata(&back).unwrap().mode() & 0o7777, expected, "{mode:o}");
    }
    if !is_root {
        eprintln!("NOT TESTED: only root can make a file of another user to be replaced");
    }
}

/// True if the tests run as root.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[test]
fn the_mode_of_a_special_file_is_that_of_any_new_file() {
    assert_eq!(FileMode::of_input(&File::open("/dev/null").unwrap()).unwrap(), FileMode::ORDINARY);
}
#[test]
fn a_file_created_meanwhile_is_not_overwritten() {
    let folder = Folder::new();
    let path = folder.path("output");
    let mut output = OutputFile::create(&path, OutputOptions::default()).unwrap();
    output.write_all(b"new").unwrap();
    folder.write("output", b"precious");
    assert!(matches!(output.commit(), Err(Error::Exists { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    assert_eq!(folder.names(), ["output"]);
}

#[test]
fn permissions_while_writing_and_afterwards() {
    let folder = Folder::new();
    let path = folder.path("output");
    let options = OutputOptions { sync: true, ..Default::default() };
    let mut output = OutputFile::create(&path, options).unwrap();
    output.write_all(b"secret").unwrap();
    assert!(!path.exists());
    assert_eq!(output.as_file().metadata().unwrap().mode() & 0o777, 0o600);
    output.commit().unwrap();
    // The permissions equal the permissions of any other new file, whatever the umask of the tests is.
    let usual = File::create(folder.path("usual")).unwrap().metadata().unwrap().mode();
    assert_eq!(fs::metadata(&path).unwrap().mode(), usual);
}

#[test]
fn output_equal_to_input_is_refused_under_any_name() {
    let folder = Folder::new();
    let input = folder.write("input", b"hello");
    symlink(&input, folder.path("link")).unwrap();
    fs::hard_link(&input, folder.path("hard")).unwrap();
    for name in ["input", "link", "hard", "./input"] {
        for options in [FORCE(), FileOptions::default()] {
            let error = encrypt(&input, &folder.path(name), options).unwrap_err();
            assert!(matches!(error, Error::SameFile { .. }), "{name}: {error}");
        }
    }
    assert_eq!(fs::read(&input).unwrap(), b"hello");
}

#[test]
fn symbolic_links_are_replaced_and_not_written_through() {
    let folder = Folder::new();
    let input = folder.write("input", b"hello");
    folder.write("real", b"old");
    for (link, target) in [("link", "real"), ("dangling", "nowhere"), ("circle", "circle")] {
        symlink(target, folder.path(link)).unwrap();
        let error = encrypt(&input, &folder.path(link), FileOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{link}: {error}");
        assert!(fs::symlink_metadata(folder.path(link)).unwrap().is_symlink());
        encrypt(&input, &folder.path(link), FORCE()).unwrap();
        let new = fs::symlink_metadata(folder.path(link)).unwrap();
        assert!(new.is_file() && new.len() == 56 + 5 + 16, "{link}");
    }
    assert_eq!(fs::read(folder.path("real")).unwrap(), b"old");
    assert_eq!(folder.names(), ["circle", "dangling", "input", "link", "real"]);
}

#[test]
fn links_to_devices_and_fifos_are_opened() {
    let folder = Folder::new();
    let input = folder.write("input", &plaintext(1000));
    symlink("/dev/null", folder.path("null")).unwrap();
    encrypt(&input, &folder.path("null"), FORCE()).unwrap();
    assert!(fs::symlink_metadata(folder.path("null")).unwrap().is_symlink());

    let made = std::process::Command::new("mkfifo").arg(folder.path("fifo")).status().unwrap();
    assert!(made.success());
    symlink("fifo", folder.path("link")).unwrap();
    for name in ["fifo", "link"] {
        // `encrypt` waits until the thread opens the FIFO for reading.
        let read = std::thread::scope(|scope| {
            let reader = scope.spawn(|| fs::read(folder.path("fifo")).unwrap());
            encrypt(&input, &folder.path(name), FileOptions::default()).unwrap();
            reader.join().unwrap()
        });
        assert_eq!(oracle_open(SUITE, b"", &read).unwrap(), plaintext(1000), "{name}");
    }
    assert_eq!(folder.names(), ["fifo", "input", "link", "null"]);
}

#[test]
fn impossible_names_are_refused_at_once() {
    let folder = Folder::new();
    folder.write("file", b"");
    fs::create_dir(folder.path("folder")).unwrap();
    symlink("folder", folder.path("link")).unwrap();
    let long = "n".repeat(300);
    let cases = [
        ("none/out", "there is no folder"),
        ("file/out", "is not a folder"),
        ("new/", "add the name of a file"),
        ("folder/", "add the name of a file"),
        ("folder", "folder"),
        ("link", "folder"),
        ("folder/.", "folder"),
        ("folder/..", "folder"),
        (&long, "too long"),
    ];
    for (name, words) in cases {
        for force in [false, true] {
            let options = OutputOptions { force, ..Default::default() };
            for outcome in [
                OutputFile::check(&folder.path(name), options),
                OutputFile::create(&folder.path(name), options).map(drop),
            ] {
                let error = outcome.unwrap_err();
                assert!(matches!(error, Error::File { .. }), "{name}: {error}");
                assert!(error.to_string().contains(words), "{name}: {error}");
            }
        }
    }
    assert!(OutputFile::check(Path::new(""), OutputOptions::default()).is_err());
    assert_eq!(folder.names(), ["file", "folder", "link"]);
}

#[test]
fn special_files_are_written_directly() {
    let folder = Folder::new();
    let input = folder.write("input", &plaintext(3 << 20));
    let before = fs::metadata("/dev/null").unwrap().mode();
    encrypt(&input, Path::new("/dev/null"), FileOptions::default()).unwrap();
    assert_eq!(fs::metadata("/dev/null").unwrap().mode(), before);
    if cfg!(target_os = "linux") {
        let error = encrypt(&input, Path::new("/dev/full"), FileOptions::default()).unwrap_err();
        assert!(matches!(&error, Error::Write(_)), "{error}");
        assert!(error.to_string().contains("No space left"));
    }
    assert!(matches!(encrypt(&input, folder.0.path(), FORCE()), Err(Error::File { .. })));
    assert!(matches!(encrypt(folder.0.path(), &folder.path("x"), FORCE()), Err(Error::File { .. })));
    assert!(matches!(encrypt(&folder.path("none"), &folder.path("x"), FORCE()), Err(Error::File { .. })));
    let nowhere = folder.path("no/such/folder");
    assert!(matches!(encrypt(&input, &nowhere, FORCE()), Err(Error::File { path, .. }) if path == nowhere));
    assert_eq!(folder.names(), ["input"]);
}

#[test]
fn devices_without_a_length_are_read_as_streams() {
    let folder = Folder::new();
    let output = folder.path("output");
    encrypt(Path::new("/dev/null"), &output, FileOptions::default()).unwrap();
    assert_eq!(oracle_open(SUITE, b"", &fs::read(&output).unwrap()).unwrap(), b"");
    if cfg!(target_os = "linux") {
        // Files in /proc are regular files that report the length 0, but have content.
        encrypt(Path::new("/proc/self/status"), &output, FORCE()).unwrap();
        assert!(fs::metadata(&output).unwrap().len() > 200);
    }
}

#[test]
fn an_envelope_and_its_message_in_one_file() {
    let folder = Folder::new();
    let path = folder.path("enveloped");
    for len in [0, 5, 3 << 20] {
        let data = plaintext(len);
        let envelope = Envelope::new(b"a wrapped key").unwrap();
        let mut output =
            OutputFile::create(&path, OutputOptions { force: true, ..Default::default() }).unwrap();
        envelope.write(&mut output).unwrap();
        let mut input = File::open(folder.write("input", &[b"skipped", &data[..]].concat())).unwrap();
        input.seek(SeekFrom::Start(7)).unwrap();
        let context = envelope.as_bytes();
        encrypt_open_file(engine(2), &key(SUITE), context, &input, &mut output, Options::default()).unwrap();
        output.commit().unwrap();

        let input = File::open(&path).unwrap();
        let found = Envelope::read_file(&input).unwrap().unwrap();
        assert_eq!(found, envelope);
        let mut back = Vec::new();
        decrypt_open_file(engine(2), &key(SUITE), found.as_bytes(), &input, &mut back, Options::default())
            .unwrap();
        assert!(back == data);

        // If the file has no envelope, its position is unchanged, so that the message can be read from its start.
        let bare = File::open(folder.write("bare", &oracle_seal(SUITE, b"", &data))).unwrap();
        assert!(Envelope::read_file(&bare).unwrap().is_none());
        back.clear();
        decrypt_open_file(engine(2), &key(SUITE), b"", &bare, &mut back, Options::default()).unwrap();
        assert!(back == data);
    }
}

#[test]
fn a_truncated_file_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    let message = oracle_seal(SUITE, b"", &plaintext(3 << 20));
    let input = File::open(folder.write("input", &message[..message.len() - 5])).unwrap();
    let mut output = Vec::new();
    assert!(decrypt_open_file(engine(2), &key(SUITE), b"", &input, &mut output, Options::default()).is_err());
    assert!(output.is_empty());
}

/// A progress callback that changes a file once, after the first piece.
fn change_once(change: impl Fn() + Sync) -> impl Fn(u64) + Sync {
    let done = AtomicBool::new(false);
    move |_| {
        if !done.swap(true, std::sync::atomic::Ordering::SeqCst) {
            change();
        }
    }
}

#[test]
fn data_appended_during_encryption_are_encrypted_too() {
    let data = plaintext(8 << 20);
    let second = 6 << 20;
    for first in [3 << 20, (3 << 20) + 5, 4 << 19] {
        for last in [first + 1, second, data.len()] {
            let folder = Folder::new();
            let path = folder.write("growing", &data[..first]);
            let append = change_once(|| {
                let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
                file.write_all(&data[first..last]).unwrap();
            });
            let mut message = Vec::new();
            let (input, options) =
                (File::open(&path).unwrap(), Options { progress: Some(&append), ..Options::default() });
            let summary =
                encrypt_open_file(engine(2), &key(SUITE), b"", &input, &mut message, options).unwrap();
            assert_eq!(summary.plaintext_len, last as u64, "from {first}");
            assert!(oracle_open(SUITE, b"", &message).unwrap() == data[..last], "from {first} to {last}");
        }
    }
}

#[test]
fn a_file_that_becomes_shorter_while_it_is_read_is_refused() {
    let folder = Folder::new();
    let data = plaintext(8 << 20);
    let plain = folder.write("plain", &data);
    let truncate = |path: &Path| {
        let path = path.to_path_buf();
        change_once(move || fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1000).unwrap())
    };
    let cut = truncate(&plain);
    let options =
        FileOptions { stream: Options { progress: Some(&cut), ..Options::default() }, ..Default::default() };
    let error = encrypt(&plain, &folder.path("cipher"), options).unwrap_err();
    assert!(matches!(error, Error::InputChanged { before: 0x80_0000, now: 1000 }), "{error}");

    let cipher = folder.write("cipher", &oracle_seal(SUITE, b"", &data));
    let cut = truncate(&cipher);
    let options =
        FileOptions { stream: Options { progress: Some(&cut), ..Options::default() }, ..Default::default() };
    let error = decrypt(&cipher, &folder.path("back"), options).unwrap_err();
    assert!(matches!(error, Error::Truncated { got: 1000 }), "{error}");
    assert_eq!(folder.names(), ["cipher", "plain"]);
}

#[test]
fn a_message_that_becomes_longer_while_it_is_decrypted_is_refused() {
    let folder = Folder::new();
    let cipher = folder.write("cipher", &oracle_seal(SUITE, b"", &plaintext(3 << 20)));
    let append = change_once(|| {
        fs::OpenOptions::new().append(true).open(&cipher).unwrap().write_all(b"more").unwrap();
    });
    let options = FileOptions {
        stream: Options { progress: Some(&append), ..Options::default() },
        ..Default::default()
    };
    let error = decrypt(&cipher, &folder.path("back"), options).unwrap_err();
    assert!(matches!(error, Error::InputChanged { .. }) && error.to_string().contains("longer"), "{error}");
    assert_eq!(folder.names(), ["cipher"]);
}

#[test]
fn zeros_become_holes_unless_they_are_refused() {
    let folder = Folder::new();
    // The content does not start at a multiple of the length of a chunk.
    let len = (8 << 20) + 777;
    let mut data = vec![0; len];
    data[(3 << 20) + 5000..(3 << 20) + 5100].fill(1);
    data[len - 1] = 2;
    let plain = folder.write("plain", &data);
    encrypt(&plain, &folder.path("cipher"), FileOptions::default()).unwrap();
    let space = |name: &str, sparse| {
        let (from, to) = (folder.path("cipher"), folder.path(name));
        decrypt(&from, &to, FileOptions { sparse, ..Default::default() }).unwrap();
        assert!(fs::read(&to).unwrap() == data, "{name}");
        fs::metadata(&to).unwrap().blocks() * 512
    };
    let (holes, none) = (space("holes", Sparse::Always), space("none", Sparse::Never));
    assert!(none >= len as u64, "{none}");
    File::create(folder.path("probe")).unwrap().set_len(1 << 20).unwrap();
    if fs::metadata(folder.path("probe")).unwrap().blocks() > 0 {
        eprintln!("NOT TESTED: this file system has no holes");
        return;
    }
    // Only the two blocks with content use space on the disk, each in pages or blocks of up to 16 KiB.
    assert!(holes <= 64 << 10, "{holes}");
    // If the output ends with a hole, its length must still be that of the plaintext.
    let zeros = folder.write("zeros", &vec![0; 1 << 20]);
    encrypt(&zeros, &folder.path("cipher"), FORCE()).unwrap();
    decrypt(&folder.path("cipher"), &folder.path("back"), FORCE()).unwrap();
    assert_eq!(fs::metadata(folder.path("back")).unwrap().len(), 1 << 20);
    assert_eq!(fs::metadata(folder.path("back")).unwrap().blocks(), 0);
}
