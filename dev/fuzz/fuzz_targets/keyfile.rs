//! Parses key files. If a parsed key is written, the result must be the line that was read, except for the case of its digits, the line
//! breaks after it, and the encoding of the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep::{keyfile, text::to_utf8};

fuzz_target!(|text: &[u8]| {
    let Ok(key) = keyfile::parse(text) else { return };
    let text = to_utf8(text).expect("a text that was parsed");
    let again = keyfile::to_text(&key);
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
    assert!(text[..end].eq_ignore_ascii_case(again.trim_end().as_bytes()));
    assert_eq!(
        keyfile::parse(again.as_bytes()).expect("what was written can be read").as_bytes(),
        key.as_bytes()
    );
});
