use super::*;

fn forms(given: &str) -> Vec<String> {
    Passphrase::from(given).forms().iter().map(|form| form.expose_secret().to_owned()).collect()
}

#[test]
fn only_forms_that_differ_are_tried() {
    assert_eq!(forms("secret"), ["secret"]);
    assert_eq!(forms("\u{feff}secret"), ["\u{feff}secret", "secret"]);
    assert_eq!(forms("caf\u{e9}"), ["caf\u{e9}", "cafe\u{301}"]);
    assert_eq!(forms("cafe\u{301}"), ["cafe\u{301}", "caf\u{e9}"]);
    // The text has a composed and a decomposed character, so it is neither in NFC nor in NFD.
    let mixed = "\u{feff}caf\u{e9} cafe\u{301}";
    let expected = [mixed, &mixed[3..], "caf\u{e9} caf\u{e9}", "cafe\u{301} cafe\u{301}"].map(String::from);
    assert_eq!(forms(mixed), expected);
    assert_eq!(forms("\u{4e2d}"), ["\u{4e2d}"]);
}

#[test]
fn buffers_of_normalised_text_do_not_grow() {
    for code in 0..=0x10ffff {
        let Some(character) = char::from_u32(code) else { continue };
        for len in
            [character.nfc().map(char::len_utf8).sum::<usize>(), character.nfd().map(char::len_utf8).sum()]
        {
            assert!(len <= MAX_GROWTH * character.len_utf8(), "{code:x}");
        }
    }
}

#[test]
fn a_new_file_has_no_mark() {
    let passphrase = Passphrase::from("\u{feff}secret");
    assert_eq!(passphrase.without_mark().expose_secret(), "secret");
    assert!(passphrase.difference().unwrap().contains("byte order mark"));
    assert_eq!(Passphrase::from("caf\u{e9}").difference(), None);
}
