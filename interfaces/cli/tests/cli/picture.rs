//! `lockstep picture`: every type of PNG, and invalid files.

use png::{BitDepth, ColorType};

use crate::common::*;

#[path = "../../examples/penguin.rs"]
mod penguin;

/// A PNG as its parts: width, height, colour type, bit depth and bytes.
type Png = (u32, u32, ColorType, BitDepth, Vec<u8>);

fn encode((width, height, colour, depth, pixels): &Png, palette: Option<(&[u8], &[u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, *width, *height);
    encoder.set_color(*colour);
    encoder.set_depth(*depth);
    if let Some((colours, alpha)) = palette {
        encoder.set_palette(colours.to_vec());
        encoder.set_trns(alpha.to_vec());
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(pixels).unwrap();
    writer.finish().unwrap();
    out
}

fn decode(png: &[u8]) -> Png {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    pixels.truncate(info.buffer_size());
    (info.width, info.height, info.color_type, info.bit_depth, pixels)
}

fn samples(colour: ColorType) -> usize {
    match colour {
        ColorType::Grayscale | ColorType::Indexed => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb => 3,
        ColorType::Rgba => 4,
    }
}

/// Colours and alpha, separated.
fn parts((_, _, colour, depth, pixels): &Png) -> (Vec<u8>, Vec<u8>) {
    let bytes = if *depth == BitDepth::Sixteen { 2 } else { 1 };
    let opaque = match colour {
        ColorType::Rgba => 3,
        ColorType::GrayscaleAlpha => 1,
        _ => return (pixels.clone(), Vec::new()),
    };
    let pixels = pixels.chunks(samples(*colour) * bytes);
    let (colours, alpha): (Vec<_>, Vec<_>) = pixels.map(|pixel| pixel.split_at(opaque * bytes)).unzip();
    (colours.concat(), alpha.concat())
}

/// The output of `lockstep cipher` for the same bytes.
fn ciphered(folder: &Folder, mode: &str, plain: &[u8]) -> Vec<u8> {
    let whole = if mode == "ctr" { plain.len() } else { plain.len() / 16 * 16 };
    let mut args = vec!["cipher", "--mode", mode, "--key-file", "raw"];
    if mode != "ctr" {
        args.push("--no-padding");
    }
    if mode != "ecb" {
        args.extend(["--iv-hex", "00000000000000000000000000000000"]);
    }
    let done = folder.pipe(args, &plain[..whole]).succeeded();
    [&done.stdout, &plain[whole..]].concat()
}

/// Encrypts a picture in each mode, and compares the result with the encrypted pixels of `plain`.
fn check(folder: &Folder, what: &str, png: &[u8], plain: &Png) {
    folder.write("in.png", png);
    let (colours, alpha) = parts(plain);
    for mode in ["ecb", "cbc", "ctr"] {
        let args = ["picture", "in.png", "out.png", "--mode", mode, "--key-file", "raw", "--force"];
        folder.run(args).succeeded();
        let got = decode(&folder.read("out.png"));
        assert_eq!((got.0, got.1, got.2, got.3), (plain.0, plain.1, plain.2, plain.3), "{what} {mode}");
        let (got, transparency) = parts(&got);
        assert!(transparency == alpha, "{what} {mode}: the transparency changed");
        assert!(got == ciphered(folder, mode, &colours), "{what} {mode}");
    }
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("raw", penguin::key(32));
    folder.write("raw-xts", penguin::key(64));
    folder
}

#[test]
fn all_kinds_of_pictures() {
    let folder = folder();
    let depths = [BitDepth::Eight, BitDepth::Sixteen];
    for colour in [ColorType::Grayscale, ColorType::GrayscaleAlpha, ColorType::Rgb, ColorType::Rgba] {
        for depth in depths {
            let bytes = if depth == BitDepth::Sixteen { 2 } else { 1 };
            let png = (19, 7, colour, depth, data(19 * 7 * samples(colour) * bytes));
            check(&folder, &format!("{colour:?} {depth:?}"), &encode(&png, None), &png);
        }
    }
    // One pixel is less than a block: only CTR encrypts it.
    let png = (1, 1, ColorType::Rgb, BitDepth::Eight, vec![1, 2, 3]);
    check(&folder, "a pixel", &encode(&png, None), &png);
    // Grey pixels of 1 bit become pixels of 8 bits.
    let rows: Vec<u8> = vec![0b1010_0000, 0b0110_0000, 0b0000_0000];
    let png = (3, 3, ColorType::Grayscale, BitDepth::One, rows);
    let wide = [255, 0, 255, 0, 255, 255, 0, 0, 0].to_vec();
    check(
        &folder,
        "grey of 1 bit",
        &encode(&png, None),
        &(3, 3, ColorType::Grayscale, BitDepth::Eight, wide),
    );
    // A palette is expanded to its colours, with their transparency.
    let colours: Vec<u8> = (0..48).collect();
    let png = (16, 2, ColorType::Indexed, BitDepth::Four, (0..16).map(|i| i * 17).collect());
    let index = |place: usize| (place % 16 / 2) as u8 + (place / 16) as u8 * 8;
    let pixel = |place| {
        let number = index(place);
        [3 * number, 3 * number + 1, 3 * number + 2, if number < 2 { number } else { 255 }]
    };
    let rgba = (0..32).flat_map(pixel).collect();
    check(
        &folder,
        "a palette",
        &encode(&png, Some((&colours, &[0, 1]))),
        &(16, 2, ColorType::Rgba, BitDepth::Eight, rgba),
    );
}

fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut crc = !0u32;
    for byte in kind.iter().chain(body) {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    let len = (body.len() as u32).to_be_bytes();
    [&len[..], kind, body, &(!crc).to_be_bytes()].concat()
}

/// Makes a grey PNG of 8 bits, without compression, from rows that start with filter bytes.
fn by_hand(width: u32, height: u32, interlaced: bool, rows: &[u8]) -> Vec<u8> {
    let header =
        [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, u8::from(interlaced)]].concat();
    let (mut a, mut b) = (1u32, 0u32);
    for byte in rows {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    let len = rows.len() as u16;
    let stored =
        [&[0x78, 1, 1][..], &len.to_le_bytes(), &(!len).to_le_bytes(), rows, &(b << 16 | a).to_be_bytes()];
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &header),
        chunk(b"IDAT", &stored.concat()),
        chunk(b"IEND", &[]),
    ]
    .concat()
}

/// In XTS, each sector of 512 bytes is a data unit, and its number is the tweak. The last sector uses ciphertext stealing. A sector of
/// less than a block is unchanged.
#[test]
fn sectors() {
    let folder = folder();
    for bytes in [512, 1024, 512 + 16, 512 + 25, 1024 + 500, 30, 16, 512 + 15, 512 + 1, 7] {
        let png = (bytes as u32, 1, ColorType::Grayscale, BitDepth::Eight, data(bytes));
        folder.write("in.png", encode(&png, None));
        folder
            .run(["picture", "in.png", "out.png", "--mode", "xts", "--key-file", "raw-xts", "-f"])
            .succeeded();
        let got = decode(&folder.read("out.png")).4;
        let mut expected = Vec::new();
        for (number, sector) in png.4.chunks(512).enumerate() {
            if sector.len() < 16 {
                expected.extend_from_slice(sector);
                continue;
            }
            let tweak = format!("{number:02x}{}", "00".repeat(15));
            let args = ["cipher", "--mode", "xts", "--key-file", "raw-xts", "--iv-hex", &tweak];
            expected.extend(folder.pipe(args, sector).succeeded().stdout);
        }
        assert!(got == expected && got.len() == bytes, "{bytes} bytes");
        assert_eq!(got == png.4, bytes < 16);
    }
}

#[test]
fn interlaced_pictures() {
    let folder = folder();
    let (width, height) = (11usize, 9usize);
    let pixels = data(width * height);
    // Adam7: start and step of each pass, horizontally and vertically.
    let passes =
        [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)];
    let mut rows = Vec::new();
    for (x, y, across, down) in passes {
        for y in (y..height).step_by(down) {
            rows.push(0);
            rows.extend((x..width).step_by(across).map(|x| pixels[y * width + x]));
        }
    }
    let png = by_hand(width as u32, height as u32, true, &rows);
    let plain = (width as u32, height as u32, ColorType::Grayscale, BitDepth::Eight, pixels);
    assert!(decode(&png) == plain);
    check(&folder, "interlaced", &png, &plain);
}

#[test]
fn invalid_pictures() {
    let folder = folder();
    let good = encode(&(19, 7, ColorType::Rgb, BitDepth::Eight, data(19 * 7 * 3)), None);
    let refused = |png: &[u8], words: &str| {
        folder.write("in.png", png);
        folder.run(["picture", "in.png", "out.png", "--mode", "ecb"]).failed(2, words);
        assert!(!folder.has("out.png") && folder.names().len() == 3, "{:?}", folder.names());
    };
    refused(b"", "cut off");
    refused(b"GIF89a, which is another kind of picture", "'in.png': it is not a PNG: convert it to one");
    for len in [5, 8, 20, 33, 40, good.len() / 2, good.len() - 12, good.len() - 1] {
        refused(&good[..len], "'in.png': it is");
    }
    for place in [12, 29, 45, good.len() / 2] {
        let mut damaged = good.clone();
        damaged[place] ^= 0x10;
        refused(&damaged, "'in.png': it");
    }
    // The headers state sizes that are too large, and there are almost no data.
    refused(&by_hand(100_000, 100_000, false, &[0; 10]), "8192 x 8192");
    refused(&by_hand(u32::MAX, 1, false, &[0; 10]), "'in.png': it");
    refused(&by_hand(0, 5, false, &[0; 10]), "'in.png': it");
    refused(&by_hand(8192, 8192, false, &[0; 10]), "'in.png': it");
}

/// Zeros in the format of zlib, compressed to about 1/160 of their length: one literal and matches of 258 bytes, with the fixed
/// Huffman codes.
fn zeros(len: usize) -> Vec<u8> {
    let (matches, mut bits, mut held) = ((len - 1) / 258, 0u64, 0);
    let mut out = vec![0x78, 1];
    let mut create_module = |code: u64, count: u32| {
        bits |= code << held;
        held += count;
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    };
    // The head of the last block, which uses the fixed codes. Codes are written with the most significant bit first.
    create_module(0b011, 3);
    create_module(0b0000_1100, 8);
    for _ in 0..matches {
        create_module(0b1010_0011, 8);
        create_module(0, 5);
    }
    // Writes the code of the end, and padding up to a whole byte.
    create_module(0, 7);
    create_module(0, 7);
    let len = 1 + 258 * matches as u32;
    out.extend(((len % 65521) << 16 | 1).to_be_bytes());
    out
}

/// A colour profile of a few megabytes that would inflate to a gigabyte takes little memory, because the command does not inflate
/// it. The same holds for a compressed comment.
#[test]
fn metadata_are_not_inflated() {
    let folder = folder();
    let plain = (19, 7, ColorType::Rgb, BitDepth::Eight, data(19 * 7 * 3));
    let good = encode(&plain, None);
    let with = |kind, head: &[u8], len| {
        let body = [head, &zeros(len)].concat();
        [&good[..33], &chunk(kind, &body), &good[33..]].concat()
    };
    // The control: the decoder accepts the chunk of `with` as a colour profile.
    let small = with(b"iCCP", b"bomb\0\0", 2000);
    let reader = png::Decoder::new(std::io::Cursor::new(&small)).read_info().unwrap();
    let profile = reader.info().icc_profile.as_ref().unwrap();
    assert!(profile.len() > 1700 && profile.iter().all(|byte| *byte == 0));

    for (kind, head) in [(b"iCCP", &b"bomb\0\0"[..]), (b"zTXt", b"Comment\0\0")] {
        folder.write("in.png", with(kind, head, 1 << 30));
        let script = "ulimit -v 1000000; \
            lockstep picture in.png out.png -f --mode ctr --key-file raw --device cpu --threads 1";
        folder.shell(script).succeeded();
        let (colours, _) = parts(&decode(&folder.read("out.png")));
        assert!(colours == ciphered(&folder, "ctr", &plain.4));
    }
}

#[test]
fn existing_files_are_kept() {
    let folder = folder();
    folder.write("in.png", encode(&(16, 16, ColorType::Rgb, BitDepth::Eight, data(768)), None));
    let run = |more: &[&str]| folder.run([&["picture", "--mode", "ctr"][..], more].concat());
    run(&["in.png", "out.png"]).succeeded();
    let first = folder.read("out.png");
    run(&["in.png", "out.png"])
        .failed(2, "'out.png' exists: choose another output, or replace it with --force");
    run(&["in.png", "out.png", "--force"]).succeeded();
    // Each run has its own random key.
    assert!(folder.read("out.png") != first);
    run(&["in.png", "in.png", "--force"]).failed(2, "in.png");
    run(&["in.png", "raw", "--force", "--key-file", "raw"]).failed(2, "the output is the key file 'raw'");
    run(&["in.png", "nowhere/out.png"]).failed(2, "nowhere");
    run(&["nothing.png", "new.png"]).failed(2, "nothing.png");
    run(&["in.png", "/dev/full", "--force"]).failed(2, "/dev/full");
    folder.write("short", [1; 15]);
    run(&["in.png", "new.png", "--key-file", "short"]).failed(2, "15");
    folder.write("hex", "00".repeat(16));
    run(&["in.png", "new.png", "--key-file", "hex"]).failed(2, "hex digits");
    folder.run(["picture", "--mode", "xts", "--key-file", "raw-xts", "-", "-"]).failed(2, "cut off");
    folder.run(["picture", "--mode", "gcm", "in.png", "new.png"]).failed_usage("gcm");
    folder.run(["picture", "in.png", "new.png"]).failed_usage("--mode");
    run(&["in.png", "new.png", "--device", "abacus"]).failed(2, "abacus");
    run(&["in.png", "new.png", "--kernel", "cpu/abacus"]).failed(2, "cpu/abacus");
    assert!(!folder.has("new.png"));
    let piped =
        folder.pipe(["picture", "--mode", "ecb", "--key-file", "raw", "-", "-"], &folder.read("in.png"));
    assert_eq!(decode(&piped.succeeded().stdout).0, 16);
    folder
        .shell("lockstep picture --mode ctr in.png - | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}")
        .succeeded();
}

#[test]
fn the_pictures_of_the_documentation() {
    let folder = folder();
    let documented = |name: &str| {
        let path = format!("{}/../../docs/modes/{name}.png", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}: `make mode-pictures` draws it"))
    };
    let plain = documented("penguin");
    let size = penguin::SIZE as u32;
    assert!(decode(&plain) == (size, size, ColorType::Rgb, BitDepth::Eight, penguin::pixels()));
    folder.write("penguin.png", &plain);
    for mode in ["ecb", "cbc", "ctr", "xts"] {
        let key = if mode == "xts" { "raw-xts" } else { "raw" };
        let args = ["picture", "--mode", mode, "--key-file", key, "--force", "penguin.png", "out.png"];
        folder.run([&args[..], &["--device", "cpu"]].concat()).succeeded();
        let same = decode(&folder.read("out.png")) == decode(&documented(mode));
        assert!(same, "{mode}: docs/modes/{mode}.png is another: `make mode-pictures`, and look at it");
    }
    // The pictures demonstrate that equal blocks remain equal in ECB only.
    let distinct = |name: &str| {
        let (_, _, _, _, pixels) = decode(&documented(name));
        pixels.chunks(16).collect::<std::collections::HashSet<_>>().len()
    };
    assert_eq!(distinct("ecb"), distinct("penguin"));
    for mode in ["cbc", "ctr", "xts"] {
        assert_eq!(distinct(mode), penguin::SIZE * penguin::SIZE * 3 / 16, "{mode}");
    }
}
