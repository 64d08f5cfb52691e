//! Key files: what is taken is written back the same, but for the case of its digits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep::keyfile;

fuzz_target!(|text: &[u8]| {
    let Ok(key) = keyfile::parse(text) else { return };
    let again = keyfile::to_text(&key);
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    assert!(line.eq_ignore_ascii_case(again.trim_end().as_bytes()));
    assert_eq!(
        keyfile::parse(again.as_bytes()).expect("what was written can be read").as_bytes(),
        key.as_bytes()
    );
});
