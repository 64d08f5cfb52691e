//! If there is too little memory, the command prints an error of one line, leaves no output, and does not abort.

use age::secrecy::SecretString;

use crate::common::*;

const CIPHER: &str = "cipher --key-hex 00112233445566778899aabbccddeeff --iv-hex 000102030405060708090a0b";

/// Runs a command whose address space is limited to this number of KiB.
fn limited(folder: &Folder, kib: u64, command: &str) -> Ended {
    let (feed, command) = command.split_once("| ").map_or(("", command), |(feed, command)| (feed, command));
    let pipe = if feed.is_empty() { "" } else { "|" };
    folder.shell(&format!("{feed}{pipe} (ulimit -v {kib}; exec lockstep {command})"))
}

#[track_caller]
fn refused(folder: &Folder, kib: u64, command: &str) -> Ended {
    let before = folder.names();
    let ended = limited(folder, kib, command).failed(2, "not enough memory");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stdout.is_empty());
    assert_eq!(folder.names(), before);
    ended
}

/// An age file with the passphrase `secret`. Its header states the work factor `work`, which differs from the one that was used.
fn with_work_factor(work: u8) -> Vec<u8> {
    let mut lock = age::scrypt::Recipient::new(SecretString::from("secret"));
    lock.set_work_factor(4);
    let encryptor = age::Encryptor::with_recipients(std::iter::once(&lock as _)).unwrap();
    let mut file = Vec::new();
    let mut writer = encryptor.wrap_output(&mut file).unwrap();
    std::io::Write::write_all(&mut writer, &[7; 32]).unwrap();
    writer.finish().unwrap();
    let end = file.windows(3).position(|three| three == b" 4\n").unwrap();
    [&file[..end], format!(" {work}\n").as_bytes(), &file[end + 3..]].concat()
}

#[test]
fn raw_modes_that_need_the_whole_input_in_memory() {
    let folder = Folder::new();
    let sparse = std::fs::File::create(folder.path("large")).unwrap();
    sparse.set_len(2 << 30).unwrap();
    for mode in ["-d -m gcm", "-d -m ccm", "-m ccm"] {
        refused(&folder, 1 << 20, &format!("{CIPHER} {mode} large -o out"));
        let piped = format!("head -c 200M /dev/zero | {CIPHER} {mode} -o out");
        refused(&folder, 1 << 18, &piped);
    }
    let ended = refused(&folder, 1 << 20, &format!("{CIPHER} -d -m gcm large"));
    assert!(ended.stderr.contains("2.0 GiB are needed") && ended.stderr.contains("lockstep encrypt"));
    // The file is larger than the address space.
    sparse.set_len(1 << 43).unwrap();
    folder.run(format!("{CIPHER} -d -m gcm large -o out").split(' ')).failed(2, "8.0 TiB are needed");
}

#[test]
fn passphrases_that_need_more_memory_than_available() {
    let folder = Folder::new();
    folder.write("pw", "secret\n");
    std::fs::set_permissions(folder.path("pw"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    folder.write("plain", "hello");
    folder.run(["encrypt", "--passphrase-file", "pw", "plain", "-o", "cipher"]).succeeded();
    // A work factor of 18 needs 256 MiB.
    let kib = 240 << 10;
    limited(&folder, kib, "inspect cipher").succeeded();
    refused(&folder, kib, "encrypt --passphrase-file pw plain -o out");
    refused(&folder, kib, "decrypt --passphrase-file pw cipher -o out");
    folder.write("age", with_work_factor(18));
    refused(&folder, kib, "decrypt --passphrase-file pw age -o out");
    refused(&folder, kib, "decrypt -i age --passphrase-file pw cipher -o out");
}

#[test]
fn the_work_factor_is_limited() {
    let folder = Folder::new();
    folder.write("pw", "secret\n");
    let recipient = age::x25519::Identity::generate().to_public().to_string();
    folder.write("to-me", folder.pipe(["encrypt", "-r", &recipient], b"hello").succeeded().stdout);
    for work in [21, 22, 40, 63] {
        folder.write("age", with_work_factor(work));
        let envelope = lockstep::Envelope::new(&with_work_factor(work)).unwrap();
        folder.write("envelope", [envelope.as_bytes(), &[0; 72]].concat());
        for file in ["age", "envelope"] {
            let args = ["decrypt", "--passphrase-file", "pw", "-q", file, "-o", "out"];
            folder.run(args).failed(2, &format!("--max-work-factor {work}"));
        }
        let args = ["decrypt", "-i", "age", "--passphrase-file", "pw", "-q", "to-me", "-o", "out"];
        folder.run(args).failed(2, &format!("--max-work-factor {work}"));
        // The command fails before it asks for the passphrase.
        folder.run(["decrypt", "age", "-o", "out"]).failed(2, &format!("--max-work-factor {work}"));
    }
    for file in ["age", "envelope"] {
        folder.write("age", with_work_factor(24));
        let envelope = lockstep::Envelope::new(&with_work_factor(24)).unwrap();
        folder.write("envelope", [envelope.as_bytes(), &[0; 72]].concat());
        let command = format!("decrypt --max-work-factor 24 --passphrase-file pw -q {file} -o out");
        refused(&folder, 1 << 20, &command);
    }
    // A lower factor is accepted, unless the limit is lower; the changed header is detected when the passphrase is
    // tried.
    folder.write("age", with_work_factor(5));
    folder.run(["decrypt", "--passphrase-file", "pw", "-q", "age"]).failed(1, "wrong passphrase");
    let lower = ["decrypt", "--max-work-factor", "3", "--passphrase-file", "pw", "-q", "age"];
    folder.run(lower).failed(2, "--max-work-factor 5");
    folder.run(["decrypt", "--max-work-factor", "0", "age"]).failed_usage("--max-work-factor");
}

#[test]
fn pictures_and_measurements() {
    let folder = Folder::new();
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, 8192, 8192);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Sixteen);
    let mut writer = encoder.write_header().unwrap();
    // The file has only the first bytes of a picture of 512 MiB.
    writer.write_chunk(png::chunk::IDAT, b"x\x9c").unwrap();
    drop(writer);
    folder.write("large.png", png);
    refused(&folder, 400 << 10, "picture -m ecb large.png out.png");
    let bench = "bench throughput --quick --size 1G --mode ecb-128 --no-openssl --device cpu -q";
    refused(&folder, 1 << 20, bench);
}

#[test]
fn threads_that_cannot_be_started() {
    let folder = Folder::with_keys();
    folder.write("plain", data(3_000_000));
    // Limits from 64 to 104 MiB are not tested. The test program takes 40 MiB, so such a limit has room for the program or for an arena
    // of 64 MiB, but not for both. A thread takes an arena only if the address that the kernel chooses is aligned, which happens about
    // once in 16,000 times, and the allocator would then fail.
    for mib in [60, 120, 250, 300, 600] {
        for threads in [2, 64, 1024] {
            let command = format!("encrypt -k key plain --threads {threads} -o cipher -f");
            limited(&folder, mib << 10, &command).succeeded();
            let command = format!("decrypt -k key cipher --threads {threads}");
            assert!(limited(&folder, mib << 10, &command).succeeded().stdout == data(3_000_000));
            let command = format!("{CIPHER} -m gcm plain --threads {threads}");
            assert_eq!(limited(&folder, mib << 10, &command).succeeded().stdout.len(), 3_000_016);
        }
    }
}
