//! Assembles modified programs, and numbers at their limits. The result must be a message or an image, and never a panic.

use lockstep_spu::asm::assemble;

/// A deterministic pseudo-random generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

const PROGRAM: &str = "\
\t.text
\t.align 3
start:\til $3,-5 # a comment
\tilhu $4,0x1234 ; iohl $4,table
\tlqd $5,16($4); lqr $6,table
.set Rcount, 7
\tai $Rcount,$3,(1+2)*4
.Lagain:\thbrr .Lend,.Lagain
\tshufb $8,$5,$6,$5
\tstqa $8,table+16
\tai $7,$7,-1 /* down */
.Lend:\tbrnz $7,.Lagain
\tstop 0x12
\t.section .rodata
table:\t.octa 0x0123456789abcdef0123456789abcdef
\t.fill 4,4,0x55
\t.space 7,1
\t.byte 1,2,3
\t.long start
";

#[test]
fn texts_with_bytes_changed() {
    assemble("whole.s", PROGRAM).unwrap();
    let pieces: Vec<&str> = PROGRAM.split_inclusive([' ', ',', '\n']).collect();
    let other = b"\0\t\n #$%()*+,-./0189:;<@LRx~\xc3\xbc";
    let mut random = Random(1);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = PROGRAM.as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len().max(1));
            match random.below(4) {
                0 if !bytes.is_empty() => bytes[at] = other[random.below(other.len())],
                1 if !bytes.is_empty() => drop(bytes.remove(at)),
                2 => drop(bytes.splice(at..at, pieces[random.below(pieces.len())].bytes())),
                _ => bytes.truncate(at),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match assemble("changed.s", &text) {
            Ok(image) => {
                taken += 1;
                // The listing of the program can be assembled again.
                assemble("again.s", &image.source()).unwrap_or_else(|error| panic!("{error}\n{text}"));
            }
            Err(error) => {
                refused += 1;
                assert!(!error.message.is_empty() && error.line <= text.lines().count(), "{error}\n{text}");
            }
        }
    }
    assert!(taken > 500 && refused > 500, "{taken} {refused}");
}

#[test]
fn numbers_at_their_limits() {
    for number in
        ["0x7fffffff", "0x80000000", "0xffffffffffffffff", "-9223372036854775808", "99999999999999999999"]
    {
        for line in [
            "il $3,N",
            "lqa $3,N",
            "br N",
            ".space N",
            ".fill N,4,0",
            ".fill 1,N,0",
            ".align N",
            ".org N",
            "stop N",
            ".set x,N*N\n il $3,x",
            ".set x,-N-N\n il $3,x",
            ".set x,N<<N\n il $3,x",
        ] {
            let line = line.replace('N', number);
            // The line may be accepted or refused, but must not cause a panic or an endless computation.
            if let Err(error) = assemble("limits.s", &line) {
                assert!(error.line > 0, "{line}: {error}");
            }
        }
    }
}

/// Definitions that grow exponentially do not make the assembler slow, nor do many definitions that influence the layout.
#[test]
fn definitions_do_not_explode() {
    // Each definition uses a later one. Definitions with known values are evaluated immediately.
    let mut text = String::new();
    for i in (0..12).rev() {
        text += &format!(".set a{},{}\n", i + 1, vec![format!("a{i}"); 16].join("+"));
    }
    let error = assemble("grows.s", &(text + ".set a0,1\n\til $3,a12\n")).unwrap_err();
    assert!(error.to_string().contains("more than 100000 parts"), "{error}");
    let many: String = (0..20_000).map(|i| format!(".set b{i},{i}\n.align 0\n")).collect();
    assemble("many.s", &many).unwrap();
    let chain: String = (0..20_000).map(|i| format!(".set c{},c{i}+1\n", i + 1)).collect();
    assert_eq!(
        assemble("chain.s", &format!(".set c0,0\n{chain}.long c20000")).unwrap().bytes,
        [0, 0, 0x4e, 0x20]
    );
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    for text in ["\til $3,0x10000000000000005", "\t.align 4294967299"] {
        let found = assemble("wide.s", text).map(|image| image.bytes);
        assert!(found.is_err(), "{text}: {found:?}");
    }
    assert!(assemble("shift.s", "\t.data\n\t.long 1<<0x100000000").is_err());
}
