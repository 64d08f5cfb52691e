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
        0xe8, 0, 0, 0, 0, // 19: call 24
    ];
    let image = Image::of_function(0x1000, &code);
    let visited = BTreeSet::from([0x1000]);
    let coverage = &of_functions(&image, "f", &visited)["f"];
    assert_eq!(*coverage, Coverage { all: 9, missed: vec![0x1002, 0x1004, 0x1011], panics: 5 });
}

#[test]
fn a_limit_is_the_largest_number_of_a_function() {
    let limits = parse("# a reason\n\n2: a::*::b\n").expect("a list");
    let coverage = |missed: usize| Coverage { all: 9, missed: vec![0; missed], panics: 0 };
    assert!(limits[0].permits("a::x::b", &coverage(2)));
    assert!(!limits[0].permits("a::x::b", &coverage(3)));
    assert!(!limits[0].permits("a::x::c", &coverage(1)));
    assert_eq!(parse("x: a").expect_err("no number"), "not `N: function`: x: a");
}
