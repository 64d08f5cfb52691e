use super::*;

/// The error code that programs such as Node.js make from the text of an error: the text in upper case, with `_` in place of
/// spaces.
fn error_code(text: &str) -> String {
    let code = text.chars().map(|c| if c == ' ' { '_' } else { c.to_ascii_uppercase() });
    format!("ERR_OSSL_{}", code.collect::<String>())
}

#[test]
fn texts_are_distinct_and_become_error_codes_of_letters_digits_and_underscores() {
    for (i, (reason, text)) in Reason::OWN.iter().enumerate() {
        assert!(reason.shared().is_none());
        let code = error_code(text.to_str().unwrap());
        let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(code.bytes().all(is_plain) && !code.contains("__") && !code.ends_with('_'), "{code}");
        assert!(Reason::OWN[..i].iter().all(|(_, other)| other != text), "{text:?}");
        assert_eq!(reason.text(), *text);
        assert!(!reason.advice().to_str().unwrap().contains('%'), "advice is used as a format string");
    }
}

#[test]
fn shared_reasons_have_openssls_numbers() {
    // The number is from openssl/proverr.h.
    assert_eq!(Reason::BadDecrypt.shared(), Some(100));
    assert_eq!(Reason::WrongFinalBlockLength.shared(), Some(107));
    assert_eq!(Reason::Device.shared(), None);
}
