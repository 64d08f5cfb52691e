
use super::*;

const OPTIONS: &[LaunchOption] = &[
    LaunchOption {
        name: "threads",
        meaning: "threads of a block",
        range: 8..=512,
        multiple: 4,
        kernels: &["a/x", "a/y"],
    },
    LaunchOption { name: "rounds", meaning: "rounds", range: 1..=9, multiple: 1, kernels: &["a/y"] },
];

#[test]
fn options_are_checked_by_the_table() {
    assert_eq!(parse("threads=256", OPTIONS, "a/x").unwrap(), [("threads", 256)]);
    let both = parse("threads=8, rounds = 9", OPTIONS, "a/y").unwrap();
    assert_eq!((number(&both, "rounds"), number(&both, "other")), (Some(9), None));
    for (text, kernel, expected) in [
        ("threads", "a/x", "`threads`: write NAME=NUMBER"),
        ("threads=7", "a/x", "give threads of a block, from 8 to 512, a multiple of 4"),
        ("threads=10", "a/x", "a multiple of 4"),
        ("threads=-8", "a/x", "from 8 to 512"),
        ("rounds=10", "a/y", "give rounds, from 1 to 9"),
        ("rounds=1", "a/x", "kernels with this option are a/y"),
        ("blocks=1", "a/x", "options of a/x: threads"),
        ("threads=8", "b/z", "kernels with this option are a/x, a/y"),
        ("blocks=8", "b/z", "options of b/z: none"),
        ("", "a/x", "write NAME=NUMBER"),
    ] {
        let error = parse(text, OPTIONS, kernel).unwrap_err().to_string();
        assert!(error.starts_with("launch option `") && error.contains(expected), "{text}: {error}");
    }
}
