//! Tests of kernels that are written as text.

use lockstep_papers::qpu::{Data, Error, Finished, kernel_listing, run_kernel};
use lockstep_papers::round_keys;
use lockstep_qpu::kernels::SBOX;
use lockstep_qpu::kernels::naive::MATRIX;
use lockstep_reference::{Aes, ecb};

const NAIVE: &str = include_str!("../../examples/qpu/aes-naive.qpu");
const POINTERS: &str = include_str!("../../examples/qpu/aes-naive-pointers.qpu");
const PACKED: &str = include_str!("../../examples/qpu/aes-packed.qpu");

fn run(source: &str, data: &Data, qpus: u8) -> Result<Finished, Error> {
    run_kernel("a.qpu", source, data, qpus, 0, 10_000_000)
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 7 + index / 64) as u8).collect()
}

/// Encrypts by an AES kernel. Returns the output and the text of the run.
fn encrypt(source: &str, key: &[u8], plain: &[u8], qpus: u8) -> (Vec<u8>, String) {
    let is_naive = source.contains("matrix");
    let matrix: Vec<u8> = MATRIX.iter().map(|value| *value as u8).collect();
    let words = if is_naive { plain.len() } else { plain.len() / 4 };
    let rounds = key.len() / 4 + 6;
    let mut data = Data {
        inputs: vec![
            ("blocks".into(), plain.to_vec()),
            ("keys".into(), round_keys(key.to_vec()).unwrap()),
            ("table".into(), SBOX.to_vec()),
        ],
        outputs: vec![("blocks".into(), None)],
        values: vec![("rounds".into(), rounds.to_string()), ("words".into(), words.to_string())],
        bytes: vec!["table".into()],
    };
    if is_naive {
        data.inputs.push(("matrix".into(), matrix));
        data.bytes.extend(["blocks", "keys", "matrix"].map(String::from));
    }
    let finished = run(source, &data, qpus).unwrap_or_else(|error| panic!("{error}"));
    assert!(finished.fault.is_none(), "{}", finished.fault.unwrap());
    assert!(!finished.text.contains("warning"), "{}", finished.text);
    (finished.outputs[0].to_vec(), finished.text.clone())
}

/// The clocks of a run.
fn clocks(text: &str) -> u64 {
    let (before, _) = text.split_once(" clocks").expect("the clocks");
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn aes_kernels_agree_with_the_oracle() {
    for (source, unit) in [(NAIVE, 16), (POINTERS, 16), (PACKED, 64)] {
        for (key, qpus, units) in [(16, 1, 1), (16, 12, 25), (24, 3, 5), (32, 5, 4)] {
            let (key, plain) = (bytes(key), bytes(unit * units));
            let found = encrypt(source, &key, &plain, qpus).0;
            assert!(found == ecb::encrypt(&Aes::new(&key), &plain), "{} bytes, {qpus} QPUs", key.len());
        }
    }
}

/// The page states in how many clocks a QPU encrypts a vector in the steady state. The kernels take these clocks.
#[test]
fn the_clocks_of_the_page_are_those_of_the_kernels() {
    let page = include_str!("../../../../docs/qpu-language.md");
    for (name, source, unit, thesis) in [
        ("aes-naive", NAIVE, 16, 6732),
        ("aes-naive-pointers", POINTERS, 16, 6732),
        ("aes-packed", PACKED, 64, 5429),
    ] {
        let [one, twelve] = [1u8, 12].map(|qpus| {
            let run = |turns: usize| {
                clocks(&encrypt(source, &bytes(16), &bytes(unit * turns * usize::from(qpus)), qpus).1)
            };
            (run(12) - run(2)) / 10
        });
        let row = format!("| `{name}.qpu` | {unit} | {one} | {twelve} | {thesis} |");
        assert!(page.contains(&row), "the page does not have {row}");
    }
}

/// Runs statements on one vector. The words of `a` are 0 to 15. Returns the words of `b`.
fn words(statements: &str) -> Vec<u32> {
    let source = format!(
        "void kernel(Ptr<Int> a, Ptr<Int> b, Int n, Float f) {{ {statements}
 }}
         Int twice(Int x) {{ Int y = x + x; return y; }}
         void add(Int x, Ptr<Int> p) {{ *p = *p + x; }}"
    );
    let input = (0..16u32).flat_map(u32::to_le_bytes).collect();
    let data = Data {
        inputs: vec![("a".into(), input)],
        outputs: vec![("b".into(), None)],
        values: vec![("n".into(), "-3".into()), ("f".into(), "1.5".into())],
        bytes: Vec::new(),
    };
    let finished = run(&source, &data, 1).unwrap_or_else(|error| panic!("{statements}: {error}"));
    assert!(finished.fault.is_none(), "{statements}: {}", finished.fault.unwrap());
    finished.outputs[0].chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn check(statements: &str, expected: impl Fn(u32) -> u32) {
    assert_eq!(words(statements), (0..16).map(expected).collect::<Vec<u32>>(), "{statements}");
}

#[test]
fn operators_of_integers() {
    check("Int x = *a; *b = x * 3 + (x << 2) - 1;", |x| (7 * x).wrapping_sub(1));
    check("Int x = *a; *b = x & 6 | 1 ^ 3;", |x| x & 6 | 2);
    check("*b = - -5 + -(-(-1));", |_| 4);
    check("*b = -n + ~*a;", |x| 3u32.wrapping_add(!x));
    check("*b = n >> 1;", |_| -2i32 as u32);
    check("*b = shr(n, 28) + ror(index(), 31);", |x| 15 + 2 * x);
    check("*b = min(index(), 3) + max(n, -8);", |x| x.min(3).wrapping_sub(3));
    check("*b = 0xffffffff + 2 + -2147483648;", |_| 0x8000_0001);
    check("*b = rotate(index(), 1) + rotate(index(), 0);", |x| (x + 15) % 16 + x);
    check("*b = twice(twice(index())) + me() + numQPUs();", |x| 4 * x + 1);
    check("Int x = index() << 8 | 0xfe; *b = byte(x, 1) + byte(x, 0);", |x| x + 0xfe);
    check("Int x = index() << 16 | 0xfffe; *b = half(x, 0) + half(x, 1);", |x| x.wrapping_sub(2));
}

#[test]
fn operators_of_floats_and_bytes() {
    check("Float x = toFloat(index()) * f + 0.5 - -1.0; *b = toInt(x * 2.0);", |x| 3 * x + 3);
    check("*b = toInt(recip(0.25) + recipsqrt(0.25) + exp(3.0) + log(8.0) + min(f, 9.0));", |_| {
        4 + 2 + 8 + 3 + 1
    });
    check("Int x = 0; Where (f >= 1.5 && !(f > 1.5) && f <= 1.5) { x = asInt(f); } *b = x;", |_| 0x3fc0_0000);
    check("*b = toInt(asFloat(0x40000000));", |_| 2);
    check("Char x = asChar(0x01ff0010); *b = asInt(x + 2);", |_| 0x03ff_0212);
    check("Char x = asChar(0x01ff0010); *b = asInt(x - 2);", |_| 0x00fd_000e);
    check("Char x = asChar(0xff800001); *b = asInt(max(x * 128, 3 & x) ^ ~x ^ ~x | 0);", |_| 0x8040_0001);
    check("Char x = rotate(asChar(index()), 15); *b = asInt(x) + byte(x, 0);", |x| 2 * ((x + 1) % 16));
}

#[test]
fn statements() {
    check("gather(a + index()); Int x; receive(x); store(x + 1, b);", |x| x + 1);
    // An address has 32 bits, whether the index is a number or a variable.
    check("*b = asInt(a + 0xffffffff) - asInt(a + 1073741824);", |_| -4i32 as u32);
    check("Ptr<Int> p = a + 2; p = p - 1; gather(p); Int x; receive(x); *b = x;", |_| 1);
    check("Int s = 0; For (Int i = 0; i < 4; i = i + 1) { s = s + i; } *b = s;", |_| 6);
    check("Int s = 9; While (all(s != 3)) { s = s - 1; } *b = s;", |_| 3);
    // The whole condition of a loop is computed before each iteration, including calls of functions and loads.
    check("Int s = 0; While (twice(s) < 7) { s = s + 1; } *b = s;", |_| 4);
    check("*b = 3; While (*b < 10) { add(2, b); }", |_| 11);
    check("Int s = 0; If (index() > 14) { s = 1; } Else { s = 2; } *b = s;", |_| 1);
    check("Int s = 0; If (all(index() > 14)) { s = 1; } Else If (n == -3) { s = 3; } *b = s;", |_| 3);
    check(
        "Int s = 0; Where (index() < 8) { Where (index() != 2) { s = 1; } Else { s = 2; } } Else { s = twice(s + 2); } *b = s;",
        |x| match x {
            2 => 2,
            0..8 => 1,
            _ => 4,
        },
    );
    // A variable of an inner block may have the name of a variable of an outer block, which stays unchanged.
    check("Int x = 1; If (x == 1) { Int x = 5; x = x + 1; } *b = x; /* a\n comment */ // another", |_| 1);
    // A variable has a value if all branches assign one.
    check("Int x; If (n < 0) { If (n < -5) { x = 1; } Else { x = 2; } } Else { x = 3; } *b = x;", |_| 2);
    check("Int x; Where (index() > 7) { x = 1; } Else { x = 2; } *b = x;", |x| if x > 7 { 1 } else { 2 });
    check("Int x; If (n < 0) { Int x; x = 4; *b = x; } x = 5; *b = *b + x;", |_| 9);
    check("Float x = 2.5; Print(x); Print(\"bytes\", asChar(7)); return;", |_| 0);
}

/// Data whose only input is the content of the pointer `a`.
fn only_input(content: Vec<u8>) -> Data {
    let mut data = Data::default();
    data.inputs.push(("a".into(), content));
    data
}

#[test]
fn values_are_printed() {
    let source = "void kernel(Ptr<Int> a) {\n  Int x = *a - 2;\n  Print(x);\n  Print(\"half\", toFloat(x) * 0.5);\n\
                  Print(asChar(x));\n}";
    let data = only_input(vec![1, 0, 0, 0]);
    let text = run(source, &data, 2).unwrap().text;
    let line = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((line("line 3, QPU 0: -1 -2 -2"), line("line 3, QPU 1: -1 -2")), (1, 1), "{text}");
    assert!(
        text.contains("line 4, QPU 0: half -0.5 -1 -1") && text.contains("line 5, QPU 0: ffffffff fffffffe")
    );
    assert!(text.contains("instructions of all QPUs"), "{text}");
}

#[test]
fn faults_have_a_line_and_what_was_printed_before() {
    let data = only_input(vec![0; 4]);
    for (statements, expected) in [
        ("Print(7);\ngather(a + 99999);", "a.qpu:3: QPU 0 at 0x"),
        ("Print(7);\nInt x;\nreceive(x);", "a.qpu:4: QPU 0 at 0x"),
        ("Print(7);\nWhile (0 == 0) { }", "a.qpu:3: QPU 0 at 0x"),
    ] {
        let finished = run(&format!("void kernel(Ptr<Int> a) {{\n{statements}\n}}"), &data, 1).unwrap();
        let fault = finished.fault.expect("a fault").to_string();
        assert!(fault.starts_with(expected), "{statements}: {fault}");
        assert!(finished.text.starts_with("line 2, QPU 0: 7 7 7") && finished.outputs.is_empty());
    }
    let left = run("void kernel(Ptr<Int> a) { gather(a); gather(a); }", &data, 1).unwrap();
    assert!(left.text.ends_with("warning: 2 vectors were requested by gather() and not received\n"));
}

/// The message of each kind of mistake has the line and the column, the rule and the remedy.
#[test]
fn mistakes_have_a_line_a_column_and_a_reason() {
    let mut wrong = Vec::new();
    for (statements, expected) in [
        ("y = 1;", "2:1: unknown variable `y`: declare it before its use, as in `Int x = 0;`"),
        ("Int x = y;", "2:9: unknown variable `y`"),
        ("frob(1);", "2:1: unknown function `frob`: define it, or use a function of the language"),
        ("Int x = 1\nInt y = 2;", "2:10: expected `;` after the statement, found `Int`"),
        ("If (n > 0 { n = 1; }", "2:11: expected `)`, found `{`"),
        ("Else { }", "2:1: `Else` without `If` or `Where`"),
        ("Float x = 1;", "2:11: `x` needs Float but has Int: write 1.0"),
        ("Float x = n;", "2:11: `x` needs Float but has Int: use toFloat(), or asFloat() for the same bits"),
        ("Int x = 1.5;", "2:9: `x` needs Int but has Float: use toInt(), or asInt() for the same bits"),
        ("Int x = n + 1.5;", "2:9: `+` needs Float but has Int: use toFloat()"),
        ("Char x = n;", "2:10: `x` needs Char but has Int: use asChar()"),
        ("Int x = a;", "2:9: `x` needs Int but has Ptr<Int>: use asInt()"),
        ("Ptr<Float> x = a;", "2:16: `x` needs Ptr<Float> but has Ptr<Int>"),
        ("gather(n);", "2:8: `gather` needs a pointer, such as Ptr<Int>, but has Int"),
        ("Int x = *n;", "2:10: `*` needs a pointer, such as Ptr<Int>, but has Int"),
        ("*a = 1.5;", "2:6: a store to Ptr<Int> needs Int but has Float"),
        ("n = n + a;", "2:9: `+`: write the pointer on the left, as in `p + i`"),
        ("n = a ^ 1;", "2:7: there is no `^` of pointers: use asInt()"),
        ("If (n) { }", "2:5: this test needs a condition, such as `x > 0`, but has Int"),
        (
            "Where (any(n > 0)) { }",
            "2:8: `Where` needs a condition, such as `x > 0`, but has the result of `any` or",
        ),
        ("Int x = n > 0;", "2:11: `x` needs Int but has a condition"),
        ("Char c = 1; If (c < c) { }", "2:19: there is no `<` of Char: use byte() or asInt()"),
        ("Float x = 1.0 & 2.0;", "2:15: there is no `&` of Float: use toInt() or asInt()"),
        ("Char c = asChar(1) << 1;", "2:20: there is no `<<` of Char: use asInt()"),
        ("n = half(1);", "2:5: `half` has 2 parameters, not 1"),
        ("n = one(1, 2);", "2:5: `one` has 1 parameter, not 2"),
        ("n = one(1.5);", "2:9: the parameter `x` of `one` needs Int but has Float"),
        ("receive(1);", "2:1: `receive` needs a variable: write `receive(x);`"),
        ("n = nothing();", "2:5: `nothing` has no result: call it as a statement"),
        ("n = gather(a);", "2:5: `gather` has no result: call it as a statement"),
        ("n = 4294967296;", "2:5: 4294967296 is out of range: an Int is from -2147483648 to 4294967295"),
        ("n = -2147483649;", "2:5: -2147483649 is out of range"),
        ("Char c = 256;", "2:10: 256 is out of range: a Char has bytes from 0 to 255"),
        ("n = rotate(n, 16);", "2:15: `rotate`: 16 is out of range, expected a number from 0 to 15"),
        ("n = rotate(n, n);", "2:15: `rotate` needs a number from 0 to 15 here, and no variable"),
        ("n = 12ab;", "2:5: `12ab` is no number"),
        ("n = 0x;", "2:5: `0x` is no number"),
        ("Float x = 1.2.3;", "2:11: `1.2.3` is no Float"),
        ("n = n / 2;", "2:7: there is no `/`: QPUs do not divide. Use shifts, or `recip` for Float"),
        ("n = n # 2;", "2:7: `#` has no meaning here: remove it"),
        ("n = \u{e9};", "2:5: `\\u{e9}` has no meaning here: remove it"),
        ("n += 1;", "2:3: expected `=` or `(` after `n`, found `+`"),
        ("n = ;", "2:5: expected an expression, found `;`"),
        ("1 = n;", "2:1: expected a statement, found `1`"),
        ("Ptr<Ptr> x;", "2:5: expected Int, Float or Char, found `Ptr`"),
        ("Int For = 1;", "2:5: `For` has a meaning of its own: choose another name for the variable"),
        ("Int x = 1; Int x = 2;", "2:16: `x` is defined twice in this block: rename one"),
        ("Int x; n = x;", "2:12: `x` has no value yet: assign one before this use"),
        (
            "Int x; If (n > 0) { x = 1; } n = x;",
            "2:34: `x` may have no value here: only one branch, a loop, or one part",
        ),
        (
            "Int x; If (n > 0) { x = 1; } Else { n = 1; } n = x;",
            "2:50: `x` may have no value here: only one branch, a loop, or one part",
        ),
        (
            "Int x; While (n > 0) { x = 1; n = 0; } n = x;",
            "2:44: `x` may have no value here: only one branch, a loop, or one part",
        ),
        (
            "Int x; For (Int i = 0; i < 2; i = i + 1) { x = i; } n = x;",
            "2:57: `x` may have no value here: only one branch, a loop, or one part",
        ),
        (
            "Int x; Where (n > 0) { x = 1; } n = x;",
            "2:37: `x` may have no value here: only one branch, a loop, or one part",
        ),
        (
            "Int x; If (n > 0) { If (n > 1) { x = 1; } Else { x = 2; } } n = x;",
            "2:65: `x` may have no value here: only one branch, a loop, or one part",
        ),
        ("return; n = 1;", "2:1: `return` must be the last statement of its function"),
        ("return 1;", "2:8: `kernel` is void: remove the value after `return`"),
        ("Where (n > 0) { If (n > 1) { } }", "2:17: `If` may not be inside of `Where`"),
        (
            "Where (n > 0) { looping(); }",
            "4:66: `While` may not be inside of `Where`, also not in a function",
        ),
        ("Where (n > 0) { store(n, a); }", "2:17: `store` may not be inside of `Where`"),
        ("Print(\"x\");", "2:10: expected `,`, found `)`"),
        ("n = \"x\";", "2:5: a text may only be the first argument of `Print`"),
        ("Print(\"x, n);", "2:7: this text is not closed: write `\"` at the end of the text"),
        ("Print(n > 0);", "2:9: `Print` needs Int but has a condition"),
        ("n = 1; /* open", "2:8: this comment is not closed: write `*/` at its end"),
        ("n = kernel(a, 1);", "2:5: `kernel` calls itself: functions are inlined, so use a loop"),
    ] {
        let text = format!(
            "void kernel(Ptr<Int> a, Int n) {{\n{statements}\n}}\n\
             Int one(Int x) {{ return x; }} void nothing() {{ }} void looping() {{ While (0 > 1) {{ }} }}\n"
        );
        let error = kernel_listing("a.qpu", &text).expect_err(statements).to_string();
        if !error.starts_with(&format!("a.qpu:{expected}")) {
            wrong.push(format!("{statements}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistakes_outside_of_statements() {
    let mut wrong = Vec::new();
    let deep =
        |count: usize| format!("void kernel(Int n) {{ n = {}n{}; }}", "(".repeat(count), ")".repeat(count));
    let blocks =
        |count: usize| format!("void kernel() {{ {}{} }}", "If (0 < 1) { ".repeat(count), "} ".repeat(count));
    let terms = |count: usize| format!("void kernel(Int n) {{ n = n{}; }}", " + n".repeat(count));
    // Each function calls the function before it twice.
    let doubled = |count: usize| {
        let functions =
            (1..count).map(|f| format!("Int f{f}(Int x) {{ return f{0}(x) + f{0}(x); }}\n", f - 1));
        format!("void kernel() {{ }} Int f0(Int x) {{ return x; }}\n{}", functions.collect::<String>())
    };
    let nothings = |count: usize| {
        let functions = (1..count).map(|f| format!("void f{f}() {{ f{0}(); f{0}(); }}\n", f - 1));
        format!("void kernel() {{ }} void f0() {{ }}\n{}", functions.collect::<String>())
    };
    // Each function calls the function before it once.
    let chain = |count: usize| {
        let functions = (1..count).map(|f| format!("void f{f}() {{ f{}(); }} ", f - 1));
        format!("void kernel() {{ }} void f0() {{ }} {}", functions.collect::<String>())
    };
    // All variables are needed at once.
    let together = |count: usize| {
        let declared = (0..count).map(|v| format!("Int x{v} = index(); ")).collect::<String>();
        let used = (0..count).map(|v| format!("Print(x{v}); ")).collect::<String>();
        format!("void kernel() {{ {declared}{used} }}")
    };
    // An expression of 2^depth terms, at the end of the program.
    let wide = |depth: usize| {
        let twice = |text: String, _| format!("({text} + {text})");
        format!("void kernel(Int n) {{ n = {}; }}", (0..depth).fold("n".to_owned(), twice))
    };
    let many = (0..70).map(|v| format!("Int x{v} = index() + {v};")).collect::<String>()
        + "While (index() < 0) { "
        + &(0..70).map(|v| format!("x{v} = x{v} + 1;")).collect::<String>()
        + "}";
    for (text, expected) in [
        (String::new(), "1:1: there is no function `kernel`: add `void kernel(Ptr<Int> data) { ... }`"),
        ("// nothing".into(), "1:1: there is no function `kernel`"),
        (
            "kernel() { }".into(),
            "1:1: expected a function, which starts with `void` or with the type of its result",
        ),
        ("Int kernel() { return 1; }".into(), "1:5: `kernel` has no result: write `void kernel`"),
        (
            "void kernel() { } void kernel() { }".into(),
            "1:24: the function `kernel` is defined twice: rename one",
        ),
        ("void kernel(Int n, Int n) { }".into(), "1:24: the parameter `n` is defined twice"),
        ("void kernel(n) { }".into(), "1:13: expected the type of a parameter"),
        ("void kernel(Char n) { }".into(), "1:18: a parameter of `kernel` is Int, Float or a pointer"),
        ("void kernel() { }\nvoid store() { }".into(), "2:6: `store` is a function of the language"),
        ("void kernel() { }\nInt f() { }".into(), "2:5: `f` returns Int: end it with `return` and a value"),
        (
            "void kernel() {\n If (0 < 1) { Int x = 1;\n}\n".into(),
            "4:1: expected `}`: the `{` of line 1, column 15 is not",
        ),
        (
            "void kernel() { }\nInt again(Int x) { x = again(x); return x; }".into(),
            "2:24: `again` calls itself",
        ),
        // Functions that are not called are also checked.
        ("void kernel() { }\nInt f() { return 1.5; }".into(), "2:18: `return` needs Int but has Float"),
        // The limit of steps also applies to calls without operations, and to functions that are not called.
        (
            nothings(40),
            "2:13: the functions have more than 500000 statements and expressions after their calls",
        ),
        (nothings(400), "2:13: the functions have more than 500000"),
        (chain(400), "1:45: this is nested too deeply: at most 150 blocks, expressions and calls"),
        (together(3000), "1:1: the program needs more than 64 registers at once"),
        (wide(14), "1:6: the program has more than 10000 operations"),
        ("void kernel() { /*/ }".into(), "1:17: this comment is not closed"),
        (deep(60), "1:75: this is nested too deeply: at most 50 levels"),
        (deep(100_000), "1:75: this is nested too deeply"),
        (blocks(60), "1:658: this is nested too deeply"),
        (terms(60), "1:224: this is nested too deeply"),
        (doubled(40), "2:17: the program has more than 10000 operations after its functions are inlined"),
        (format!("void kernel() {{ {many} }}"), "1:1: the program needs more than 64 registers at once"),
    ] {
        let error = kernel_listing("a.qpu", &text).expect_err(&text).to_string();
        if !error.starts_with(&format!("a.qpu:{expected}")) {
            wrong.push(error);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Lines may end as on Windows, and the text may start with a byte order mark.
    assert!(kernel_listing("a.qpu", "\u{feff}void kernel() {\r\n  Int x = 1; // one\r\n}\r\n").is_ok());
    let limit = [deep(20), blocks(20), terms(45), doubled(8), nothings(14), chain(100), wide(8)];
    limit.iter().for_each(|text| assert!(kernel_listing("a.qpu", text).is_ok(), "{text}"));
}

#[test]
fn any_text_is_a_program_or_a_mistake() {
    let pieces = [
        "Int",
        "Float",
        "Char",
        "Ptr<Int>",
        "x",
        "y",
        "a",
        "=",
        ";",
        "(",
        ")",
        "{",
        "}",
        "If",
        "Where",
        "1",
        "2.5",
        "+",
        "*",
        "-",
        "~",
        "<",
        "&&",
        "index()",
        "gather(a)",
        "receive(x)",
        ",",
        "f",
        "return",
        "rotate",
        "byte(x, 1)",
        "recip(y)",
        "\u{e9}",
    ];
    let mut state = 7u32;
    let mut programs = 0;
    for _ in 0..3000 {
        let mut text = String::from("void kernel(Ptr<Int> a) { Int x = 1; Float y = 1.0; x = ");
        for _ in 0..=state % 6 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text += pieces[(state >> 16) as usize % pieces.len()];
            text += " ";
        }
        programs += usize::from(kernel_listing("a.qpu", &(text + "; }")).is_ok());
    }
    assert!(programs > 0);
}

#[test]
fn data_must_fit_the_parameters() {
    let source = "void kernel(Ptr<Int> a, Ptr<Int> b, Int n, Float f) { *b = *a; }";
    let data = || Data {
        inputs: vec![("a".into(), vec![1; 64])],
        outputs: vec![("b".into(), None)],
        values: vec![("n".into(), "0x10".into()), ("f".into(), "2".into())],
        bytes: Vec::new(),
    };
    assert_eq!(*run(source, &data(), 1).unwrap().outputs[0], [1; 64]);
    type Change = fn(&mut Data);
    let cases: [(Change, &str); 13] = [
        (
            |data| data.outputs.clear(),
            "the parameter `b` of `kernel` has no memory: give --in b=FILE, --out b=FILE, or both",
        ),
        (|data| data.inputs.clear(), "the parameter `a` of `kernel` has no memory"),
        (|data| data.inputs[0].0 = "c".into(), "`c` is no parameter of `kernel`, which has a, b, n, f"),
        (|data| data.inputs[0].0 = "n".into(), "the parameter `n` of `kernel` is Int: use --set"),
        (
            |data| data.values[0].0 = "a".into(),
            "the parameter `a` of `kernel` is Ptr<Int>: use --in, --out or --round-keys",
        ),
        (|data| data.inputs.push(("a".into(), Vec::new())), "the parameter `a` has two inputs: remove one"),
        (|data| data.bytes.push("f".into()), "the parameter `f` of `kernel` is Float: use --set"),
        (|data| data.values.truncate(1), "the parameter `f` of `kernel` has no value: give --set f=NUMBER"),
        (|data| data.values[0].1 = "4294967296".into(), "--set n: `4294967296` is no Int"),
        (|data| data.values[0].1 = "many".into(), "--set n: `many` is no Int"),
        (|data| data.values[1].1 = "0x1".into(), "--set f: `0x1` is no Float"),
        (
            |data| data.outputs[0].1 = Some(1 << 29),
            "the buffer `b` does not fit: all buffers have at most 256 MiB",
        ),
        (|data| data.outputs[0].1 = Some(usize::MAX), "the buffer `b` does not fit"),
    ];
    for (change, expected) in cases {
        let mut data = data();
        change(&mut data);
        let error = run(source, &data, 1).err().unwrap_or_else(|| panic!("{expected}")).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let mut alone = data();
    alone.inputs.clear();
    let error = run("void kernel(Ptr<Int> b, Int n, Float f) { }", &alone, 1).err().unwrap().to_string();
    assert_eq!(error, "--out b: there is no input that has its length: give --out b:BYTES=FILE");
    alone.outputs[0].1 = Some(8);
    alone.bytes.push("b".into());
    let filled = run("void kernel(Ptr<Int> b, Int n, Float f) { *b = index() + n; }", &alone, 1).unwrap();
    assert_eq!(*filled.outputs[0], [16, 17, 18, 19, 20, 21, 22, 23]);
}
