//! Compares the encoding of the instruction set with words of the GNU assembler.

use lockstep_spu::asm::assemble;
use lockstep_spu::isa::{Inst, Op, Pipe};

/// Words of the GNU assembler 2.40 for spu-elf, with registers $3, $4, $5, $6: mnemonic, pipe, latency, word.
const SAMPLES: &str = include_str!("isa-samples.txt");

fn samples() -> impl Iterator<Item = (Op, Pipe, Option<u32>, u32)> {
    SAMPLES.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut fields = line.split_whitespace();
        let op = Op::by_mnemonic(fields.next().unwrap()).unwrap();
        let pipe = if fields.next() == Some("even") { Pipe::Even } else { Pipe::Odd };
        let latency = fields.next().unwrap().parse().ok();
        (op, pipe, latency, u32::from_str_radix(fields.next().unwrap(), 16).unwrap())
    })
}

#[test]
fn words_decode_and_encode() {
    assert_eq!(samples().count(), 54);
    for (op, pipe, latency, word) in samples() {
        let inst = Inst::decode(word).unwrap_or_else(|| panic!("{op:?} {word:08x}"));
        assert_eq!(inst.op, op, "{word:08x}");
        assert_eq!(inst.encode(), word, "{inst}");
        assert_eq!(op.pipe(), pipe, "{op:?}");
        if let Some(latency) = latency {
            assert_eq!(op.latency(), latency, "{op:?}");
        }
    }
}

#[test]
fn text_and_words_agree() {
    for (_, _, _, word) in samples() {
        let inst = Inst::decode(word).unwrap();
        let text = format!("{inst}\n");
        let image = assemble("sample.s", &text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(image.word(0), Some(word), "{text}");
    }
}

#[test]
fn every_instruction_survives_the_round_trip() {
    for &op in Op::ALL {
        let word = op.opcode() << 21;
        let inst = Inst::decode(word).unwrap_or_else(|| panic!("{op:?}"));
        assert_eq!((inst.op, inst.encode()), (op, word));
    }
}

#[test]
fn unknown_words_are_refused() {
    for word in [0xffff_ffff, 0x0080_0000, 0x3540_0200, 0x3500_0201] {
        assert_eq!(Inst::decode(word), None, "{word:08x}");
    }
}

/// Deterministic pseudo-random numbers.
fn noise(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn decoded_instructions_encode_to_the_same_word() {
    let mut next = noise(1);
    let (mut decoded, mut refused) = (0, 0);
    for _ in 0..1_000_000 {
        let word = next() as u32;
        let Some(inst) = Inst::decode(word) else { continue };
        decoded += 1;
        // Branches and no-operations ignore seven bits.
        let ignored = if matches!(inst.op, Op::Br | Op::Nop | Op::Lnop) { 0x7f } else { 0 };
        assert_eq!(inst.encode(), word & !ignored, "{inst}");
        // Some immediates have no textual form.
        match assemble("word.s", &format!("{inst}\n")) {
            Ok(image) => assert_eq!(image.word(0), Some(word & !ignored), "{inst}"),
            Err(error) => {
                assert!(error.message.contains("is out of range, expected"), "{inst}: {error}");
                refused += 1;
            }
        }
        if decoded == 20_000 {
            assert!(refused < decoded / 8, "{refused}");
            return;
        }
    }
    panic!("hardly any word decodes");
}

#[test]
fn no_text_makes_the_assembler_panic() {
    let pieces = [
        "shufb",
        "brnz",
        "lqd",
        ".set",
        ".align",
        ".long",
        ".octa",
        ".space",
        ".section",
        ".text",
        "hbrr",
        "$3",
        "$Rx",
        "$(1+2)",
        "$",
        "(",
        ")",
        ",",
        ":",
        ";",
        "#",
        "/*",
        "*/",
        "x",
        "0x7fffffffffffffff",
        "-1",
        "99999999999999999999",
        "<<",
        ">>",
        "/",
        "%",
        "~",
        ".",
        "\n",
        "\n",
        " ",
        " ",
        " ",
        "ä",
        "+",
        "1b",
        "262143",
    ];
    let mut next = noise(2);
    for _ in 0..20_000 {
        let len = next() % 40;
        let text: String = (0..len).map(|_| pieces[next() as usize % pieces.len()]).collect();
        let _ = assemble("noise.s", &text);
    }
}

#[test]
fn no_program_makes_the_simulator_panic() {
    let mut next = noise(3);
    let words: Vec<u32> = Op::ALL.iter().map(|op| op.opcode() << 21).collect();
    for _ in 0..2_000 {
        let mut source = String::new();
        for _ in 0..64 {
            let word = words[next() as usize % words.len()] | next() as u32 & 0x001f_ffff;
            source += &format!(".long {word:#x}\n");
        }
        let mut machine = lockstep_spu::sim::Machine::new();
        machine.load(&assemble("noise.s", &source).unwrap());
        let _ = machine.run(2_000);
    }
}
