use super::*;
use crate::machine::Kind;

fn finding(kind: Kind, function: &str) -> Finding {
    Finding { kind, function: function.into(), detail: String::new() }
}

#[test]
fn a_line_describes_functions_by_beginning_and_end() {
    let known = parse("# a reason\n\nthe stack holds a secret at return: <a::*>::xts::long\n").unwrap();
    assert_eq!(known.len(), 1);
    assert!(known[0].describes(&finding(Kind::Stack, "<a::B as c::D>::xts::long")));
    assert!(!known[0].describes(&finding(Kind::Register, "<a::B as c::D>::xts::long")));
    assert!(!known[0].describes(&finding(Kind::Stack, "<a::B as c::D>::xts::short")));
    let stopped = parse("stopped: a::b*has no semantics").unwrap();
    assert!(stopped[0].describes_stop("stopped at a::b+0x3: the instruction `c` has no semantics"));
    assert!(!stopped[0].describes_stop("stopped at b::b+0x3: the instruction `c` has no semantics"));
    assert!(parse("no kind").is_err());
}
