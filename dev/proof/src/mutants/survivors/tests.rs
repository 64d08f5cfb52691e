use super::*;

#[test]
fn a_star_stands_for_any_text() {
    assert!(matches("constant: f: cmp rax,10h -> cmp rax,11h", "constant: f: cmp rax,10h -> cmp rax,11h"));
    assert!(matches("constant: *: cmp * -> cmp *", "constant: f::g: cmp rax,10h -> cmp rax,11h"));
    assert!(!matches("constant: *: cmp * -> cmp *", "constant: f::g: sub rax,10h -> sub rax,11h"));
    assert!(!matches("constant: f", "constant: f::g"));
    // The same characters of a text match only one part of the pattern.
    assert!(!matches("a*ba", "aba "));
    assert!(!matches("ab*ba", "aba"));
}

#[test]
fn a_line_has_a_kind_a_function_and_instructions() {
    let lines = parse("# a reason\n\norder: f: nop; ret -> ret; nop\n").expect("a list");
    assert_eq!(lines, [Equivalence { line: "order: f: nop; ret -> ret; nop".into() }]);
    for line in ["order: f", "order: f: ret", "ret -> nop"] {
        assert!(parse(line).is_err(), "{line}");
    }
}
