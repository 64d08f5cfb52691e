//! Too little memory is an error, of one line, that leaves no output: never an abort.

use crate::common::*;

const CIPHER: &str = "cipher --key-hex 00112233445566778899aabbccddeeff --iv-hex 000102030405060708090a0b";

/// Runs a command that may have so many KiB of address space.
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

#[test]
fn raw_modes_that_hold_all_of_their_input() {
    let folder = Folder::new();
    let sparse = std::fs::File::create(folder.path("large")).unwrap();
    sparse.set_len(2 << 30).unwrap();
    for mode in ["-d -m gcm", "-d -m ccm", "-m ccm"] {
        refused(&folder, 1 << 20, &format!("{CIPHER} {mode} large -o out"));
        let piped = format!("head -c 800M /dev/zero | {CIPHER} {mode} -o out");
        refused(&folder, 1 << 20, &piped);
    }
    let ended = refused(&folder, 1 << 20, &format!("{CIPHER} -d -m gcm large"));
    assert!(ended.stderr.contains("2.0 GiB are needed") && ended.stderr.contains("lockstep encrypt"));
    // More than an address space.
    sparse.set_len(1 << 43).unwrap();
    folder.run(format!("{CIPHER} -d -m gcm large -o out").split(' ')).failed(2, "8.0 TiB are needed");
}

#[test]
fn pictures_and_measurements() {
    let folder = Folder::new();
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, 8192, 8192);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Sixteen);
    let mut writer = encoder.write_header().unwrap();
    // The beginning of what would be 512 MiB.
    writer.write_chunk(png::chunk::IDAT, b"x\x9c").unwrap();
    drop(writer);
    folder.write("large.png", png);
    refused(&folder, 400 << 10, "picture -m ecb large.png out.png");
    let bench = "bench throughput --quick --size 1G --mode ecb-128 --no-openssl --device cpu -q";
    refused(&folder, 1 << 20, bench);
}

#[test]
fn threads_for_which_there_is_no_room() {
    let folder = Folder::with_keys();
    folder.write("plain", data(3_000_000));
    for mib in [60, 100, 150, 300, 600] {
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
