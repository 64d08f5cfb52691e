//! Tests of the assembler: it refuses wrong text, and for accepted text it gives the same words as the GNU assembler.

use lockstep_spu::asm::assemble;
use lockstep_spu::isa::Reg;
use lockstep_spu::sim::Machine;

#[test]
fn invalid_text_is_refused_with_line_and_expectation() {
    let cases = [
        ("nop\nxorr $3,$4,$5", "2: unknown instruction `xorr`"),
        ("xor $3,$4,$128", "1: `$128` is no register: expected $0 to $127"),
        ("xor $3,$4,$Rx", "unknown symbol `Rx`"),
        ("\nai $3,$4,512", "2: `ai`: 512 is out of range, expected -512 to 511"),
        ("br nowhere", "unknown symbol `nowhere`: expected a label"),
        ("lqd $3,8($4)", "8 is no multiple of 16"),
        ("lqd $3,$4", "expected offset($register)"),
        ("xor $3,$4", "has 2 operands: expected 3"),
        (".set a,b\n.set b,a\n il $3,a", "3: "),
        ("x: nop\nx: nop", "2: label `x` is defined twice"),
        (".foo 3", "unknown directive `.foo`"),
        ("nop\nil $3,32768", "2: `il`: 32768 is out of range, expected -32768 to 32767"),
        ("il $3,0xffff", "1: `il`: 65535 is out of range"),
        ("il $3,-32769", "expected -32768 to 32767"),
        ("ilhu $3,65536", "expected -32768 to 65535"),
        ("ila $3,-1", "expected 0 to 262143"),
        ("ceqbi $3,$4,256", "expected -128 to 255"),
        ("shli $3,$4,64", "expected 0 to 63"),
        ("rotmi $3,$4,1", "expected -63 to 0"),
        ("rotqmbyi $3,$4,-32", "expected -31 to 0"),
        ("nop // no comment", "has 1 operands: expected 0"),
        ("/* never\nclosed", "2: a comment is not closed"),
        (".data\nnop", "2: `nop` in section .data: expected .text before it"),
        (".align 3,0", ".align has 2 operands: expected 1"),
        ("1: nop", "`1` is no label"),
        ("x: nop\n.set x,1", "2: `x` is a label and set"),
        (".set x,1\nx: nop", "2: `x` is set and a label"),
        (".long x\n.set x,1\n.set x,2", "1: `x` is used before it is set, and set more than once"),
        (".set x,nowhere", "1: unknown symbol `nowhere`"),
        (".set x,", "1: `x` is set to nothing"),
        ("x: nop\n.space x", "2: `x` is an address, which is not known yet"),
        ("x: nop\n.long x*2", "2: an address with `*`: expected numbers"),
        (".long 1<<64", "1: a shift by 64: expected 0 to 63"),
        (".brinfo 1", "unknown directive `.brinfo`"),
        ("nop\n.data\n.space 262140", "3: .data ends at 262156: the local store has 262144"),
        // The GNU assembler treats values that are unknown when it reads the line as addresses.
        ("nop;nop;br later;.set later,8", "1: `later` is not known yet"),
        ("nop\nlqr $3,later\n.set later,16", "2: `later` is not known yet: expected a number set before"),
        ("nop\nhbrr later,0\n.set later,8", "2: `later` is not known yet"),
        ("nop;a:nop;.align 3;b:nop;br b-a", "1: `b-a` is not known yet"),
        ("nop;a:nop;.align 3;b:nop;brnz $3,b-a", "1: `b-a` is not known yet"),
        ("nop;a:nop;.align 3;b:nop;lqr $3,b-a", "1: `b-a` is not known yet"),
        ("a:nop\n.set k,b-a\nb:nop\nbr k", "4: `k` is not known yet"),
        ("nop\n.data\na:.long 1\n.text\nb:br b-a", "5: `b-a` is not known yet"),
        ("x: nop\n.align 3\ny: nop\n.space y-x", "4: addresses with `-`, which are not known yet"),
        ("ai $lrx,$3,1\n.set lrx,5", "1: `$lrx` is no register: names that begin with lr or sp"),
        ("ai $Spare,$3,1\n.set Spare,5", "1: `$Spare` is no register: names that begin with lr or sp"),
        (".long 0xffffffffffffffffffffffffffffffff", "does not fit: expected 64 bits"),
        ("ai $3,$4,340282366920938463463374607431768211455", "does not fit: expected 64 bits"),
        (".long 0x10000000000000000", "does not fit: expected 64 bits"),
        (".octa 0x+5", "`0x+5` is no number"),
        ("nop\n.ident \"a\nnop", "2: a string is not closed on its line: expected `\"`"),
        (".ident \"a\\\"\nnop", "1: a string is not closed on its line"),
        ("br 0x7fffffff", "expected -262144 to 262143 bytes, or a label"),
    ];
    for (source, expected) in cases {
        let error = assemble("bad.s", source).unwrap_err().to_string();
        assert!(error.starts_with("bad.s:") && error.contains(expected), "{source:?}: {error}");
    }
}

/// The GNU assembler 2.40 produces these words for these lines.
#[test]
fn text_has_the_same_meaning_as_for_gnu() {
    let expressions = [
        ("1+2*3<<1", 13),
        ("1|2^3&1", 0),
        ("6&3+1", 3),
        ("1<<2+1", 5),
        ("6-1|2", 3),
        ("7&3|8", 11),
        ("5%3*2", 4),
        ("1==1", 0xffff_ffff),
        ("1==1+1", 0),
        ("3>2", 0xffff_ffff),
        ("7<>3", 0xffff_ffff),
        ("2<=2", 0xffff_ffff),
        ("1&&1", 1),
        ("1||0", 1),
        ("6!1", 0xffff_fffe),
        ("!5", 0),
        ("0-5>>60", 0),
        ("-7/2", 0xffff_fffd),
        ("--3", 3),
        ("8/3*3", 6),
        ("16>>1>>1", 4),
        ("010", 8),
    ];
    let words = |source: &str| {
        let image = assemble("gnu.s", source).unwrap_or_else(|error| panic!("{source:?}: {error}"));
        image.bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect::<Vec<_>>()
    };
    for (expression, value) in expressions {
        assert_eq!(words(&format!(".long {expression}")), [value], "{expression}");
    }
    let programs: [(&str, &[u32]); 24] = [
        // A name has the value of its last definition before the position of the use.
        (".set a,1\n.long a\n.set a,2\n.long a", &[1, 2]),
        ("a=3\n.long a\na=a+1\n.long a", &[3, 4]),
        (".long a\n.set a,2", &[2]),
        (".set a,b\n.set b,3\n.long a", &[3]),
        (".set a,.\nnop\n.long a", &[0x4020_0000, 0]),
        // A number is a distance if the instruction expects a distance.
        ("nop\nbr 8", &[0x4020_0000, 0x3200_0100]),
        ("nop\nbr .+8", &[0x4020_0000, 0x3200_0100]),
        ("nop\nlqr $3,16", &[0x4020_0000, 0x3380_0203]),
        ("nop\nbrnz $3,-4", &[0x4020_0000, 0x217f_ff83]),
        ("nop\nnop\nhbrr 8,12", &[0x4020_0000, 0x4020_0000, 0x1200_0182]),
        ("nop\nnop\nhbra 8,12", &[0x4020_0000, 0x4020_0000, 0x1000_0182]),
        ("a:nop\n.set k,a\nnop\nbr k", &[0x4020_0000, 0x4020_0000, 0x327f_ff00]),
        ("a:nop\nb:nop\nbr b-a", &[0x4020_0000, 0x4020_0000, 0x3200_0080]),
        ("a:nop\nb:nop\n.set k,b-a\nbr k", &[0x4020_0000, 0x4020_0000, 0x3200_0080]),
        ("a:nop\n.space 4\nb:br b-a", &[0x4020_0000, 0, 0x3200_0100]),
        ("a:nop\n.align 3\nb:nop\n.long b-a", &[0x4020_0000, 0x0020_0000, 0x4020_0000, 8]),
        ("lr $LR,$Sp\nai $3,$Lr,0", &[0x0400_0080, 0x1c00_0003]),
        (".octa 0xffffffffffffffffffffffffffffffff", &[!0; 4]),
        // Code is padded by instructions up to an alignment, and by zeros for `.space`.
        ("nop\n.byte 1\n.align 3\nnop", &[0x4020_0000, 0x0100_0000, 0x4020_0000]),
        (".byte 1\n.align 3", &[0x0100_0000, 0x0020_0000]),
        (".space 4\n.space 4,1", &[0, 0x0101_0101]),
        (".fill 1,8,-1", &[0xffff_ffff, 0]),
        (".ident \"a;b#c\"\nnop;nop", &[0x4020_0000, 0x4020_0000]),
        // Sections with the same name are merged.
        (".data\n.long 1\n.section .rodata\n.long 2\n.data\n.long 3", &[1, 3, 0, 0, 2]),
    ];
    for (source, expected) in programs {
        assert_eq!(words(source), expected, "{source}");
    }
}

#[test]
fn sections_have_the_alignment_of_their_data() {
    let image = assemble("align.s", "nop\n.data\n.byte 1\n.align 7\nx: .byte 2").unwrap();
    assert_eq!(image.symbols["x"], 256);
    assert_eq!((image.bytes[128], image.bytes[256]), (1, 2));
}

#[test]
fn exported_source_has_unique_labels() {
    // The source has labels that look like the labels of the export, a branch that ignores a register, and immediates
    // without a textual form.
    let source =
        ".L8: nop\n lnop\n.L_8: br .L8\n .long 0x32000203\n .long 0x0f0ac203\n .long 0x16ff8203\n .byte 1\n";
    let image = assemble("labels.s", source).unwrap();
    let again =
        assemble("again.s", &image.source()).unwrap_or_else(|error| panic!("{error}\n{}", image.source()));
    assert_eq!(again.raw(), image.raw(), "{}", image.source());
    // The last bytes of the image are data, and the branches have targets inside and outside the image.
    let image = assemble("end.s", "br .+8\n br 0x100\n .byte 1,2").unwrap();
    assert_eq!(assemble("again.s", &image.source()).unwrap().raw(), image.raw(), "{}", image.source());
}

#[test]
fn text_with_names_and_sections() {
    let source = "
        .set Rtop, 79      # last volatile
        .set Rx, Rtop - 3
        .section mydata,\"a\",@progbits
        .align 4
Table:  .octa 0x000102030405060708090a0b0c0d0e0f
        .text
        .align 3
        .global main
main:   lqr $Rx, Table+0x00 /* a comment */
        lr $(Rx+1), $Rx
        stop 0x21
    ";
    let image = assemble("names.s", source).unwrap();
    let mut machine = Machine::new();
    machine.load(&image);
    assert_eq!(machine.run(100).unwrap().code, 0x21);
    assert_eq!(machine.register(Reg::new(77)), 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
    let again =
        assemble("again.s", &image.source()).unwrap_or_else(|error| panic!("{error}\n{}", image.source()));
    assert_eq!(again.raw(), image.raw());
}
