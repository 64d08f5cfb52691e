use super::files::BREAKS;
use super::*;

/// Every byte in the place of the last digit, in keys of both lengths.
#[test]
fn hex_digits() {
    for (prefix, len) in [("lockstep-key-256 ", 64), ("lockstep-key-128 ", 32)] {
        for last in 0..=255u8 {
            let mut text = [prefix.as_bytes(), &vec![b'a'; len - 1]].concat();
            text.push(last);
            let value = char::from(last).to_digit(16);
            match parse(&text) {
                Ok(key) => {
                    assert_eq!(key.as_bytes().last().map(|byte| u32::from(byte & 15)), value, "{last}");
                    assert_eq!(to_text(&key).as_bytes(), [&text.to_ascii_lowercase()[..], b"\n"].concat());
                }
                Err(error) => {
                    assert!(value.is_none() && matches!(error, Error::KeyFile { .. }), "{last}")
                }
            }
        }
    }
}

#[test]
fn round_trip() {
    for suite in [Suite::Cobblestone128, Suite::Cobblestone256] {
        let key = FileKey::generate_for(suite).unwrap();
        let text = to_text(&key);
        assert_eq!(text.len(), 17 + 2 * suite.key_len() + 1);
        assert_eq!(parse(text.as_bytes()).unwrap().as_bytes(), key.as_bytes());
        assert_eq!(parse(text.trim_end().as_bytes()).unwrap().suite(), suite);
        assert_eq!(
            parse(text.to_uppercase().replace("LOCKSTEP-KEY", "lockstep-key").as_bytes()).unwrap().as_bytes(),
            key.as_bytes()
        );
    }
    let key = FileKey::from_bytes(&(0..32).collect::<Vec<u8>>()).unwrap();
    assert_eq!(
        *to_text(&key),
        "lockstep-key-256 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
    );
}

#[test]
fn line_breaks_of_every_system_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    for suite in [Suite::Cobblestone128, Suite::Cobblestone256] {
        let key = FileKey::generate_for(suite).unwrap();
        for end in ["", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n", "\n\r\n", &"\r\n".repeat(BREAKS / 2)] {
            let text = format!("{}{end}", to_text(&key).trim_end());
            assert_eq!(parse(text.as_bytes()).unwrap().as_bytes(), key.as_bytes(), "{end:?}");
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap().as_bytes(), key.as_bytes(), "{end:?}");
        }
    }
}

#[test]
fn encodings_of_other_systems_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    for suite in [Suite::Cobblestone128, Suite::Cobblestone256] {
        let key = FileKey::generate_for(suite).unwrap();
        let text = format!("\u{feff}{}\r\n", to_text(&key).trim_end());
        let utf16 =
            |to_bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to_bytes).collect::<Vec<u8>>();
        for bytes in [text.as_bytes().to_vec(), utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)] {
            assert_eq!(parse(&bytes).unwrap().as_bytes(), key.as_bytes());
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path).unwrap().as_bytes(), key.as_bytes());
        }
    }
    assert!(matches!(parse(b"\xff\xfel"), Err(Error::KeyFile { .. })));
}

#[test]
fn other_text_is_refused() {
    let good = to_text(&FileKey::from_bytes(&[0xab; 32]).unwrap());
    let good = good.trim_end();
    let bad = [
        String::new(),
        "\n".into(),
        format!(" {good}"),
        format!("{good} "),
        format!("{good}\r\n#"),
        format!("\n{good}"),
        good.replacen(" ab", " \r\nab", 1),
        format!("{good}0"),
        good[..good.len() - 1].into(),
        good.replace("256", "128"),
        good.replace("256", "192"),
        good.replace("256 ", "256  "),
        good.replacen("ab", "ag", 1),
        good.replacen("ab", "+1", 1),
        "AGE-SECRET-KEY-1".into(),
    ];
    for text in bad {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::KeyFile { .. }), "{text:?}");
        assert!(!error.to_string().contains("abab"));
    }
}

#[test]
fn files_are_private_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let key = FileKey::generate().unwrap();
    create(&path, &key).unwrap();
    assert_eq!(read(&path).unwrap().as_bytes(), key.as_bytes());
    assert!(matches!(create(&path, &FileKey::generate().unwrap()), Err(Error::Exists { .. })));
    assert_eq!(read(&path).unwrap().as_bytes(), key.as_bytes());
    let is_open = || is_open_to_others(&std::fs::metadata(&path).unwrap());
    assert!(!is_open());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(is_open());
    }
    std::fs::write(&path, [b'x'; 10_000]).unwrap();
    assert!(matches!(read(&path), Err(Error::KeyFile { .. })));
    assert!(matches!(read(folder.path()), Err(Error::File { .. })));
    assert!(matches!(read(&folder.path().join("none")), Err(Error::File { .. })));
}
