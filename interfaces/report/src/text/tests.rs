
use super::*;

#[test]
fn lines_are_counted_in_characters() {
    assert_eq!(wrap("", 5), [""]);
    assert_eq!(wrap("größe und\n länge", 9), ["größe und", "länge"]);
    assert_eq!(wrap("a longest-of-all b", 5), ["a", "longest-of-all", "b"]);
}

#[test]
fn all_lines_but_the_first_are_indented() {
    let text = "word ".repeat(20);
    let hung = hang(WIDTH, "label: ", 4, &text);
    assert!(hung.starts_with("label: word") && hung.ends_with("word\n"), "{hung}");
    assert!(hung.lines().skip(1).all(|line| line.starts_with("    word")), "{hung}");
    assert!(hung.lines().all(|line| line.len() <= WIDTH), "{hung}");
    assert_eq!(hang(WIDTH, "label: ", 4, ""), "label:\n");
    // A label that leaves too little room.
    let label = format!("  {:<26} ", "label");
    let hung = hang(40, &label, label.len(), &text);
    assert!(
        hung.starts_with("  label\n    word word") && hung.lines().all(|line| line.len() <= 40),
        "{hung}"
    );
}

#[test]
fn amounts_have_a_unit() {
    assert_eq!(bytes(0), "0 bytes");
    assert_eq!(bytes(1), "1 byte");
    assert_eq!(bytes(1023), "1023 bytes");
    assert_eq!(bytes(1024), "1.0 KiB");
    assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
    assert_eq!(bytes(u64::MAX), "16.0 EiB");
}

#[test]
fn times_have_three_digits() {
    let all = [0.0, 1.234, 99.9, 999.7, 12_345.0, 99_960.0, 5e6, 2.5e9, 123e9].map(|ns| time(ns / 1e9));
    let expected =
        ["0.00 ns", "1.23 ns", "99.9 ns", "1.00 µs", "12.3 µs", "100 µs", "5.00 ms", "2.50 s", "123 s"];
    assert_eq!(all, expected);
}

#[test]
fn control_characters_and_line_breaks_are_replaced() {
    assert_eq!(printable("a\u{1b}[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
    assert_eq!(one_line(&"Two\n lines.\n"), "Two lines");
    assert_eq!(hex(&[0, 0xff, 0x1a]), "00ff1a");
}
