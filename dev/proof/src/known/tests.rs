use super::*;
use crate::machine::Kind;

fn finding(kind: Kind, function: &str, bytes: usize) -> Finding {
    Finding { kind, function: function.into(), bytes, depth: 0, detail: String::new() }
}

#[test]
fn a_line_describes_one_function_and_a_number_of_bytes() {
    let known = parse(
        "# a reason\n\nthe stack holds a secret at return, at most 64 bytes: <a::B as c::D>::xts::long\n",
    );
    let known = known.unwrap();
    assert_eq!(known.len(), 1);
    assert!(known[0].describes(&finding(Kind::Stack, "<a::B as c::D>::xts::long", 64)));
    assert!(!known[0].describes(&finding(Kind::Stack, "<a::B as c::D>::xts::long", 65)));
    assert!(!known[0].describes(&finding(Kind::Register, "<a::B as c::D>::xts::long", 64)));
    assert!(!known[0].describes(&finding(Kind::Stack, "<a::B as c::D>::xts::longer", 64)));
    let branch = parse("a branch depends on a secret: a::b").unwrap();
    assert!(branch[0].describes(&finding(Kind::Branch, "a::b", 0)));
    assert!(!branch[0].describes(&finding(Kind::Branch, "a", 0)));
}

#[test]
fn a_line_describes_a_stop_by_function_and_instruction() {
    let stopped = parse("stopped: a::b+*: the instruction `c` has no semantics").unwrap();
    assert!(stopped[0].describes_stop("stopped at a::b+0x3: the instruction `c` has no semantics"));
    assert!(!stopped[0].describes_stop("stopped at a::b+0x3: the instruction `d` has no semantics"));
    assert!(!stopped[0].describes_stop("stopped at b::b+0x3: the instruction `c` has no semantics"));
}

#[test]
fn a_line_of_another_form_is_refused() {
    for line in ["no kind", "the stack holds a secret at return, at most some bytes: a"] {
        assert!(parse(line).is_err(), "{line}");
    }
}
