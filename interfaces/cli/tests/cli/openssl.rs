//! `lockstep cipher` and `openssl enc` produce the same bytes, in both directions.

use crate::common::*;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const IV: &str = "f0f1f2f3f4f5f6f7fffffffffffffffe";

fn openssl(folder: &Folder, name: &str, key: &str, extra: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = folder.program("openssl");
    command.args(["enc", &format!("-{name}"), "-K", key]).args(extra);
    if !name.ends_with("ecb") {
        command.args(["-iv", IV]);
    }
    feed(command, input).succeeded().stdout
}

fn cipher(folder: &Folder, mode: &str, key: &str, extra: &[&str], input: &[u8]) -> Vec<u8> {
    let mut args = vec!["cipher", "--mode", mode, "--key-hex", key];
    if mode != "ecb" {
        args.extend(["--iv-hex", IV]);
    }
    args.extend(extra);
    folder.pipe(args, input).succeeded().stdout
}

fn agree(mode: &str, lengths: &[usize]) {
    if !have("openssl") {
        return;
    }
    let folder = Folder::new();
    // Each length is tested with only one key size, because padding and the division into pieces do not depend on the key size.
    for (&len, bits) in lengths.iter().zip([128, 192, 256].into_iter().cycle()) {
        let key = &KEY[..bits / 4];
        let name = format!("aes-{bits}-{mode}");
        let plain = data(len);
        let ours = cipher(&folder, mode, key, &[], &plain);
        assert!(ours == openssl(&folder, &name, key, &[], &plain), "{name} of {len} bytes");
        assert!(openssl(&folder, &name, key, &["-d"], &ours) == plain, "{name} of {len} bytes, theirs back");
        assert!(cipher(&folder, mode, key, &["-d"], &ours) == plain, "{name} of {len} bytes, ours back");
        if len % 16 == 0 {
            let ours = cipher(&folder, mode, key, &["--no-padding"], &plain);
            assert_eq!(ours.len(), len);
            assert!(ours == openssl(&folder, &name, key, &["-nopad"], &plain), "{name} without padding");
            assert!(cipher(&folder, mode, key, &["-d", "--no-padding"], &ours) == plain, "{name} back");
        }
    }
}

const LENGTHS: [usize; 8] = [0, 1, 15, 16, 17, 4096, (1 << 20) - 1, (2 << 20) + 32];

#[test]
fn ecb() {
    agree("ecb", &LENGTHS);
}

#[test]
fn cbc() {
    agree("cbc", &LENGTHS);
}

/// `openssl enc` cannot steal ciphertext of longer messages, because it makes several updates.
#[test]
fn cbc_cts() {
    agree("cbc-cts", &[16, 17, 31, 32, 33, 1000]);
}

#[test]
fn cfb() {
    agree("cfb", &LENGTHS);
}

#[test]
fn cfb8() {
    agree("cfb8", &[0, 1, 15, 16, 17, (1 << 20) + 5]);
}

#[test]
fn cfb1() {
    agree("cfb1", &[0, 1, 15, 16, 17, 50_000]);
}

#[test]
fn ofb() {
    agree("ofb", &LENGTHS);
}

#[test]
fn ctr() {
    agree("ctr", &LENGTHS);
}
