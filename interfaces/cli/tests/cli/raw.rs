//! `lockstep cipher`: modes that OpenSSL's command does not have, and errors.

use crate::common::*;

const KEY: &str = "feffe9928665731c6d6a8f9467308308";
const IV: &str = "000102030405060708090a0b0c0d0e0f";

fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect()
}

#[track_caller]
fn both_ways(folder: &Folder, options: &str, plain: &[u8], cipher: &[u8]) {
    let options = || ["cipher", "--mode"].into_iter().chain(options.split_whitespace());
    assert_eq!(folder.pipe(options(), plain).succeeded().stdout, cipher);
    assert_eq!(folder.pipe(options().chain(["-d"]), cipher).succeeded().stdout, plain);
}

/// The vector is test case 4 of McGrew and Viega.
#[test]
fn gcm() {
    let folder = Folder::new();
    let plain = hex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525\
         b16aedf5aa0de657ba637b39",
    );
    let cipher = hex(
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05\
         1ba30b396a0aac973d58e091",
    );
    let tag = hex("5bc94fbc3221a5db94fae95ae7121a47");
    let options = format!(
        "gcm --key-hex {KEY} --iv-hex cafebabefacedbaddecaf888 --aad-hex feedfacedeadbeeffeedfacedeadbeefabaddad2"
    );
    both_ways(&folder, &options, &plain, &[&cipher[..], &tag].concat());
    both_ways(&folder, &format!("{options} --tag-len 12"), &plain, &[&cipher[..], &tag[..12]].concat());
}

/// The vector is example 1 of SP 800-38C.
#[test]
fn ccm() {
    let folder = Folder::new();
    let options = "ccm --key-hex 404142434445464748494a4b4c4d4e4f --iv-hex 10111213141516 \
                   --aad-hex 0001020304050607 --tag-len 4";
    both_ways(&folder, options, &hex("20212223"), &hex("7162015b4dac255d"));
    folder.pipe(["cipher", "--mode", "ccm", "--key-hex", KEY, "--iv-hex", "00"], b"").failed(2, "CCM");
}

/// The vectors are those of RFC 8452 (C.1), RFC 7253 (appendix A) and RFC 5297 (A.1), and C2SP's first vector of XAES-256-GCM.
#[test]
fn aeads_of_whole_messages() {
    let folder = Folder::new();
    let zeros = "00".repeat(15);
    both_ways(
        &folder,
        &format!("gcm-siv --key-hex 01{zeros} --iv-hex 030000000000000000000000"),
        &hex("0100000000000000"),
        &hex("b5d839330ac7b786578782fff6013b815b287c22493a364c"),
    );
    both_ways(
        &folder,
        &format!("ocb --key-hex {IV} --iv-hex bbaa99887766554433221101 --aad-hex 0001020304050607"),
        &hex("0001020304050607"),
        &hex("6820b3657b6f615a5725bda0d3b4eb3a257c9af1f8f03009"),
    );
    let siv = "siv --key-hex fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff \
               --aad-hex 101112131415161718191a1b1c1d1e1f2021222324252627";
    let sealed = hex("85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c");
    both_ways(&folder, siv, &hex("112233445566778899aabbccddee"), &sealed);
    // In SIV, the nonce is the last string of associated data.
    let (head, nonce) = siv.split_once("--aad-hex ").unwrap();
    both_ways(&folder, &format!("{head} --iv-hex {nonce}"), &hex("112233445566778899aabbccddee"), &sealed);
    let nonce: String = b"ABCDEFGHIJKLMNOPQRSTUVWX".iter().map(|byte| format!("{byte:02x}")).collect();
    both_ways(
        &folder,
        &format!("xaes --key-hex {} --iv-hex {nonce}", "01".repeat(32)),
        b"XAES-256-GCM",
        &hex("ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
    );
    both_ways(
        &folder,
        "eax --key-hex 01f74ad64077f2e704c0f60ada3dd523 --iv-hex 70c3db4f0d26368400a10ed05d2bff5e \
         --aad-hex 234a3463c1264ac6",
        &hex("1a47cb4933"),
        &hex("d851d5bae03a59f238a23e39199dc9266626c40f80"),
    );
}

/// The vectors are those of RFC 3394 (4.1) and RFC 5649 (section 6).
#[test]
fn key_wrap() {
    let folder = Folder::new();
    let wrapped = hex("1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5");
    both_ways(&folder, &format!("kw --key-hex {IV}"), &hex("00112233445566778899aabbccddeeff"), &wrapped);
    both_ways(
        &folder,
        "kwp --key-hex 5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8",
        &hex("466f7250617369"),
        &hex("afbeb0f07dfbf5419200f2ccb50bb24f"),
    );
    let kw = ["cipher", "--mode", "kw", "--key-hex", IV];
    folder.pipe(kw, &[1; 20]).failed(2, "8 bytes");
    folder.pipe(kw.into_iter().chain(["-d"]), &[1; 24]).failed(1, "authentication failed");
    folder.pipe(kw.into_iter().chain(["--iv-hex", IV]), &[1; 16]).failed(2, "has no IV");
}

/// The output is as long as the input, a change of any bit changes all blocks, and the tweak changes the result.
#[test]
fn hctr2() {
    let folder = Folder::new();
    let args = |tweak: &'static str| ["cipher", "--mode", "hctr2", "--key-hex", KEY, "--iv-hex", tweak];
    let plain = data(100);
    let cipher = folder.pipe(args("0102"), &plain).succeeded().stdout;
    assert_eq!(folder.pipe(args("0102").into_iter().chain(["-d"]), &cipher).succeeded().stdout, plain);
    assert_eq!(cipher.len(), 100);
    let mut changed = plain.clone();
    changed[99] ^= 1;
    for other in [folder.pipe(args("0102"), &changed), folder.pipe(args(""), &plain)] {
        let other = other.succeeded().stdout;
        assert!(cipher.chunks(16).zip(other.chunks(16)).all(|(a, b)| a != b));
    }
    folder.pipe(args("00"), &plain[..15]).failed(2, "at least 16 bytes");
}

#[test]
fn options_that_a_mode_lacks_are_refused() {
    let folder = Folder::new();
    let run = |line: &str| {
        let args = ["cipher", "--key-hex", KEY].into_iter().chain(line.split_whitespace());
        folder.pipe(args, b"0123456789abcdef")
    };
    let nonce = "--iv-hex 000102030405060708090a0b";
    run(&format!("-m gcm-siv {nonce} --tag-len 12")).failed(2, "tags of 16 bytes");
    run(&format!("-m ocb {nonce} --tag-len 17")).failed_usage("from 1 to 16");
    run("-m ocb --iv-hex 00010203040506070809").succeeded();
    run(&format!("-m ocb --iv-hex {IV}")).failed(2, "1 to 15");
    run(&format!("-m gcm-siv --iv-hex {IV}")).failed(2, "IV of 12 bytes");
    run(&format!("-m xaes {nonce}")).failed(2, "32 bytes");
    run("-m siv").failed(2, "32, 48 or 64 bytes");
    run(&format!("-m gcm {nonce} --aad-hex 00 --aad-hex 01")).failed(2, "give --aad-hex once");
    run(&format!("-m hctr2 {nonce} --aad-hex 00")).failed(2, "no associated data");
    run(&format!("-m cbc --iv-hex {IV} --cts-mode cs1")).failed(2, "--cts-mode");
    run("-m ocb").failed(2, "needs an IV");
}

/// The vector is number 2 of IEEE 1619.
#[test]
fn xts() {
    let folder = Folder::new();
    let key = format!("{}{}", "11".repeat(16), "22".repeat(16));
    let options = format!("xts --key-hex {key} --iv-hex 33333333330000000000000000000000");
    both_ways(
        &folder,
        &options,
        &[0x44; 32],
        &hex("c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0"),
    );
    let long = data((1 << 20) + 7);
    let cipher =
        folder.pipe(["cipher", "--mode"].into_iter().chain(options.split(' ')), &long).succeeded().stdout;
    both_ways(&folder, &options, &long, &cipher);
    folder.pipe(["cipher", "--mode"].into_iter().chain(options.split(' ')), &[1; 15]).failed(2, "16 bytes");
    let equal = "11".repeat(32);
    folder.run(["cipher", "--mode", "xts", "--key-hex", &equal, "--iv-hex", IV]).failed(2, "halves");
}

#[test]
fn pcbc() {
    let folder = Folder::new();
    let options = format!("pcbc --key-hex {KEY} --iv-hex {IV}");
    for len in [0, 16, 1000, (1 << 20) + 3] {
        let plain = data(len);
        let args = || ["cipher", "--mode"].into_iter().chain(options.split(' '));
        let cipher = folder.pipe(args(), &plain).succeeded().stdout;
        assert_eq!(cipher.len(), (len / 16 + 1) * 16);
        assert!(folder.pipe(args().chain(["-d"]), &cipher).succeeded().stdout == plain);
    }
}

/// The vectors are those of RFC 4493, and test case 1 of McGrew and Viega.
#[test]
fn macs() {
    let folder = Folder::new();
    let cmac = |tag: &str, input: &[u8]| {
        let key = "2b7e151628aed2a6abf7158809cf4f3c";
        folder.pipe(["cipher", "--mode", "cmac", "--key-hex", key, "--tag-len", tag], input).succeeded()
    };
    assert_eq!(cmac("16", b"").text(), "bb1d6929e95937287fa37d129b756746\n");
    let block = hex("6bc1bee22e409f96e93d7e117393172a");
    assert_eq!(cmac("16", &block).text(), "070a16b46b4d4144f79bdd9dd04a287c\n");
    assert_eq!(cmac("4", &block).text(), "070a16b4\n");
    let zeros = "00".repeat(16);
    let gmac = ["cipher", "--mode", "gmac", "--key-hex", &zeros, "--iv-hex", &zeros[..24]];
    assert_eq!(folder.run(gmac).succeeded().text(), "58e2fccefa7e3061367f1d57a4e7455a\n");
    // GMAC is GCM with associated data only.
    let input = data(5000);
    let aad: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
    let gcm = ["cipher", "--mode", "gcm", "--key-hex", &zeros, "--iv-hex", &zeros[..24], "--aad-hex", &aad];
    let tag: String = folder.run(gcm).succeeded().stdout.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(folder.pipe(gmac, &input).succeeded().text().trim_end(), tag);
}

#[test]
fn nothing_is_written_before_the_tag_is_checked() {
    let folder = Folder::new();
    let plain = data(3 << 20);
    let nonce = "000102030405060708090a0b";
    for (mode, iv) in [("gcm", nonce), ("ccm", &nonce[..20]), ("gcm-siv", nonce), ("ocb", nonce)] {
        let args = ["cipher", "--mode", mode, "--key-hex", KEY, "--iv-hex", iv];
        let mut cipher = folder.pipe(args, &plain).succeeded().stdout;
        assert_eq!(cipher.len(), plain.len() + 16);
        assert!(folder.pipe(args.into_iter().chain(["-d"]), &cipher).succeeded().stdout == plain);
        let last = cipher.len() - 1;
        cipher[last] ^= 1;
        folder.write("cipher", &cipher);
        let ended = folder.run(args.into_iter().chain(["-d", "cipher"])).failed(1, "authentication failed");
        assert!(ended.stdout.is_empty());
        folder.run(args.into_iter().chain(["-d", "cipher", "-o", "out"])).failed(1, "authentication failed");
        assert!(!folder.has("out"));
        folder.pipe(args.into_iter().chain(["-d"]), &cipher[..15]).failed(1, "less than a tag");
    }
}

#[test]
fn keys_from_files_are_raw_bytes() {
    let folder = Folder::with_keys();
    folder.write("raw", hex(KEY));
    let by_file = ["cipher", "--mode", "ctr", "--iv-hex", IV, "--key-file"];
    let from_file = folder.pipe(by_file.into_iter().chain(["raw"]), b"hello").succeeded().stdout;
    let by_hex = ["cipher", "--mode", "ctr", "--iv-hex", IV, "--key-hex", KEY];
    assert_eq!(folder.pipe(by_hex, b"hello").succeeded().stdout, from_file);
    folder.run(by_file.into_iter().chain(["key"])).failed(2, "raw bytes");
    folder.write("text", format!("{KEY}\n"));
    folder.run(by_file.into_iter().chain(["text"])).failed(2, "xxd");
    folder.write("short", [0xff; 15]);
    folder.run(by_file.into_iter().chain(["short"])).failed(2, "15 bytes");
}

#[test]
fn options_without_effect_are_refused() {
    let folder = Folder::new();
    let with = |options: &str| {
        let args = ["cipher", "--key-hex", KEY].into_iter().chain(options.split_whitespace());
        folder.pipe(args.collect::<Vec<_>>(), &[0; 16])
    };
    with("--mode cbc").failed(2, "CBC needs an IV");
    with(&format!("--mode ecb --iv-hex {IV}")).failed(2, "ECB has no IV");
    with(&format!("--mode cbc --iv-hex {IV} --aad-hex 00")).failed(2, "no associated data");
    with(&format!("--mode gmac --iv-hex {IV} --aad-hex 00")).failed(2, "no associated data");
    with(&format!("--mode ctr --iv-hex {IV} --tag-len 12")).failed(2, "no tag");
    with("--mode cmac -d").failed(2, "leave out -d");
    with("--mode cmac --tag-len 17").failed_usage("from 1 to 16");
    with(&format!("--mode gcm --iv-hex {IV} --tag-len 3")).failed(2, "3");
    with("--mode ctr --iv-hex 00").failed(2, "IV of 16 bytes");
    with("--mode ctr --iv-hex 0").failed(2, "--iv-hex: 1 hex digits");
    with("--mode gcm --iv-hex zz").failed(2, "--iv-hex");
    with("--mode rot13").failed_usage("rot13");
    let ended = folder.run(["cipher", "--mode", "ecb", "--key-hex", "5ec3e7zz"]).failed(2, "--key-hex");
    assert!(!ended.stderr.contains("5ec3e7"));
    folder.run(["cipher", "--mode", "ecb", "--key-hex", "5ec3e7"]).failed(2, "3 bytes");
    folder.run(["cipher", "--mode", "ecb"]).failed_usage("--key-hex");
}

#[test]
fn wrong_padding_and_broken_blocks() {
    let folder = Folder::new();
    let cbc = ["cipher", "--mode", "cbc", "--key-hex", KEY, "--iv-hex", IV];
    let cipher = folder.pipe(cbc, &data(100)).succeeded().stdout;
    let cut = &cipher[..cipher.len() - 1];
    folder.pipe(cbc.into_iter().chain(["-d", "-o", "out"]), cut).failed(2, "multiple of 16");
    for mode in ["cbc", "ecb", "pcbc"] {
        let mut args = vec!["cipher", "--mode", mode, "--key-hex", KEY, "-d", "-o", "out"];
        if mode != "ecb" {
            args.extend(["--iv-hex", IV]);
        }
        let empty = folder.pipe(&args, b"").failed(2, "the input is empty");
        assert!(
            !empty.stderr.contains("without padding") && !empty.stderr.contains("key"),
            "{}",
            empty.stderr
        );
        let cut = folder.pipe(&args, cut).failed(2, "111 bytes");
        assert!(!cut.stderr.contains("without padding"), "{}", cut.stderr);
        args.push("--no-padding");
        folder.pipe(&args, b"").succeeded();
        std::fs::remove_file(folder.path("out")).unwrap();
    }
    let block = &cipher[..16];
    folder.pipe(cbc.into_iter().chain(["-d", "-o", "out"]), block).failed(1, "padding");
    folder.pipe(cbc.into_iter().chain(["--no-padding", "-o", "out"]), b"abc").failed(2, "multiple of 16");
    assert!(!folder.has("out"));
}
