use super::*;

#[test]
fn only_instructions_on_paths_to_ud2_are_panics() {
    #[rustfmt::skip]
    let code = [
        0x74, 0x03, // 0: je 5
        0x31, 0xc0, // 2: xor eax, eax
        0xc3, // 4: ret
        0x75, 0x02, // 5: jne 9
        0x0f, 0x0b, // 7: ud2
        0xe8, 0, 0, 0, 0, // 9: call 14
        0xeb, 0xf7, // 14: jmp 7
        0x90, // 16: nop
        0x74, 0xed, // 17: je 0
        0xeb, 0xfe, // 19: jmp 19
        0xff, 0xe0, // 21: jmp rax
        0x06, 0x90, // 23: not an instruction
        0x74, 0x07, // 25: je 34, a tail call of the function after this one
        0xeb, 0xec, // 27: jmp 9
        0xe8, 0, 0, 0, 0, // 29: call 34
    ];
    let image = Image::of_function(0x1000, &code);
    let visited = BTreeSet::from([0x1000]);
    let coverage = &of_functions(&image, "f", &visited)["f"];
    let missed = [2, 4, 17, 19, 21, 23, 25].map(|offset| 0x1000 + offset).to_vec();
    assert_eq!(*coverage, Coverage { all: 14, missed, panics: 6 });
}

#[test]
fn each_function_belongs_to_one_limit() {
    let functions = |all: &[(&str, usize)]| -> BTreeMap<String, Coverage> {
        let coverage = |missed| Coverage { all: 9, missed: vec![0; missed], panics: 0 };
        all.iter().map(|(name, missed)| (name.to_string(), coverage(*missed))).collect()
    };
    let limits = parse("# a reason\n\n3: a::*::b\n1: a::*\n").expect("a list");
    let right = functions(&[("a::x::b", 2), ("a::y::b", 1), ("a::z", 1), ("c", 0)]);
    assert_eq!(compare(&right, &limits), (vec![], vec![]));
    let (faults, hints) = compare(&functions(&[("a::x::b", 4), ("c", 1)]), &limits);
    assert_eq!(hints, Vec::<String>::new());
    assert_eq!(
        faults,
        [
            "no run executes 1 instructions of c",
            "no run executes 4 instructions of a::*::b (limit 3), the last of them in a::x::b",
            "no function with instructions that no run executes has the name a::*"
        ]
    );
    let (faults, hints) = compare(&functions(&[("a::x::b", 1), ("a::z", 1)]), &limits);
    assert_eq!((faults, hints), (vec![], vec!["the limit 3 can be 1: a::*::b".to_string()]));
    assert_eq!(parse("x: a").expect_err("no number"), "not `N: function`: x: a");
}
