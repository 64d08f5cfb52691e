//! Key files: a parsed key is written back as the same line, except for the case of its digits and the line breaks after it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep::keyfile;

fuzz_target!(|text: &[u8]| {
    let Ok(key) = keyfile::parse(text) else { return };
    let again = keyfile::to_text(&key);
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
    assert!(text[..end].eq_ignore_ascii_case(again.trim_end().as_bytes()));
    assert_eq!(
        keyfile::parse(again.as_bytes()).expect("what was written can be read").as_bytes(),
        key.as_bytes()
    );
});
